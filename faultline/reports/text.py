"""Text that came out of a store, made fit to be read.

Values, keys and error messages are hostile: they hold right-to-left marks that turn a line around, NUL bytes that end
it, or ten megabytes. Everything a report prints goes through `visible` (what cannot be seen is written as an escape)
and `shorten` (what is too long is cut, and says by how much). Escaping for HTML and XML comes after, in one place each.
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
"""How a report writes the absence of a value (JSON null)."""

_INVISIBLE_CATEGORIES = ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp")
_KEPT = "\n\t"
_PLAIN = re.compile(r"[\n\t\x20-\x7e]*\Z")


def visible(text: str) -> str:
    """`text` with every control, format, private and unassigned character written as `\\xNN` or `\\uNNNN`."""
    if _PLAIN.match(text):
        return text
    return "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in _INVISIBLE_CATEGORIES:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shorten(text: str, limit: int) -> str:
    """`text`, or its first `limit` characters and how many there were."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def clipped(text: str, limit: int) -> str:
    """`text`, or its beginning and `…`: for labels, beside which the whole of it stands in words."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def value_text(value: Any, limit: int = 60) -> str:
    """A value of an operation as one short visible line: JSON, but `nothing` for null."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return visible(shorten(value, limit).replace("\n", "\\n")) if value else '""'
    return visible(shorten(json.dumps(value, ensure_ascii=False, default=str), limit))


def display_width(text: str) -> int:
    """How many columns of a monospaced font `text` takes; wide East Asian characters take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def time_point(time_us: int, decimals: int = 3) -> str:
    """A moment of the run in seconds since its start."""
    return f"{time_us / 1_000_000:.{decimals}f} s"


def duration(length_us: int) -> str:
    """A length of time in the unit a person would choose, three significant digits."""
    if length_us < 1_000:
        return f"{length_us} µs"
    if length_us < 1_000_000:
        return f"{_three_digits(length_us / 1_000)} ms"
    return f"{_three_digits(length_us / 1_000_000)} s"


def _three_digits(number: float) -> str:
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def count(number: int, singular: str, plural: str = "") -> str:
    """`1 run`, `14 runs`, `43,200 runs`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def percent(share: float) -> str:
    """A share as a percentage; small ones keep a decimal, so that 0.4 % is not 0 %."""
    points = share * 100
    return f"{points:.1f} %" if 0 < points < 10 else f"{points:.0f} %"
