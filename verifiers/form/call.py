"""Tool calls, compared with the wanted ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .json_text import hashable_json


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a reply makes."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RequiredCall:
    """A required call.

    Attributes:
        name: of the tool.
        arguments: by name.
        alternatives: other values that an argument may have.
        optional: arguments that may be left out.
    """

    name: str
    arguments: Mapping[str, Any]
    alternatives: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()

    def allows(self, call: Call, case: bool) -> bool:
        """Return whether a call matches: the name and every argument."""
        return call.name == self.name and not self._differing(call, case)

    def share(self, call: Call, case: bool) -> float:
        """Return the F1 of a call's arguments, 0 if the name is wrong."""
        if call.name != self.name:
            return 0.0
        differing = self._differing(call, case)
        names = set(call.arguments) | {n for n in self.arguments if n not in self.optional}
        wrong_given = len([n for n in differing if n in call.arguments])
        right = len(call.arguments) - wrong_given
        wanted = len(names - (set(call.arguments) - set(self.arguments)))
        return 2 * right / (len(call.arguments) + wanted) if names else 1.0

    def _differing(self, call: Call, case: bool) -> set[str]:
        """Return the arguments that are wrong, extra or missing."""
        missing = set(self.arguments) - set(call.arguments) - self.optional
        return missing | {n for n, value in call.arguments.items() if not self._has(n, value, case)}

    def _has(self, name: str, value: Any, case: bool) -> bool:
        if name not in self.arguments:
            return False
        allowed = [self.arguments[name], *self.alternatives.get(name, ())]
        return _plain(value, case) in [_plain(each, case) for each in allowed]


def all_made(
    wanted: Sequence[RequiredCall], made: Sequence[Call], ordered: bool, case: bool
) -> bool:
    """Return whether each wanted call is made once, and no other.

    Without an order this is a perfect matching, found by augmenting paths (Kuhn, 1955): where two
    wanted calls allow the same call, the first that fits may not be the right one.
    """
    if len(wanted) != len(made):
        return False
    if ordered:
        return all(w.allows(call, case) for w, call in zip(wanted, made, strict=True))
    fits = [[at for at, call in enumerate(made) if w.allows(call, case)] for w in wanted]
    taken: dict[int, int] = {}

    def place(who: int, tried: set[int]) -> bool:
        for at in fits[who]:
            if at not in tried:
                tried.add(at)
                if at not in taken or place(taken[at], tried):
                    taken[at] = who
                    return True
        return False

    return all(place(who, set()) for who in range(len(wanted)))


def share_made(
    wanted: Sequence[RequiredCall], made: Sequence[Call], ordered: bool, case: bool
) -> tuple[float, float]:
    """Return the share of wanted calls made, and of correct names.

    Each wanted call has at most one of those made: in their order, or the best first. Both are
    divided by the number of calls wanted or made, whichever is more.
    """
    most = max(len(wanted), len(made))
    names = Counter(w.name for w in wanted) & Counter(call.name for call in made)
    if ordered:
        return sum(map(lambda w, c: w.share(c, case), wanted, made)) / most, names.total() / most
    pairs = sorted(
        (-w.share(call, case), i, k) for i, w in enumerate(wanted) for k, call in enumerate(made)
    )
    total, used_wanted, used_made = 0.0, set[int](), set[int]()
    for minus, i, k in pairs:
        if i not in used_wanted and k not in used_made:
            total -= minus
            used_wanted.add(i)
            used_made.add(k)
    return total / most, names.total() / most


def _plain(value: Any, case: bool) -> Any:
    return hashable_json(value if case else _folded(value))


def _folded(value: Any) -> Any:
    """Fold the case of a value's strings; keys stay."""
    if isinstance(value, str):
        return value.casefold()
    if isinstance(value, list):
        return [_folded(item) for item in value]
    return {k: _folded(v) for k, v in value.items()} if isinstance(value, dict) else value
