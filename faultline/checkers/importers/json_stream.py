"""A reader of JSON values one after another: the elements of an array, or a file with one value after the other.

The text comes in pieces of any size, like that of `edn.EdnReader`, and one value at a time must fit into memory. It is
stricter than the standard library's reader, which it uses: keys that occur twice, `NaN`, infinities and integers
of more than 64 bits are refused, because no checker could compare them.
"""

from __future__ import annotations

import json
import re
from typing import Any

from faultline.checkers.importers.text import Tail

__all__ = ["JsonError", "JsonReader"]

_SPACE = re.compile(r"[ \t\r\n]*")
_INTEGER_MAX = 2**63 - 1
_LONGEST_TOKEN = 16


class JsonError(ValueError):
    """Text that is not JSON, or not a kind that this reader takes; the message is the cause, without the place."""


class JsonReader:
    """A reader of the objects of an array, or of objects in sequence, from text that comes piece by piece."""

    def __init__(self) -> None:
        self._decoder = json.JSONDecoder(
            object_pairs_hook=_object, parse_constant=_no_number, parse_int=_integer, parse_float=_float
        )
        self._tail = Tail()
        self._in_array: bool | None = None
        self._expects = "value"
        self._is_over = False

    def feed(self, text: str) -> list[Any]:
        """Return the objects that `text` completes. Raise JsonError."""
        return self._read(is_last=False) if self._tail.add(text) else []

    def finish(self) -> list[Any]:
        """Return the last objects, when no more text comes. Raise JsonError when something is still open."""
        objects = self._read(is_last=True)
        if self._in_array and not self._is_over:
            raise JsonError("the text ends within the array")
        return objects

    def _read(self, *, is_last: bool) -> list[Any]:
        text, place = self._tail.take(), 0
        has_escapes = "\\u" in text
        objects: list[Any] = []
        while (place := self._next_object(text, place)) < len(text):
            try:
                value, place = self._decoder.raw_decode(text, place)
            except json.JSONDecodeError as error:
                if is_last or not _may_go_on(error, text):
                    raise JsonError(_cause(error, text)) from error
                break
            except RecursionError as error:
                raise JsonError("values are nested too deep") from error
            if has_escapes:
                _check_characters(value)
            objects.append(value)
            self._expects = "comma"
        self._tail.keep(text[place:])
        return objects

    def _next_object(self, text: str, place: int) -> int:
        """Return where the next object begins, past brackets and commas; the end of the text when it has not come
        yet."""
        while (space := _SPACE.match(text, place)) and (place := space.end()) < len(text):
            sign = text[place]
            if self._in_array is None:
                self._in_array = sign == "["
                place += self._in_array
            elif self._is_over:
                raise JsonError("text follows the end of the history")
            elif sign == "{" and (self._expects != "comma" or not self._in_array):
                return place
            elif self._in_array and sign == "]" and self._expects != "value after comma":
                self._is_over = True
                place += 1
            elif self._in_array and sign == "," and self._expects == "comma":
                self._expects = "value after comma"
                place += 1
            else:
                after = self._in_array and self._expects == "comma"
                wanted = "a comma or the end of the array" if after else "an object"
                raise JsonError(f"{text[place : place + 40]!r} is in the place of {wanted}")
        return place


def _check_characters(value: Any) -> None:
    r"""Refuse text with half a surrogate pair, written as `\uD800`."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise JsonError("a string holds half a surrogate pair") from error


def _may_go_on(error: json.JSONDecodeError, text: str) -> bool:
    """Return whether a value that cannot be read may be complete once more text has come."""
    return error.msg.startswith("Unterminated string") or error.pos >= len(text) - _LONGEST_TOKEN


def _cause(error: json.JSONDecodeError, text: str) -> str:
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return "the text ends within an object"
    return f"this is not JSON ({error.msg}): {text[error.pos : error.pos + 40]!r}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise JsonError(f"an object has a key twice: {', '.join(name for name, _ in pairs)[:80]}")
    return mapping


def _integer(text: str) -> int:
    if len(text) > 20 or abs(int(text)) > _INTEGER_MAX:
        raise JsonError(f"the integer {text[:80]} has more than 64 bits")
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise JsonError(f"the number {text[:80]} is too large")
    return number


def _no_number(name: str) -> float:
    raise JsonError(f"{name} cannot be compared with other values")
