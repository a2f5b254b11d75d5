"""Make tasks of rows of SWE-bench, SWE-smith, R2E-Gym and data sets of their forms."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ....sandbox import ImageUnavailable, Sandbox
from ...datasets.reading import Row, placed_rows
from .maker import Made, Maker, Refused, made_of
from .repository import File, Repository, RepositoryError, is_test, is_test_module
from .writer import Draft, expecting, safe_name, settings_of

_GIT_MIB = 2048.0
_PACK = "tar -C /testbed/.git -cf /tmp/assay-git.tar objects"


def from_swe(
    rows: Path | str,
    out: Path,
    box: Sandbox,
    *,
    repos: Path | None = None,
    image: str = "",
    setup: str = "",
    split: str = "test",
    limit: int | None = None,
    jobs: int = 1,
    timeout_s: float = 1800.0,
) -> Iterator[Made]:
    """Yield what became of each row.

    Forms, told apart by their fields: ``test_patch`` with FAIL_TO_PASS (SWE-bench, SWE-Gym,
    SWE-rebench), ``image_name`` with FAIL_TO_PASS, whose patch makes the bug (SWE-smith), and
    ``expected_output_json`` (R2E-Gym).

    Args:
        rows: JSON, JSONL, CSV or Parquet, or a folder of them.
        out: the folder of the tasks. What is there already is left alone.
        box: where containers run.
        repos: a folder with clones: ``OWNER/NAME``, ``OWNER__NAME`` or ``NAME``. A row without a
            clone needs its own image, whose ``/testbed`` has the repository with its history.
        image: for rows whose own image is not here: it has git, pytest and what the tests need.
        setup: a command that installs the repository in that image; it has no network.
        split: to read, if ``rows`` is a folder with several.
        limit: tasks to make.
        jobs: rows at one time.
        timeout_s: of a row's tests.

    Raises:
        DataError: the rows cannot be read.
        SandboxError: a container was lost.
    """
    placed = placed_rows(rows, fields={}, split=split)
    maker = Maker(out, box)

    def make(entry: tuple[str, str, Row]) -> Made:
        name, place, row = entry

        def draft() -> Draft:
            try:
                with contextlib.ExitStack() as stack:
                    made = _draft(row, name, repos, image, box, stack)
            except (RepositoryError, Refused) as error:
                raise Refused(f"{place}: {error}") from error
            own = setup if made.image == image else ""
            return replace(made, setup=own, timeout_s=timeout_s)

        return maker.make(name, draft)

    try:
        entries = ((_name(row, place), place, row) for _, place, row in placed)
        yield from made_of(
            (entry for entry in entries if not maker.is_done(entry[0])),
            make,
            limit=limit,
            jobs=jobs,
        )
    finally:
        maker.close()


def _name(row: Row, place: str) -> str:
    if row.get("instance_id"):
        return safe_name(str(row["instance_id"]))
    parts = [str(row[key])[:40] for key in ("repo_name", "commit_hash") if row.get(key)]
    return safe_name("-".join(parts) or place)


def _draft(
    row: Row,
    name: str,
    repos: Path | None,
    image: str,
    box: Sandbox,
    stack: contextlib.ExitStack,
) -> Draft:
    form = _form(row)
    own = [each for each in _images(row, name) if _is_here(box, each)]
    used = own[0] if own else image
    if not used:
        named = " or ".join(map(repr, _images(row, name))) or "none that it names"
        raise Refused(
            f"its image is not here ({named}). Bring it with `docker load`, or give --image TAG "
            "and --repos DIR"
        )
    clone = _clone(row, repos)
    if clone is None and not own:
        looked = f"{repos} has no clone of {_repo(row)!r}" if repos else "--repos is not given"
        raise Refused(f"its image is not here and {looked}. Clone {_repo(row)!r} into --repos")
    source = clone or _history(box, used, stack)
    repository = stack.enter_context(Repository(source))
    draft = form(row, name, repository)
    metadata = {"repository": _repo(row), "row": name}
    return replace(draft, image=used, tree=None if own else draft.tree, metadata=metadata)


def _form(row: Row) -> Callable[[Row, str, Repository], Draft]:
    if row.get("expected_output_json"):
        return _r2e
    if _has(row, "FAIL_TO_PASS") and row.get("test_patch") is not None:
        return _bench
    if _has(row, "FAIL_TO_PASS") and row.get("image_name"):
        return _smith
    raise Refused(
        f"is no row of a known form; it has {', '.join(sorted(row))[:200]}. SWE-bench has "
        "test_patch and FAIL_TO_PASS, SWE-smith image_name and FAIL_TO_PASS, R2E-Gym "
        "expected_output_json"
    )


def _bench(row: Row, name: str, repository: Repository) -> Draft:
    base = repository.tree_of(_text(row, "base_commit"))
    tested = repository.patched(base, _text(row, "test_patch"))
    solved = repository.patched(base, _text(row, "patch"))
    changed = repository.changed(base, tested)
    return _listed(row, name, repository, base, tested, solved, changed)


def _smith(row: Row, name: str, repository: Repository) -> Draft:
    commit = row.get("base_commit") or _repo(row).rpartition(".")[2]
    whole = repository.tree_of(str(commit))
    base = repository.patched(whole, _text(row, "patch"))
    return _listed(row, name, repository, base, whole, whole, [])


def _listed(
    row: Row,
    name: str,
    repository: Repository,
    base: str,
    tested: str,
    solved: str,
    changed: list[str],
) -> Draft:
    """Return the draft of a row that lists its tests."""
    fail, keep = _tests(row, "FAIL_TO_PASS"), _tests(row, "PASS_TO_PASS")
    if not fail:
        raise Refused("FAIL_TO_PASS is empty: no test decides")
    tests = repository.files(tested, lambda p: is_test(p) or p in changed or settings_of(p))
    named = {test.partition("::")[0] for test in (*fail, *keep) if "::" in test}
    files = sorted(path for path in {*changed, *named} if is_test_module(path) and path in tests)
    if not files or all(" (" in test and "::" not in test for test in fail):
        raise Refused(
            f"its tests are not pytest's, such as {fail[0]!r}: only tests of pytest can be run"
        )
    text = _text(row, "problem_statement")
    tree = repository.files(base, lambda path: True)
    fix = repository.diff(base, solved, repository.changed(base, solved))
    return expecting(Draft(name, "swe", text, "", tree, tests, fix, tuple(files)), fail, keep)


def _r2e(row: Row, name: str, repository: Repository) -> Draft:
    fixed = _text(row, "commit_hash")
    base, solved = repository.tree_of(f"{fixed}^"), repository.tree_of(fixed)
    ran = _json(row, "execution_result_content", dict)
    codes = dict(zip(ran.get("test_file_names", ()), ran.get("test_file_codes", ()), strict=False))
    tests = repository.files(solved, lambda p: is_test(p) or settings_of(p))
    for file, code in codes.items():
        tests[f"r2e_tests/{safe_name(str(file))}"] = File(0o644, str(code).encode())
    files = tuple(sorted(p for p in tests if p.startswith("r2e_tests/") and is_test_module(p)))
    wanted = _json(row, "expected_output_json", dict)
    passing = [test.split(" - ")[0] for test, outcome in wanted.items() if outcome == "PASSED"]
    if not (files and passing):
        raise Refused("names no test that passes: see its expected_output_json")
    changed = [path for path in repository.changed(base, solved) if not is_test(path)]
    fix = repository.diff(base, solved, changed)
    text = _text(row, "problem_statement")
    tree = repository.files(base, lambda path: True)
    return expecting(Draft(name, "swe", text, "", tree, tests, fix, files), passing, ())


# -- fields --------------------------------------------------------------------------------------


def _has(row: Row, key: str) -> bool:
    return row.get(key) is not None or row.get(key.lower()) is not None


def _text(row: Row, key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise Refused(f"{key} must be a text, got {value!r:.60}")
    return value


def _json(row: Row, key: str, kind: type) -> Any:
    """Return a field that is JSON, or a text that holds it."""
    value = row.get(key, row.get(key.lower()))
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as error:
        raise Refused(f"{key} must be JSON, got {value!r:.60}") from error
    if found is not None and not isinstance(found, kind):
        raise Refused(f"{key} must be a {kind.__name__}, got {value!r:.60}")
    return found if found is not None else kind()


def _tests(row: Row, key: str) -> list[str]:
    return [str(test) for test in _json(row, key, list)]


def _repo(row: Row) -> str:
    return str(row.get("repo") or row.get("repo_name") or "")


def _images(row: Row, name: str) -> list[str]:
    """Return what a row's image may be called: as it says, or as SWE-bench derives it."""
    named = [str(row[key]) for key in ("image_name", "docker_image") if row.get(key)]
    if named or "test_patch" not in row:
        return named
    plain = name.lower()
    return [
        f"swebench/sweb.eval.x86_64.{plain.replace('__', '_1776_')}:latest",
        f"sweb.eval.x86_64.{plain}:latest",
    ]


def _is_here(box: Sandbox, image: str) -> bool:
    try:
        with box.session(image=image):
            return True
    except ImageUnavailable:
        return False


def _clone(row: Row, repos: Path | None) -> Path | None:
    repo = _repo(row)
    if repos is None or not repo or ".." in repo.split("/"):
        return None
    if repo.startswith("swesmith/"):  # swesmith/OWNER__NAME.COMMIT
        repo = repo.removeprefix("swesmith/").rpartition(".")[0]
    slashed = repo.replace("__", "/", 1)
    for form in (slashed, slashed.replace("/", "__"), slashed.rpartition("/")[2], repo):
        for found in (repos / form.lstrip("/"), repos / f"{form.lstrip('/')}.git"):
            if found.is_dir():
                return found
    return None


def _history(box: Sandbox, image: str, stack: contextlib.ExitStack) -> Path:
    """Copy the objects of an image's repository into a new one: none of its settings or hooks."""
    with box.session(image=image) as session:
        if not session.exec(_PACK, user=0, timeout_s=600.0).ok:
            raise Refused(f"{image}: has no repository in /testbed. Give --repos DIR")
        data = session.get("/tmp/assay-git.tar", limit_mib=_GIT_MIB, user=0)  # noqa: S108
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-swe-")))
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        plain = [
            m
            for m in archive
            if (m.isdir() or m.isreg())
            and "/info/" not in m.name
            and not {"", ".."} & set(m.name.split("/"))  # absolute, or out of the folder
        ]
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.11.4 on
        archive.extractall(folder, members=plain)  # noqa: S202 - without links or other folders
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
    return folder
