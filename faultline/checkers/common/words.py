"""Values, clients and lists in sentences, and the identity of values that cannot be put in a set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from faultline.harness.history import History

__all__ = ["Composite", "client", "counted", "hashable", "listed", "token", "tokens", "told"]

_LONGEST_VALUE = 60
_LISTED_MAX = 8
_PLAIN = frozenset((int, str))


@dataclass(frozen=True, slots=True)
class Composite:
    """Stands for a value that cannot be hashed, or that Python takes for another one: `[1, 2]`, `true`."""

    text: str


def counted(count: int, noun: str) -> str:
    """Return `1 element`, `3 elements`, `1,530 watches`."""
    ending = "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}{ending}"


def token(value: Any) -> Any:
    """Return a hashable stand-in for `value`, equal for equal JSON values. True is not 1."""
    if value is None or (type(value) in _PLAIN) or (isinstance(value, float) and value == value):
        return value
    return value if isinstance(value, Composite) else Composite(json.dumps(value, sort_keys=True, default=_listable))


def hashable(value: Any) -> Any:
    """Return `value` itself when it can be looked up in a dictionary, else its JSON text. True is 1, as in Python."""
    try:
        hash(value)
    except TypeError:
        return msgspec.json.encode(value, order="deterministic")
    return value


def tokens(values: Sequence[Any]) -> Sequence[Any]:
    """Return the tokens of `values`, quickly when they are plain."""
    return values if set(map(type, values)) <= _PLAIN else [token(value) for value in values]


def told(value: Any) -> str:
    """Return a value for a sentence, cut when it is long; None is `nothing`."""
    if value is None:
        return "nothing"
    text = value.text if isinstance(value, Composite) else json.dumps(value, ensure_ascii=False, default=_listable)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def client(history: History, row: int) -> str:
    """Name the client that invoked `row`."""
    return f"client {history.process[row]}"


def listed(values: Iterable[Any], total: int | None = None, tell: Callable[[Any], str] = told) -> str:
    """List the first few values, each as `tell` has it, and the number of the others: `7, 9, 12 and 4 more`."""
    shown = [tell(value) for _, value in zip(range(_LISTED_MAX), values, strict=False)]
    more = (total or len(shown)) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def _listable(value: Any) -> Any:
    return sorted(value, key=str) if isinstance(value, set | frozenset) else str(value)
