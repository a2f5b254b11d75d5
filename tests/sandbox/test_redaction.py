"""Secrets are hidden by their field's name, in URLs and in messages, and nothing else is."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.sandbox import Sandbox, SandboxUnavailable
from assay.sandbox.redaction import REDACTED, hide, redact, redacted_paths, redacted_repr, remember

CANARY = "c4n4ry-0f-mine"
QUICK = settings(deadline=None, derandomize=True)

SECRET = (
    "token hf_token HF_TOKEN apiKey api_key openai_api_key X-Api-Key Authorization key password "
    "dbPassword passwd secret client_secret AWS_SECRET_ACCESS_KEY access_token headers auth cookies"
)
PLAIN = (
    "tokens max_new_tokens max_token tokens_per_batch eos_token pad_token tokenizer api_key_env "
    "sort_key monkey keyboard secretary author token_file data"
)


@pytest.mark.parametrize("name", SECRET.split())
def test_a_field_named_like_a_secret_is_hidden(name: str) -> None:
    assert redact({name: CANARY, "more": [{name: [CANARY]}]}) == {
        name: REDACTED,
        "more": [{name: REDACTED}],
    }
    assert redact({name: 123456}) == {name: REDACTED}
    assert redact({name: None}) == {name: None}
    assert redact({name: True}) == {name: True}


@pytest.mark.parametrize("name", PLAIN.split())
def test_other_fields_are_left(name: str) -> None:
    assert redact({name: CANARY}) == {name: CANARY}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"http://me:{CANARY}@host/x", "http://<redacted>@host/x"),
        (f"https://{CANARY}@host/", "https://<redacted>@host/"),
        (f"https://me:{CANARY}@2@host/", "https://<redacted>@host/"),
        (f"ssh://me:{CANARY}@host", "ssh://<redacted>@host"),
        ("ssh://me@host", "ssh://me@host"),
        ("http://host:80/a@v1", "http://host:80/a@v1"),
        (f"GET /x?api_key={CANARY}&n=1", "GET /x?api_key=<redacted>&n=1"),
        (f"--set token={CANARY}", "--set token=<redacted>"),
        (f"{{'token': '{CANARY} 2', 'n': 1}}", "{'token': '<redacted>', 'n': 1}"),
        (f'{{"api_key": "a\\"{CANARY}"}}', '{"api_key": "<redacted>"}'),
        (f"Authorization: Basic {CANARY}", "Authorization: <redacted>"),
        (f"sent Bearer {CANARY * 2}", "sent Bearer <redacted>"),
        ("sorted(rows, key=len)", "sorted(rows, key=len)"),
        ("unexpected token: 'x'", "unexpected token: 'x'"),
    ],
)
def test_texts(text: str, shown: str) -> None:
    assert redact(text) == shown


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@QUICK
@given(_json)
def test_redacting_twice_is_redacting_once(value: Any) -> None:
    once = redact(value)
    assert redact(once) == once


@QUICK
@given(_json, st.sampled_from(SECRET.split()))
def test_no_secret_is_left_beside_anything(value: Any, name: str) -> None:
    assert CANARY not in json.dumps(redact({"a": value, "b": [value, {name: CANARY}]}))


@QUICK
@given(st.text(), st.sampled_from(["token={}", "'api_key': '{}'", "https://{}@h", "u:{}@h"]))
def test_what_was_given_is_hidden_in_any_message(text: str, form: str) -> None:
    remember({"site": f"http://me:{CANARY}@host"})
    assert CANARY not in hide(text + form.format(CANARY) + text)


@pytest.mark.parametrize("piece", ["a", "a.", "a://", 'token="', "a=", "Bearer ", "token"])
def test_long_texts_take_time_in_proportion(piece: str) -> None:
    def seconds(length: int) -> float:
        text, times = piece * length, []
        for _ in range(3):  # other processes slow some of them
            started = time.process_time()
            redact(text)
            times.append(time.process_time() - started)
        return min(times)

    seconds(1_000)
    assert seconds(160_000) < 40 * max(seconds(10_000), 0.001)


def test_where_secrets_are_missing_is_shown() -> None:
    kept = redact({"env_args": {"token": CANARY, "n": 1}, "data": f"http://a:{CANARY}@b"})
    assert list(redacted_paths(kept)) == ["env_args.token", "data"]


def test_a_dataclass_shows_no_secret() -> None:
    @dataclass(frozen=True, slots=True)
    class Settings:
        name: str
        api_key: str
        headers: dict[str, str] = field(default_factory=dict)
        __repr__ = redacted_repr

    shown = repr(Settings("x", CANARY, {"X": CANARY}))
    assert shown.endswith("Settings(name='x', api_key='<redacted>', headers='<redacted>')")


def test_no_address_of_a_daemon_shows_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in (f"ssh://me:{CANARY}@host", f"tcp://me:{CANARY}@host:1", f"http://{CANARY}@h"):
        for hosts in ([address], address):
            with pytest.raises(ValueError, match=REDACTED) as refused:
                Sandbox(hosts=hosts)
            assert CANARY not in str(refused.value)
    monkeypatch.setenv("DOCKER_HOST", f"tcp://me:{CANARY}@127.0.0.1:1")
    with (
        Sandbox(backend="docker") as box,
        pytest.raises(SandboxUnavailable, match=REDACTED) as unavailable,
    ):
        box.run("")
    assert CANARY not in f"{unavailable.value} {box!r}"
