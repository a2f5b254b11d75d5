"""NeMo Gym: a resources server whose replies without a score are masked.

Without postponed annotations: FastAPI reads those of the server, which names classes made here.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..envs import TextEnv
from ..verifiers import Verdict
from .judging import (
    Judge,
    by_name,
    decode_reference,
    encode_reference,
    tasks_to_write,
    verifier_named,
    write_rows,
)


def nemo_gym_server(judges: Judge | Mapping[str, Judge]) -> type:
    """Make a NeMo Gym resources server that judges the last message of a response.

    A reply without a score has ``mask_sample``, by which NeMo RL leaves its tokens out of the
    loss; its ``reward`` is 0.0, since the field takes a number. The server is run like any
    other: ``if __name__ == "__main__": Server.run_webserver()``.

    Args:
        judges: an environment of one turn or a verifier; or several, by ``data_source``.

    Raises:
        ValueError: an environment plays more than one reply.
        ImportError: nemo-gym is missing.
    """
    from nemo_gym.base_resources_server import (
        BaseVerifyRequest,
        BaseVerifyResponse,
        SimpleResourcesServer,
    )

    known = by_name(judges)

    class VerifyRequest(BaseVerifyRequest):  # type: ignore[misc]  # nemo-gym is not installed
        data_source: str = ""
        ground_truth: str

    class VerifyResponse(BaseVerifyResponse):  # type: ignore[misc]  # nemo-gym is not installed
        mask_sample: bool
        status: str

    class AssayResourcesServer(SimpleResourcesServer):  # type: ignore[misc]  # as above
        """Judge replies by Assay."""

        async def verify(self, body: VerifyRequest) -> VerifyResponse:
            """Judge one reply."""
            judge = verifier_named(known, body.data_source)
            reference = decode_reference("ground_truth", body.ground_truth)
            verdict = await asyncio.to_thread(judge.verify, reply_of(body.response), reference)
            return VerifyResponse(**body.model_dump(), **fields_of(verdict))

    return AssayResourcesServer


def reply_of(response: Any) -> str:
    """Return the text of a response's last message; empty if it has none, such as only calls."""
    messages = [item for item in response.output if item.type == "message"]
    parts = messages[-1].content if messages else []
    return "".join(part.text for part in parts if part.type == "output_text")


def fields_of(verdict: Verdict) -> dict[str, Any]:
    """Return the fields of a verify response that a verdict decides."""
    return {
        "reward": float(verdict.score or 0.0),
        "mask_sample": verdict.score is None,
        "status": verdict.status.value,
    }


def to_nemo_gym(env: TextEnv, path: str | Path, *, data_source: str = "", **options: Any) -> int:
    """Write tasks as the JSONL file that a NeMo Gym data set names.

    Args:
        env: an environment of one turn.
        path: of the file.
        data_source: what the rows are called; the environment's id.
        **options: ``size``, ``seed``, ``split``, ``allow_test_split`` and ``allow_sample`` of
            :func:`~assay.adapters.to_verl`.

    Returns:
        The number of rows.

    Raises:
        ValueError: the environment is not of one turn, its tasks never end and there is no
            ``size``, its tasks are not for the split, or a reference cannot be used.
    """
    rows = [
        {
            "responses_create_params": {"input": [dict(message) for message in task.messages]},
            "data_source": data_source or env.name,
            "ground_truth": encode_reference(task.reference),
            "task": task.id,
        }
        for _, task in tasks_to_write(env, **options)
    ]
    return write_rows(path, rows)
