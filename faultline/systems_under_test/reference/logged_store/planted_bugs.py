"""The planted bugs of `logged-store`: of its log, its replay, its answers for repetitions and its versions.

They break the store for good: never use them outside the harness.
"""

from __future__ import annotations

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.flush_policy import FlushInIntervals, FlushPolicy
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions, Session
from faultline.systems_under_test.patterns.data_replication.log_entry import LogEntry
from faultline.systems_under_test.patterns.data_replication.logged_store import Command
from faultline.systems_under_test.patterns.data_replication.snapshot_store import SnapshotStore
from faultline.systems_under_test.patterns.data_replication.versioned_value_on_disk import OnDiskVersions
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog
from faultline.systems_under_test.reference.logged_store.messages import StoreAnswer
from faultline.systems_under_test.reference.logged_store.node import LoggedStoreNode, Parts
from faultline.systems_under_test.reference.logged_store.store import VersionedLoggedStore
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs(
    "logged-store",
    Parts,
    pattern="write-ahead-log",
    campaign="logged-store",
    caught_by=("linearizability", "counter"),
)


@BUGS.plant("answered-before-the-flush", "WAL-M2", part="each_append", options={"flush_policy": "each-append"})
def _answered_before_the_flush(log: WriteAheadLog, ports: Ports) -> FlushPolicy:
    """A write is answered when it is in the log, and the flush comes later.

    Shows as: a server that is killed has forgotten what it acknowledged.
    """
    return FlushInIntervals(log, ports.timers)


@BUGS.plant("answered-when-queued", "WAL-M3", part="node", options={"flush_policy": "groups", "group_linger_ms": "20"})
class _AnsweredWhenQueued(LoggedStoreNode):
    """A write of a group is answered when it is queued, not when the group is flushed.

    Shows as: a read misses a write that was acknowledged, and a server that is killed has forgotten it.
    """

    def _change(self, source: NodeId, number: int, command: Command) -> None:
        self.ports.network.send_ahead(source, StoreAnswer(number))
        super()._change(source, number, command)


@BUGS.plant(
    "replay-without-the-newest-entry", "WAL-M11", part="store", caught_by=("WAL-I3", "linearizability", "counter")
)
class _ReplayWithoutTheNewestEntry(VersionedLoggedStore):
    """A replay stops before the last entry of the log.

    Shows as: a server that was killed does not show its newest write, though it is on its disk.
    """

    def left_to_replay(self) -> list[LogEntry]:
        return super().left_to_replay()[:-1]


@BUGS.plant("repeated-requests-count-again", "WAL-M7", part="sessions", campaign="logged-counters")
class _RepeatedRequestsCountAgain(ClientSessions[str]):
    """A request that comes again is executed again.

    Shows as: an increment counts twice.
    """

    def saved_response(self, session: Session[str], request_number: int) -> str | None:
        return None


@BUGS.plant(
    "file-without-a-sync",
    "LWM-M10",
    part="files",
    campaign="logged-store-files",
    caught_by=("linearizability", "WAL-I3", "node-crash"),
)
class _FileWithoutASync(SnapshotStore):
    """The file of versions has a name that is on the disk and bytes that are not, and the log is cleaned below it.

    Shows as: a server that loses its power finds a broken file, and the log that it was made from is gone.
    """

    def _write_durably(self, temporary: str, content: bytes) -> None:
        self._storage.write(temporary, content)

    def _sync_name(self, file: str) -> None:
        self._storage.fsync_folder()


@BUGS.plant(
    "versions-in-the-order-of-text",
    "VVL-M5",
    part="versions",
    pattern="versioned-value",
    caught_by=("linearizability", "WAL-I3"),
)
class _VersionsInTheOrderOfText(OnDiskVersions):
    """Versions are ordered as they are printed, 10 before 9.

    Shows as: once versions have two digits, a read finds an older value than the newest.
    """

    def place(self, key: str, version: int) -> bytes:
        return super().place(key, 0)[:-8] + str(version).encode().ljust(8)

    def pair(self, place: bytes) -> tuple[str, int]:
        return super().pair(place)[0], int(place[-8:])
