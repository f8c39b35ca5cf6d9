"""Descriptions of operations on watches, leases and locks: `was told by watch 2 on servers: 7 at servers/1 (revision
45)`.

Their answers are records with names (see `faultline.checkers.watches` and `faultline.checkers.leased_lock`). Operations
of another shape have the general descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from faultline.harness.history import Row
from faultline.harness.revisions import WHOLE_ENTRY, change, revision
from faultline.reports.text import count, value_text

__all__ = ["service_answer", "service_attempt", "service_predicate", "stored_value"]

_ITEMS = 12
"""The number of a watcher's events that a sentence shows."""
_KEYS = 8
_VALUE = 60


def service_predicate(row: Row) -> str | None:
    """Return the predicate of an answered operation; None for other operations and other answers."""
    tell = _DEEDS.get(row.f)
    return None if tell is None or row.key is None else tell(row)


def service_attempt(row: Row) -> str | None:
    """Return the predicate of an attempt, in the infinitive; None for other operations."""
    if row.key is None or row.f not in _ATTEMPTS:
        return None
    return _ATTEMPTS[row.f].format(key=value_text(row.key, 40), value=value_text(stored_value(row), _VALUE))


def service_answer(row: Row) -> str | None:
    """Return the answer, short enough for the label of a bar: `token 7`, `3 items`; None for other answers."""
    result = row.result
    if _is_drain(row):
        told = sum(1 for item in result["items"] if item[0] != "upto")
        return count(told, "item") if told else "nothing new"
    if _is_list(row):
        return count(len(result["values"]), "key")
    if isinstance(result, Mapping) and row.f in _DEEDS:
        return next((f"{name} {result[name]}" for name in ("token", "number") if name in result), None)
    return None


def stored_value(row: Row) -> Any:
    """Return the value that the operation stores, without its lease."""
    return row.value["value"] if _is_attach(row) else row.value


def _is_attach(row: Row) -> bool:
    return isinstance(row.value, Mapping) and {"lease", "value"} <= set(row.value)


def _put(row: Row) -> str:
    lease = f" under {value_text(row.value['lease'], 40)}" if _is_attach(row) else ""
    return f"put {value_text(stored_value(row), _VALUE)} at {value_text(row.key, 40)}{lease}{_revision(row.result)}"


def _deleted(row: Row) -> str:
    return f"deleted {value_text(row.key, 40)}{_revision(row.result)}"


def _revision(result: Any) -> str:
    return f" (revision {result})" if type(result) is int else ""


def _locked(past: str) -> Callable[[Row], str]:
    def tell(row: Row) -> str:
        return past.format(key=value_text(row.key, 40), value=value_text(row.value, _VALUE)) + _token(row.result)

    return tell


def _token(result: Any) -> str:
    """Return ` with token 7`, and for a guarded write its place among all changes."""
    if not isinstance(result, Mapping) or "token" not in result:
        return "" if result is None else f" and got {value_text(result, _VALUE)}"
    place = f", as change {result['index']}" if "index" in result else ""
    return f" with token {result['token']}{place}"


def _is_drain(row: Row) -> bool:
    return row.f == "drain" and isinstance(row.result, Mapping) and {"number", "items"} <= set(row.result)


def _is_list(row: Row) -> bool:
    return row.f == "list" and isinstance(row.result, Mapping) and {"index", "values"} <= set(row.result)


def _watched(row: Row) -> str | None:
    if not isinstance(row.result, Mapping) or "number" not in row.result:
        return None
    return f"set watch {row.result['number']} on {value_text(row.key, 40)}"


def _drained(row: Row) -> str | None:
    if not _is_drain(row):
        return None
    items = row.result["items"]
    told = [_item(item) for item in items[:_ITEMS]] + [f"{len(items) - _ITEMS:,} things more"] * (len(items) > _ITEMS)
    who = f"was told by watch {row.result['number']} on {value_text(row.key, 40)}"
    if not any(item[0] != "upto" for item in items):
        return f"{who} of nothing new" + "".join(f" up to {_end(upto)}" for _, upto in items[-1:])
    return f"{who}: {'; '.join(told)}"


def _item(item: Sequence[Any]) -> str:
    if item[0] == "event":
        _, index, ordinal, key, value, is_deleted = item
        what = "nothing more" if is_deleted else value_text(value, _VALUE)
        return f"{what} at {value_text(key, 40)} ({revision((index, ordinal))})"
    if item[0] == "upto":
        return f"that was everything up to {_end(item[1])}"
    if item[0] == "state":
        reason = f", since {value_text(item[3], 60)}" if len(item) > 3 and item[3] else ""
        return f"a new beginning at {_end(item[1])}{reason}, with {_content(item[2])}"
    return value_text(item, _VALUE)


def _end(position: Sequence[int]) -> str:
    return f"revision {position[0]}" if position[1] >= WHOLE_ENTRY else change(position)


def _listed(row: Row) -> str | None:
    if not _is_list(row):
        return None
    where = f"listed {value_text(row.key, 40)} at revision {row.result['index']}"
    return f"{where} and got {_content(row.result['values'])}"


def _content(values: Mapping[str, Any]) -> str:
    """Return keys with their values: `72 at servers/1 and 76 at servers/2`."""
    told = [f"{value_text(value, _VALUE)} at {value_text(key, 40)}" for key, value in list(values.items())[:_KEYS]]
    if len(values) > _KEYS:
        told.append(f"{len(values) - _KEYS:,} keys more")
    return " and ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told) or "no keys"


_DEEDS: dict[str, Callable[[Row], str | None]] = {
    "put": _put,
    "attach": _put,
    "delete": _deleted,
    "acquire": _locked("acquired {key}"),
    "release": _locked("released {key}"),
    "abandon": _locked("abandoned {key}"),
    "check": _locked("believed to hold {key}"),
    "guarded-write": _locked("wrote {value} to what {key} guards"),
    "late-write": _locked("wrote {value} late to what {key} guards"),
    "watch": _watched,
    "drain": _drained,
    "list": _listed,
}
_ATTEMPTS = {
    "put": "put {value} at {key}",
    "attach": "put {value} at {key}",
    "delete": "delete {key}",
    "acquire": "acquire {key}",
    "release": "release {key}",
    "abandon": "abandon {key}",
    "check": "find out whether it still held {key}",
    "guarded-write": "write {value} to what {key} guards",
    "late-write": "write {value} late to what {key} guards",
    "watch": "watch {key}",
    "drain": "drain {key}",
    "list": "list {key}",
}
