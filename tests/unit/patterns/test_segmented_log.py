"""Segmented log: SEG-S1 to S4, S6, and what a crash at any step of a roll or a truncation leaves."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from faultline.systems_under_test.patterns.data_replication.file_format import (
    FILE_HEADER_BYTES,
    HEADER_BYTES,
    CorruptLog,
)
from faultline.systems_under_test.patterns.data_replication.segmented_log import (
    EntryCompacted,
    ForeignLog,
    FutureLogVersion,
    LogPosition,
    LogUnusable,
    SegmentedLog,
    base_of,
    file_name,
)
from faultline.testing.memory_storage import MemoryStorage, keep_all, keep_names_only, keep_nothing

RECORD = HEADER_BYTES + 2
THREE = FILE_HEADER_BYTES + 3 * RECORD


def _payload(index: int) -> bytes:
    return index.to_bytes(2, "big")


def _log(storage: MemoryStorage, size_max: int = 2 * RECORD) -> SegmentedLog:
    log = SegmentedLog(storage, "wal", size_max)
    log.recover()
    return log


def _filled(storage: MemoryStorage, count: int, size_max: int = 2 * RECORD) -> SegmentedLog:
    log = _log(storage, size_max)
    for index in range(log.last_index + 1, log.last_index + count + 1):
        assert log.append(_payload(index)) == index
    log.flush()
    return log


def _bases(log: SegmentedLog) -> list[int]:
    return [segment.base for segment in log.segments]


@pytest.mark.rows("SEG-R1", "SEG-S1", "SEG-I4")
@pytest.mark.parametrize(("size_max", "first_segment"), [(THREE - 1, 3), (THREE, 3), (THREE + 1, 4)])
def test_a_segment_is_left_once_it_has_reached_the_limit_before_an_append(size_max: int, first_segment: int) -> None:
    log = _filled(MemoryStorage(), 5, size_max)
    assert _bases(log) == [1, first_segment + 1]


@pytest.mark.rows("SEG-R1", "SEG-S1")
def test_an_entry_larger_than_the_limit_gets_into_one_segment_whole() -> None:
    storage = MemoryStorage()
    log = _log(storage, 1)
    for size in (100, 200, 300):
        log.append(bytes(size))
    log.flush()
    assert [len(payload) for payload in _log(storage, 1).read_from(1)] == [100, 200, 300]
    assert _bases(log) == [1, 2, 3]


@pytest.mark.rows("SEG-R5", "SEG-R6", "SEG-S2")
def test_reading_from_any_index_returns_everything_from_there_on_the_open_segment_included() -> None:
    storage = MemoryStorage()
    log = _filled(storage, 25)
    assert len(log.segments) >= 12
    for reader in (log, _log(storage)):
        for start in range(27):
            assert reader.read_from(start) == [_payload(index) for index in range(max(1, start), 26)]


@pytest.mark.rows("SEG-R8", "SEG-S2", "SEG-I3")
def test_segments_are_put_in_order_by_number_not_by_name() -> None:
    storage = MemoryStorage()
    _filled(storage, 120, RECORD)
    assert storage.files().index("wal_100.log") < storage.files().index("wal_9.log")
    assert _log(storage, RECORD).read_from(1) == [_payload(index) for index in range(1, 121)]


@pytest.mark.rows("SEG-R3", "SEG-R8", "SEG-S6")
@pytest.mark.parametrize(
    "file", ["wal_1.log.new", "wal_.log", "wal_x.log", "wal_01.log", "wal_-1.log", "wal_²", "other_1.log", "xwal_1.log"]
)
def test_files_that_are_no_segments_are_left_alone(file: str) -> None:
    storage = MemoryStorage()
    _filled(storage, 5)
    storage.put(file, b"something else")
    assert base_of("wal", file) == -1
    assert _log(storage).last_index == 5
    assert storage.read(file) == b"something else"


@pytest.mark.rows("SEG-R3")
def test_the_base_of_a_segment_can_be_read_from_its_name() -> None:
    assert [base_of("wal", file_name("wal", base)) for base in (1, 9, 10, 100)] == [1, 9, 10, 100]


@pytest.mark.rows("SEG-R2", "SEG-R9", "SEG-S3")
@pytest.mark.parametrize("keep", [keep_nothing, keep_all])
@pytest.mark.parametrize("seed", range(4))
def test_a_crash_at_each_step_of_a_roll_leaves_a_log_that_can_be_read_and_continued(keep, seed: int) -> None:
    rng = Random(seed)
    choose = keep if seed == 0 else lambda n: int(rng.random() * (n + 1))
    for step in range(1, 7):
        storage = MemoryStorage()
        flushed = _filled(storage, 2).last_index
        storage.effects_max = storage.effects + step
        log = _log(storage)
        with suppress(LogUnusable):
            for index in (3, 4, 5):
                log.append(_payload(index))
                log.flush()
                flushed = index
        storage.crash(choose)
        recovered = _filled(storage, 3)
        assert recovered.last_index - 3 >= flushed
        assert _log(storage).read_from(1) == [_payload(index) for index in range(1, recovered.last_index + 1)]


@pytest.mark.rows("SEG-R9", "SEG-S3")
def test_a_new_segment_that_is_empty_does_not_make_the_log_empty() -> None:
    storage = MemoryStorage()
    _filled(storage, 2)
    storage.put("wal_3.log", b"")
    log = _log(storage)
    assert log.last_index == 2
    assert log.append(_payload(3)) == 3
    assert _bases(log) == [1, 3]


@pytest.mark.rows("SEG-R9")
def test_a_new_segment_with_a_torn_first_record_is_used_again() -> None:
    storage = MemoryStorage()
    _filled(storage, 2)
    storage.put("wal_3.log", b"\0\0\0")
    _filled(storage, 2)
    assert _log(storage).read_from(1) == [_payload(index) for index in range(1, 5)]


def test_an_empty_segment_left_over_beyond_a_torn_one_is_removed() -> None:
    storage = MemoryStorage()
    _filled(storage, 2)
    storage.put("wal_1.log", storage.read("wal_1.log")[:-1])
    storage.put("wal_3.log", b"")
    assert _log(storage).last_index == 1
    assert storage.files() == ["wal_1.log"]


@pytest.mark.rows("SEG-R10", "SEG-S4", "HWM-R10")
@pytest.mark.parametrize("index", range(1, 9))
def test_truncation_over_segment_boundaries_is_followed_by_new_entries(index: int) -> None:
    storage = MemoryStorage()
    log = _filled(storage, 8)
    log.truncate_from(index)
    assert log.last_index == index - 1
    log.append(b"new")
    log.flush()
    storage.crash()
    recovered = _log(storage)
    assert recovered.read_from(1) == [_payload(i) for i in range(1, index)] + [b"new"]
    assert recovered.segments[-1].base <= index


def test_truncation_beyond_the_end_changes_nothing() -> None:
    storage = MemoryStorage()
    log = _filled(storage, 3)
    effects = storage.effects
    log.truncate_from(4)
    log.flush()
    assert storage.effects == effects
    assert log.last_index == 3


def test_truncation_before_the_beginning_is_refused() -> None:
    with pytest.raises(ValueError, match="begins at 1"):
        _filled(MemoryStorage(), 3).truncate_from(0)


@pytest.mark.rows("HWM-R10", "HWM-S7")
def test_an_append_after_a_truncation_waits_until_the_old_entries_are_gone_for_good() -> None:
    storage = MemoryStorage()
    log = _filled(storage, 5, 1000)
    log.truncate_from(2)
    log.append(b"new")
    storage.crash(keep_nothing)
    assert _log(storage, 1000).read_from(1) == [_payload(1)]


@pytest.mark.rows("HWM-R10", "HWM-S7")
@pytest.mark.parametrize("steps", range(9))
@pytest.mark.parametrize("seed", range(-1, 8))
def test_a_crash_at_each_step_of_a_truncation_leaves_a_prefix_of_the_old_log(steps: int, seed: int) -> None:
    rng = Random(seed)
    storage = MemoryStorage()
    log = _filled(storage, 9)
    storage.effects_max = storage.effects + steps
    with suppress(LogUnusable):
        log.truncate_from(4)
        log.flush()
    if seed < 0:
        storage.crash(keep_names_only())
    else:
        storage.crash(lambda n: int(rng.random() * (n + 1)), lagging=seed % 2 == 0)
    payloads = _log(storage).read_from(1)
    assert payloads == [_payload(index) for index in range(1, len(payloads) + 1)]
    lagging = seed in range(0, 8, 2)
    assert lagging or len(payloads) >= 3


@pytest.mark.rows("SEG-R8", "SEG-I1")
@pytest.mark.parametrize("missing", ["wal_1.log", "wal_3.log", "wal_5.log"])
def test_a_missing_segment_is_noticed(missing: str) -> None:
    storage = MemoryStorage()
    _filled(storage, 7)
    storage.delete(missing)
    with pytest.raises(CorruptLog, match="does not join"):
        _log(storage)


def test_a_segment_that_lost_its_end_is_noticed_when_later_ones_have_entries() -> None:
    storage = MemoryStorage()
    _filled(storage, 7)
    storage.put("wal_3.log", storage.read("wal_3.log")[:-1])
    with pytest.raises(CorruptLog, match=r"wal_5\.log"):
        _log(storage)


def test_bytes_that_are_no_record_between_two_segments_are_noticed() -> None:
    storage = MemoryStorage()
    _filled(storage, 7)
    storage.put("wal_3.log", storage.read("wal_3.log") + b"?")
    with pytest.raises(CorruptLog, match="does not join"):
        _log(storage)


def test_a_refused_log_is_left_as_it_was_found() -> None:
    storage = MemoryStorage()
    _filled(storage, 7)
    storage.damage("wal_3.log", FILE_HEADER_BYTES)
    before = {file: storage.read(file) for file in storage.files()}
    with pytest.raises(CorruptLog, match="valid ones follow"):
        _log(storage)
    assert {file: storage.read(file) for file in storage.files()} == before


def test_bytes_that_change_while_the_log_is_open_are_noticed_when_read() -> None:
    storage = MemoryStorage()
    log = _filled(storage, 3)
    storage.damage("wal_1.log", FILE_HEADER_BYTES + 9)
    with pytest.raises(CorruptLog, match=f"byte {FILE_HEADER_BYTES}"):
        log.read_from(1)


def test_what_a_killed_process_left_unflushed_is_flushed_before_it_counts() -> None:
    storage = MemoryStorage()
    log = _log(storage)
    log.append(_payload(1))
    assert _log(storage).last_index == 1
    storage.crash(keep_nothing)
    assert _log(storage).last_index == 1


def test_a_log_takes_no_entries_before_it_is_recovered() -> None:
    log = SegmentedLog(MemoryStorage(), "wal", 100)
    with pytest.raises(LogUnusable, match="recover"):
        log.append(b"too early")


@pytest.mark.parametrize("size_max", [0, -1])
def test_a_size_limit_below_one_byte_is_refused(size_max: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        SegmentedLog(MemoryStorage(), "wal", size_max)


@pytest.mark.parametrize("operation", ["append", "fsync", "truncate"])
def test_after_a_failed_write_the_log_refuses_all_others_until_it_is_recovered(operation: str) -> None:
    storage = MemoryStorage()
    log = _filled(storage, 3, 1000)
    storage.failing = operation
    with pytest.raises(LogUnusable) as failure:
        _write_truncate_and_flush(log)
    assert isinstance(failure.value.__cause__, OSError)
    storage.failing = ""
    with pytest.raises(LogUnusable):
        log.append(_payload(4))
    with pytest.raises(LogUnusable):
        log.truncate_from(1)
    recovered = _filled(storage, 1, 1000)
    assert _log(storage, 1000).last_index == recovered.last_index


def _write_truncate_and_flush(log: SegmentedLog) -> None:
    log.append(_payload(4))
    log.truncate_from(3)
    log.flush()


def test_a_flush_after_a_failed_append_is_refused() -> None:
    storage = MemoryStorage()
    log = _log(storage)
    log.append(_payload(1))
    storage.failing = "append"
    with pytest.raises(LogUnusable):
        log.append(_payload(2))
    with pytest.raises(LogUnusable):
        log.flush()


def test_flushing_a_clean_log_costs_nothing() -> None:
    storage = MemoryStorage()
    log = _filled(storage, 3)
    effects = storage.effects
    log.flush()
    assert storage.effects == effects


@pytest.mark.rows("WAL-R10")
@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"FLTSNP\x00\x01 a snapshot, renamed", ForeignLog),
        (b"#!/bin/sh", ForeignLog),
        (b"x", ForeignLog),
        (b"FLTLOG\x00\x02", FutureLogVersion),
        (b"FLTLOG\xff\xff and what comes next year", FutureLogVersion),
    ],
)
@pytest.mark.parametrize("file", ["wal_1.log", "wal_3.log", "wal_5.log"])
def test_foreign_and_future_files_are_named_and_left_alone(content: bytes, error: type[Exception], file: str) -> None:
    storage = MemoryStorage()
    _filled(storage, 4)
    storage.put(file, content)
    with pytest.raises(error, match=file.replace(".", r"\.") + r".*Nothing was changed"):
        _log(storage)
    assert storage.read(file) == content


@pytest.mark.parametrize("size", range(FILE_HEADER_BYTES))
@pytest.mark.parametrize("zeros", [False, True])
def test_an_incomplete_header_is_what_a_crash_left_and_is_written_again(size: int, zeros: bool) -> None:
    storage = MemoryStorage()
    _filled(storage, 2)
    storage.put("wal_3.log", bytes(size) if zeros else storage.read("wal_1.log")[:size])
    _filled(storage, 2)
    storage.crash(keep_nothing)
    assert _log(storage).read_from(1) == [_payload(index) for index in range(1, 5)]


@pytest.mark.rows("SEG-R4")
def test_an_entry_can_be_named_by_its_file_and_its_place_there() -> None:
    storage = MemoryStorage()
    log = _filled(storage, 5)
    positions = [log.position_of(index) for index in range(1, 6)]
    assert positions[:3] == [
        LogPosition(1, FILE_HEADER_BYTES),
        LogPosition(1, FILE_HEADER_BYTES + RECORD),
        positions[2],
    ]
    assert positions[2] == LogPosition(3, FILE_HEADER_BYTES)
    assert sorted(positions) == positions
    for reader in (log, _log(storage)):
        assert [reader.read_at(position) for position in positions] == [_payload(index) for index in range(1, 6)]


@pytest.mark.rows("SEG-R4")
def test_a_position_that_holds_no_entry_is_no_entry() -> None:
    log = _filled(MemoryStorage(), 5)
    with pytest.raises(LookupError, match="ends at 5"):
        log.position_of(6)
    with pytest.raises(CorruptLog, match="no record at byte 9"):
        log.read_at(LogPosition(1, 9))
    log.delete_first(1)
    for ask in (lambda: log.position_of(2), lambda: log.read_at(LogPosition(1, FILE_HEADER_BYTES))):
        with pytest.raises(EntryCompacted, match="begins at 3"):
            ask()


@pytest.mark.rows("SEG-S5", "SEG-R7")
def test_a_reader_that_begins_anew_while_the_writer_rolls_sees_a_prefix_without_gaps() -> None:
    log = _log(MemoryStorage())
    for index in range(1, 30):
        log.append(_payload(index))
        assert log.read_from(0) == [_payload(earlier) for earlier in range(1, index + 1)]
    assert len(log.segments) > 12
