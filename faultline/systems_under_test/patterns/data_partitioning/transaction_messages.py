"""Names of transactions, and the messages between coordinator and participants.

A transaction is named by the server that coordinates it and a number that this server never uses twice, restarts
included: the numbers go on after the largest one in its log. Its *age* is fixed when its first attempt begins, and
every retry keeps it. So all servers agree on which transaction is older, and one that retries long enough becomes the
oldest. Start times alone are not a total order: two servers can issue the same one, and clocks go back.

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
    """The name of a transaction: a number of the server that coordinates it."""

    number: int
    server: str

    def __str__(self) -> str:
        return f"{self.server}/{self.number}"


class TransactionRef(msgspec.Struct, frozen=True, array_like=True):
    """The part of every request: the transaction, its start, and the age that it took over from the first attempt."""

    id: TransactionId
    start: HybridTimestamp
    first_start: HybridTimestamp
    first_id: TransactionId

    @property
    def age(self) -> tuple[Any, ...]:
        """The order of transactions on every server: the smaller is the older, and no two are equal."""
        return self.first_start, self.first_id, self.id

    def is_younger_than(self, other: TransactionRef) -> bool:
        """Return whether its first attempt began after that of `other`."""
        return self.age > other.age


class PrepareTransaction(msgspec.Struct, frozen=True, tag="prepare-transaction"):
    """The question whether the participant promises to commit.

    `keys` are those of its keys that the coordinator knows.
    """

    ref: TransactionRef
    keys: tuple[str, ...]


class Vote(msgspec.Struct, frozen=True, tag="vote"):
    """Yes, at `time` at the earliest; or no, and the participant has forgotten the transaction."""

    id: TransactionId
    yes: bool
    time: HybridTimestamp


class CommitTransaction(msgspec.Struct, frozen=True, tag="commit-transaction"):
    """The decision to make the writes visible, at this time."""

    id: TransactionId
    time: HybridTimestamp


class RollBackTransaction(msgspec.Struct, frozen=True, tag="roll-back-transaction"):
    """The decision to forget the transaction."""

    id: TransactionId


class Acknowledged(msgspec.Struct, frozen=True, tag="acknowledged"):
    """The decision is durable at this participant."""

    id: TransactionId


class Inquiry(msgspec.Struct, frozen=True, tag="inquiry"):
    """The question of a participant that waits for a decision."""

    id: TransactionId


PROTOCOL_MESSAGES: tuple[type[msgspec.Struct], ...] = (
    PrepareTransaction,
    Vote,
    CommitTransaction,
    RollBackTransaction,
    Acknowledged,
    Inquiry,
)
"""All messages between coordinator and participants."""
