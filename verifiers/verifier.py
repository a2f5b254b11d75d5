"""The base of verifiers: a batch of replies and references in, a batch of verdicts out."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from ..sandbox.redaction import redact
from .exits import reraise_termination
from .nearest import did_you_mean
from .validation import safe_repr
from .verdict import Status, Verdict

_KINDS: dict[Any, type[Verifier]] = {}
_FORMER = {"winning_reply": "oracle_reply", "quick": "is_cheap"}  # names of 0.2


class Verifier:
    """Base of verifiers, which judge replies against references.

    Implement :meth:`judge` for one pair and inherit the batch, or override
    :meth:`verify_many` if a batch can be judged faster than one by one.

    A reply is hostile text: it always gets a verdict, and nothing raises or hangs.
    An unusable reference gives ``bad_gold`` and a score of ``None``.

    Attributes:
        judges_form: whether only the form of a reply counts, whatever the reply says in that form.
            An audit then tries no near misses, hedges or lists of answers.
        many_answers: whether one answer may be right for several tasks, as of many.
        is_cheap: whether judging takes a time in proportion to the reply's length, microseconds a
            hundred characters, in this process, and waits for nothing. A server then judges short
            replies without a thread. It is not inherited: each class says so of its own code.
        score_range: the lowest and the highest score. A score outside it is ``verifier_error``.
    """

    score_range: tuple[float, float] = (0.0, 1.0)
    judges_form: bool = False
    many_answers: bool = False
    is_cheap: bool = False

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply. An exception raised here becomes ``verifier_error``, never 0.0."""
        raise TypeError(f"{type(self).__name__} must define judge or verify_many")

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge ``replies[i]`` against ``references[i]``; the order is kept.

        Raises:
            ValueError: there are not as many references as replies.
        """
        same_length(replies, references)
        verdicts: list[Verdict] = []
        good: Any = _NOTHING
        for reply, reference in zip(replies, references, strict=True):
            if reference is good:  # as in a group, whose replies share it
                verdicts.append(self._guarded(reply, reference, checked=True))
                continue
            verdict = self._guarded(reply, reference)
            good = _NOTHING if verdict.score is None else reference
            verdicts.append(verdict)
        return verdicts

    def verify(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply: a batch of one."""
        if type(self).verify_many is Verifier.verify_many:
            return self._guarded(reply, reference)
        return self.verify_many([reply], [reference])[0]

    async def averify_many(
        self, replies: Sequence[str], references: Sequence[Any]
    ) -> list[Verdict]:
        """Run :meth:`verify_many` in a thread, so that the event loop is not blocked."""
        return await asyncio.to_thread(self.verify_many, replies, references)

    def check_reference(self, reference: Any) -> str | None:
        """Return what is wrong with a reference, or ``None`` if it is usable.

        Environments ask this for every task when data is loaded.
        """
        return None

    def bad_references(self, references: Iterable[Any]) -> dict[int, str]:
        """Return faults of references by position, as a report on a data set."""
        faults = ((k, self.check_reference(gold)) for k, gold in enumerate(references))
        return {k: fault for k, fault in faults if fault is not None}

    def oracle_reply(self, reference: Any) -> str | None:
        """Return a reply that earns full marks, if the reference determines one.

        No policy sees it: an audit holds the verifier to it.
        """
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the class's name and the options that scores depend on, named as its arguments.

        These are the arguments that are kept as attributes of the same name and that JSON can
        hold; override it if scores depend on others.
        """
        kept = {
            n: getattr(self, n)
            for n in inspect.signature(type(self)).parameters
            if hasattr(self, n)
        }
        plain = {name: _plain(value) for name, value in kept.items()}
        return {"name": type(self).__qualname__, **{n: v for n, v in plain.items() if v is not ...}}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Verifier:
        """Invert :meth:`to_json`, for every class that was defined or imported.

        Raises:
            ValueError: no class has the name, or it takes no such options.
        """
        options = dict(row)
        name = options.pop("name", None)
        kind = _KINDS.get(name)
        if kind is None:
            near = did_you_mean(str(name), _KINDS, "`assay verifiers` lists them.")
            raise ValueError(f"no verifier is called {name!r}. {near}")
        try:
            _refuse_flags(kind, options)
            return kind._from_options(options)
        except TypeError as error:
            raise ValueError(f"{name} cannot be made from {redact(options)}: {error}") from error

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> Verifier:
        return cls(**options)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _KINDS[cls.__qualname__] = cls
        for old, new in _FORMER.items():
            if old in vars(cls):
                setattr(cls, new, vars(cls)[old])
                warn_former(f"{cls.__qualname__}.{old}", new)

    def __getattr__(self, name: str) -> Any:
        """Find an attribute under its former name."""
        if name in _FORMER:
            warn_former(name, _FORMER[name])
            return getattr(self, _FORMER[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __eq__(self, other: object) -> bool:
        """Return whether both are of one class with the same options."""
        return type(self) is type(other) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_json(), sort_keys=True))

    def __repr__(self) -> str:
        options = redact(self.to_json())
        options.pop("name", None)
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in options.items())})"

    def close(self) -> None:
        """Give back workers and sandboxes. Calling it twice does no harm."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _in_range(self, verdict: Verdict) -> Verdict:
        """Return the verdict, or ``verifier_error`` if it is invalid or out of range."""
        if not isinstance(verdict, Verdict):
            kind = type(self).__name__
            raise TypeError(
                f"{kind} must return a Verdict for each reply, got {safe_repr(verdict)}"
            )
        score, (low, high) = verdict.score, self.score_range
        if score is None or low <= score <= high:
            return verdict
        reason = (
            f"the score must be in [{low:g}, {high:g}], got {score:g}: declare the range, by "
            "score_range = (low, high) in a class derived from Verifier, or by "
            'Rubric({"name": function}, ranges={"name": (low, high)})'
        )
        return Verdict(Status.VERIFIER_ERROR, None, reason, seconds=verdict.seconds)

    def _guarded(self, reply: str, reference: Any, *, checked: bool = False) -> Verdict:
        started = time.perf_counter()
        try:
            fault = None if checked else self.check_reference(reference)
            verdict = (
                Verdict.fault(Status.BAD_GOLD, fault)
                if fault is not None
                else self._in_range(self.judge(reply, reference))
            )
        except (Exception, SystemExit) as error:  # a bug in a verifier is ours; the cause is kept
            reraise_termination(error)
            wrong = TypeError(f"a reply must be text, got {reply!r:.80}; no reply is ''")
            verdict = Verdict.from_error(error if isinstance(reply, str) else wrong)
        return verdict.timed(time.perf_counter() - started)


def checked(verifier: Verifier, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
    """Judge a batch; what is no Verdict for each reply raises, a score out of range is a fault."""
    found = list(verifier.verify_many(replies, references))
    if len(found) != len(replies):
        kind = type(verifier).__name__
        raise ValueError(f"{kind} must return {len(replies)} Verdicts, got {len(found)}")
    return [verifier._in_range(verdict) for verdict in found]


def isolated_verdicts(
    verifier: Verifier, replies: Sequence[str], references: Sequence[Any]
) -> list[Verdict]:
    """Judge a batch; what ``verify_many`` raises for one reply costs no other its verdict."""
    try:
        return checked(verifier, replies, references)
    except (Exception, SystemExit) as error:
        reraise_termination(error)
        half = len(replies) // 2
        if half:
            first = isolated_verdicts(verifier, replies[:half], references[:half])
            return first + isolated_verdicts(verifier, replies[half:], references[half:])
        return [Verdict.from_error(error)] * len(replies)


def warn_former(old: str, new: str) -> None:
    """Warn that a name of 0.2 is another now."""
    message = f"{old} is called {new}; the former name goes with the next version"
    warnings.warn(message, DeprecationWarning, stacklevel=3)


class FunctionVerifier(Verifier):
    """A plain function as a verifier.

    Args:
        function: ``(reply, reference)`` to a Verdict, or to a score: a bool, or a number in
            ``score_range``. The highest score is ``correct``.
        score_range: the lowest and the highest score.

    Raises:
        TypeError: the function is asynchronous, takes other arguments, or is none.
        ValueError: the range is not two finite numbers in ascending order.

    Example:
        >>> contains = FunctionVerifier(lambda reply, reference: reference in reply)
        >>> contains.verify("a cat", "cat").score
        1.0
    """

    def __init__(
        self,
        function: Callable[[str, Any], Verdict | float],
        score_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        if not callable(function) or inspect.isclass(function):
            raise TypeError(f"a reward must be a function or a Verifier, got {function!r:.80}")
        if inspect.iscoroutinefunction(function):
            raise TypeError(
                f"the function {function!r:.80} is asynchronous: give a plain one, or a "
                "Verifier with averify_many"
            )
        try:
            inspect.signature(function).bind("", None)
        except TypeError as error:
            name = getattr(function, "__qualname__", function)
            raise TypeError(f"{name!r} must take a reply and a reference: {error}") from error
        except ValueError:  # a function of C may not tell its arguments
            pass
        self.function = function
        self.score_range = checked_range("score_range", score_range)

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Call the function; the highest score is correct, anything less is not."""
        found = self.function(reply, reference)
        if isinstance(found, Verdict):
            return found
        try:
            score = float("" if isinstance(found, str | bytes) else found)
        except (TypeError, ValueError) as error:
            raise TypeError(
                "a reward function must return a bool, a number or a Verdict, "
                f"got {safe_repr(found)} from {self.to_json()['function']!r}"
            ) from error
        if score == self.score_range[1]:
            return Verdict(Status.CORRECT, score)
        return Verdict.wrong("", score=score)

    def to_json(self) -> dict[str, Any]:
        """Return the function's name and its range: enough to compare, not to load it."""
        function = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        row: dict[str, Any] = {"name": "FunctionVerifier", "function": function}
        usual = self.score_range == Verifier.score_range
        return row if usual else {**row, "score_range": list(self.score_range)}

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> Verifier:
        raise ValueError(
            f"the function {options.get('function')!r} cannot be read back from JSON: "
            "write it as a class derived from Verifier"
        )

    def __eq__(self, other: object) -> bool:
        """Return whether both call the same function."""
        return (
            isinstance(other, FunctionVerifier)
            and self.function == other.function
            and self.score_range == other.score_range
        )

    def __hash__(self) -> int:
        return hash(self.function)


VerifierLike = Verifier | type[Verifier] | str | Callable[[str, Any], Verdict | float]
"""A Rubric, one verifier, its class or name, or a function of reply and reference."""


def as_verifier(
    given: VerifierLike, score_range: tuple[float, float] = Verifier.score_range
) -> Verifier:
    """Return a verifier as it is, one of a class or a name, or a function as one."""
    if isinstance(given, str):
        return Verifier.from_json({"name": given})
    if isinstance(given, Verifier):
        return given
    if isinstance(given, type) and issubclass(given, Verifier):
        return given()
    function: Any = given  # FunctionVerifier refuses other classes
    return FunctionVerifier(function, score_range)


def checked_range(name: str, pair: Any) -> tuple[float, float]:
    """Validate a range of scores: two finite numbers, the lower one first.

    Raises:
        ValueError: it is not.
    """
    if isinstance(pair, list | tuple) and len(pair) == 2:
        low, high = pair
        if all(isinstance(n, int | float) and math.isfinite(n) for n in pair) and low < high:
            return (float(low), float(high))
    raise ValueError(
        f"{name} must be two finite numbers, the lower one first, got {safe_repr(pair)}"
    )


def _refuse_flags(kind: type[Verifier], options: Mapping[str, Any]) -> None:
    """Refuse ``"false"`` for an option that is yes or no: Python would take it for yes."""
    for name, parameter in inspect.signature(kind).parameters.items():
        value = options.get(name, True)
        if isinstance(parameter.default, bool) and not isinstance(value, bool):
            raise ValueError(f"{name} of {kind.__name__} must be true or false, got {value!r:.80}")


_NOTHING = object()


def _plain(value: Any) -> Any:
    """Return an option as JSON preserves it; ``...`` if it cannot."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return ...


def same_length(replies: Sequence[Any], references: Sequence[Any]) -> None:
    """Refuse a batch in which replies and references do not pair up."""
    for name, given in (("replies", replies), ("references", references)):
        if isinstance(given, str):
            raise ValueError(f"{name} must be a list, got one text: {given!r:.80}")
    if len(replies) != len(references):
        raise ValueError(
            f"expected one reference for each reply, got {len(replies)} replies "
            f"and {len(references)} references"
        )
