"""Read dates and times of day: ``12 May 2024``, ``2024-05-12``, ``3:30 PM``, ``15:30``.

``5/12/2024`` is not read: it is a day in May for some and in December for others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..text.markup import unwrap_text

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS if name != "may") + "|may|sept"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"(?:(?:the ?)?{_DAY} ?(?:of )?(?P<month>{_MONTH})\.?(?:[ ,;]{{0,2}}(?P<year>\d{{4}}))?"
    rf"|(?P<month2>{_MONTH})\.? ?{_DAY.replace('day', 'day2')}(?:(?:st|nd|rd|th)?[ ,;]{{1,2}}"
    r"(?P<year2>\d{4}))?"
    r"|(?P<year3>\d{4})-(?P<month3>\d{2})-(?P<day3>\d{2}))",
    re.IGNORECASE | re.ASCII,
)
_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2}))?)? ?"
    r"(?P<half>[ap])\.? ?m\.?|(?P<noon>(?:12 ?)?noon|midnight)",
    re.IGNORECASE | re.ASCII,
)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class DateTime:
    """A date or a time of day.

    Attributes:
        date: year (0 if none is given), month and day; empty for a time.
        seconds: since midnight; of a time.
        half: whether a time says am or pm, or is past noon by itself.
        said: whether it says am or pm, or is a date.
    """

    date: tuple[int, ...] = ()
    seconds: int = 0
    half: bool = True
    said: bool = True


def read_date_time(text: str) -> DateTime | None:
    """Read a respelled, squeezed text; ``None`` if it is no date, and no time with am or pm."""
    if len(text) > 60:
        return None
    text = unwrap_text(text).strip(" .")
    found = _DATE.fullmatch(text)
    if found:
        return _date({name: part for name, part in found.groupdict().items() if part})
    time = _TIME.fullmatch(text)
    return None if time is None else _time(time)


def read_clock(text: str) -> DateTime | None:
    """Read ``15:30``; ``None`` if it is no time of day."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    hour, minute, second = (int(part or 0) for part in found.groups())
    if hour > 23 or minute > 59 or second > 59:
        return None
    return DateTime(
        seconds=3600 * hour + 60 * minute + second, half=not 1 <= hour <= 12, said=False
    )


def words_written(text: str) -> str:
    """Return a text's letters, digits and signs alone, to compare spellings."""
    return unwrap_text(text).replace(" ", "").lower()


def same_date_time(gold: DateTime, answer: DateTime, half_may_miss: bool) -> bool:
    """Return whether two are equal; ``3:30`` may mean ``3:30 PM`` if that is allowed."""
    if gold.date or answer.date:
        return gold.date == answer.date
    if gold.seconds == answer.seconds and gold.half == answer.half:
        return True
    if gold.half and answer.half:
        return gold.seconds == answer.seconds
    noon = 12 * 3600
    half_may_miss = half_may_miss and (gold.said or answer.said)  # 7:30 is not 19:30
    return half_may_miss and gold.seconds % noon == answer.seconds % noon


def _date(found: dict[str, str]) -> DateTime | None:
    year, month, day = (
        next((found[k] for k in found if k.startswith(part)), "0")
        for part in ("year", "month", "day")
    )
    number = int(month) if month.isdigit() else _month_number(month)
    if not 1 <= number <= 12 or not 1 <= int(day) <= 31:
        return None
    return DateTime(date=(int(year), number, int(day)))


def _month_number(name: str) -> int:
    return 1 + [month[:3] for month in _MONTHS].index(name[:3].lower())


def _time(found: re.Match[str]) -> DateTime | None:
    if found["noon"]:
        return DateTime(seconds=0 if found["noon"].lower() == "midnight" else 12 * 3600)
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    if not 1 <= hour <= 12 or minute > 59 or second > 59:
        return None
    hour = hour % 12 + (12 if found["half"].lower() == "p" else 0)
    return DateTime(seconds=3600 * hour + 60 * minute + second)
