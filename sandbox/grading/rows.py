"""Rows of public data sets, each turned into a problem: the plain dict of :mod:`.problem`.

What a row lacks is named with its field and its value. A row without tests is refused: every
program would pass it. So is a row whose outputs are not the only right ones, such as one with a
checker of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..languages.language import find_language
from .packed import unpacked
from .row_cases import (
    REMEDY,
    Case,
    Problem,
    Row,
    cases_of,
    is_list,
    plain,
    problem_of_cases,
    read_data,
    sound,
)


def problem_from_humaneval(row: Row) -> Problem:
    """Convert HumanEval (Chen et al. 2021, arXiv:2107.03374), HumanEval+ and LeetCodeDataset.

    The entry point of LeetCodeDataset (Xia et al. 2025, arXiv:2504.14655) is a method of a new
    object, such as ``Solution().twoSum``, and its prompt is what every program begins with.

    Raises:
        ValueError: ``prompt``, ``test`` or ``entry_point`` is missing, or is not Python.
    """
    problem = {
        "tests": _text(row, "test"),
        "prompt": _text(row, "prompt"),
        "entry_point": _text(row, "entry_point"),
    }
    owner, dot, method = problem["entry_point"].strip().partition("().")
    if dot and owner.isidentifier() and method.isidentifier():
        call = f"\n\ncheck({owner}().{method})\n"
        problem |= {"tests": problem["tests"].rstrip() + call, "entry_point": owner}
    return sound(problem)


def problem_from_mbpp(row: Row) -> Problem:
    """Convert MBPP (Austin et al. 2021, arXiv:2108.07732), full or sanitized, and MBPP+.

    The tests are ``test_list``; of MBPP+, which has more of them in ``test``, those.

    Raises:
        ValueError: there are no tests, or they are not Python.
    """
    setup = [row.get("test_setup_code") or "", *(plain(row.get("test_imports")) or [])]
    if not all(isinstance(line, str) for line in setup):
        raise ValueError(
            f"'test_setup_code' and 'test_imports' must hold text, got {setup!r:.80}. {REMEDY}"
        )
    tests = row.get("test")
    if not isinstance(tests, str) or not tests.strip():
        tests = _asserts(plain(row.get("test_list")), "test_list")
    return sound({"tests": tests, "setup": "\n".join(line for line in setup if line)})


def problem_from_apps(row: Row, *, wrapped: bool | None = None) -> Problem:
    """Convert APPS (Hendrycks et al. 2021, arXiv:2105.09938), TACO and what has their layout.

    ``input_output`` has ``inputs`` and ``outputs``: stdin and stdout, each a text or a list of
    lines; or, with ``fn_name``, arguments and results. If ``starter_code`` has a class Solution,
    the function is a method of it.

    Args:
        row: the row.
        wrapped: each result is in a list of its own, as ``[[3], [4]]`` for 3 and 4. Default: yes
            if every output is a list of one.

    Raises:
        ValueError: there are no cases, or inputs and outputs do not fit each other.
    """
    return _of_cases(row, _cases(row, "input_output"), wrapped=wrapped)


def problem_from_livecodebench(row: Row) -> Problem:
    """Convert LiveCodeBench (Jain et al. 2024, arXiv:2403.07974): public and private cases.

    Private cases may be packed; they are read without unpickling anything.

    Raises:
        ValueError: there are no cases, they are of both kinds or packed in another way, or a
            function is tested and ``metadata`` does not name it.
    """
    fields = ("public_test_cases", "private_test_cases")
    return _of_cases(row, [case for field in fields for case in _cases(row, field, empty=True)])


def problem_from_row(row: Row | list[Any] | str) -> Problem:
    """Make a problem of a row of any of these data sets, or of its tests alone.

    The row's fields tell the data set; a problem is returned as it is. The tests may also be in
    ``verification_info``, ``ground_truth`` or ``reward_model["ground_truth"]``, as JSON or as a
    Python literal.

    Raises:
        ValueError: the fields are of no known form, or what they hold cannot be used.

    Example:
        >>> problem_from_row({"test_list": ["assert f(1) == 2"]})["tests"]
        'assert f(1) == 2'
        >>> problem_from_row({"ground_truth": '{"inputs": ["1"], "outputs": ["2"]}'})
        {'stdio': [['1', '2']]}
    """
    try:
        return _read(row if isinstance(row, Mapping) else {"tests": row})
    except RecursionError:
        raise ValueError(f"the row's values are nested too deeply. {REMEDY}") from None


def _read(row: Row) -> Problem:
    filled = {field: value for field, value in row.items() if value is not None}
    if _is_problem(filled):
        return sound(filled)
    for present in (filled, row):  # tables of several data sets have columns of nulls
        for fields, _, read in _READERS:
            if all(field in present for field in fields):
                return read(row)
    raise ValueError(
        f"no tests in the fields {', '.join(map(str, row)) or '(none)'}. A row must have one of "
        f"these: {_FORMS}"
    )


def _is_problem(row: Row) -> bool:
    return "stdio" in row or "calls" in row or not _is_data(row.get("tests"))


def _is_data(value: Any) -> bool:
    """Return True for cases, and for text that may be cases rather than Python that asserts."""
    return not isinstance(value, str) or value.lstrip().startswith(("[", "{"))


def _inner(row: Row, field: str) -> Problem:
    """Read tests that are one value: cases, asserts, or an object in one of the forms."""
    value = row.get(field)
    value = read_data(value, field) if _is_data(value) else value
    if isinstance(value, str):
        return sound({"tests": value})
    if is_list(value) and value and isinstance(value[0], str):
        return sound({"tests": _asserts(value, field)})
    if isinstance(value, Mapping) and not _PARALLEL & set(value):
        around = {key: row[key] for key in _CONTEXT if key in row and not _is_problem(value)}
        return _read({**around, **value})
    return _of_cases(row, cases_of(value, field))


_SHOWN = ("prompt", "problem", "question", "solution", "solutions", "gold_standard_solution")
"""Fields with texts that may tell whether a function is a method of a class Solution."""
_CONTEXT = ("starter_code", "metadata", "language", *_SHOWN)
_PARALLEL = frozenset({"inputs", "outputs", "input", "output"})


def _codeforces(row: Row) -> Problem:
    """open-r1/codeforces: the official tests; a checker or an interactor cannot be run here."""
    for field in ("generated_checker", "interaction_format"):
        if row.get(field):
            raise ValueError(
                f"the outputs are not the only right ones, since the row has {field!r}: "
                f"{row[field]!r:.60}. Remove this row"
            )
    if row.get("input_mode") not in (None, "", "stdio"):
        raise ValueError(f"'input_mode' must be 'stdio', got {row['input_mode']!r}. {REMEDY}")
    return _of_cases(row, _cases(row, "official_tests"))


def _code_contests(row: Row) -> Problem:
    """Convert deepmind/code_contests (Li et al. 2022, arXiv:2203.07814): all lists of cases."""
    for field in ("input_file", "output_file"):
        if row.get(field):
            raise ValueError(f"{field!r} must be empty, got {row[field]!r:.60}. Remove this row")
    fields = ("public_tests", "private_tests", "generated_tests")
    return _of_cases(row, [case for field in fields for case in _cases(row, field, empty=True)])


def _pytest(row: Row) -> Problem:
    """Convert KodCode (Xu et al. 2025, arXiv:2503.02951): tests that import ``solution``."""
    return sound({"tests": _text(row, "test")})


def _functional(row: Row) -> Problem:
    """Return a ``ground_truth`` of code-r1: Python that asserts, such as a check that it calls."""
    tests = _text(row, "pytest" if row.get("functional") is None else "functional")
    checked = _CHECKED.findall(tests)
    return sound({"tests": tests, "entry_point": checked[-1]} if checked else {"tests": tests})


_CHECKED = re.compile(r"^check\((\w+)", re.MULTILINE)


def _itself(row: Row) -> Problem:
    return _of_cases(row, cases_of(plain(row), "the row"))


def _by(field: str) -> Callable[[Row], Problem]:
    return lambda row: _inner(row, field)


_READERS: tuple[tuple[tuple[str, ...], str, Callable[[Row], Problem]], ...] = (
    (("test_list",), "MBPP", problem_from_mbpp),
    (("test", "entry_point"), "HumanEval, LeetCodeDataset", problem_from_humaneval),
    (("test",), "KodCode", _pytest),
    (("input_output",), "APPS, TACO", problem_from_apps),
    (("public_test_cases",), "LiveCodeBench", problem_from_livecodebench),
    (("private_test_cases",), "LiveCodeBench", problem_from_livecodebench),
    (("official_tests",), "open-r1/codeforces", _codeforces),
    (("public_tests",), "code_contests", _code_contests),
    (("private_tests",), "code_contests", _code_contests),
    (("verification_info",), "SYNTHETIC-1, verifiable-coding-problems", _by("verification_info")),
    (("reward_model",), "verl, Eurus-2", _by("reward_model")),
    (("ground_truth",), "verl, PRIME", _by("ground_truth")),
    (("test_cases",), "AceCode, verification_info", _by("test_cases")),
    (("unit_tests",), "NeMo Gym", _by("unit_tests")),
    (("tests",), "DeepCoder, rllm", _by("tests")),
    (("functional",), "code-r1", _functional),
    (("pytest",), "code-r1", _functional),
    (("inputs", "outputs"), "rllm, verl", _itself),
    (("input", "output"), "lists of both", _itself),
)
"""Fields, the data sets that have them, and what reads them; the first whose fields are there."""

_FORMS = "; ".join(
    [f"{' and '.join(fields)} ({names})" for fields, names, _ in _READERS]
    + ["tests, stdio or calls (a problem)"]
)


def _of_cases(row: Row, cases: list[Case], *, wrapped: bool | None = None) -> Problem:
    if not cases:
        raise ValueError(f"the row has no test cases, so every program would pass. {REMEDY}")
    metadata = row.get("metadata")
    data = read_data(metadata, "metadata") if any(case.is_call for case in cases) else None
    return problem_of_cases(
        cases,
        function=data.get("func_name") if isinstance(data, Mapping) else None,
        starter=row.get("starter_code"),
        shown=(text for field in _SHOWN for text in _texts(row.get(field))),
        language=_language(row),
        wrapped=wrapped,
    )


def _texts(value: Any) -> list[str]:
    """Return the texts in a value: a text, messages, or a list of texts."""
    value = plain(value)
    if isinstance(value, Mapping):
        value = value.get("content")
    if isinstance(value, str):
        return [value]
    return [text for item in value for text in _texts(item)] if is_list(value) else []


def _language(row: Row) -> str | None:
    """Return the language that a row's programs are in; ``None`` for Python."""
    name = row.get("language")
    if name is None or name == "":
        return None
    found = find_language(name).name
    return None if found == "python" else found


def _cases(row: Row, field: str, *, empty: bool = False) -> list[Case]:
    """Return the cases of a field, which may be JSON, a literal or packed."""
    value = plain(row.get(field))
    if empty and not value:
        return []
    if field == "private_test_cases" and isinstance(value, str) and not _is_data(value):
        try:
            value = unpacked(value)
        except ValueError as error:
            raise ValueError(f"{field!r}: {error}. {REMEDY}") from error
    value = read_data(value, field)
    none = value == [] or (isinstance(value, Mapping) and not any(value.values()))
    return [] if empty and none else cases_of(value, field)


def _asserts(listed: Any, field: str) -> str:
    if not is_list(listed) or not listed or not all(isinstance(test, str) for test in listed):
        raise ValueError(
            f"{field!r} must hold at least one test, as text, got {listed!r:.80}. {REMEDY}"
        )
    return "\n".join(listed)


def _text(row: Row, field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str):
        raise ValueError(f"{field!r} must be text, got {value!r:.80}. {REMEDY}")
    return value
