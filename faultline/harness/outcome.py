"""What an operation came to: `ok`, `fail` or `info`.

- `ok`: it certainly happened;
- `fail`: it certainly did not happen, and never will;
- `info`: nobody knows. It may have happened, may still happen, or never will.

Indefinite is the default. A client error becomes `fail` only when its code stands in a registry of *definite* errors:
an error that is called definite by mistake makes the checker see ghosts, one that is called indefinite by mistake only
costs it time. (Maelstrom's error table is the model of the registry.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

__all__ = ["CAS_MISMATCH", "Outcome", "OutcomeKind", "OutcomeRegistry", "fail", "info", "ok"]

OutcomeKind = Literal["ok", "fail", "info"]

CAS_MISMATCH = "cas-mismatch"
"""The error code of a compare-and-set whose precondition did not hold: definite, and an observation of the state."""


class Outcome(msgspec.Struct, frozen=True):
    """The completion of one operation: `value` is what the store answered, `error` a short code when it did not.

    `node` names the node that answered, when the client knows it and it may differ from the one asked first.
    """

    kind: OutcomeKind
    value: Any = None
    error: str | None = None
    node: str | None = None


def ok(value: Any = None, node: str | None = None) -> Outcome:
    """An operation that certainly took effect and answered `value`, through `node` if that is known."""
    return Outcome("ok", value, None, node)


def fail(error: str) -> Outcome:
    """An operation that certainly took no effect. Prefer `OutcomeRegistry.outcome`, which knows the definite errors."""
    return Outcome("fail", None, error)


def info(error: str) -> Outcome:
    """An operation whose effect is unknown."""
    return Outcome("info", None, error)


class OutcomeRegistry:
    """The error codes a client may call definite; every other code is `info`."""

    def __init__(self, definite: Iterable[str]) -> None:
        self._definite = frozenset(definite)

    @property
    def definite(self) -> frozenset[str]:
        """The codes after which the operation certainly did not happen."""
        return self._definite

    def outcome(self, error: str, node: str | None = None) -> Outcome:
        """Classify the error code `error`, which `node` answered with if that is known."""
        return Outcome("fail" if error in self._definite else "info", None, error, node)
