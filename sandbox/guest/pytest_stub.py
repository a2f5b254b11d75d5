"""What a test file finds as ``pytest``: the same in every image, whether that has one or not.

It compares plain values only. What concerns the test's own process (``capsys``,
``monkeypatch``, ``tmp_path``) is not offered: the program under test runs in another.
"""

from __future__ import annotations

import builtins
import importlib
import math
import re
import types
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

_NUMBERS = (int, float, complex, Decimal, Fraction)


class Failed(BaseException):
    """``pytest.fail``; no Exception, so a test's own ``except Exception`` lets it through."""


class Skipped(BaseException):
    """``pytest.skip``."""


class XFailed(BaseException):
    """``pytest.xfail``, called in a test."""


def fail(reason: str = "", pytrace: bool = True, msg: str = "") -> NoReturn:
    """Fail the test."""
    raise Failed(reason or msg)


def skip(reason: str = "", *, allow_module_level: bool = False, msg: str = "") -> NoReturn:
    """Leave the test out: it is neither passed nor failed."""
    raise Skipped(reason or msg)


def xfail(reason: str = "") -> NoReturn:
    """End a test that is expected to fail: it is not counted."""
    raise XFailed(reason)


def importorskip(name: str, minversion: str | None = None, reason: str = "") -> Any:
    """Import a module, or leave the test out."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Skipped(reason or f"no module {name}") from None


def main(*args: object, **options: object) -> int:
    """Do nothing: the tests are being run already."""
    return 0


class ExceptionInfo:
    """What ``raises`` hands out."""

    value: BaseException

    @property
    def type(self) -> builtins.type[BaseException]:
        """The exception's class."""
        return builtins.type(self.value)

    @property
    def typename(self) -> str:
        """The class's name."""
        return self.type.__name__

    def __repr__(self) -> str:
        return f"<ExceptionInfo {self.value!r}>"

    def match(self, pattern: str) -> bool:
        """Fail the test where the exception's text does not match."""
        if not re.search(pattern, str(self.value)):
            raise Failed(f"{pattern!r} does not match {str(self.value)[:200]!r}")
        return True


class Raises:
    """``with raises(kind):``."""

    def __init__(self, expected: Any, match: Any = None) -> None:
        kinds = expected if isinstance(expected, tuple) else (expected,)
        for kind in kinds:
            if not isinstance(kind, type) or not issubclass(kind, BaseException):
                raise TypeError(f"raises needs an exception's class, got {kind!r}")
        self.kinds, self.pattern, self.info = kinds, match, ExceptionInfo()

    def __enter__(self) -> ExceptionInfo:
        return self.info

    def __exit__(self, kind: Any, error: BaseException | None, trace: object) -> bool:
        if error is None:
            raise Failed(f"did not raise {' or '.join(kind.__name__ for kind in self.kinds)}")
        if not isinstance(error, self.kinds) or isinstance(error, Failed | Skipped | XFailed):
            return False
        self.info.value = error
        if self.pattern is not None:
            self.info.match(self.pattern)
        return True


def raises(expected: Any, *call: Any, match: Any = None, **options: Any) -> Any:
    """Expect an exception, of a ``with`` block or of a function and its arguments."""
    expecting = Raises(expected, match)
    if not call:
        if options:
            raise TypeError(f"raises got {', '.join(options)}, which it does not know")
        return expecting
    with expecting as info:
        call[0](*call[1:], **options)
    return info


class Approx:
    """A number, or a list, tuple or dict of them, equal to what is close."""

    __hash__ = None  # type: ignore[assignment]  # as pytest's
    __array_ufunc__ = None  # an array leaves the comparison to this class

    def __init__(
        self,
        expected: Any,
        rel: float | None = None,
        abs: float | None = None,  # noqa: A002 - pytest's name
        nan_ok: bool = False,
    ) -> None:
        self.expected = expected.tolist() if hasattr(expected, "tolist") else expected
        self.rel, self.abs, self.nan_ok = rel, abs, nan_ok

    def __eq__(self, actual: object) -> bool:
        return self._same(self.expected, actual)

    def __repr__(self) -> str:
        return f"approx({self.expected!r})"

    def _same(self, expected: Any, actual: Any) -> bool:
        """Compare plain values only: the program's objects would themselves say how close."""
        if type(actual).__module__ == "numpy":
            actual = actual.tolist()  # an array or its number
        if isinstance(expected, dict):
            return (
                type(actual) is dict
                and actual.keys() == expected.keys()
                and all(self._same(value, actual[key]) for key, value in expected.items())
            )
        if isinstance(expected, list | tuple):
            return (
                type(actual) in (list, tuple)
                and len(actual) == len(expected)
                and all(map(self._same, expected, actual))
            )
        if type(expected) in _NUMBERS and isinstance(actual, _NUMBERS):
            return self._close(expected, actual)
        return bool(expected == actual)

    def _close(self, expected: Any, actual: Any) -> bool:
        if expected == actual:
            return True
        try:
            if any(isinstance(n, Decimal | Fraction) for n in (expected, actual)):
                expected, actual = Fraction(expected), Fraction(actual)
            gap, size = builtins.abs(expected - actual), builtins.abs(expected)
            if math.isnan(gap):
                return self.nan_ok and expected != expected and actual != actual
            return not math.isinf(size) and bool(gap <= self._tolerance(float(size)))
        except (OverflowError, ValueError, TypeError):  # nan as a fraction, too large a float
            return False

    def _tolerance(self, size: float) -> float:
        for bound in (self.rel, self.abs):
            if bound is not None and not bound >= 0:
                raise Failed(f"approx needs tolerances of at least 0, got {bound}")
        if self.rel is None and self.abs is not None:
            return self.abs
        relative = 1e-6 if self.rel is None else self.rel
        return max(relative * size, 1e-12 if self.abs is None else self.abs)


class Mark:
    """``mark.name(...)``, put on a function or class as its ``pytestmark``."""

    def __init__(self, name: str, args: tuple[Any, ...] = (), options: Any = None) -> None:
        self.name, self.args, self.options = name, args, options or {}

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Mark what is given, or take options."""
        if len(args) == 1 and not options and isinstance(args[0], type | types.FunctionType):
            marked = args[0]
            marked.pytestmark = [*vars(marked).get("pytestmark", []), self]  # type: ignore[union-attr]
            return marked
        return Mark(self.name, (*self.args, *args), {**self.options, **options})


class Marks:
    """``mark``: whatever name is asked for."""

    def __getattr__(self, name: str) -> Mark:
        return Mark(name)


class Param:
    """``param(...)``: one set of arguments, with its own marks."""

    def __init__(
        self,
        *values: Any,
        id: str | None = None,  # noqa: A002 - pytest's name
        marks: Any = (),
    ) -> None:
        self.values, self.id = values, id
        self.marks: Sequence[Mark] = marks if isinstance(marks, list | tuple) else (marks,)


class Fixture:
    """A function that makes what tests ask for by its name."""

    def __init__(
        self,
        function: Callable[..., Any],
        scope: str = "function",
        params: Iterable[Any] | None = None,
        autouse: bool = False,
        ids: object = None,
        name: str | None = None,
    ) -> None:
        self.function, self.scope, self.autouse = function, scope, autouse
        self.params = None if params is None else list(params)
        self.name = name or function.__name__


def fixture(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a function a fixture."""
    if function is not None:
        return Fixture(function, **options)
    return lambda function: Fixture(function, **options)


OFFERED: dict[str, Any] = {
    "Failed": Failed,
    "FixtureRequest": object,
    "approx": Approx,
    "exit": fail,
    "fail": fail,
    "fixture": fixture,
    "importorskip": importorskip,
    "main": main,
    "mark": Marks(),
    "param": Param,
    "raises": raises,
    "skip": skip,
    "xfail": xfail,
}


def stand_in() -> types.ModuleType:
    """Return the module ``pytest``."""
    module = types.ModuleType("pytest")
    vars(module).update(OFFERED, __version__="8.0.0")
    return module
