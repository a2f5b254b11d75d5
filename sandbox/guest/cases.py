"""The test functions and classes of a test file, each made ready to be called.

Plain functions and ``Test*`` classes as pytest reads them, with fixtures, marks and parameters;
TestCase classes as unittest does.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import types
import unittest
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .pytest_stub import Failed, Fixture, Mark, Param, Skipped, XFailed, skip
from .remote import Remote

Body = Callable[[], object]


class BadTests(Exception):
    """The tests cannot be used, whatever the program is."""


class MissingFixture(BadTests):
    """They ask for a fixture that nothing defines."""


class Case:
    """One test.

    Args:
        name: what to call it in a reason.
        run: does it.
        xfail: the ``xfail`` mark on it, or ``None``.
    """

    def __init__(self, name: str, run: Body, xfail: Mark | None = None) -> None:
        self.name, self.body, self.xfail = name, run, xfail

    def run(self) -> None:
        """Do it; a test that is expected to fail, and does, raises :class:`XFailed`."""
        if self.xfail is None:
            self.body()
            return
        expected = self.xfail.options.get("raises", (Exception, Failed))
        try:
            self.body()
        except expected:
            raise XFailed(self.xfail.options.get("reason", "")) from None
        if self.xfail.options.get("strict"):
            raise Failed("it passed, and was expected to fail")
        raise XFailed("it passed, and was expected to fail")


class Fixtures:
    """What the fixtures of one test, or of a whole file, have made."""

    def __init__(self, wider: Fixtures | None = None) -> None:
        self.wider = wider or self
        self.values: dict[Any, Any] = {}
        self.finalizers: list[Callable[[], object]] = []

    def value(
        self, found: Fixture, owner: Any, arguments: Callable[[str], Any], request: Any
    ) -> Any:
        """Return a fixture's value, made at its first use."""
        place = self if found.scope == "function" else self.wider
        key = (id(found), repr(getattr(request, "param", None)))
        if found.scope == "class":
            key = (*key, type(owner))  # type: ignore[assignment]  # a longer key
        if key not in place.values:
            request.addfinalizer = place.finalizers.append
            place.values[key] = place.make(found, owner, arguments)
        return place.values[key]

    def make(self, found: Fixture, owner: Any, arguments: Callable[[str], Any]) -> Any:
        """Call a fixture's function; what stands after its ``yield`` is for later."""
        names = list(inspect.signature(found.function).parameters)
        first = [owner] if names[:1] == ["self"] else []
        made = found.function(*first, **{name: arguments(name) for name in names[len(first) :]})
        if not isinstance(made, types.GeneratorType):
            return made
        value = next(made)
        self.finalizers.append(lambda: next(made, None))
        return value

    def finish(self) -> None:
        """Do what stands after the ``yield`` of each fixture, the last one first."""
        while self.finalizers:
            self.finalizers.pop()()


class Collector:
    """Finds the tests in a test file's namespace.

    Args:
        namespace: the file's globals.
        entry_point: the function under test, for tests that take it as an argument.
    """

    def __init__(self, namespace: dict[str, Any], entry_point: str | None) -> None:
        self.namespace = namespace
        self.entry_point = entry_point
        self.wide = Fixtures()
        self.marks = _marks(types.SimpleNamespace(pytestmark=namespace.get("pytestmark", [])))

    def function(self, name: str, called: bool) -> list[Case]:
        """Return the tests of a top-level function.

        Args:
            name: its name.
            called: other tests call it, so it may want arguments that we do not have.
        """
        function = self.namespace.get(name)
        if isinstance(function, Fixture) or not callable(function):
            return []
        unknown = [
            n for n in _required(function) if not self._known(n, None, function) and n != "request"
        ]
        if name == "check" or (len(unknown) == 1 and self.entry_point is not None):
            return [Case(name, lambda: _finished(function(*self._candidate(unknown))))]
        if unknown and called:
            return []
        return list(self._cases(name, function, None, self.marks))

    def _candidate(self, unknown: list[str]) -> list[Any]:
        if not unknown:
            return []
        name = self.entry_point or ""
        for place in (self.namespace, self.namespace["__builtins__"]):
            with contextlib.suppress(KeyError):
                return [place[name]]
        raise NameError(f"name {name!r} is not defined")

    def classes(self) -> Iterator[Case]:
        """Return the tests of all classes."""
        seen = set()
        for name, value in list(self.namespace.items()):
            if not isinstance(value, type) or value in seen:
                continue
            seen.add(value)
            if issubclass(value, unittest.TestCase):
                yield from _unittest_cases(value)
            elif name.startswith("Test") and value.__module__ == self.namespace["__name__"]:
                yield from self._class_cases(name, value)

    def module_hooks(self) -> tuple[list[Body], list[Body]]:
        """Return what to do before the first and after the last test."""
        before = [self.namespace.get(n) for n in ("setUpModule", "setup_module")]
        after = [self.namespace.get(n) for n in ("tearDownModule", "teardown_module")]
        return [_lenient(f) for f in before if f], [_lenient(f) for f in after if f]

    def _class_cases(self, name: str, owner: type) -> Iterator[Case]:
        marks = [*self.marks, *(m for c in reversed(owner.__mro__) for m in _marks(c))]
        once = _Once(owner, "setup_class", "teardown_class")
        for method in _method_names(owner):
            function = inspect.getattr_static(owner, method)
            function = getattr(function, "__func__", function)  # a static or class method's
            for case in self._cases(f"{name}.{method}", function, owner, marks):
                yield Case(case.name, once.around(case.body), case.xfail)
        self.wide.finalizers.append(once.finish)

    def _cases(
        self, name: str, function: Any, owner: type | None, marks: list[Mark]
    ) -> Iterator[Case]:
        """Return one test for each set of parameters."""
        marks = [*marks, *_marks(function)]
        sets = [_parameter_sets(m) for m in marks if m.name == "parametrize"]
        given = _given(marks)
        skipped = owner is not None and not _is_static(owner, name.rpartition(".")[2])
        arguments = _required(function)[skipped:]  # without self
        wanted = [n for n in arguments if n not in given]
        for mark in marks:
            wanted += mark.args if mark.name == "usefixtures" else ()
        fixtures = self._closure([*self._automatic(owner), *wanted], owner, function, given)
        # The decorator nearest to the function varies slowest in pytest; the order is of no
        # weight here.
        for choice in itertools.product(*sets, *(_fixture_sets(f) for f in fixtures)):
            values = {n: v for chosen, _, _ in choice[: len(sets)] for n, v in chosen.items()}
            params = {n: v for chosen, _, _ in choice[len(sets) :] for n, v in chosen.items()}
            label = "-".join(text for _, text, _ in choice if text)
            full = f"{name}[{label}]" if label else name
            own = [*marks, *(m for _, _, more in choice for m in more)]
            run = self._runner(name, function, owner, values, params, wanted, arguments)
            yield _marked(Case(full, run), own)

    def _runner(
        self,
        name: str,
        function: Any,
        owner: type | None,
        values: dict[str, Any],
        params: dict[str, Any],
        wanted: list[str],
        parameters: list[str],
    ) -> Body:
        method = name.rpartition(".")[2]

        def run() -> None:
            instance = None if owner is None else owner()
            made = Fixtures(self.wide)

            def argument(name: str) -> Any:
                if name in values:
                    return values[name]
                request = types.SimpleNamespace(
                    instance=instance, cls=owner, function=function, getfixturevalue=argument
                )
                request.addfinalizer = made.finalizers.append
                if name in params:
                    request.param = params[name]
                if name == "request":
                    return request
                found = self._fixture(name, owner, function)
                inner = lambda n: request if n == "request" else argument(n)  # noqa: E731 - brief
                return made.value(found, instance, inner, request)

            try:
                self._hook("setup_function", instance, "setup_method", function)
                for name in self._automatic(owner):
                    argument(name)
                arguments = {name: argument(name) for name in wanted}
                passed = {n: arguments[n] for n in parameters if n in arguments}
                bound = function if instance is None else getattr(instance, method)
                try:
                    _finished(bound(**passed, **values))
                finally:
                    self._hook("teardown_function", instance, "teardown_method", function)
            finally:
                made.finish()

        return run

    def _hook(self, plain: str, instance: Any, method: str, function: Any) -> None:
        hook = getattr(instance, method, None) if instance else self.namespace.get(plain)
        if hook is not None:
            _lenient(hook, function)()

    def _known(self, name: str, owner: type | None, function: Any) -> bool:
        return name in _given(_marks(function)) or name in self._fixtures(owner)

    def _fixtures(self, owner: type | None) -> dict[str, Fixture]:
        places = [self.namespace, *(vars(c) for c in reversed(owner.__mro__ if owner else ()))]
        return {f.name: f for place in places for f in place.values() if isinstance(f, Fixture)}

    def _fixture(self, name: str, owner: type | None, function: Any) -> Fixture:
        found = self._fixtures(owner).get(name)
        if found is None:
            where = getattr(function, "__name__", function)
            raise MissingFixture(
                f"{where} asks for the fixture {name!r}, which is not offered here"
            )
        return found

    def _automatic(self, owner: type | None) -> list[str]:
        return [name for name, found in self._fixtures(owner).items() if found.autouse]

    def _closure(
        self, names: list[str], owner: type | None, function: Any, given: set[str]
    ) -> list[Fixture]:
        """Return the fixtures of these names, and those that they ask for."""
        found: dict[str, Fixture] = {}
        names = list(names)
        while names:
            name = names.pop(0)
            if name in found or name in given or name == "request":
                continue
            found[name] = self._fixture(name, owner, function)
            names += [n for n in _required(found[name].function) if n != "self"]
        return list(found.values())


class _Once:
    """What a class wants done before its first test and after its last."""

    def __init__(self, owner: type, before: str, after: str) -> None:
        self.owner, self.before, self.after = owner, before, after
        self.begun = False
        self.fault: BaseException | None = None

    def around(self, run: Body) -> Body:
        def body() -> None:
            if not self.begun:
                self.begun = True
                try:
                    _lenient(getattr(self.owner, self.before, lambda: None))()
                except BaseException as error:
                    self.fault = error
                    raise
            if self.fault is not None:
                raise self.fault
            run()

        return body

    def finish(self) -> None:
        if self.begun and self.fault is None:
            _lenient(getattr(self.owner, self.after, lambda: None))()
        if self.begun and issubclass(self.owner, unittest.TestCase):
            self.owner.doClassCleanups()


def _unittest_cases(owner: type[unittest.TestCase]) -> Iterator[Case]:
    once = _Once(owner, "setUpClass", "tearDownClass")
    names = unittest.defaultTestLoader.getTestCaseNames(owner)
    for number, name in enumerate(names):
        case = owner(name)
        method = getattr(case, name)
        places = (owner, method)
        skipped = next((p for p in places if getattr(p, "__unittest_skip__", False)), None)
        if skipped is not None:
            why = str(getattr(skipped, "__unittest_skip_why__", ""))
            yield Case(case.id(), partial(skip, why))
            continue
        expecting = any(getattr(p, "__unittest_expecting_failure__", False) for p in places)
        run = once.around(case.debug)
        if number == len(names) - 1:
            run = _then(run, once.finish)
        yield Case(case.id(), run, Mark("xfail", (), {"strict": True}) if expecting else None)


def _then(run: Body, last: Body) -> Body:
    def body() -> None:
        try:
            run()
        finally:
            last()

    return body


def _marked(case: Case, marks: list[Mark]) -> Case:
    for mark in marks:
        condition = mark.args[0] if mark.args else True
        if mark.name in ("skipif", "xfail") and isinstance(condition, str):
            raise BadTests(f"{case.name}: a condition as text is not offered here")
        if mark.name == "skip" or (mark.name == "skipif" and condition):
            return Case(case.name, partial(skip, str(mark.options.get("reason", ""))))
        if mark.name == "xfail" and condition:
            case = Case(case.name, case.body, mark)
    return case


def _marks(holder: Any) -> list[Mark]:
    found = vars(holder).get("pytestmark", []) if hasattr(holder, "__dict__") else []
    found = found if isinstance(found, list | tuple) else [found]
    return [mark for mark in found if isinstance(mark, Mark)]


_Set = tuple[dict[str, Any], str, list[Mark]]


def _options(mark: Mark) -> dict[str, Any]:
    """Return the arguments of a ``parametrize`` by name; argnames as a list."""
    options = dict(zip(("argnames", "argvalues", "indirect", "ids"), mark.args, strict=False))
    options |= mark.options
    if options.get("indirect"):
        raise BadTests("parametrize(indirect=...) is not offered here")
    names = options["argnames"]
    options["single"] = isinstance(names, str) and "," not in names
    if isinstance(names, str):
        options["argnames"] = [n.strip() for n in names.split(",") if n.strip()]
    return options


def _given(marks: list[Mark]) -> set[str]:
    """Return the parameters that marks give."""
    return {n for mark in marks if mark.name == "parametrize" for n in _options(mark)["argnames"]}


def _parameter_sets(mark: Mark) -> list[_Set]:
    """Return names and values, label and marks of each set of a ``parametrize``."""
    options = _options(mark)
    names, single = options["argnames"], options["single"]
    rows = list(options["argvalues"])
    ids = options.get("ids")
    sets: list[_Set] = []
    for number, row in enumerate(rows):
        values = row.values if isinstance(row, Param) else ((row,) if single else tuple(row))
        if len(values) != len(names):
            raise BadTests(f"parametrize: {len(names)} names and {len(values)} values")
        marks = [m for m in row.marks if isinstance(m, Mark)] if isinstance(row, Param) else []
        label = row.id if isinstance(row, Param) and row.id else _label(ids, number, values)
        sets.append((dict(zip(names, values, strict=True)), label, marks))
    return sets


def _label(ids: Any, number: int, values: tuple[Any, ...]) -> str:
    if callable(ids):
        return "-".join(str(ids(value)) for value in values)
    if isinstance(ids, list | tuple) and number < len(ids) and ids[number] is not None:
        return str(ids[number])
    return str(number)


def _fixture_sets(found: Fixture) -> list[_Set]:
    if found.params is None:
        return [({}, "", [])]
    sets: list[_Set] = []
    for number, value in enumerate(found.params):
        plain = value.values[0] if isinstance(value, Param) else value
        sets.append(({found.name: plain}, str(number), []))
    return sets


def _is_static(owner: type, method: str) -> bool:
    return isinstance(inspect.getattr_static(owner, method), staticmethod)


def _required(function: Any) -> list[str]:
    """Return the parameters without defaults; the program's own objects have none."""
    if isinstance(function, Remote):
        return []
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except Exception:
        return []
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in parameters if p.default is p.empty and p.kind in kinds]


def _method_names(owner: type) -> list[str]:
    names = dict.fromkeys(n for c in reversed(owner.__mro__) for n in vars(c))
    return [n for n in names if n.startswith("test") and callable(getattr(owner, n))]


def _lenient(hook: Any, *arguments: Any) -> Body:
    """Wrap a hook that may take fewer arguments than there are."""
    wants = len(_required(hook))
    return lambda: _finished(hook(*[*arguments, None][:wants]))


def _finished(result: Any) -> Any:
    """Await the result of an ``async`` test; refuse a generator, which would assert nothing."""
    if inspect.iscoroutine(result):
        import asyncio

        return asyncio.run(result)
    if isinstance(result, types.GeneratorType | types.AsyncGeneratorType):
        raise BadTests("a test that yields is not offered here")
    return result


def skips() -> tuple[type[BaseException], ...]:
    """Return the exceptions of a test that is not to be counted."""
    return (Skipped, XFailed, unittest.SkipTest)
