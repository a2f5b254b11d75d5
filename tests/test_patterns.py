"""Regular expressions: what every supported Python reads in the same way."""

import re
from re import _compiler, _constants, _parser

import pytest

ROOMS = ("sandbox", "verifiers", "envs")


def possessive_groups(parsed) -> list:
    """Possessive repeats of more than one character, anywhere within a parsed pattern."""
    found = []
    for operator, argument in parsed:
        if operator is _constants.POSSESSIVE_REPEAT and not _compiler._simple(argument[2]):
            found.append(argument[2])
        parts = argument if isinstance(argument, tuple | list) else [argument]
        for part in parts:
            branches = part if isinstance(part, list) else [part]
            for branch in branches:
                if isinstance(branch, _parser.SubPattern):
                    found += possessive_groups(branch)
    return found


@pytest.mark.parametrize(
    ("pattern", "count"),
    [("[a-z]*+", 0), ("(?:ab?c)*+", 1), ("(?>(?:ab?c)*)", 0), ("x|(y(?=(?:ab)++))", 1)],
)
def test_the_search_finds_possessive_groups(pattern: str, count: int) -> None:
    assert len(possessive_groups(_parser.parse(pattern))) == count


@pytest.mark.parametrize("room", ROOMS)
def test_repeated_groups_are_atomic_not_possessive(room: str, modules) -> None:
    """Python before 3.11.5 (Debian 12 has 3.11.2) matches possessive repeats of groups wrongly."""
    for module in modules(f"assay.{room}"):
        for key, value in vars(module).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                parsed = _parser.parse(value.pattern, value.flags)
                assert not possessive_groups(parsed), f"{module.__name__}.{key}: write (?>(?:...)*)"
