"""What counts as the same number where people differ: each convention by name."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

PERCENT = ("either", "unit", "value")


@dataclass(frozen=True, slots=True)
class Conventions:
    """How two written answers are held against each other.

    Attributes:
        percent: what ``%`` means where only one side has it. ``"unit"``: it may be left out, so
            50% is 50 and not 0.5. ``"value"``: it divides by 100, so 50% is 0.5 and not 50.
            ``"either"``: both are taken. Without a sign nothing is ever divided: 50 is not 0.5.
        rounded_digits: a decimal with at least so many digits after the point is taken for a
            number that no decimal writes exactly (1/3, the square root of 2) if it is that
            number correctly rounded. ``None``: never. Against 3/4 only 0.75 counts.
        units: whether a unit that the other side leaves out is overlooked, as in ``5`` for
            ``5 cm``. Two different units are never the same.

    Raises:
        ValueError: a convention is unknown, or ``rounded_digits`` is less than 1.
    """

    percent: str = "either"
    rounded_digits: int | None = 6
    units: bool = True

    def __post_init__(self) -> None:
        if self.percent not in PERCENT:
            raise ValueError(f"percent must be one of {', '.join(PERCENT)}, got {self.percent!r}")
        if self.rounded_digits is not None and self.rounded_digits < 1:
            raise ValueError(f"rounded_digits must be at least 1, got {self.rounded_digits!r}")

    def to_json(self) -> dict[str, Any]:
        """A dict of plain JSON values."""
        return asdict(self)
