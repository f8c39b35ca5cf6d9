"""Low-water mark: which segments each kind of mark lets go, and a cleaner that comes back whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from faultline.systems_under_test.patterns.data_replication.low_water_mark import (
    SEVEN_WEEKS_US,
    AcknowledgedMark,
    LogCleaned,
    LogCleaner,
    LowestMark,
    LowWaterMark,
    SnapshotMark,
    TimeMark,
)
from faultline.systems_under_test.patterns.data_replication.segmented_log import SegmentedLog
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import (
    COMPACTED,
    DATA,
    ClosedSegment,
    CorruptLog,
    EntryAbsent,
    EntryCompacted,
    LogEntry,
    LogUnusable,
    WriteAheadLog,
)
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import Crash, MemoryStorage, keep_all, keep_nothing

WEEK_US = SEVEN_WEEKS_US // 7
THREE_SEGMENTS = [ClosedSegment(1, 3, 100), ClosedSegment(4, 6, 200), ClosedSegment(7, 9, 300)]


class Cleaning:
    """A log of segments with two entries each, a mark that can be set, and its cleaner."""

    def __init__(self, entries: int = 9, times_us: list[int] | None = None) -> None:
        self.storage = MemoryStorage()
        self.log = opened(self.storage)
        for index in range(1, entries + 1):
            self.log.append(entry(index, times_us[index - 1] if times_us else index))
        self.log.flush()
        self.timers = FakePorts()
        self.reports: list[LogCleaned] = []
        self.index = 0

    def clean_by(self, mark: LowWaterMark | None = None) -> LogCleaner:
        mark = mark or SnapshotMark(lambda: self.index)
        cleaner = LogCleaner(self.timers, 1_000, self.log, mark, self.reports.append)
        cleaner.startup()
        return cleaner

    @property
    def retained(self) -> list[int]:
        return [entry.index for entry in self.log.entries(self.log.compacted_index + 1, 99)]


def entry(index: int, time_us: int = 0, generation: int = 3) -> LogEntry:
    return LogEntry(index, generation, DATA, b"%d" % index, time_us)


def opened(storage: MemoryStorage, snapshot_index: int = 0, generation: int = 3) -> WriteAheadLog:
    log = WriteAheadLog(storage, segment_size_bytes_max=30)
    log.recover(snapshot_index, generation if snapshot_index else 0)
    return log


def files(storage: MemoryStorage) -> list[int]:
    return sorted(int(file.removeprefix("wal_").removesuffix(".log")) for file in storage.files())


# -- marks ------------------------------------------------------------------------------------------------------------


@pytest.mark.rows("LWM-R7", "LWM-S9")
@pytest.mark.parametrize(("index", "count"), [(0, 0), (3, 0), (4, 1), (6, 1), (7, 2), (9, 2), (10, 3), (99, 3)])
def test_a_snapshot_frees_the_segments_that_end_strictly_below_it(index: int, count: int) -> None:
    assert SnapshotMark(lambda: index).deletable(THREE_SEGMENTS) == count


@pytest.mark.rows("LWM-R10", "LWM-S9")
@pytest.mark.parametrize(("age_us", "count"), [(0, 0), (SEVEN_WEEKS_US, 0), (SEVEN_WEEKS_US + 1, 1)])
def test_a_segment_goes_by_time_when_its_last_entry_is_older_than_seven_weeks(age_us: int, count: int) -> None:
    assert TimeMark(lambda: 100 + age_us).deletable(THREE_SEGMENTS) == count


@pytest.mark.rows("LWM-S7")
@pytest.mark.parametrize(("jump_us", "count"), [(8 * WEEK_US, 3), (-8 * WEEK_US, 0)])
def test_a_clock_that_jumps_ahead_frees_every_closed_segment_and_one_that_jumps_back_none(
    jump_us: int, count: int
) -> None:
    assert TimeMark(lambda: 300 + jump_us).deletable(THREE_SEGMENTS) == count


@pytest.mark.rows("LWM-R3", "LWM-S7")
def test_a_segment_in_the_middle_stays_while_an_older_one_stays() -> None:
    skewed = [ClosedSegment(1, 3, 100), ClosedSegment(4, 6, 9_000), ClosedSegment(7, 9, 100)]
    assert TimeMark(lambda: 9_000, window_us=1_000).deletable(skewed) == 1


@pytest.mark.rows("LWM-R12")
@pytest.mark.parametrize(("index", "count"), [(0, 0), (3, 0), (4, 1), (10, 3)])
def test_what_all_have_acknowledged_can_go(index: int, count: int) -> None:
    assert AcknowledgedMark(lambda: index).deletable(THREE_SEGMENTS) == count


@pytest.mark.rows("LWM-R11")
def test_of_several_marks_the_lowest_counts() -> None:
    snapshot, time = SnapshotMark(lambda: 99), TimeMark(lambda: 1_150, window_us=1_000)
    assert LowestMark(snapshot, time).deletable(THREE_SEGMENTS) == 1
    assert LowestMark(time, SnapshotMark(lambda: 0)).deletable(THREE_SEGMENTS) == 0


# -- the cleaner ------------------------------------------------------------------------------------------------------


@pytest.mark.rows("LWM-R1", "LWM-R2")
def test_the_cleaner_comes_back_after_every_interval() -> None:
    cleaning = Cleaning()
    cleaning.clean_by()
    for index, retained in ((0, 1), (4, 3), (7, 7)):
        cleaning.index = index
        assert [timer.due_us - cleaning.timers.now_us for timer in cleaning.timers.waiting] == [1_000]
        cleaning.timers.ring()
        assert cleaning.retained[0] == retained
    assert [report.deleted for report in cleaning.reports] == [0, 1, 2]


@pytest.mark.rows("LWM-R1", "SEG-R7")
def test_a_run_waits_its_turn_behind_what_the_node_is_doing() -> None:
    cleaning = Cleaning()
    queue: list[Callable[[], None]] = []
    mark = SnapshotMark(lambda: 9)
    LogCleaner(cleaning.timers, 1_000, cleaning.log, mark, cleaning.reports.append, queue.append).startup()
    cleaning.timers.ring()
    cleaning.log.append(entry(10))
    assert cleaning.reports == []
    queue.pop()()
    assert (cleaning.retained, len(cleaning.timers.waiting)) == ([9, 10], 1)


@pytest.mark.rows("LWM-R2", "LWM-S10")
def test_a_run_that_the_disk_refuses_is_reported_and_the_next_one_cleans() -> None:
    cleaning = Cleaning()
    cleaning.clean_by()
    cleaning.index = 5
    cleaning.storage.failing = "delete"
    cleaning.timers.ring()
    assert cleaning.reports[-1].failure == "delete failed"
    assert cleaning.retained == list(range(1, 10))
    cleaning.storage.failing = ""
    cleaning.timers.ring()
    assert cleaning.reports[-1].failure == ""
    assert cleaning.retained == list(range(5, 10))


@pytest.mark.rows("LWM-R2")
def test_a_run_that_raises_is_not_the_last_one() -> None:
    class Broken:
        def deletable(self, closed: object) -> int:
            raise ZeroDivisionError

    cleaning = Cleaning()
    cleaning.clean_by(Broken())
    with pytest.raises(ZeroDivisionError):
        cleaning.timers.ring()
    assert len(cleaning.timers.waiting) == 1


@pytest.mark.rows("LWM-R3", "SEG-R11", "LWM-S7")
@pytest.mark.parametrize("entries", range(1, 8))
def test_the_open_segment_is_never_deleted(entries: int) -> None:
    cleaning = Cleaning(entries)
    cleaning.index = 99
    cleaning.clean_by().clean_logs()
    assert cleaning.log.last_index == entries
    assert cleaning.retained[-1:] == [entries]
    assert len(cleaning.storage.files()) == 1


@pytest.mark.rows("LWM-S7")
def test_entries_with_skewed_times_are_cleaned_without_a_hole() -> None:
    cleaning = Cleaning(9, times_us=[1, 1, 50, 50, 1, 1, 1, 1, 1])
    cleaning.clean_by(TimeMark(lambda: 30, window_us=10)).clean_logs()
    assert cleaning.retained == [3, 4, 5, 6, 7, 8, 9]
    assert opened(cleaning.storage, 3).compacted_index == 2


@pytest.mark.rows("LWM-R3", "LWM-S1")
@pytest.mark.parametrize("steps", range(5))
@pytest.mark.parametrize("keep", [keep_nothing, keep_all])
def test_a_crash_between_any_two_deletions_leaves_a_log_that_begins_later_and_ends_where_it_did(keep, steps) -> None:
    cleaning = Cleaning(9)
    cleaning.index = 8
    cleaner = cleaning.clean_by()
    cleaning.storage.effects_max = cleaning.storage.effects + steps
    with suppress(Crash):
        cleaner.clean_logs()
    cleaning.storage.crash(keep)
    log = opened(cleaning.storage, 8)
    assert log.compacted_index in (0, 2, 4, 6)
    assert [e.index for e in log.entries(log.compacted_index + 1, 99)] == list(range(log.compacted_index + 1, 10))


@pytest.mark.rows("LWM-S8")
def test_what_was_read_before_a_cleaning_stays_whole() -> None:
    cleaning = Cleaning()
    read = cleaning.log.entries(1, 9)
    cleaning.index = 9
    cleaning.clean_by().clean_logs()
    assert [e.index for e in read] == list(range(1, 10))
    assert cleaning.retained == [9]


# -- a log that begins later ------------------------------------------------------------------------------------------


def cleaned_log(index: int = 6) -> Cleaning:
    cleaning = Cleaning()
    cleaning.index = index
    cleaning.clean_by().clean_logs()
    assert cleaning.log.compacted_index == 4
    return cleaning


@pytest.mark.rows("LWM-R14")
@pytest.mark.parametrize("index", [1, 4])
def test_reading_below_the_first_retained_index_says_compacted(index: int) -> None:
    log = cleaned_log().log
    for read in (log.entry, lambda index: log.entries(index, 5)):
        with pytest.raises(EntryCompacted, match="begins at 5"):
            read(index)
    assert log.entry(5).index == 5
    with pytest.raises(EntryAbsent):
        log.entry(10)


@pytest.mark.rows("LWM-R14")
def test_the_segment_files_say_compacted_too() -> None:
    files = SegmentedLog(cleaned_log().storage, "wal", 30)
    files.recover(7)
    assert len(files.read_from(5)) == 5
    with pytest.raises(EntryCompacted, match="begins at 5"):
        files.read_from(4)


def test_generations_below_the_mark_are_compacted_and_the_last_one_is_remembered() -> None:
    cleaning = cleaned_log()
    assert [cleaning.log.generation_at(index) for index in (0, 3, 4, 5, 9, 10)] == [0, COMPACTED, 3, 3, 3, -1]
    assert opened(cleaning.storage, 6).generation_at(4) == COMPACTED


def test_what_follows_an_entry_can_be_told_as_long_as_its_generation_is_known() -> None:
    cleaning = cleaned_log()
    assert [cleaning.log.was_discarded_after(index) for index in (0, 3, 4, 5, 9)] == [True, True, False, False, False]
    assert opened(cleaning.storage, 6).was_discarded_after(4)
    assert not opened(MemoryStorage()).was_discarded_after(0)


@pytest.mark.rows("LWM-R8", "WAL-R8")
def test_a_cleaned_log_goes_on_after_a_restart() -> None:
    cleaning = cleaned_log()
    log = opened(cleaning.storage, 6)
    assert (log.compacted_index, log.last_index, log.last_generation) == (4, 9, 3)
    log.append(entry(10))
    log.flush()
    assert opened(cleaning.storage, 6).last_index == 10


@pytest.mark.rows("LWM-R8")
@pytest.mark.parametrize("snapshot_index", [0, 2, 3])
def test_a_log_that_begins_after_the_snapshot_ends_is_refused(snapshot_index: int) -> None:
    with pytest.raises(CorruptLog, match=f"ends at {snapshot_index}"):
        opened(cleaned_log().storage, snapshot_index)


def test_truncation_below_the_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="begins at 5"):
        cleaned_log().log.truncate_from(4)


def test_truncation_above_the_mark_counts_from_the_first_retained_entry() -> None:
    cleaning = cleaned_log()
    cleaning.log.truncate_from(7)
    assert cleaning.retained == [5, 6]
    cleaning.log.append(entry(7, generation=4))
    cleaning.log.flush()
    assert [e.generation for e in opened(cleaning.storage, 6).entries(5, 9)] == [3, 3, 4]


@pytest.mark.rows("LWM-S6")
@pytest.mark.parametrize(("index", "generation"), [(20, 5), (5, 9)])
def test_a_log_that_does_not_hold_the_snapshots_last_entry_starts_after_it(index: int, generation: int) -> None:
    """Too short, or in conflict: a leader's snapshot was published, and the crash came before the log was dropped."""
    storage = Cleaning().storage
    log = opened(storage, index, generation)
    assert (log.compacted_index, log.last_index, log.last_generation) == (index, index, generation)
    log.append(entry(index + 1, generation=generation))
    log.flush()
    assert files(storage) == [index + 1]
    storage.crash(keep_nothing)
    assert opened(storage, index, generation).last_index == index + 1


@pytest.mark.rows("LWM-S6")
@pytest.mark.parametrize("steps", range(9))
@pytest.mark.parametrize("keep", [keep_nothing, keep_all])
def test_a_crash_while_the_log_is_dropped_for_a_snapshot_can_be_repeated(keep, steps: int) -> None:
    cleaning = Cleaning()
    cleaning.storage.effects_max = cleaning.storage.effects + steps
    with suppress(LogUnusable):
        cleaning.log.restart_after(5, 9)
        cleaning.log.flush()
    cleaning.storage.crash(keep)
    log = opened(cleaning.storage, 5, 9)
    assert (log.compacted_index, log.last_index) == (5, 5)


def test_a_log_that_was_dropped_remembers_where_it_begins() -> None:
    cleaning = Cleaning()
    cleaning.log.restart_after(20, 9)
    cleaning.log.flush()
    cleaning.storage.crash(keep_nothing)
    with pytest.raises(CorruptLog, match="ends at 10"):
        opened(cleaning.storage, 10)
    assert opened(cleaning.storage, 20, 9).last_index == 20
