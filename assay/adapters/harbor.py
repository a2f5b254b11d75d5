"""Our sessions as an environment of the ``harbor`` package, by import path.

``harbor run -p FOLDER -a oracle -e assay.adapters.harbor:AssayEnvironment`` runs Harbor's own
agents and verifier in containers of ours, without docker compose. The tests then run where Harbor
runs them, in the agent's container: grading that cannot be forged is that of ``assay harbor run``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    from harbor.environments.base import BaseEnvironment, ExecResult
    from harbor.environments.capabilities import (
        EnvironmentCapabilities,
        EnvironmentResourceCapabilities,
    )
except ImportError as error:
    raise ImportError("the package harbor is missing: pip install harbor (Python 3.12)") from error

from ..envs.harbor.trial import built
from ..sandbox import Sandbox, Session, SessionLimits

_OUTPUT_BYTES = 8 << 20


class AssayEnvironment(BaseEnvironment):  # type: ignore[misc]  # harbor may be absent
    """A session for each of Harbor's trials: no network, one container, files by the supervisor."""

    _box: Sandbox | None = None
    _session: Session | None = None

    @staticmethod
    def type() -> str:
        """Return the name of this kind of environment."""
        return "assay"

    @classmethod
    def resource_capabilities(cls) -> Any:
        """Say which resources are bounded."""
        return EnvironmentResourceCapabilities(
            cpu_limit=True, memory_limit=True, fractional_cpus=True
        )

    @property
    def capabilities(self) -> Any:
        """Say what it can do: containers have no network."""
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        image = self.task_env_config.docker_image
        if not image and not (self.environment_dir / "Dockerfile").is_file():
            raise FileNotFoundError(f"{self.environment_dir} has no Dockerfile")

    async def start(self, force_build: bool) -> None:
        """Build the image and start the container."""
        self._session = await asyncio.to_thread(self._open)

    def _open(self) -> Session:
        config = self.task_env_config
        self._box = Sandbox(backend="docker")
        session = self._box.session(
            config.docker_image or built(self.environment_dir),
            limits=SessionLimits(
                memory_mib=config.memory_mb or 2048,
                cpus=config.cpus or 1.0,
                disk_mib=config.storage_mb or 4096,
                output_bytes=_OUTPUT_BYTES,
            ),
            workdir=config.workdir,
        )
        folders = "/logs/agent /logs/verifier /logs/artifacts /tests /solution"
        # Only the constant above is in the command.
        session.exec(f"mkdir -p {folders} && chmod 777 {folders}", user=0)
        return session

    async def stop(self, delete: bool) -> None:
        """Remove the container."""

        def close() -> None:
            if self._session is not None:
                self._session.close()
            if self._box is not None:
                self._box.close()

        await asyncio.to_thread(close)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Put a file."""
        await self._do(lambda s: s.put(target_path, Path(source_path), user=0))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Put what a folder holds."""
        await self._do(lambda s: s.put(target_dir, Path(source_dir), user=0))

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Get a file."""
        target = Path(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(await self._do(lambda s: s.get(source_path, user=0)))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Get what a folder holds; links are left out."""
        await self._do(lambda s: s.get_dir(source_dir, Path(target_dir)))

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> Any:
        """Run a command, which may be the model's: in the task's container, nowhere else."""
        who = user if user is not None else self.default_user
        merged = self._merge_env(env)
        done = await self._do(
            lambda s: s.exec(command, timeout_s=timeout_sec, user=who, env=merged, cwd=cwd)
        )
        return ExecResult(
            stdout=done.text,
            stderr=done.stderr.decode("utf-8", "backslashreplace"),
            return_code=124 if done.returncode is None else done.returncode,
        )

    async def _do(self, action: Callable[[Session], Any]) -> Any:
        session = self._session
        if session is None:
            raise RuntimeError("the environment is not started")
        return await asyncio.to_thread(action, session)
