"""A client of an OpenAI-compatible server, for the policies that are served by one."""

from __future__ import annotations

import os
from typing import Any


def connect(base_url: str, api_key_env: str | None, *, retries: int, timeout_s: float) -> Any:
    """Make an openai client that follows no redirects, so that the key stays with this server.

    Args:
        base_url: of the server.
        api_key_env: the environment variable that holds the key; ``None`` sends none.
        retries: of a request, beside the first try.
        timeout_s: of a request, in seconds.

    Raises:
        ImportError: the package openai is missing.
        ValueError: the environment variable holds no key.
    """
    try:
        import openai
    except ImportError as error:
        missing = "the package openai is missing: pip install 'assay[judge]'"
        raise ImportError(missing) from error
    key = "none" if api_key_env is None else os.environ.get(api_key_env, "").strip()
    if not key:
        raise ValueError(f"the environment variable {api_key_env} holds no API key")
    return openai.OpenAI(
        base_url=base_url,
        api_key=key,
        max_retries=retries,
        timeout=timeout_s,
        http_client=openai.DefaultHttpxClient(follow_redirects=False),
    )
