"""Names of transactions, what coordinator and participants say to each other, and what both write to their log.

A transaction is named by the server that coordinates it and a number that this server never uses twice, restarts
included: the numbers go on after the largest one in its log. Its *age* is fixed when its first attempt begins, and kept
by every retry, so that all servers agree on who is older and whoever keeps trying is the oldest some day. Start times
alone are no order: two servers can give the same one, and clocks go back.

Source: Patterns of Distributed Systems ch. 21.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp

__all__ = [
    "PROTOCOL_MESSAGES",
    "Acknowledged",
    "CommitTransaction",
    "Inquiry",
    "PrepareTransaction",
    "RollBackTransaction",
    "TransactionId",
    "TransactionRef",
    "Vote",
]


class TransactionId(msgspec.Struct, frozen=True, order=True, array_like=True):
    """Which transaction: a number of the server that coordinates it."""

    number: int
    server: str

    def __str__(self) -> str:
        return f"{self.server}/{self.number}"


class TransactionRef(msgspec.Struct, frozen=True, array_like=True):
    """What accompanies every request: the transaction, when it started, and the age it took over from the first try."""

    id: TransactionId
    start: HybridTimestamp
    first_start: HybridTimestamp
    first_id: TransactionId

    @property
    def age(self) -> tuple[Any, ...]:
        """What transactions are ordered by, everywhere: the smaller is the older. No two are equal."""
        return self.first_start, self.first_id, self.id

    def is_younger_than(self, other: TransactionRef) -> bool:
        """Did it begin to try after `other`?"""
        return self.age > other.age


class PrepareTransaction(msgspec.Struct, frozen=True, tag="prepare-transaction"):
    """Can you promise to commit? `keys` are all of this participant's that the coordinator was told of."""

    ref: TransactionRef
    keys: tuple[str, ...]


class Vote(msgspec.Struct, frozen=True, tag="vote"):
    """Yes, at `time` at the earliest; or no, and then the participant has forgotten the transaction already."""

    id: TransactionId
    yes: bool
    time: HybridTimestamp


class CommitTransaction(msgspec.Struct, frozen=True, tag="commit-transaction"):
    """Decided: make the writes visible, at this time."""

    id: TransactionId
    time: HybridTimestamp


class RollBackTransaction(msgspec.Struct, frozen=True, tag="roll-back-transaction"):
    """Decided: forget it."""

    id: TransactionId


class Acknowledged(msgspec.Struct, frozen=True, tag="acknowledged"):
    """The decision is durable at this participant."""

    id: TransactionId


class Inquiry(msgspec.Struct, frozen=True, tag="inquiry"):
    """A participant that waits for a decision asks for it."""

    id: TransactionId


PROTOCOL_MESSAGES: tuple[type[msgspec.Struct], ...] = (
    PrepareTransaction,
    Vote,
    CommitTransaction,
    RollBackTransaction,
    Acknowledged,
    Inquiry,
)
"""What crosses the network between coordinator and participants."""
