"""Programs that continue a prompt: what the program is then, and what its tests get of it."""

from __future__ import annotations

import ast
import functools
import re
import warnings

from ..guest.suite import SHARED

_FUTURE = re.compile(r"^from +__future__ +import +(?:\([^)]{0,999}\)|[^\n(]*)\n?", re.MULTILINE)


def assemble_program(code: str, prompt: str, entry_point: str | None) -> str:
    """Return the whole program: the prompt continued, or what stands before the function."""
    if not prompt:
        return code
    # Python wants them before everything else, so before the prompt too.
    future = "".join(f"{found.strip()}\n" for found in _FUTURE.findall(code))
    code = _FUTURE.sub("", code) if future else code
    if entry_point is None or not _definition(entry_point).search(code):
        return future + join_lines(prompt, code)
    return future + join_lines(_before(prompt, entry_point), code)


@functools.lru_cache(maxsize=4096)
def prompt_helpers(prompt: str, entry_point: str, tests: str) -> str:
    """Return what the tests need of the prompt, if they use a function that it defines.

    It is the tests' own then: a program could bring a function of that name which agrees with
    whatever it answers. Of the prompt's classes, such as ``ListNode``, both have their own, and
    objects are copied: the program must not see those that the tests compare its own with.
    """
    try:
        body = parsed(_before(prompt, entry_point)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    kept = [
        node
        for node in body
        if not _is_stub(node)
        and getattr(node, "name", "") != entry_point
        and {ast.unparse(base) for base in getattr(node, "bases", ())} <= {"object"}
    ]
    for node in kept:
        if isinstance(node, ast.ClassDef):
            node.decorator_list.insert(0, ast.Name(SHARED, ast.Load()))
    used = {node.id for node in ast.walk(parsed(tests)) if isinstance(node, ast.Name)}
    defined = {node.name for node in kept if isinstance(node, ast.FunctionDef)}
    return ast.unparse(ast.Module(kept, [])) if used & defined else ""


def join_lines(before: str, after: str) -> str:
    """Join two texts, the second on a line of its own."""
    return before + ("" if not before or before.endswith("\n") else "\n") + after


def parsed(source: str) -> ast.Module:
    """Parse a source; an odd escape in it is no fault.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is not Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _is_stub(node: ast.stmt) -> bool:
    """Return whether a function has only a docstring: the program is to write it."""
    return isinstance(node, ast.FunctionDef) and all(
        isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        for s in node.body
    )


def _before(prompt: str, entry_point: str) -> str:
    """Return the prompt before the function, or all of it if that is not there."""
    there = _definition(entry_point).search(prompt)
    return prompt[: there.start()] if there else prompt


def _definition(name: str) -> re.Pattern[str]:
    return re.compile(rf"^(?:async +)?def +{re.escape(name)}\b", re.MULTILINE)
