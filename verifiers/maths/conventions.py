"""The conventions that decide whether two spellings are the same answer."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from ..validation import check_one_of

PERCENT = ("either", "unit", "value")
MEMBERS = ("exact", "some", "more")


def check_tolerance(name: str, value: Any) -> None:
    """Refuse what is no tolerance.

    Raises:
        ValueError: the value is not a finite number of at least 0.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")


@dataclass(frozen=True, slots=True)
class Conventions:
    r"""The rules by which two written answers are compared.

    Attributes:
        percent: what ``%`` means if only one side has it. ``"unit"``: it may be left out, so
            50% is 50 and not 0.5. ``"value"``: it divides by 100, so 50% is 0.5 and not 50.
            ``"either"``: both are taken. Without a sign nothing is ever divided: 50 is not 0.5.
        rounded_digits: a decimal with at least so many digits after the point is taken for a
            number that no decimal writes exactly (1/3, the square root of 2) if it is that
            number correctly rounded. ``None``: never. Against 3/4 only 0.75 counts.
        tolerance: how far a number may be from the reference, in its unit.
        relative_tolerance: the same as a share of the reference. The larger of the two counts.
        units: whether what the question names may be left out or added: a unit (``5`` for
            ``5 cm``), a base, am or pm. Two different units are never the same.
        conversions: whether a quantity may be given in another unit of the same kind, exactly:
            ``200 cm`` for ``2 m``, ``150 minutes`` for ``2.5 hours``.
        radians: whether an angle in degrees may be given in radians and the reverse: ``60^\\circ``
            and ``\\frac{\\pi}{3}``. One side must bear the degree sign, the other must hold pi.
        case: whether letter case counts in words. In variables and choices it always does.
        ordered: whether the order of a bare list counts. A set has none, a tuple always one.
        brackets: whether ``(1, 2)`` and ``1, 2`` differ.
        members: of lists and sets. ``"exact"``: all and no others. ``"some"``: members may be
            missing, but none may be wrong. ``"more"``: all, and at most as many others again.
        dates: whether ``12 May 2024`` is ``2024-05-12``, and ``3:30 PM`` is ``15:30``.
        worked_out: whether a number must be answered by a number: ``25+86`` is no answer if
            111 is wanted, though it is equal. For tasks whose work is the calculation.
        reduced: whether a fraction must be in lowest terms: ``18/60`` is no answer if 3/10 is
            wanted. For tasks that ask for it.

    Raises:
        ValueError: a convention is unknown, ``rounded_digits`` is less than 1, or a tolerance is
            not a number of at least 0.
    """

    percent: str = "either"
    rounded_digits: int | None = 6
    tolerance: float = 0.0
    relative_tolerance: float = 0.0
    units: bool = True
    conversions: bool = True
    radians: bool = True
    case: bool = False
    ordered: bool = False
    brackets: bool = True
    members: str = "exact"
    dates: bool = True
    worked_out: bool = False
    reduced: bool = False

    def __post_init__(self) -> None:
        for name, allowed in (("percent", PERCENT), ("members", MEMBERS)):
            check_one_of(name, getattr(self, name), allowed)
        for name in ("tolerance", "relative_tolerance"):
            check_tolerance(name, getattr(self, name))
        if self.rounded_digits is not None and self.rounded_digits < 1:
            raise ValueError(f"rounded_digits must be at least 1, got {self.rounded_digits!r}")

    def allows(self, distance: Any, reference: Any) -> bool:
        """Return whether a number may differ this much from the reference."""
        if not (self.tolerance or self.relative_tolerance):
            return False
        kind = Fraction if isinstance(reference, Fraction) else type(distance)
        allowed, share = kind(repr(self.tolerance)), kind(repr(self.relative_tolerance))
        return bool(abs(distance) <= max(allowed, share * abs(reference)))

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return asdict(self)
