"""Text from a store, made fit for reading.

Values, keys and error messages are hostile: they hold right-to-left marks that turn a line around, NUL bytes that end
it, or ten megabytes. All text of a report goes through `visible` (invisible characters are escaped)
and `shorten` (long text is cut, with its length). Escaping for HTML and XML comes after, in one place each.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

__all__ = [
    "NOTHING",
    "clipped",
    "count",
    "display_width",
    "duration",
    "percent",
    "shorten",
    "time_point",
    "value_text",
    "visible",
]

NOTHING = "nothing"
"""The word for the absence of a value (JSON null)."""

_INVISIBLE_CATEGORIES = ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp")
_KEPT = "\n\t"
_PLAIN = re.compile(r"[\n\t\x20-\x7e]*\Z")


def visible(text: str) -> str:
    """Return `text` with every control, format, private and unassigned character written as `\\xNN` or `\\uNNNN`."""
    if _PLAIN.match(text):
        return text
    return "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in _INVISIBLE_CATEGORIES:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shorten(text: str, limit: int) -> str:
    """Return `text`, or its first `limit` characters and its length."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def clipped(text: str, limit: int) -> str:
    """Return `text`, or its beginning and `…`: for labels whose whole text is beside the figure."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def value_text(value: Any, limit: int = 60) -> str:
    """Return a value of an operation as one short visible line: JSON, but `nothing` for null."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return visible(shorten(value, limit).replace("\n", "\\n")) if value else '""'
    return visible(shorten(json.dumps(value, ensure_ascii=False, default=str), limit))


def display_width(text: str) -> int:
    """Return the number of columns of `text` in a monospaced font; wide East Asian characters take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def time_point(time_us: int, decimals: int = 3) -> str:
    """Return a moment of the run in seconds since its start."""
    return f"{time_us / 1_000_000:.{decimals}f} s"


def duration(length_us: int) -> str:
    """Return a length of time in the unit a person would choose, three significant digits."""
    if length_us < 1_000:
        return f"{length_us} µs"
    if length_us < 1_000_000:
        return f"{_three_digits(length_us / 1_000)} ms"
    return f"{_three_digits(length_us / 1_000_000)} s"


def _three_digits(number: float) -> str:
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def count(number: int, singular: str, plural: str = "") -> str:
    """Return the number with its noun: `1 run`, `14 runs`, `43,200 runs`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def percent(share: float) -> str:
    """Return a share as a percentage; small ones keep a decimal, so that 0.4 % is not 0 %."""
    points = share * 100
    return f"{points:.1f} %" if 0 < points < 10 else f"{points:.0f} %"
