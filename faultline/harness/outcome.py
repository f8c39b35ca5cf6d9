"""The outcome of an operation: `ok`, `fail` or `info`.

- `ok`: it certainly happened;
- `fail`: it certainly did not happen, and never will;
- `info`: the outcome is unknown. It may have happened, may still happen, or never will.

Indefinite is the default. A client error becomes `fail` only when its code stands in a registry of *definite* errors:
an error that is wrongly called definite makes the checker report violations that never happened; an error that is
wrongly called indefinite only costs it time. (Maelstrom's error table is the model of the registry.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

__all__ = [
    "CAS_MISMATCH",
    "NOT_CONNECTED",
    "UNSUPPORTED",
    "Outcome",
    "OutcomeKind",
    "OutcomeRegistry",
    "fail",
    "info",
    "ok",
    "unrecordable",
]

OutcomeKind = Literal["ok", "fail", "info"]

CAS_MISMATCH = "cas-mismatch"
"""The error code of a compare-and-set whose precondition did not hold: definite, and an observation of the state."""

UNSUPPORTED = "unsupported-operation"
"""The error code of an operation that the system does not have: definite, since no request was sent."""

NOT_CONNECTED = "not-connected"
"""The error code of an operation for which no connection was made: definite, since nothing was sent. A worker that
gets it backs off, and the ledger of a run counts it apart: such an operation tests nothing."""


class Outcome(msgspec.Struct, frozen=True):
    """The completion of one operation: `value` is the store's answer, `error` a short code when there is none.

    `node` names the node that answered, when the client knows it and it may differ from the one asked first.
    """

    kind: OutcomeKind
    value: Any = None
    error: str | None = None
    node: str | None = None


def ok(value: Any = None, node: str | None = None) -> Outcome:
    """Return the outcome of an operation that certainly took effect and answered `value`, through `node` if that is
    known."""
    return Outcome("ok", value, None, node)


def fail(error: str) -> Outcome:
    """Return the outcome of an operation that certainly took no effect. Prefer `OutcomeRegistry.outcome`, which knows
    the definite errors."""
    return Outcome("fail", None, error)


def info(error: str) -> Outcome:
    """Return the outcome of an operation whose effect is unknown."""
    return Outcome("info", None, error)


def unrecordable(outcome: object) -> str:
    """Return the reason why a client's `outcome` cannot be recorded: half a sentence, '' when it can be.

    A history is written as JSON, and an outcome that cannot be written cannot be judged again: one with an unknown
    kind, with an object, with half a surrogate pair, or with NaN.
    """
    if type(outcome) is not Outcome:
        return f"it gave {ascii(outcome)[:80]} and no Outcome"
    if outcome.kind not in ("ok", "fail", "info"):
        return f"its kind is {ascii(outcome.kind)[:80]} and none of ok, fail and info"
    texts: tuple[tuple[str, Any], ...] = (("error", outcome.error), ("node", outcome.node))
    for name, text in texts:
        if text is not None and not (isinstance(text, str) and (text.isascii() or _is_plain(text))):
            return f"its {name} is {ascii(text)[:80]} and no text that JSON can hold"
    return "" if _is_plain(outcome.value) else f"JSON cannot hold its value {ascii(outcome.value)[:80]}"


def _is_plain(value: Any) -> bool:
    """Return whether JSON holds `value` unchanged. Numbers and short texts come first, as most values are those."""
    kind = type(value)
    if value is None or kind is bool or (kind is str and value.isascii()):
        return True
    if kind is int:
        return bool(-(1 << 63) <= value < 1 << 64)
    if kind is float:
        return math.isfinite(value)
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if kind is dict:
        return all(isinstance(key, str) and _is_plain(key) and _is_plain(item) for key, item in value.items())
    try:
        msgspec.json.encode(value)
    except Exception:
        return False
    return True


class OutcomeRegistry:
    """The error codes a client may call definite; every other code is `info`."""

    def __init__(self, definite: Iterable[str]) -> None:
        self._definite = frozenset(definite)

    @property
    def definite(self) -> frozenset[str]:
        """The codes after which the operation certainly did not happen."""
        return self._definite

    def outcome(self, error: str, node: str | None = None) -> Outcome:
        """Return the outcome for the error code `error`, which `node` answered if that is known."""
        return Outcome("fail" if error in self._definite else "info", None, error, node)
