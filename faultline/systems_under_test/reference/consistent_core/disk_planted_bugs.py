"""The classic mistakes with a disk, planted in `consistent-core`: the order of writes, syncs and names, and errors.

Each looks right as long as the power stays on. The campaign `lone-disk` takes it from a server that is alone, so that
no other has a copy of what it loses, and lets its disk fail; `power-loss` takes it from all or most of three.
They break consistent-core for good: never use them outside the harness.

Sources: Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014); Zheng et al., "Torturing Databases for Fun
and Profit" (OSDI 2014); Rebello et al., "Can Applications Recover from fsync Failures?" (USENIX ATC 2020); Alagappan et
al., "Protocol-Aware Recovery for Consensus-Based Storage" (FAST 2018).
"""

from __future__ import annotations

from contextlib import suppress

from faultline.systems_under_test.patterns.data_replication.file_format import HEADER_BYTES, read_record
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.segmented_log import Segment, SegmentedLog
from faultline.systems_under_test.patterns.data_replication.snapshot_store import SnapshotStore
from faultline.systems_under_test.reference.consistent_core.parts import CoreParts
from faultline.systems_under_test.reference.shared.compaction import Compaction
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

_LOST = ("list-append", "availability", "WAL-I1", "LOG-I1", "LOG-I2", "LDR-I3", "HWM-I2")
_SIMULATED = ("simulated",)
_WHY_NOT = "only the simulated world has disks that keep any part of what was not synced"

BUGS = PlantedBugs(
    "consistent-core", CoreParts, pattern="segmented-log", campaign="lone-disk", worlds=_SIMULATED, why_not=_WHY_NOT
)
_WRITES = BUGS.group(pattern="write-ahead-log", caught_by=("node-crash", *_LOST))
_VOTES = BUGS.group(
    campaign="power-loss", pattern="generation-clock", caught_by=("LDR-I1", "LDR-I2", "GEN-I1", "GEN-I5", *_LOST)
)
_SNAPSHOTS = BUGS.group(
    campaign="power-loss", pattern="low-water-mark", caught_by=("LWM-I1", "LWM-I2", "node-crash", *_LOST)
)
_DAMAGE = BUGS.group(campaign="corruption", pattern="write-ahead-log", caught_by=(*_LOST, "LOG-I8", "GEN-I2"))


@BUGS.plant("recovered-not-synced", "SEG-M7", part="segmented_log", caught_by=("node-crash", *_LOST))
class _RecoveredNotSynced(SegmentedLog):
    """A restarted server counts entries that the process before it wrote and never synced, and does not sync them.

    Shows as: the next loss of power takes entries that the server had confirmed.
    """

    def _sync_recovered(self, open_segment: Segment) -> None:
        pass


@_WRITES.plant("torn-tail-kept", "WAL-M6", part="segmented_log")
class _TornTailKept(SegmentedLog):
    """The torn end of the log stays in its file, and new entries follow it.

    Shows as: the next restart stops reading there, and the acknowledged entries behind it are gone.
    """

    def _sort_out(
        self, loaded: list[tuple[Segment, bool]], first_index_max: int
    ) -> tuple[list[Segment], list[Segment], bool]:
        kept, leftover, _ = super()._sort_out(loaded, first_index_max)
        return kept, leftover, False


@_WRITES.plant("checksum-not-checked", "WAL-M4", part="segmented_log")
class _ChecksumNotChecked(SegmentedLog):
    """A record of the log counts as soon as its file is long enough for it; its checksum is not compared.

    Shows as: part of a record that a loss of power tore is taken for an entry.
    """

    @staticmethod
    def _payload(data: bytes, _: int, position: int) -> bytes | None:
        start = position + HEADER_BYTES
        length = int.from_bytes(data[position : position + 4], "big")
        return data[start : start + length] if 0 < length <= len(data) - start else None


@_WRITES.plant("failed-sync-passed-over", "WAL-M9", part="segmented_log")
class _FailedSyncPassedOver(SegmentedLog):
    """A server goes on after a sync of its log that failed, and takes a later one to cover the same bytes.

    Shows as: the kernel has forgotten what it could not write, and the next loss of power takes acknowledged writes.
    """

    def _fsync(self) -> None:
        with suppress(OSError):
            super()._fsync()


@_WRITES.plant("short-write-not-noticed", "WAL-M10", part="segmented_log")
class _ShortWriteNotNoticed(SegmentedLog):
    """A server does not look whether the disk took the whole record.

    Shows as: a full disk leaves half a record before those that follow, and the next restart drops them as torn.
    """

    def _write(self, segment: Segment, record: bytes) -> None:
        with suppress(OSError):
            super()._write(segment, record)


@_VOTES.plant("vote-not-synced", "GEN-M10", part="generation_clock")
class _VoteNotSynced(GenerationClock):
    """A vote is written down and told, and not synced.

    Shows as: after a loss of power the server votes again in the same generation: two leaders.
    """

    def _persist(self, generation: int, voted_for: str | None) -> None:
        self._append(generation, voted_for)


@_VOTES.plant("vote-overwritten-in-place", "GEN-M8", part="generation_clock")
class _VoteOverwrittenInPlace(GenerationClock):
    """The file of generation and vote is emptied and written anew, with one sync for both.

    Shows as: a loss of power in between leaves none of the earlier votes.
    """

    def _append(self, generation: int, voted_for: str | None) -> None:
        self._storage.truncate(self._file, 0)
        self._size = 0
        super()._append(generation, voted_for)


@_VOTES.plant("vote-renamed-without-folder-sync", "GEN-M9", part="generation_clock")
class _VoteRenamedWithoutFolderSync(GenerationClock):
    """Generation and vote are written to a new file, which is synced and renamed; the folder is not synced.

    Shows as: after a loss of power the old file is back, and the server votes again.
    """

    def _persist(self, generation: int, voted_for: str | None) -> None:
        self._replace(generation, voted_for)

    def _sync_name(self) -> None:
        pass


class _NothingSynced(SnapshotStore):
    def _write_durably(self, temporary: str, content: bytes) -> None:
        self._storage.write(temporary, content)

    def _sync_name(self, _: str) -> None:
        self._storage.fsync_folder()


@_SNAPSHOTS.plant("snapshot-not-synced", "LWM-M10", part="compaction")
class _SnapshotNotSynced(Compaction):
    """A snapshot gets its name, which is synced, and its bytes are not.

    Shows as: a loss of power leaves a name with part of a snapshot behind it, and the log that it replaced is gone.
    """

    snapshot_store = _NothingSynced


@_DAMAGE.plant("damage-taken-for-torn", "WAL-M12", part="segmented_log")
class _DamageTakenForTorn(SegmentedLog):
    """A record that changed on the disk is taken for the torn end of the log, and is cut off with all that follow it.

    Shows as: acknowledged writes are gone from one server, and a leader that lacks them is elected.
    """

    def _was_torn(self, data: bytes, base: int, position: int) -> bool:
        return True


@_DAMAGE.plant("only-last-checksum-compared", "WAL-M13", part="segmented_log")
class _OnlyLastChecksumCompared(SegmentedLog):
    """A checksum is compared for the last record of a file alone, as only this one can be torn.

    Shows as: a record that changed on the disk is executed as it reads now, on one server and not on the others.
    """

    @staticmethod
    def _payload(data: bytes, salt: int, position: int) -> bytes | None:
        start = position + HEADER_BYTES
        length = int.from_bytes(data[position : position + 4], "big")
        return data[start : start + length] if 0 < length < len(data) - start else read_record(data, salt, position)
