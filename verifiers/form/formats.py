"""The formats of JSON Schema that can be checked exactly, each in one pass."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from ipaddress import AddressValueError, IPv4Address, IPv6Address

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(
    r"([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.[0-9]{1,20})?"
    r"(?:[Zz]|([+-](?:[01][0-9]|2[0-3])):([0-5][0-9]))"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EMAIL = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@"
    r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9][A-Za-z0-9-]{0,62}){0,8}"
)
_URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+"
)


def _date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    try:
        date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return False
    return True


def _time(text: str) -> bool:
    found = _TIME.fullmatch(text)
    if found is None or found[3] != "60":
        return found is not None
    hours, minutes = found[4] or "+00", found[5] or "00"
    away = 60 * int(hours) + int(hours[0] + minutes)
    return (60 * int(found[1]) + int(found[2]) - away) % 1440 == 1439  # leap seconds end a day


def _date_time(text: str) -> bool:
    return _date(text[:10]) and text[10:11] in ("T", "t") and _time(text[11:])


def _ipv4(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True


def _ipv6(text: str) -> bool:
    try:
        return IPv6Address(text).scope_id is None
    except AddressValueError:
        return False


def _email(text: str) -> bool:
    local = text.partition("@")[0]
    dots = local.startswith(".") or local.endswith(".") or ".." in local
    return not dots and _EMAIL.fullmatch(text) is not None


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _date,
    "time": _time,
    "date-time": _date_time,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "email": _email,
    "uri": lambda text: _URI.fullmatch(text) is not None,
}
"""By name: RFC 3339 dates and times, addresses, UUIDs, plain e-mail addresses, absolute URIs."""
