"""Dependencies between transactions while a run goes on: a cycle is found when it closes.

`depends` adds a dependency and tells the cycle that it closes. The graph (`order`) has a node for each transaction. In
real time it has a *moment* besides for each commit: the transaction leads to it, it leads to the next one, and the
newest leads to each transaction that begins. So a path leads from one transaction to another whenever the first had
ended before the second began, and there are no more edges than twice the transactions.

*A transaction may leave the graph when it has settled*: it had committed before all open transactions began. One that
is open or still to come is behind it in real time, so a dependency of that one's on it closes a cycle, which two
numbers tell. What led through it is kept by passing over its node. A transaction of unknown outcome settles when it
has been shown whole, and a settled reader is behind it.

Limits. In real time the graph has the transactions that are open, those that overlap an open one, and those of unknown
outcome that were not shown whole. A cycle among settled transactions alone, which a later read reveals, is left to the
check afterwards, unless two of them contradict real time by themselves. Without real time any transaction may still
get a dependency, so none settles: beyond `transactions_max` all are left to the check afterwards.
"""

from __future__ import annotations

from collections import deque

from faultline.checkers.incremental.order import GrowingOrder

__all__ = ["TRANSACTIONS_MAX", "Dependencies", "Transaction"]

TRANSACTIONS_MAX = 20_000
"""The most transactions in the graph: some tens of megabytes."""

_NEVER = 1 << 62


class Transaction:
    """A transaction in `row`, with the moments `after` which it began and at which it ended; an open one never ends."""

    __slots__ = ("after", "end", "process", "row")

    def __init__(self, row: int, process: int, after: int) -> None:
        self.row, self.process, self.after = row, process, after
        self.end = _NEVER


class Dependencies:
    """Dependencies of transactions, with the order of each process or of real time."""

    def __init__(self, *, process: bool, realtime: bool, transactions_max: int = TRANSACTIONS_MAX) -> None:
        self._process, self._realtime = process and not realtime, realtime
        self._transactions_max = transactions_max
        self._order = GrowingOrder()
        self._open: dict[int, Transaction] = {}
        self._last: dict[int, Transaction] = {}
        self._ended: deque[Transaction] = deque()
        self._shown: dict[int, Transaction] = {}
        self._settled = self._newest = 0
        self._order.add(_moment(0))

    @property
    def size(self) -> int:
        """The number of transactions and moments in the graph."""
        return len(self._order)

    @property
    def are_too_many(self) -> bool:
        """True when more transactions are in the graph than may be."""
        return len(self._order) > self._transactions_max

    def begin(self, transaction: Transaction) -> None:
        """Take the call of `transaction`, which came after the moment `now`."""
        self._open[transaction.row] = transaction
        self._order.add(transaction.row)
        if self._realtime:
            self._order.join(_moment(transaction.after), transaction.row)
        elif self._process and transaction.process in self._last:
            self.depends(self._last[transaction.process], transaction)

    @property
    def now(self) -> int:
        """The newest moment."""
        return self._newest

    def commit(self, transaction: Transaction) -> None:
        """Take the end of a transaction that took effect."""
        del self._open[transaction.row]
        if self._process:
            self._last[transaction.process] = transaction
        if not self._realtime:
            return
        earlier, self._newest = _moment(self._newest), self._newest + 1
        transaction.end = self._newest
        self._order.add(_moment(self._newest))
        self._order.join(transaction.row, _moment(self._newest))
        self._order.join(earlier, _moment(self._newest))
        self._ended.append(transaction)

    def retract(self, transaction: Transaction) -> None:
        """Take the end of a transaction that failed: it had no effect, and no other one can depend on it."""
        del self._open[transaction.row]
        self._order.remove(transaction.row)

    def doubt(self, transaction: Transaction) -> None:
        """Take the end of a transaction whose outcome stays unknown."""
        del self._open[transaction.row]
        self._last.pop(transaction.process, None)

    def shown(self, transaction: Transaction) -> None:
        """Record that reads have shown all writes of a transaction: it may settle even if its outcome is unknown."""
        if self._realtime and transaction.end == _NEVER and transaction.row not in self._open:
            self._shown[transaction.row] = transaction

    def depends(self, before: Transaction, after: Transaction) -> tuple[int, ...]:
        """Record that `after` depends on `before`; return the rows of the cycle that this closes, none without one."""
        if before is after:
            return ()
        if after.end <= before.after:
            return (after.row, before.row)
        if before.row not in self._order or after.row not in self._order:
            return ()
        return tuple(row for row in self._order.join(before.row, after.row) if row >= 0)

    def settle(self) -> None:
        """Take what has settled out of the graph."""
        if not self._realtime:
            return
        settled = next(iter(self._open.values())).after if self._open else self._newest
        while self._ended and self._ended[0].end <= settled:
            self._order.pass_over(self._ended.popleft().row)
        for moment in range(self._settled, settled):
            self._order.pass_over(_moment(moment))
        self._settled = settled
        behind = [one for row, one in self._shown.items() if self._order.has_edge(row, _moment(settled))]
        for transaction in behind:
            del self._shown[transaction.row]
            transaction.end = settled
            self._order.pass_over(transaction.row)


def _moment(number: int) -> int:
    """Return the node of a moment. Rows are not negative, so that it is the node of no transaction."""
    return -1 - number
