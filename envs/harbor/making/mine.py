"""Make tasks of the commits of a repository whose tests fail before them and pass after them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ....sandbox import Sandbox, Session, SessionEnded
from ..trial import start
from .maker import Made, Maker, Refused, made_of
from .repository import Repository, is_test, is_test_module
from .writer import Draft, expecting, safe_name, settings_of, write_task

_TRAILER = re.compile(r"(?i)^(signed-off-by|co-authored-by|change-id|reviewed-\w+|tested-by):.*$")
_LEAST_WORDS = 4
_OUTCOMES = "/tmp/assay-run/outcomes.json"  # noqa: S108  # in the container
_FILES_MIB = 256


def mine(
    source: Path | str,
    out: Path,
    box: Sandbox,
    *,
    revisions: str = "HEAD",
    image: str = "assay-shell:latest",
    setup: str = "",
    command: str = "",
    limit: int = 10,
    jobs: int = 1,
    timeout_s: float = 300.0,
) -> Iterator[Made]:
    """Yield what became of each commit that changes tests and other files, the newest first.

    Its message is the instruction, its parent the environment, its tests are the grader and the
    rest of its changes the solution.

    Args:
        source: a local repository. It is only read.
        out: the folder of the tasks. What is there already is left alone.
        box: where containers run.
        revisions: a range, as for ``git rev-list``.
        image: has git and Python, with pytest unless there is a command.
        setup: a command that installs the repository in the image; it has no network.
        command: runs the tests, for what pytest does not.
        limit: tasks to make.
        jobs: commits at one time.
        timeout_s: of a commit's tests.

    Raises:
        RepositoryError: the source is no repository, or lacks the range.
        SandboxError: a container was lost.
    """
    with Repository(source) as repository:
        maker = Maker(out, box)
        name = safe_name(repository.source.name.removesuffix(".git"))

        def task(commit: str) -> str:
            return f"{name}-{commit[:12]}"

        def draft(commit: str) -> Draft:
            made = _draft(repository, commit, task(commit))
            made = replace(made, image=image, setup=setup, command=command, timeout_s=timeout_s)
            return _measured(made, maker)

        def make(commit: str) -> Made:
            return maker.make(task(commit), lambda: draft(commit))

        try:
            commits = (
                commit
                for commit in repository.commits(revisions)
                if not maker.is_done(task(commit)) and _is_candidate(repository, commit, command)
            )
            yield from made_of(commits, make, limit=limit, jobs=jobs)
        finally:
            maker.close()


def _is_candidate(repository: Repository, commit: str, command: str) -> bool:
    changed = repository.changed(f"{commit}^", commit)
    tests = [path for path in changed if is_test(path) and (command or is_test_module(path))]
    return bool(tests) and not all(map(is_test, changed))


def _draft(repository: Repository, commit: str, name: str) -> Draft:
    lines = repository.message(commit).splitlines()
    text = "\n".join(line for line in lines if not _TRAILER.match(line.strip())).strip()
    if len(text.split()) < _LEAST_WORDS:
        raise Refused(f"its message asks for nothing: {text!r:.80}")
    parent = f"{commit}^"
    changed = repository.changed(parent, commit)
    tests = repository.files(commit, lambda path: is_test(path) or settings_of(path))
    tree = repository.files(parent, lambda path: True)
    if sum(len(file.data) for file in (*tree.values(), *tests.values())) > _FILES_MIB << 20:
        raise Refused(f"its files have more than {_FILES_MIB} MiB")
    return Draft(
        name,
        "mined",
        text,
        "",
        tree,
        tests,
        repository.diff(parent, commit, [path for path in changed if not is_test(path)]),
        tuple(path for path in changed if is_test_module(path) and path in tests),
        metadata={"commit": commit},
    )


def _measured(draft: Draft, maker: Maker) -> Draft:
    """Return a draft with the tests that fail before the commit and pass after it, and the others.

    Raises:
        Refused: there is none, or their outcomes differ from run to run.
    """
    folder = maker.folder(f"{draft.name}.measured")
    task = write_task(draft, folder, "inside")
    try:
        with start(maker.box, task) as session:
            session.put("/tests", folder / "tests")
            session.put("/solution", folder / "solution")
            before = [_outcomes(session, draft.timeout_s)]
            solved = session.exec(["/bin/sh", "/solution/solve.sh"], timeout_s=60.0)
            if not solved.ok:
                raise Refused(f"its patch does not apply: {solved.stderr.decode(errors='replace')}")
            after = [_outcomes(session, draft.timeout_s)]
            if not _mended(before[0], after[0]):
                passed = len(_passed(after[0]))
                raise Refused(
                    f"no test fails before it and passes after it; {passed} pass after it"
                )
            after.append(_outcomes(session, draft.timeout_s))
            session.exec("cd /testbed && git apply -R --whitespace=nowarn /solution/fix.patch")
            before.append(_outcomes(session, draft.timeout_s))
    except SessionEnded as error:
        raise Refused(f"its tests ended their container: {error}") from error
    finally:
        shutil.rmtree(folder)
    mended = [_mended(*runs) for runs in zip(before, after, strict=True)]
    if mended[0] != mended[1]:
        raise Refused(f"flaky: {', '.join(sorted(mended[0] ^ mended[1])[:3])}")
    return expecting(draft, mended[0], set.intersection(*map(_passed, (*before, *after))))


def _passed(outcomes: dict[str, str]) -> set[str]:
    return {test for test, outcome in outcomes.items() if outcome == "passed"}


def _mended(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return _passed(after) - _passed(before)


def _outcomes(session: Session, timeout_s: float) -> dict[str, str]:
    done = session.exec(["/tests/test.sh"], timeout_s=timeout_s, cwd="/testbed")
    session.kill_all()
    if done.timed_out:
        raise Refused(f"its tests do not end in {timeout_s:g} s")
    try:
        found: dict[str, str] = json.loads(session.get(_OUTCOMES))
    except (OSError, ValueError) as error:
        said = (done.text + done.stderr.decode("utf-8", "replace")).strip()[-300:]
        raise Refused(f"its tests do not run in the image: {said}") from error
    return found
