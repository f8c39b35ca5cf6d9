"""The invariants of a store behind a write-ahead log, on what servers report of their log and of all their values.

WAL-I1 and WAL-I4 are about what clients see: linearizability judges them.
"""

from __future__ import annotations

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.reference.logged_store.messages import CommandApplied, StoreOpened

__all__ = [
    "EntriesAreAppliedInOrder",
    "ReplayLeavesTheLogAlone",
    "StateIsTheFoldOfTheLog",
    "logged_store_invariants",
]


class EntriesAreAppliedInOrder(ReportingInvariant):
    """WAL-I2: a server applies entry after entry."""

    id = "WAL-I2"
    statement = "A server applies the entries of its log one after the other, without a gap."
    events = (StoreOpened, CommandApplied)

    def __init__(self) -> None:
        self._applied: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: StoreOpened | CommandApplied, report: Report) -> None:
        """Compare each entry with the one before."""
        if type(event) is StoreOpened:
            self._applied[node] = event.applied
        elif type(event) is CommandApplied:
            before = self._applied.get(node, 0)
            if event.index != before + 1:
                sentence = f"{node} applied entry {event.index} after entry {before}."
                self._breach(report, time_us, node, sentence)
            self._applied[node] = event.index


class StateIsTheFoldOfTheLog(ReportingInvariant):
    """WAL-I3: a restart comes to the values that the server had after the same entry."""

    id = "WAL-I3"
    statement = (
        "A server that starts has applied its whole log, and has the values that it had after that entry before."
    )
    events = (StoreOpened, CommandApplied)

    def __init__(self) -> None:
        self._checksums: dict[tuple[str, int], int] = {}

    def observe(self, time_us: int, node: str, event: StoreOpened | CommandApplied, report: Report) -> None:
        """Remember the values after each entry; an entry that a crash took away gives its index to another."""
        if type(event) is CommandApplied:
            self._checksums[node, event.index] = event.checksum
            return
        assert type(event) is StoreOpened
        if event.applied != event.last:
            sentence = f"{node} started with entry {event.applied} applied, though its log ends with {event.last}."
            self._breach(report, time_us, node, sentence)
        elif self._checksums.get((node, event.applied), event.checksum) != event.checksum:
            sentence = f"{node} started with other values than it had after entry {event.applied} before."
            self._breach(report, time_us, node, sentence)


class ReplayLeavesTheLogAlone(ReportingInvariant):
    """WAL-I6: a restart writes nothing to the log."""

    id = "WAL-I6"
    statement = "A restart does not make the log longer or shorter."
    events = (StoreOpened,)

    def observe(self, time_us: int, node: str, event: StoreOpened, report: Report) -> None:
        """Compare the end of the log before and after the replay."""
        if event.found != event.last:
            sentence = f"The log of {node} ended with entry {event.found} before the replay, and {event.last} after it."
            self._breach(report, time_us, node, sentence)


def logged_store_invariants() -> list[Invariant]:
    """Return one fresh instance of each invariant, for one run."""
    return [EntriesAreAppliedInOrder(), StateIsTheFoldOfTheLog(), ReplayLeavesTheLogAlone()]
