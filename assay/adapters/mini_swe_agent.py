"""mini-swe-agent on Harbor tasks: its loop runs here, its commands in the task's container.

It needs ``pip install mini-swe-agent`` beside Assay.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ..envs.harbor import Seat
from ..sandbox import Session

_DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_COMMAND_S = 120.0


class MiniSWEAgent:
    """An agent for :func:`~assay.envs.harbor.run_trial`.

    A model that cannot be reached raises what litellm raises: such a trial is not graded.

    Args:
        model: litellm's name for the model, such as ``openai/NAME`` for any compatible server.
        base_url: of the server; litellm's own by default.
        api_key: of the server; what it reads from the environment by default.
        steps: the most requests to the model.
        config: a configuration of mini-swe-agent.
        model_kwargs: of each request, such as ``temperature``.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        steps: int = 100,
        config: str = "mini.yaml",
        **model_kwargs: Any,
    ) -> None:
        if steps < 1:
            raise ValueError(f"steps must be at least 1, got {steps}")
        self.model, self.steps, self.config = model, steps, config
        given = {"api_base": base_url, "api_key": api_key, **model_kwargs}
        self.model_kwargs = {name: value for name, value in given.items() if value is not None}

    def __call__(self, seat: Seat) -> str:
        """Work on a task, and return how it ended and what it said."""
        from minisweagent.agents.default import DefaultAgent
        from minisweagent.config import get_config_from_spec
        from minisweagent.models.litellm_model import LitellmModel

        settings = get_config_from_spec(self.config)
        texts = {k: v for k, v in settings["agent"].items() if k.endswith("_template")}
        options = settings.get("model", {}) | {"cost_tracking": "ignore_errors"}
        options["model_kwargs"] = options.get("model_kwargs", {}) | self.model_kwargs
        agent = DefaultAgent(
            LitellmModel(model_name=self.model, **options),
            SessionEnvironment(
                seat.session,
                seat.stage.user,
                seat.timeout_s,
                settings.get("environment", {}).get("env"),
            ),
            step_limit=self.steps,
            cost_limit=0.0,
            wall_time_limit_seconds=max(1, int(seat.timeout_s)),
            **texts,
        )
        ending = agent.run(seat.stage.instruction)
        said = [str(m.get("content") or "") for m in agent.messages if m["role"] != "system"]
        return "\n".join([*said, f"[{ending.get('exit_status')}]"])


class SessionEnvironment:
    """A session, as mini-swe-agent's environment: each command is a shell of its own."""

    def __init__(
        self,
        session: Session,
        user: str | int | None,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._session, self._user, self._env = session, user, env
        self._ends = time.monotonic() + timeout_s

    def execute(self, action: dict[str, Any], cwd: str = "") -> dict[str, Any]:
        """Run the model's command in the container; the one that says so ends the agent's work."""
        from minisweagent.exceptions import Submitted

        left = max(0.1, self._ends - time.monotonic())
        try:
            done = self._session.exec(
                ["/bin/sh", "-c", f"exec 2>&1\n{action.get('command', '')}"],
                timeout_s=min(_COMMAND_S, left),
                user=self._user,
                env=self._env,
                cwd=cwd or None,
            )
        except ValueError as error:  # a zero byte in the model's command, say: the trial goes on
            return {"output": "", "returncode": -1, "exception_info": str(error)}
        first, _, rest = done.text.lstrip().partition("\n")
        if done.ok and first.strip() == _DONE:
            about = {"exit_status": "Submitted", "submission": rest}
            raise Submitted({"role": "exit", "content": rest, "extra": about})
        code = -1 if done.returncode is None else done.returncode
        why = "" if done.returncode is not None else done.reason
        return {"output": done.text, "returncode": code, "exception_info": why}

    def get_template_vars(self, **more: Any) -> dict[str, Any]:
        """Return what the prompts may name."""
        return {"system": "Linux", "release": "", "version": "", "machine": "", "cwd": "", **more}

    def serialize(self) -> dict[str, Any]:
        """Return what a trajectory keeps of it."""
        return {"info": {"config": {"environment_type": "assay.Session"}}}
