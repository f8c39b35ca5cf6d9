"""Bugs of the log files and the cleaner that no campaign is needed for: each breaks one claim that its twin keeps.

They are planted here and not in `consistent-core`, because every run would end at its first restart (a log that is put
together wrongly), or because nothing of the system would show them (a cleaner that leaves a hole in a log from which
nothing is rebuilt; a store with another flush policy).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from faultline.systems_under_test.patterns.data_replication import file_format
from faultline.systems_under_test.patterns.data_replication.flush_policy import (
    FlushInGroups,
    NeverFlush,
)
from faultline.systems_under_test.patterns.data_replication.logged_store import (
    Applied,
    LoggedStore,
    deserialize,
    serialize,
)
from faultline.systems_under_test.patterns.data_replication.low_water_mark import LogCleaner, SnapshotMark, TimeMark
from faultline.systems_under_test.patterns.data_replication.segmented_log import (
    CorruptLog,
    LogUnusable,
    Segment,
    SegmentedLog,
    file_name,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import (
    DATA,
    EntryCompacted,
    LogEntry,
    WriteAheadLog,
)
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import Crash, MemoryStorage, keep_nothing

TWO_RECORDS = 28
PAYLOADS = [b"%02d" % index for index in range(1, 24)]


def log_of(kind: type[SegmentedLog], storage: MemoryStorage) -> SegmentedLog:
    log = kind(storage, "wal", TWO_RECORDS)
    log.recover()
    return log


def filled(kind: type[SegmentedLog], storage: MemoryStorage, count: int) -> SegmentedLog:
    log = log_of(kind, storage)
    for payload in PAYLOADS[:count]:
        log.append(payload)
    log.flush()
    return log


# -- segmented log ----------------------------------------------------------------------------------------------------


class ReadsWithoutTheOpenSegment(SegmentedLog):
    """The printed `readFrom`: the open segment only when the start lies in it."""

    def read_from(self, start: int) -> list[bytes]:
        whole = self._segments
        if whole[-1].base > start:
            self._segments = whole[:-1]
        try:
            return super().read_from(start)
        finally:
            self._segments = whole


class NamesSegmentsAfterTheLastIndex(SegmentedLog):
    """The printed roll: the new file is named after the last index, not after the next one."""

    def _roll(self) -> Segment:
        segment = super()._roll()
        segment.base -= 1
        segment.file = file_name(self._name, segment.base)
        return segment


class SortsNamesAsText(SegmentedLog):
    def _files_in_order(self) -> list[tuple[int, str]]:
        return sorted(super()._files_in_order(), key=lambda each: each[1])


class RollsWithoutFlush(SegmentedLog):
    def _roll(self) -> Segment:
        self._dirty = False
        return super()._roll()


class ReadsNewestFirst(SegmentedLog):
    def read_from(self, start: int) -> list[bytes]:
        return super().read_from(start)[::-1]


class TakesAnEmptySegmentForAnEmptyLog(SegmentedLog):
    def recover(self, first_index_max: int = 1) -> None:
        super().recover(first_index_max)
        if not self._segments[-1].positions:
            self._segments = [Segment(1, file_name(self._name, 1))]


class LeavesTheTornTail(SegmentedLog):
    def _sort_out(self, loaded: list[tuple[Segment, bool]], first_index_max: int) -> Any:
        kept, leftover, _ = super()._sort_out(loaded, first_index_max)
        return kept, leftover, False


def everything_is_read_from_any_index_on(kind: type[SegmentedLog]) -> None:
    log = filled(kind, MemoryStorage(), 7)
    for start in range(1, 8):
        assert log.read_from(start) == PAYLOADS[start - 1 : 7]


def a_restart_finds_the_same_log(kind: type[SegmentedLog]) -> None:
    storage = MemoryStorage()
    filled(kind, storage, 23)
    assert log_of(kind, storage).read_from(1) == PAYLOADS


def what_was_flushed_survives_a_crash_of_the_machine(kind: type[SegmentedLog]) -> None:
    storage = MemoryStorage()
    filled(kind, storage, 3)
    storage.crash(keep_nothing)
    assert log_of(kind, storage).read_from(1) == PAYLOADS[:3]


def a_roll_that_a_crash_cut_short_is_continued(kind: type[SegmentedLog]) -> None:
    storage = MemoryStorage()
    filled(kind, storage, 2)
    storage.put("wal_3.log", b"")
    assert log_of(kind, storage).append(b"new") == 3


def what_follows_a_torn_tail_survives_the_next_restart(kind: type[SegmentedLog]) -> None:
    storage = MemoryStorage()
    filled(kind, storage, 1)
    storage.put("wal_1.log", storage.read("wal_1.log") + b"torn")
    log = log_of(kind, storage)
    log.append(b"acknowledged")
    log.flush()
    assert log_of(kind, storage).read_from(1) == [PAYLOADS[0], b"acknowledged"]


# -- write-ahead log --------------------------------------------------------------------------------------------------


class AppliesBeforeItLogs(LoggedStore):
    def _change(self, command: Any, tell: Callable[[], None]) -> None:
        entry = LogEntry(self.log.last_index + 1, 0, DATA, serialize(command))
        self.apply(entry)
        tell()
        self.log.append(entry)
        self._policy.appended(lambda: None)


class TellsWithoutFlush(LoggedStore):
    def __init__(self, storage: MemoryStorage) -> None:
        super().__init__(storage, NeverFlush)


class ReplaysThroughPut(LoggedStore):
    def replay(self, entry: LogEntry) -> None:
        command = deserialize(entry.data)
        assert command is not None
        self._change(command, lambda: None)


class DetectsNoDuplicates(LoggedStore):
    def _execute_once(self, command: Any) -> Applied:
        return Applied(self._add(command.amounts))


class TellsAGroupWhenItIsQueued(FlushInGroups):
    def appended(self, tell: Callable[[], None]) -> None:
        super().appended(lambda: None)
        tell()


def opened(kind: type[LoggedStore], storage: MemoryStorage) -> LoggedStore:
    store = kind(storage)
    store.open()
    return store


def what_was_told_survives_a_crash_at_any_step(kind: type[LoggedStore]) -> None:
    for steps in range(6):
        storage, told = MemoryStorage(), []
        store = opened(kind, storage)
        storage.effects_max = steps
        with suppress(Crash, LogUnusable):
            for key in "ab":
                store.put(key, "value", lambda key=key, told=told: told.append(key))
        storage.crash(keep_nothing)
        assert set(told) <= set(opened(LoggedStore, storage).values)


def a_restart_changes_neither_the_log_nor_the_state(kind: type[LoggedStore]) -> None:
    storage = MemoryStorage()
    store = opened(kind, storage)
    store.add(1, 1, {"count": 1})
    store.put("title", "value")
    for _ in range(3):
        store = opened(kind, storage)
    assert (store.log.last_index, dict(store.values)) == (2, {"count": "1", "title": "value"})


def a_repeated_request_counts_once(kind: type[LoggedStore]) -> None:
    store = opened(kind, MemoryStorage())
    for _ in range(2):
        store.add(1, 1, {"count": 1})
    assert store.get("count") == "1"


def who_was_told_by_a_group_finds_the_write_again(kind: type[FlushInGroups]) -> None:
    storage, told = MemoryStorage(), []
    store = LoggedStore(storage, lambda log: kind(log, FakePorts(), group_max=3))
    store.open()
    for key in "abcd":
        store.put(key, "value", lambda key=key: told.append(key))
    storage.crash(keep_nothing)
    assert set(told) <= set(opened(LoggedStore, storage).values)


# -- low-water mark ---------------------------------------------------------------------------------------------------


class DeletesTheOpenSegment(SegmentedLog):
    def delete_first(self, count: int) -> None:
        super().delete_first(count)
        if len(self._segments) == 1:
            self._storage.delete(self._segments[0].file)


class CleansEachSegmentByItself(LogCleaner):
    """`getSegmentsPast` as printed: every segment past the window, wherever it stands."""

    def clean_logs(self) -> None:
        files = self._log._files
        for segment in self._log.closed_segments():
            if self._mark.deletable([segment]):
                files._storage.delete(file_name("wal", segment.first_index))


def wal_with(kind: type[SegmentedLog], times_us: list[int]) -> tuple[MemoryStorage, WriteAheadLog]:
    storage = MemoryStorage()
    log = WriteAheadLog(storage)
    log._files = kind(storage, "wal", TWO_RECORDS)
    log.recover()
    for index, time_us in enumerate(times_us, start=1):
        log.append(LogEntry(index, 1, DATA, b"", time_us))
    log.flush()
    return storage, log


def the_newest_entries_survive_a_cleaning(kind: type[SegmentedLog]) -> None:
    storage, log = wal_with(kind, [1] * 7)
    LogCleaner(FakePorts(), 1, log, SnapshotMark(lambda: 8), lambda _: None).clean_logs()
    log.flush()
    again = WriteAheadLog(storage, segment_size_bytes_max=TWO_RECORDS)
    again.recover(7, 1)
    assert again.entry(7).time_us == 1


def a_cleaned_log_has_no_hole(kind: type[LogCleaner]) -> None:
    storage, log = wal_with(SegmentedLog, [1, 1, 90, 90, 1, 1, 90])
    kind(FakePorts(), 1, log, TimeMark(lambda: 100, window_us=50), lambda _: None).clean_logs()
    bases = sorted(int(file.removeprefix("wal_").removesuffix(".log")) for file in storage.files())
    assert all(later - earlier == 2 for earlier, later in pairwise(bases))
    again = WriteAheadLog(storage, segment_size_bytes_max=TWO_RECORDS)
    again.recover(6, 1)
    assert again.last_index == 7


Claim = Callable[[Any], None]

BUGS: list[tuple[str, type, type, Claim]] = [
    ("SEG-M1", SegmentedLog, ReadsWithoutTheOpenSegment, everything_is_read_from_any_index_on),
    ("SEG-M2", SegmentedLog, NamesSegmentsAfterTheLastIndex, a_restart_finds_the_same_log),
    ("SEG-M3", SegmentedLog, SortsNamesAsText, a_restart_finds_the_same_log),
    ("SEG-M4", SegmentedLog, RollsWithoutFlush, what_was_flushed_survives_a_crash_of_the_machine),
    ("SEG-M5", SegmentedLog, ReadsNewestFirst, everything_is_read_from_any_index_on),
    ("SEG-M6", SegmentedLog, TakesAnEmptySegmentForAnEmptyLog, a_roll_that_a_crash_cut_short_is_continued),
    ("WAL-M1", LoggedStore, AppliesBeforeItLogs, what_was_told_survives_a_crash_at_any_step),
    ("WAL-M2", LoggedStore, TellsWithoutFlush, what_was_told_survives_a_crash_at_any_step),
    ("WAL-M3", FlushInGroups, TellsAGroupWhenItIsQueued, who_was_told_by_a_group_finds_the_write_again),
    ("WAL-M5", LoggedStore, ReplaysThroughPut, a_restart_changes_neither_the_log_nor_the_state),
    ("WAL-M6", SegmentedLog, LeavesTheTornTail, what_follows_a_torn_tail_survives_the_next_restart),
    ("WAL-M7", LoggedStore, DetectsNoDuplicates, a_repeated_request_counts_once),
    ("LWM-M4", SegmentedLog, DeletesTheOpenSegment, the_newest_entries_survive_a_cleaning),
    ("LWM-M8", LogCleaner, CleansEachSegmentByItself, a_cleaned_log_has_no_hole),
]


@pytest.mark.rows(
    "SEG-M1",
    "SEG-M2",
    "SEG-M3",
    "SEG-M4",
    "SEG-M5",
    "SEG-M6",
    "WAL-M1",
    "WAL-M2",
    "WAL-M3",
    "WAL-M5",
    "WAL-M6",
    "WAL-M7",
    "LWM-M4",
    "LWM-M8",
)
@pytest.mark.parametrize(("row", "correct", "planted", "claim"), BUGS, ids=[bug[0] for bug in BUGS])
def test_the_planted_bug_breaks_the_claim_that_the_correct_component_keeps(
    row: str, correct: type, planted: type, claim: Claim
) -> None:
    assert issubclass(planted, correct), row
    claim(correct)
    with pytest.raises((AssertionError, CorruptLog, EntryCompacted)):
        claim(planted)


@pytest.fixture(params=[True, False], ids=["with checksums", "without"])
def checked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        monkeypatch.setattr(file_format, "crc32", lambda *_: 0)
    return bool(request.param)


@pytest.mark.rows("WAL-M4")
def test_without_checksums_a_changed_value_is_read_as_if_it_had_been_written(checked: bool) -> None:
    storage = MemoryStorage()
    store = opened(LoggedStore, storage)
    for value in ("old", "new"):
        store.put("title", value)
    storage.damage("kv_1.log", storage.read("kv_1.log").index(b"old"))
    if checked:
        with pytest.raises(CorruptLog):
            opened(LoggedStore, storage)
    else:
        seen: list[str] = []

        class Watching(LoggedStore):
            def apply(self, entry: LogEntry) -> None:
                super().apply(entry)
                seen.append(self.values["title"])

        Watching(storage).open()
        assert seen == ["nld", "new"]


@pytest.mark.rows("WAL-M2")
@pytest.mark.parametrize("kind", [LoggedStore, TellsWithoutFlush])
def test_the_crash_of_a_process_alone_does_not_tell_a_missing_flush_from_a_present_one(kind: type[LoggedStore]) -> None:
    """A mere kill never shows the bug, so the worlds here lose unflushed bytes when they kill a process."""
    storage = MemoryStorage()
    opened(kind, storage).put("title", "value")
    assert opened(LoggedStore, storage).values == {"title": "value"}
