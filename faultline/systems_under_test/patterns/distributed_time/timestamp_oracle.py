"""A timestamp oracle: one server that gives out times, so that the times of all transactions have one order.

Percolator and TiKV take the start and the commit time of every transaction from such a server. Its times are not wall
times. But a transaction that begins after another was acknowledged gets the larger time, on any server, so reads at a
time from the oracle miss no earlier write. The price is one more request for each time, and no transaction commits
while the oracle is down.

Times must increase across restarts too. Writing each time to the disk would be slow. So the oracle writes a *limit*,
gives out times below it, and then writes the next limit. After a restart it goes on at the limit, and some times are
never used.

Sources: Patterns of Distributed Systems ch. 21; Peng and Dabek, "Large-scale Incremental Processing Using Distributed
Transactions and Notifications" (OSDI 2010) §2.3.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["TimestampOracle"]

_RESERVED_AT_ONCE = 1_000


class TimestampOracle:
    """The source of numbers, each larger than all before; `reserve` makes a new limit durable before later messages."""

    def __init__(self, reserve: Callable[[int], None]) -> None:
        self._reserve = reserve
        self._last = 0
        self._limit = 0

    @property
    def limit(self) -> int:
        """The number up to which times may have been given out."""
        return self._limit

    def restore(self, limit: int) -> None:
        """Go on above `limit` after a restart: times up to it may have been given out."""
        self._last = self._limit = max(self._limit, limit)

    def next(self, above: int = 0) -> int:
        """Return a time that was never given out before, larger than `above`."""
        self._last = max(self._last, above)
        if self._last >= self._limit:
            self._limit = self._last + _RESERVED_AT_ONCE
            self._reserve(self._limit)
        self._last += 1
        return self._last
