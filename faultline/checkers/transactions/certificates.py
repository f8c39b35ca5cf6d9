"""Certificates of transactions: what stands behind a verdict, so that it can be verified without a search.

Transactions that keep a level have an *order*, in which they ran one by one as far as any of them can tell. Some that
break it have a *cycle*: each precedes the next, and the micro-operations named beside it show why. Others have a
*contradiction*: a rule by name, and the micro-operations that break it; or a *core*: a few transactions that have no
order among themselves, as `orders` sees by trying each. `verify` looks at them.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = ["Contradiction", "Edge", "Place", "ProvedTransaction", "TransactionCertificate"]

Place = tuple[int, int]
"""A micro-operation: the position of its transaction, and its own position there."""


class ProvedTransaction(msgspec.Struct, frozen=True, array_like=True):
    """One transaction in the history's words. One that is not ok has no `return_`, and its reads tell nothing."""

    steps: tuple[tuple[str, Any, Any], ...]
    outcome: Literal["ok", "info", "fail"]
    process: int
    call: int
    return_: int | None
    row: int


class Edge(msgspec.Struct, frozen=True, array_like=True):
    """The transaction `source` precedes that of the next edge, and the last that of the first.

    `because` names, for `wr`, the write and the read of it. For `ww` and `rw` it begins with the write, or the read, of
    the source and the write of the target. Of lists, `ww` adds a read that shows both. Of registers that did not read
    null, both add why the target's version is the later one: its transaction's read of the earlier version, or a use of
    the earlier one and a use of the later one by a transaction that comes after. `process` and `realtime` need nothing.
    """

    source: int
    kind: Literal["ww", "wr", "rw", "process", "realtime"]
    because: tuple[Place, ...] = ()


class Contradiction(msgspec.Struct, frozen=True, array_like=True):
    """A rule of `rules.RULES` by name, and the micro-operations that break it, whatever else happened."""

    rule: str
    because: tuple[Place, ...]


class TransactionCertificate(msgspec.Struct, frozen=True, omit_defaults=True):
    """The grounds of a verdict: an `order`, a `cycle`, a `contradiction` or a `core`, and only one of them."""

    order: tuple[int, ...] | None = None
    cycle: tuple[Edge, ...] | None = None
    contradiction: Contradiction | None = None
    core: tuple[int, ...] | None = None
