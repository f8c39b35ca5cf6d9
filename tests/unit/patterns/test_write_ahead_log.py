"""Write-ahead log: WAL-S3 to S5, S9 and S10, and its small vocabulary."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest

from faultline.systems_under_test.patterns.data_replication.segmented_log import SegmentedLog
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import (
    DATA,
    NO_OP,
    CorruptLog,
    EntryAbsent,
    LogEntry,
    LogUnusable,
    WriteAheadLog,
)
from faultline.testing.memory_storage import Crash, MemoryStorage, keep_all, keep_nothing


def _entry(index: int, generation: int = 1) -> LogEntry:
    return LogEntry(index, generation, DATA, b"value %d" % index, 1000 * index)


def _log(storage: MemoryStorage, **options: int) -> WriteAheadLog:
    log = WriteAheadLog(storage, **options)
    log.recover()
    return log


def _filled(storage: MemoryStorage, count: int, **options: int) -> WriteAheadLog:
    log = _log(storage, **options)
    for index in range(log.last_index + 1, log.last_index + count + 1):
        log.append(_entry(index))
    log.flush()
    return log


def _all(log: WriteAheadLog) -> list[LogEntry]:
    return log.entries(1, log.last_index)


def test_an_empty_log_ends_before_index_one() -> None:
    log = _log(MemoryStorage())
    assert (log.last_index, log.last_generation, _all(log)) == (0, 0, [])


@pytest.mark.rows("WAL-R5", "WAL-I5")
def test_what_was_flushed_is_there_after_a_crash_with_every_field() -> None:
    storage = MemoryStorage()
    log = _log(storage)
    log.append(LogEntry(1, 4, NO_OP, b"", 5))
    log.append(LogEntry(2, 6, DATA, b"\x00\xff", 7))
    log.flush()
    storage.crash(keep_nothing)
    recovered = _log(storage)
    assert _all(recovered) == _all(log)
    assert (recovered.last_index, recovered.last_generation) == (2, 6)


@pytest.mark.rows("WAL-I5")
def test_a_crash_without_flush_loses_only_a_suffix() -> None:
    storage = MemoryStorage()
    log = _filled(storage, 3)
    log.append(_entry(4))
    log.append(_entry(5))
    storage.crash(keep_nothing)
    assert _all(_log(storage)) == [_entry(1), _entry(2), _entry(3)]


@pytest.mark.rows("WAL-R10", "WAL-S4")
def test_a_torn_tail_is_dropped_at_every_byte_and_the_next_append_works() -> None:
    whole = MemoryStorage()
    _filled(whole, 3)
    data = whole.read("wal_1.log")
    shorter = MemoryStorage()
    _filled(shorter, 2)
    end_of_second = len(shorter.read("wal_1.log"))
    for size in range(end_of_second, len(data)):
        storage = MemoryStorage()
        storage.put("wal_1.log", data[:size])
        _log(storage)
        storage.crash(keep_nothing)
        assert storage.read("wal_1.log") == data[:end_of_second], "the torn tail is gone for good before a new append"
        log = _log(storage)
        assert log.last_index == 2
        log.append(_entry(3, generation=2))
        log.flush()
        storage.crash(keep_nothing)
        assert _all(_log(storage)) == [_entry(1), _entry(2), _entry(3, generation=2)]


@pytest.mark.rows("WAL-R10", "WAL-S5")
def test_a_single_flipped_bit_before_the_last_record_is_detected_wherever_it_is() -> None:
    whole = MemoryStorage()
    _filled(whole, 3)
    shorter = MemoryStorage()
    _filled(shorter, 2)
    for position in range(len(shorter.read("wal_1.log"))):
        storage = MemoryStorage()
        storage.put("wal_1.log", whole.read("wal_1.log"))
        storage.damage("wal_1.log", position, 1 << position % 8)
        with pytest.raises(CorruptLog):
            _log(storage)


@pytest.mark.rows("WAL-R15", "WAL-S9")
def test_recovery_can_be_interrupted_at_any_step_and_tried_again() -> None:
    for steps in range(3):
        storage = MemoryStorage()
        _filled(storage, 3)
        storage.put("wal_1.log", storage.read("wal_1.log")[:-1])
        storage.effects_max = steps
        with suppress(Crash):
            _log(storage)
        storage.crash(keep_all if steps == 1 else keep_nothing)
        assert _all(_log(storage)) == [_entry(1), _entry(2)]


@pytest.mark.rows("WAL-I6")
def test_restarts_do_not_change_the_log() -> None:
    storage = MemoryStorage()
    _filled(storage, 5, segment_size_bytes_max=40)
    before = {file: storage.read(file) for file in storage.files()}
    for _ in range(3):
        assert _log(storage, segment_size_bytes_max=40).last_index == 5
    assert {file: storage.read(file) for file in storage.files()} == before


@pytest.mark.rows("WAL-R16", "WAL-S10")
@pytest.mark.parametrize("operation", ["append", "fsync"])
def test_a_disk_error_reaches_the_caller_and_changes_nothing_in_memory(operation: str) -> None:
    storage = MemoryStorage()
    log = _filled(storage, 2)
    storage.failing = operation
    with pytest.raises(LogUnusable, match="recover the log first"):
        _append_and_flush(log)
    storage.failing = ""
    with pytest.raises(LogUnusable):
        _append_and_flush(log)
    recovered = _filled(storage, 1)
    assert _all(_log(storage)) == _all(recovered)
    if operation == "append":
        assert log.last_index == 2


def _append_and_flush(log: WriteAheadLog) -> None:
    log.append(_entry(log.last_index + 1))
    log.flush()


@pytest.mark.rows("WAL-R4", "WAL-I2")
@pytest.mark.parametrize("index", [1, 2, 4, 5])
def test_an_entry_that_is_not_the_next_one_is_refused(index: int) -> None:
    log = _filled(MemoryStorage(), 2)
    with pytest.raises(ValueError, match="does not follow") as refusal:
        log.append(_entry(index))
    assert str(index) in str(refusal.value)
    assert log.last_index == 2


def test_generations_are_known_for_entries_and_for_the_place_before_the_first() -> None:
    log = _filled(MemoryStorage(), 1)
    log.append(_entry(2, generation=5))
    assert [log.generation_at(index) for index in (-1, 0, 1, 2, 3)] == [-1, 0, 1, 5, -1]


@pytest.mark.parametrize("index", [-1, 0, 3])
def test_an_absent_entry_is_an_error_not_another_entry(index: int) -> None:
    with pytest.raises(EntryAbsent, match=str(index)):
        _filled(MemoryStorage(), 2).entry(index)


def test_entries_are_read_in_order_and_in_limited_number() -> None:
    log = _filled(MemoryStorage(), 5)
    assert log.entry(3) == _entry(3)
    assert log.entries(2, 3) == [_entry(2), _entry(3), _entry(4)]
    assert log.entries(5, 10) == [_entry(5)]
    assert log.entries(6, 10) == log.entries(2, 0) == log.entries(2, -1) == []


@pytest.mark.rows("HWM-R10")
def test_a_truncated_suffix_does_not_come_back() -> None:
    storage = MemoryStorage()
    log = _filled(storage, 6, segment_size_bytes_max=60)
    log.truncate_from(3)
    log.flush()
    storage.crash(keep_nothing)
    assert _all(_log(storage)) == [_entry(1), _entry(2)]
    assert log.last_index == 2


def test_truncation_replaces_entries_by_others() -> None:
    storage = MemoryStorage()
    log = _filled(storage, 4)
    log.truncate_from(2)
    log.append(_entry(2, generation=9))
    log.flush()
    assert _all(_log(storage)) == _all(log) == [_entry(1), _entry(2, generation=9)]


@pytest.mark.rows("HWM-R10")
def test_truncation_from_before_the_log_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot truncate"):
        _filled(MemoryStorage(), 2).truncate_from(0)


def test_a_valid_record_that_is_no_entry_is_corruption() -> None:
    storage = MemoryStorage()
    files = SegmentedLog(storage, "wal", 1000)
    files.recover()
    files.append(b"\xc1")
    files.flush()
    with pytest.raises(CorruptLog, match="no log entry"):
        _log(storage)


def test_an_entry_at_another_index_is_corruption() -> None:
    storage = MemoryStorage()
    files = SegmentedLog(storage, "wal", 1000)
    files.recover()
    files.append(msgspec.msgpack.encode(_entry(2)))
    files.flush()
    with pytest.raises(CorruptLog, match="holds entry 2"):
        _log(storage)


def test_two_logs_of_different_names_share_a_folder() -> None:
    storage = MemoryStorage()
    one, other = WriteAheadLog(storage, name="one"), WriteAheadLog(storage, name="other")
    one.recover()
    other.recover()
    one.append(_entry(1))
    one.flush()
    assert (one.last_index, other.last_index) == (1, 0)
    assert storage.files() == ["one_1.log"]
