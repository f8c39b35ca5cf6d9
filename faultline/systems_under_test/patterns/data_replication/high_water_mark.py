"""High-water mark: the index up to which the log is known to be on a majority, and so may be executed and shown.

*Problem.* An entry in the leader's log may still be lost when the leader dies before other servers store it. Values
that clients have seen must not be undone.

*Idea.* The leader keeps for each member the highest index that the member is known to store. The quorum-th largest of
these indexes, its own included, is stored by a majority: this is the mark. Only entries up to the mark are executed and
answered. The mark travels to the followers in requests and heartbeats, and they do the same. It only moves forward. It
need not be durable, because a server relearns it after a restart.

*Invariants.* HWM-I1 the mark never moves back on a node, and the committed prefix never shrinks. HWM-I2 an entry at or
below any mark is on a quorum of disks, everywhere the same. HWM-I3 a follower's mark is at most its leader's. HWM-I4
no read shows an entry above the mark.

*Tolerates.* Late and repeated acknowledgements, smaller marks in delayed heartbeats, members that lag or are gone.

*Does not tolerate.* Counting alone, across generations: an entry of an older generation that a majority stores can
still be replaced, so the replicated log also demands that the entry at the mark is of the leader's own generation.

*Workloads.* `register` with partitions and kills of the leader.

*Checkers.* Linearizability; invariants HWM-I1, HWM-I2, HWM-I3, HWM-I5, LOG-I5, LOG-R14.

*Planted bugs.* `dirty-read` (HWM-M1), `even-cluster-formula` (HWM-M2), `own-copy-counted-twice` (HWM-M3),
`truncate-to-own-mark` (HWM-M4), `no-truncate-on-conflict` (HWM-M5), `mark-moves-back` (HWM-M6), `mark-before-apply`
(HWM-M7), `follower-applies-everything` (HWM-M8), `apply-previous-again` (HWM-M9), and `commit-old-generation`.

Deviation from the printed code, which sorts ascending and takes position n/2: for an even n only half of the members
store that index. The position here is (n - 1)/2. As long as a leader needs more than half of the votes, n/2 copies and
n/2 + 1 votes still share a server, so the printed form loses no update by itself. It loses the tolerance of one more
lost disk that a majority promises, and HWM-I2 shows that.

Sources: Patterns of Distributed Systems ch. 12; Ongaro and Ousterhout (2014) §5.3-5.4 (`commitIndex`); Kafka's
replication design names it high watermark.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["HighWaterMark", "NotAvailable", "ValuesBelowMark", "quorum_index"]


class NotAvailable(LookupError):
    """The entry is above the high-water mark: it may still vanish, so no client may see it."""


def quorum_index(match_indexes: Sequence[int]) -> int:
    """Return the highest index that a majority stores.

    One index per member of the cluster, the leader's own included.
    """
    if not match_indexes:
        raise ValueError("a cluster has at least one member")
    # Ascending, so that this entry and all behind it are at least a majority, also for an even number of members.
    return sorted(match_indexes)[(len(match_indexes) - 1) // 2]


class HighWaterMark:
    """The mark of one node, which only moves forward."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def advance_to(self, index: int) -> bool:
        """Move the mark up to `index`; return False, and change nothing, when it is there already or beyond."""
        if index <= self.value:
            return False
        self.value = index
        return True

    def require(self, index: int) -> None:
        """Raise `NotAvailable` when the entry at `index` may not be shown yet."""
        if index > self.value:
            raise NotAvailable(f"entry {index} is above the high-water mark {self.value}")


class ValuesBelowMark:
    """The values for readers: the store as it was before the writes above the mark, each of which may still vanish."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._before: dict[str, deque[tuple[int, Any]]] = {}

    def wrote(self, number: int, key: str, before: Any) -> None:
        """Note the value of `key` before the write `number` changes it."""
        self._before.setdefault(key, deque()).append((number, before))

    def advance_to(self, mark: int) -> None:
        """Show the writes up to `mark`."""
        for key, changes in list(self._before.items()):
            while changes and changes[0][0] <= mark:
                changes.popleft()
            if not changes:
                del self._before[key]

    def value(self, key: str) -> Any:
        """Return the value that a reader of `key` is shown."""
        changes = self._before.get(key)
        return changes[0][1] if changes else self._values.get(key)
