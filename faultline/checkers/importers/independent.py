"""Independent keys: histories in which every value is a tuple `[key value]` (`jepsen.independent`).

Jepsen lifts a test of one register to many by wrapping values: `:read [3 nil]`, `:write [3 7]`, `:cas [3 [7 8]]`. On
disk a tuple is a vector like any other, and `[3 7]` may as well be one value. Values are taken as tuples when all of
them can be tuples and at least one must be: an argument `[key nil]`, or a compare-and-set of
`[key [old new]]`. A result must repeat the key.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.checkers.importers.events import EventError
from faultline.harness.history import History

__all__ = ["KeyNames", "are_tuples", "split_tuples"]


def are_tuples(history: History) -> bool:
    """Return whether all values of `history` are tuples of an independent key and a value, for certain."""
    certain = False
    for f, value, result, key in zip(history.f, history.value, history.result, history.key):
        if f == "txn" or key is not None or not _is_pair(value):
            return False
        if result is not None and not (_is_pair(result) and result[0] == value[0]):
            return False
        certain = certain or _is_certain(f, value)
    return certain


def split_tuples(history: History, names: KeyNames | None = None) -> None:
    """Move the keys out of the values, in place. Raise EventError for a value that is no tuple."""
    names = KeyNames() if names is None else names
    for value, result in zip(history.value, history.result):
        if not _is_pair(value) or not (result is None or (_is_pair(result) and result[0] == value[0])):
            raise EventError(f"{value!r:.60} is not a [key value] tuple, but those before it are")
    history.key = [names[value[0]] for value in history.value]
    history.value = [value[1] for value in history.value]
    history.result = [None if result is None else result[1] for result in history.result]


def _is_pair(value: Any) -> bool:
    return value.__class__ is list and len(value) == 2 and value[0].__class__ in (int, str)


def _is_certain(f: str, value: list[Any]) -> bool:
    return value[1] is None or (f == "cas" and value[1].__class__ is list and len(value[1]) == 2)


class KeyNames(dict[Any, str]):
    """The name of each key, different for different keys: the key 1 is `1`, and the text "1" beside it `"1"`."""

    def __init__(self) -> None:
        super().__init__()
        self._taken: set[str] = set()

    def __missing__(self, key: int | str) -> str:
        name = key if isinstance(key, str) else str(key)
        while name in self._taken:
            name = msgspec.json.encode(name).decode()
        self._taken.add(name)
        self[key] = name
        return name
