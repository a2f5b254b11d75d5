"""Run a task's tests where the agent cannot forge their result.

The tests run in a fresh container of the clean image. Into it comes what the agent changed, but no
tool, no start-up file and no reward (:mod:`.carry`). Root runs ``test.sh``; Python runs under
:mod:`.guard`, so the agent's code runs in processes of another user only.

A grader is ``separate`` if none of its own processes runs the agent's code. One that does, such as
a shell script that executes the agent's program itself, is ``shared``: it still has a clean
container, but the agent's code could write the reward from within it. :mod:`.script` tells them
apart by what ``test.sh`` calls, and calls a grader shared in case of doubt.
"""

from __future__ import annotations

import glob
import importlib.resources
import io
import json
import math
import posixpath
import re
import shlex
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from ...sandbox import Session, SessionEnded, guest
from ...verifiers import Status, Verdict
from .carry import (
    AGENTS_HOME,
    STARTUP,
    TEMPORARY,
    TESTS_ONLY,
    AgentsFault,
    Carried,
    collect,
    is_below,
    listing,
    normal,
    tool_paths,
)
from .folder import Stage
from .script import COMMANDS, UNKNOWN, Grading, grading_of, written_paths

AGENT_UID = 1731
"""The user that owns what was carried, and runs what the tests start."""

_SETTINGS = (
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "ENV", "CURL_HOME", "WGETRC"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX"),
    *("PYTHONWARNINGS", "PYTHONBREAKPOINT", "PYTEST_ADDOPTS", "PYTEST_PLUGINS"),
    *("PIP_CONFIG_FILE", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"),
    *("PIP_CONSTRAINT", "PIP_REQUIREMENT", "SYSTEM_WGETRC", "APT_CONFIG", "JQ_LIBRARY_PATH"),
    *("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "GCONV_PATH", "LOCPATH", "AWKPATH", "AWKLIBPATH"),
)
"""Variables by which an image may have its programs load files, and the agent could write those."""

_OF_A_SHELL = " ".join(f"'{name}'" for name in ("sh", "bash", "env", "tar", "python3", *COMMANDS))

_ASK = f"""\
for name in {" ".join(_SETTINGS)}; do eval "printf '%s\\n' \\"\\${{$name-}}\\""; done
printf '%s\\n' "$PATH" "${{HOME:-/root}}" "$PWD"
command -v python3 || echo
id -u
folders=$(python3 -I -c 'import sys, sysconfig
for path in {{sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()}}: print(path)' \\
    2> /dev/null)
folders="$folders
$(cat /etc/ld.so.conf /etc/ld.so.conf.d/*.conf 2> /dev/null | grep ^/)"
commands=$(for name in {_OF_A_SHELL}; do command -v "$name"; done)
follow() {{ # each link on the way to a path, and where it leads after a mark
    rest=$2 at= left=40
    while [ "$rest" ] && [ "$left" -gt 0 ]; do
        name=${{rest%%/*}}
        case $rest in */*) rest=${{rest#*/}} ;; *) rest= ;; esac
        case $name in '' | .) continue ;; ..) at=${{at%/*}}; continue ;; esac
        [ -L "$at/$name" ] || {{ at=$at/$name; continue; }}
        printf '+%s\n' "$at/$name"
        target=$(readlink -- "$at/$name"); rest=$target/$rest left=$((left - 1))
        case $target in /*) at= ;; esac
    done
    printf '%s%s\n' "$1" "$at"
}}
set -f; IFS=':
'
for path in $PATH; do case $path in /*) follow = "$path" ;; esac; done
for path in $commands; do case $path in /*) follow + "$path" ;; esac; done
for path in $folders; do follow '' "$path"; done
"""
_GIT = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}
"""Lets git of the tests' user look at repositories that the agent's user owns."""

_DROP = """\
closed=$({{ stat -c %d:%i /; find {closed} -exec stat -c %d:%i {{}} +; }} | tr '\\n' ' ')
xargs -0 stat -L -c '%d:%i %n' < /.assay 2>/dev/null | while read -r file path; do
    case " $closed" in *" $file "*) rm -f -- "$path" ;; esac
done
rm -f /.assay
"""
"""Drops the agent's links that lead to the tests by a link of the image."""
_DROP_WRITTEN = "find {globs} -prune -type l -user {uid} -exec rm -f -- {{}} + 2>/dev/null"
"""Drops those at paths that the tests write, which another of its links may lead to."""

_LOG_CHARS = 20_000
_WRITABLE: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}


class GraderFault(Exception):
    """No reward can be read, and that is not the agent's doing.

    Attributes:
        name: ``no_reward``, ``bad_reward``, ``no_tools``, ...
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name

    def __str__(self) -> str:
        return f"{self.name}: {self.args[0]}"


@dataclass(frozen=True)
class Graded:
    """The result of a task's tests.

    Attributes:
        verdict: its score is the reward, ``None`` after a fault; its parts are the metrics, and
            ``shared`` is among them if the grader is.
        grading: whether the grader's processes are parted from the agent's code.
        rewards: all that the grader wrote, by key.
        log: what the tests printed, its end.
        fault: name of the fault if there is no score.
        seconds: the tests took.
    """

    verdict: Verdict
    grading: Grading = "separate"
    rewards: Mapping[str, float] = field(default_factory=dict)
    log: str = ""
    fault: str = ""
    seconds: float = 0.0

    @classmethod
    def failed(cls, name: str, reason: str, status: Status = Status.VERIFIER_ERROR) -> Graded:
        """Return a fault: no score."""
        return cls(Verdict.fault(status, f"{name}: {reason}"), fault=name)

    @classmethod
    def broke(cls, reason: str, **more: Any) -> Graded:
        """Return no reward, since the agent broke what would be graded, or what grades."""
        return cls(Verdict.wrong(reason, status=Status.BROKE_SANDBOX), **more)


def grade(
    agent: Session,
    fresh: Callable[[], AbstractContextManager[Session]],
    stage: Stage,
    env: Mapping[str, str] = {},
) -> Graded:
    """Grade what an agent has left in its session.

    Tests that give no reward are run again without the agent's files, and once more with them. If
    only its files take the reward away, the agent broke the grader and earns nothing: one that
    knows that it fails could otherwise have no score instead of a low one.

    Args:
        agent: its session. All of its processes are killed.
        fresh: opens a new session of the verifier's image.
        stage: what was asked.
        env: variables for the tests: those of ``[verifier].env``, filled in.

    Raises:
        SandboxError: a container was lost; nothing was judged.
    """
    with fresh() as session:
        try:
            image = _Image.of(session, stage)
        except GraderFault as fault:
            return Graded.failed(fault.name, fault.args[0])
        try:
            agent.kill_all()
            carried = image.changes(agent, stage)
        except (SessionEnded, AgentsFault) as error:
            return Graded.broke(f"the agent's container cannot be graded: {error}")
        graded = _graded(session, image, carried, stage, env)
    if not graded.fault or carried == Carried():
        return graded
    with fresh() as session:
        if _graded(session, image, Carried(), stage, env).fault:
            return graded
    with fresh() as session:
        again = _graded(session, image, carried, stage, env)
    if not again.fault:
        return again
    reason = f"the agent's files broke the grader: {again.verdict.reason}"
    return replace(again, verdict=Verdict.wrong(reason, status=Status.BROKE_SANDBOX), fault="")


@dataclass(frozen=True)
class _Image:
    """What the clean image has.

    Attributes:
        path: its PATH.
        home: the tests' home folder.
        folder: in which commands start.
        python: its Python; empty if the tests do not run under the guard.
        python_folders: those of its Python, and of libraries in /etc/ld.so.conf.
        real: the folders of PATH, each after ``=``, as links lead there, and the programs that a
            shell may call, with the links on the way to all of these, each after ``+``.
        uid: that the tests have.
        files: :func:`listing` of it.
        settings: its variables of _SETTINGS that are set.
    """

    path: str
    home: str
    folder: str
    python: str
    python_folders: tuple[str, ...]
    real: tuple[str, ...]
    uid: int
    files: dict[str, str]
    settings: dict[str, str]

    @property
    def tools(self) -> tuple[str, ...]:
        """Folders that are never carried."""
        return _tools(self.path, self.python_folders, self.real)

    @property
    def search(self) -> str:
        """Its PATH without the folder in which a program happens to be."""
        return ":".join(folder for folder in self.path.split(":") if folder.startswith("/"))

    def variables(self) -> dict[str, str]:
        """Return its settings without the agent's folders, and as they were for its programs."""
        clean = {
            name: value
            if re.match("https?://", value)
            else ":".join(p for p in re.split(r"[:\s]", value) if is_below(normal(p), self.tools))
            for name, value in self.settings.items()
        }
        given = {**self.settings, "PATH": self.path} if self.search != self.path else self.settings
        return {**clean, "ASSAY_SETTINGS": json.dumps(given)} if given else {}

    @classmethod
    def of(cls, fresh: Session, stage: Stage) -> _Image:
        """Look at a new session.

        Raises:
            GraderFault: it lacks what grading needs.
        """
        asked = fresh.exec(_ASK, user=stage.verifier.user)
        values, lines = (rows := asked.text.splitlines())[: len(_SETTINGS)], rows[len(_SETTINGS) :]
        if not asked.ok or len(lines) < 5:
            why = f"the image runs no shell: {asked.reason} {asked.text:.200}"
            raise GraderFault("no_tools", why)
        path, home, folder, python, uid = lines[:5]
        real = tuple(line for line in lines[5:] if line[:1] in ("=", "+"))
        folders = tuple(line for line in lines[5:] if line[:1] == "/")
        try:
            found = listing(fresh, _tools(path, folders, real))
        except AgentsFault as error:
            raise GraderFault("no_tools", f"the image cannot be graded: {error}") from error
        if not found:
            raise GraderFault("no_tools", "the image lacks find, stat or tar, which grading needs")
        guarded = python if stage.guard and uid == "0" else ""
        settings = {name: v for name, v in zip(_SETTINGS, values, strict=True) if v}
        return cls(path, home, folder, guarded, folders, real, int(uid), found, settings)

    def changes(self, agent: Session, stage: Stage) -> Carried:
        """Return what the agent changed.

        Raises:
            AgentsFault: it cannot be read.
        """
        return collect(
            agent,
            self.files,
            self.tools,
            search=self.path.split(":"),
            also={
                **{_absolute(a.source, self.folder): a.exclude for a in stage.artifacts},
                "/logs/artifacts": (),
            },
            changes=not stage.verifier.separate,
            home=self.home,
            python=self.python_folders,
        )


def _graded(
    fresh: Session, image: _Image, carried: Carried, stage: Stage, env: Mapping[str, str]
) -> Graded:
    """Run the tests in a new session. Without a reward there is a fault."""
    verifier = stage.verifier
    # uv's settings put it before the shim in PATH.
    has_uv = stage.tests_network != "none" or f"{image.home}/.local/bin/env" in image.files
    grading = grading_of(
        stage.test_files, guarded=bool(image.python), root=image.uid == 0, has_uv=has_uv
    )
    log, began = "", time.monotonic()
    try:
        if image.python:  # it may lie in a folder of root's own
            fresh.exec(["chmod", "a+x", *_above(image.python_folders)], user=0)
        targets = written_paths(stage.test_files, image.folder, has_uv=has_uv)
        _prepare(fresh, stage, carried, image, grading, targets)
        began = time.monotonic()
        done = fresh.exec(
            ["/tests/test.sh"],
            timeout_s=verifier.timeout_sec,
            user=verifier.user,
            env={
                **_GIT,
                **image.variables(),
                **env,
                "HOME": image.home,
                "PATH": f"/assay/bin:{image.search}" if image.python else image.search,
            },
        )
        seconds = time.monotonic() - began
        fresh.kill_all()
        killed = bool(image.python) and _holds_files(fresh, "/assay/running")
        log = (done.text + done.stderr.decode("utf-8", "backslashreplace"))[-_LOG_CHARS:]
        if done.timed_out:
            reason = f"the tests did not end in {verifier.timeout_sec:g} s"
            verdict = Verdict.wrong(reason, status=Status.TIMEOUT)
            return Graded(verdict, grading, log=log, seconds=seconds)
        if killed and grading == "separate":
            reason = "the tests' Python was killed while the agent's programs ran"
            return Graded.broke(reason, grading=grading, log=log, seconds=seconds)
        rewards = read_reward(fresh)
    except (GraderFault, SessionEnded, OSError) as error:
        if isinstance(error, GraderFault):
            name, why = error.name, error.args[0]
        elif isinstance(error, SessionEnded):
            name, why = "ended", f"the tests' container ended: {error}"
        else:
            name, why = "no_tools", f"the tests cannot be put into the image: {error}"
        failed = Graded.failed(name, why)
        return replace(failed, grading=grading, log=log, seconds=time.monotonic() - began)
    return Graded(_verdict(rewards, grading), grading, rewards, log, seconds=seconds)


def _holds_files(session: Session, folder: str) -> bool:
    with tempfile.TemporaryDirectory() as copy:  # no program of the session is asked
        session.get_dir(folder, copy)
        return any(Path(copy).iterdir())


def _verdict(rewards: Mapping[str, float], grading: Grading) -> Verdict:
    score = rewards.get("reward")
    if score is None:  # without a main key each is a reward
        score = sum(rewards.values()) / len(rewards)
    parts = {**rewards, "shared": 1.0} if grading == "shared" else dict(rewards)
    status = Status.CORRECT if score >= 1.0 else Status.INCORRECT
    said = ", ".join(f"{name} {value:g}" for name, value in rewards.items())
    return Verdict(status, score, f"{said} ({grading} grading)", None, parts)


def read_reward(session: Session) -> dict[str, float]:
    """Read ``reward.json``, else ``reward.txt``, strictly.

    Raises:
        GraderFault: there is none, or it holds anything but finite numbers.
    """
    for name, read in (("reward.json", json.loads), ("reward.txt", float)):
        try:
            data = session.get(f"/logs/verifier/{name}", limit_mib=1.0, user=0)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise GraderFault("bad_reward", f"{name} cannot be read: {error}") from error
        try:
            found = read(data.decode("utf-8"))
            rows = found if isinstance(found, dict) else {"reward": found}
            if not rows:
                raise ValueError("it holds no reward")
            return {key: _number(value) for key, value in rows.items()}
        except (ValueError, OverflowError, RecursionError) as error:
            raise GraderFault("bad_reward", f"{name}: {error}") from error
    raise GraderFault("no_reward", "the tests wrote neither reward.json nor reward.txt")


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"a reward must be a finite number, got {value!r:.80}")
    return float(value)


# -- the fresh container -----------------------------------------------------------------------


def _prepare(
    fresh: Session,
    stage: Stage,
    carried: Carried,
    image: _Image,
    grading: Grading,
    targets: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    """Bring everything into the container in one archive.

    Args:
        fresh: the container.
        stage: what was asked.
        carried: what the agent changed.
        image: the container's.
        grading: whether the grader runs the agent's code.
        targets: what the tests write, as :func:`written_paths` gives them.
    """
    if carried.deleted:
        paths = "\0".join(carried.deleted).encode("utf-8", "surrogateescape")
        fresh.put("/.assay", paths, user=0)
        fresh.exec("xargs -0 rm -rf -- < /.assay", user=0)
    uid = image.uid
    written = targets[0]
    patterns = ["|".join(map(_regex, found)) or "(?!)" for found in targets]
    links, files = map(re.compile, patterns)
    writable = _writable(fresh, image.tools)
    if writable:
        paths = "\0".join(writable).encode("utf-8", "surrogateescape")
        fresh.put("/.assay", paths, user=0)
        fresh.exec("xargs -0 chmod o-w -- < /.assay", user=0)

    def is_trap(made: tarfile.TarInfo) -> bool:
        """Return whether the tests would write it, and not where they want to."""
        path = f"/{made.name}"
        if made.issym():
            return links.fullmatch(path) is not None
        return posixpath.dirname(path) in TEMPORARY and files.fullmatch(path) is not None

    owner = AGENT_UID if uid == 0 else uid
    with tempfile.NamedTemporaryFile() as stream:  # the agent's files may be large
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for made, content in carried.members:
                if is_trap(made):
                    continue
                # tar takes the bytes of such names from its own headers only.
                names = made.name + made.linkname
                is_text = names.encode("utf-8", "ignore").decode() == names
                archive.format = tarfile.PAX_FORMAT if is_text else tarfile.GNU_FORMAT
                made.uid = made.gid = owner
                archive.addfile(made, io.BytesIO(content))
            archive.format = tarfile.PAX_FORMAT
            for folder, mode in (("tests", 0o700), ("logs", 0o755), ("logs/verifier", 0o700)):
                archive.addfile(_folder(folder, mode, uid))
            for path, file in stage.test_files.items():
                name = f"tests/{path}"
                if file.is_dir():
                    archive.addfile(_folder(name, 0o755, uid))
                else:
                    mode = 0o755 if name == "tests/test.sh" else file.stat().st_mode & 0o777
                    _add(archive, name, file.read_bytes(), mode, uid)
            if image.python:
                sources = [normal(_absolute(a.source, image.folder)) for a in stage.artifacts]
                rules = {
                    **{"written": patterns[0], "replaced": patterns[1], "paths": carried.paths},
                    "globs": ["*".join(map(glob.escape, p.split(UNKNOWN))) for p in written],
                }
                _add_guard(archive, image, sources, rules, separate=grading == "separate")
        stream.flush()
        fresh.put("/.assay", Path(stream.name), user=0)
    unpack = "tar -xpf /.assay -C / && rm /.assay"
    done = fresh.exec(unpack, user=0, timeout_s=300.0, env=image.variables())
    if not done.ok:
        why = done.stderr.decode("utf-8", "replace")[-300:]
        raise GraderFault("no_tools", f"tar in the clean image: {done.reason} {why}")
    if carried_links := [f"/{member.name}" for member, _ in carried.members if member.issym()]:
        fresh.put("/.assay", "\0".join(carried_links).encode("utf-8", "surrogateescape"), user=0)
        drop = _DROP.format(closed=" ".join(TESTS_ONLY))
        if uid == 0 and written:  # nobody else's shell could write what is root's
            globs = ["*".join(s and shlex.quote(s) for s in p.split(UNKNOWN)) for p in written]
            drop += _DROP_WRITTEN.format(globs=" ".join(globs), uid=owner)
        env = {**image.variables(), "PATH": image.search}
        fresh.exec(drop, user=0, timeout_s=120.0, cwd="/", env=env)


def _regex(path: str) -> str:
    return "[^/]*".join(map(re.escape, path.split(UNKNOWN)))


def _add_guard(
    archive: tarfile.TarFile,
    image: _Image,
    artifacts: list[str],
    rules: Mapping[str, Any],
    *,
    separate: bool,
) -> None:
    here = importlib.resources.files(__package__)
    config = {
        "clean": [f"{folder}/" for folder in (*image.tools, "/tests", "/assay")],
        "agents": [f"{path}/" for path in artifacts],
        "separate": separate,
        **rules,
        "startup": [f"{image.home}/{name}/" for name in sorted(STARTUP)],
        "closed": [f"{folder}/" for folder in TESTS_ONLY],
        "uid": AGENT_UID,
        "home": AGENTS_HOME,
    }
    folders = (("assay", 0o755), ("assay/guard/_assay", 0o755), ("assay/running", 0o700))
    for name, mode in folders:
        archive.addfile(_folder(name, mode, 0))
    archive.addfile(_folder(AGENTS_HOME[1:], 0o755, AGENT_UID))
    shim = (here / "shim.sh").read_text("utf-8")
    for key, value in (("PYTHON", image.python), ("UID", AGENT_UID), ("HOME", config["home"])):
        shim = shim.replace(f"@{key}@", str(value))
    for name in ("python", "python3", "pytest", "py.test", "uv", "uvx"):
        _add(archive, f"assay/bin/{name}", shim.encode(), 0o755, 0)
    _add(archive, "assay/guard/config.json", json.dumps(config).encode(), 0o644, 0)
    guard = (here / "guard.py").read_bytes()
    _add(archive, "assay/guard/sitecustomize.py", guard, 0o644, 0)
    for file in importlib.resources.files(guest).iterdir():
        if file.name.endswith(".py"):
            _add(archive, f"assay/guard/_assay/{file.name}", file.read_bytes(), 0o644, 0)


def _tools(path: str, python: Iterable[str], real: Iterable[str]) -> tuple[str, ...]:
    """Return the folders of tools, and tools elsewhere that links of these lead to."""
    marked = {(line[0], line[1:]) for line in real}
    found = tool_paths(":".join([path, *(p for mark, p in marked if mark == "=")]), python)
    return (*found, *sorted(p for mark, p in marked if mark == "+" and not is_below(p, found)))


def _writable(fresh: Session, tools: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tools of a clean image that everybody may write: the agent's programs too."""
    key = (fresh.image, tools)
    if key not in _WRITABLE:
        apart = ("/dev", "/proc", "/sys", "/run")
        places = " ".join(shlex.quote(path) for path in tools if path not in apart)
        words = f"find {places} -xdev ! -type l -perm -002 2> /dev/null"
        found = fresh.exec(words, user=0, timeout_s=120.0, cwd="/").stdout
        _WRITABLE[key] = tuple(found.decode("utf-8", "surrogateescape").splitlines())
    return _WRITABLE[key]


def _folder(name: str, mode: int, uid: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.mode, made.uid, made.gid = tarfile.DIRTYPE, mode, uid, uid
    return made


def _add(archive: tarfile.TarFile, name: str, data: bytes, mode: int, uid: int) -> None:
    made = tarfile.TarInfo(name)
    made.size, made.mode, made.uid, made.gid = len(data), mode, uid, uid
    archive.addfile(made, io.BytesIO(data))


def _above(folders: Iterable[str]) -> list[str]:
    parts = [PurePosixPath(folder) for folder in folders if folder.startswith("/")]
    return sorted({str(above) for path in parts for above in (path, *path.parents)})


def _absolute(path: str, folder: str) -> str:
    return path if path.startswith("/") else f"{folder.rstrip('/')}/{path}"
