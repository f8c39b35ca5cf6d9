"""Mistakes with the order of writes, syncs and names, and with changed data, each beside its correct twin.

The disks are behind a page cache. A run seldom loses power in the few milliseconds in which such mistakes matter. Here
crashes fall into them in each history.
Those that the campaigns `lone-disk` and `power-loss` meet often enough are planted in `consistent-core` as well.

Sources: Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from faultline.harness.world.simulated.failing_disk import FailingDisk
from faultline.harness.world.simulated.page_cache import PageCacheDisk
from faultline.harness.world.weather import salt
from faultline.systems_under_test.patterns.data_replication.file_format import (
    HEADER_BYTES,
    CorruptLog,
    next_record,
    read_record,
)
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.segmented_log import Segment, SegmentedLog
from faultline.systems_under_test.patterns.data_replication.snapshot_store import (
    Snapshot,
    SnapshotStore,
    UnusableSnapshot,
)

SEEDS = 400


class DiskPort:
    """The `Storage` port over a disk whose syncs end when the test says so, or never."""

    def __init__(self, disk: PageCacheDisk | FailingDisk) -> None:
        self.disk = disk
        for operation in ("files", "read", "append", "write", "truncate", "rename", "delete"):
            setattr(self, operation, getattr(disk, operation))

    def fsync(self, file: str) -> None:
        self.disk.want_sync(file)

    def fsync_folder(self) -> None:
        self.disk.want_folder_sync()

    def finish(self) -> None:
        """End every sync that was asked for."""
        self.disk.begin_sync().finish()


class DoesNotSyncWhatItRecovered(SegmentedLog):
    def _sync_recovered(self, open_segment: Segment) -> None:
        pass


class DoesNotSyncTheFolder(SegmentedLog):
    def _sync_names(self) -> None:
        pass


class TruncatesAndAppendsInOneFlush(SegmentedLog):
    def _part_from_truncation(self) -> None:
        self._truncated = False


class TakesAHoleForDamage(SegmentedLog):
    def _was_torn(self, data: bytes, base: int, position: int) -> bool:
        return next_record(data, base, position) < 0


class KeepsTheTornTail(SegmentedLog):
    def _sort_out(self, loaded: list[tuple[Segment, bool]], first_index_max: int) -> Any:
        kept, leftover, _ = super()._sort_out(loaded, first_index_max)
        return kept, leftover, False


class RollsWithoutFlush(SegmentedLog):
    def _roll(self) -> Segment:
        self._dirty = False
        return super()._roll()


class DeletesTheOldestFirst(SegmentedLog):
    def _delete_all(self, segments: list[Segment]) -> None:
        super()._delete_all(segments[::-1])


class TruncatesInPlace(SegmentedLog):
    def _replace_all_after(self, segment: Segment, size: int, later: list[Segment]) -> None:
        self._storage.truncate(segment.file, size)
        self._storage.fsync(segment.file)
        self._delete_all(later)


class NamesASnapshotBeforeItIsSynced(SnapshotStore):
    def _write_durably(self, temporary: str, content: bytes) -> None:
        self._storage.write(temporary, content)


class DoesNotSyncTheNameOfASnapshot(SnapshotStore):
    def _sync_name(self, file: str) -> None:
        self._storage.fsync(file)


class WritesTheVoteInPlace(GenerationClock):
    def _persist(self, generation: int, voted_for: str | None) -> None:
        self._storage.truncate(self._file, 0)
        self._size = 0
        super()._persist(generation, voted_for)


class DoesNotSyncTheNameOfItsFile(GenerationClock):
    def _sync_name(self) -> None:
        pass


class TakesDamageForTorn(SegmentedLog):
    def _was_torn(self, data: bytes, base: int, position: int) -> bool:
        return True


class DropsADamagedTail(SegmentedLog):
    def _was_torn(self, data: bytes, base: int, position: int) -> bool:
        return next_record(data, base, position) < 0 or super()._was_torn(data, base, position)


class ComparesTheLastChecksumOnly(SegmentedLog):
    @staticmethod
    def _payload(data: bytes, salt: int, position: int) -> bytes | None:
        start = position + HEADER_BYTES
        length = int.from_bytes(data[position : position + 4], "big")
        return data[start : start + length] if 0 < length < len(data) - start else read_record(data, salt, position)


class DropsADamagedVote(GenerationClock):
    def _was_torn(self, data: bytes) -> bool:
        return True


def a_log_keeps_what_was_synced_and_nothing_that_never_was(kind: type[SegmentedLog], seed: int) -> None:
    """Append, cut off, flush and crash at random, and compare the log after each crash with what it may be."""
    random, disk = Random(seed), PageCacheDisk()
    size_max = random.choice((60, 200, 2_000))

    def recovered() -> tuple[DiskPort, SegmentedLog, list[bytes]]:
        port = DiskPort(disk)
        log = kind(port, "wal", size_max)
        log.recover()
        return port, log, log.read_from(1)

    port, log, content = recovered()
    promised, flushed, states = content, content, [content]
    for number in range(80):
        step = random.choice(("append", "append", "append", "append", "flush", "flush", "truncate", "finish", "crash"))
        if step == "append":
            content = [*content, bytes([number + 1]) * random.randint(10, 90)]
            log.append(content[-1])
        elif step == "flush":
            log.flush()
            flushed = content
        elif step == "truncate":
            index = random.randint(1, 12)
            log.truncate_from(index)
            content, flushed, promised = (each[: index - 1] for each in (content, flushed, promised))
        elif step == "finish":
            port.finish()
            promised = flushed
        else:
            power_stays = random.random() < 0.5
            disk.crash(salt(seed, number), number, process_only=power_stays)
            port, log, content = recovered()
            assert any(content == state[: len(content)] for state in states)
            assert content[: len(promised)] == promised
            states = states if power_stays else []
            flushed = content
        states.append(content)


def a_truncated_log_is_the_old_one_or_the_new_one(kind: type[SegmentedLog], seed: int) -> None:
    disk = PageCacheDisk()
    port = DiskPort(disk)
    log = kind(port, "wal", 2_000)
    log.recover()
    old = [b"o%d" % number * 20 for number in range(8)]
    new = [*old[:2], *(b"n%d" % number * 20 for number in range(6))]
    for payload in old:
        log.append(payload)
    log.flush()
    port.finish()
    log.truncate_from(3)
    for payload in new[2:]:
        log.append(payload)
    disk.crash(salt(seed, "disk"), 1)
    again = kind(DiskPort(disk), "wal", 2_000)
    again.recover()
    content = again.read_from(1)
    assert content in (old[: len(content)], new[: len(content)])


def a_snapshot_that_has_its_name_is_whole(kind: type[SnapshotStore], seed: int) -> None:
    disk = PageCacheDisk()
    kind(DiskPort(disk), retained=1).publish(Snapshot(5, 1, bytes(range(200))))
    disk.crash(salt(seed, "disk"), 1)
    store = SnapshotStore(DiskPort(disk), retained=1)
    store.recover()
    store.require_reach(0)


def a_snapshot_that_was_published_is_found_again(kind: type[SnapshotStore], seed: int) -> None:
    disk = PageCacheDisk()
    port = DiskPort(disk)
    kind(port).publish(Snapshot(5, 1, b"state"))
    port.finish()
    disk.crash(salt(seed, "disk"), 1)
    assert SnapshotStore(DiskPort(disk)).recover() == Snapshot(5, 1, b"state")


def a_vote_that_was_told_is_remembered(kind: type[GenerationClock], seed: int) -> None:
    disk = PageCacheDisk()
    port = DiskPort(disk)
    clock = kind(port)
    clock.recover()
    clock.vote(1, "athens")
    port.finish()
    clock.adopt(2)
    disk.crash(salt(seed, "disk"), 1)
    again = GenerationClock(DiskPort(disk))
    again.recover()
    assert (again.generation, again.voted_for) in {(1, "athens"), (2, None)}


def restarted(disk: FailingDisk, seed: int) -> DiskPort:
    """End the process, change one stored byte, and return the port of the next process."""
    disk.damage_data("corrupt", seed, 1)
    disk.crash(salt(seed, "disk"), 1)
    disk.begin_process()
    return DiskPort(disk)


def a_log_with_a_changed_byte_is_refused(kind: type[SegmentedLog], seed: int) -> None:
    disk = FailingDisk(PageCacheDisk(), 7)
    port = DiskPort(disk)
    log = kind(port, "wal", Random(seed).choice((100, 2_000)))
    log.recover()
    for number in range(8):
        log.append(bytes([number + 1]) * 20)
    log.flush()
    port.finish()
    with pytest.raises(CorruptLog):
        kind(restarted(disk, seed), "wal", 2_000).recover()


def a_vote_that_changed_is_not_forgotten(kind: type[GenerationClock], seed: int) -> None:
    disk = FailingDisk(PageCacheDisk(), 7)
    port = DiskPort(disk)
    clock = kind(port)
    clock.recover()
    clock.vote(1, "athens")
    clock.vote(2, "byzantium")
    port.finish()
    with pytest.raises(CorruptLog):
        kind(restarted(disk, seed)).recover()


Claim = Callable[[Any, int], None]
LOG = a_log_keeps_what_was_synced_and_nothing_that_never_was

CORRECT: dict[Claim, type] = {
    LOG: SegmentedLog,
    a_truncated_log_is_the_old_one_or_the_new_one: SegmentedLog,
    a_snapshot_that_has_its_name_is_whole: SnapshotStore,
    a_snapshot_that_was_published_is_found_again: SnapshotStore,
    a_vote_that_was_told_is_remembered: GenerationClock,
    a_log_with_a_changed_byte_is_refused: SegmentedLog,
    a_vote_that_changed_is_not_forgotten: GenerationClock,
}
MISTAKES: dict[str, tuple[type, Claim]] = {
    "SEG-M4": (RollsWithoutFlush, LOG),
    "SEG-M7": (DoesNotSyncWhatItRecovered, LOG),
    "SEG-M8": (DoesNotSyncTheFolder, LOG),
    "SEG-M9": (TruncatesAndAppendsInOneFlush, a_truncated_log_is_the_old_one_or_the_new_one),
    "SEG-M10": (TakesAHoleForDamage, LOG),
    "SEG-M11": (DeletesTheOldestFirst, LOG),
    "SEG-M12": (TruncatesInPlace, LOG),
    "WAL-M6": (KeepsTheTornTail, LOG),
    "WAL-M12": (TakesDamageForTorn, a_log_with_a_changed_byte_is_refused),
    "WAL-M13": (ComparesTheLastChecksumOnly, a_log_with_a_changed_byte_is_refused),
    "WAL-M14": (DropsADamagedTail, a_log_with_a_changed_byte_is_refused),
    "LWM-M10": (NamesASnapshotBeforeItIsSynced, a_snapshot_that_has_its_name_is_whole),
    "LWM-M11": (DoesNotSyncTheNameOfASnapshot, a_snapshot_that_was_published_is_found_again),
    "GEN-M8": (WritesTheVoteInPlace, a_vote_that_was_told_is_remembered),
    "GEN-M9": (DoesNotSyncTheNameOfItsFile, a_vote_that_was_told_is_remembered),
    "GEN-M11": (DropsADamagedVote, a_vote_that_changed_is_not_forgotten),
}


def breaks(claim: Claim, kind: type, seed: int) -> bool:
    try:
        claim(kind, seed)
    except (AssertionError, CorruptLog, UnusableSnapshot, pytest.fail.Exception):
        return True
    return False


@pytest.mark.parametrize("claim", CORRECT, ids=lambda claim: claim.__name__)
def test_the_correct_component_keeps_its_claim_in_every_seed(claim: Claim) -> None:
    assert [seed for seed in range(SEEDS) if breaks(claim, CORRECT[claim], seed)] == []


@pytest.mark.rows("SEG-M4", "SEG-M7", "SEG-M8", "SEG-M9", "SEG-M10", "SEG-M11", "SEG-M12", "WAL-M6")
@pytest.mark.rows("LWM-M10", "LWM-M11", "GEN-M8", "GEN-M9", "GEN-M11", "WAL-M12", "WAL-M13", "WAL-M14")
@pytest.mark.parametrize("row", MISTAKES)
def test_a_mistake_breaks_the_claim_that_its_correct_twin_keeps(row: str) -> None:
    planted, claim = MISTAKES[row]
    assert issubclass(planted, CORRECT[claim])
    assert any(breaks(claim, planted, seed) for seed in range(SEEDS))
