"""A log whose end is replaced in one step: a crash at any effect leaves the old end or the new one, never less."""

from __future__ import annotations

from contextlib import suppress

import pytest

from faultline.systems_under_test.patterns.data_replication.file_format import CorruptLog, LogUnusable
from faultline.systems_under_test.patterns.data_replication.log_entry import DATA, LogEntry
from faultline.systems_under_test.patterns.data_replication.restamped_log import RestampedLog
from faultline.systems_under_test.patterns.data_replication.segmented_log import SegmentedLog
from faultline.testing.memory_storage import Crash, MemoryStorage, keep_all, keep_nothing

OLD = [LogEntry(index, 1, DATA, f"old {index}".encode()) for index in range(1, 7)]
NEW = [*OLD[:2], *(LogEntry(index, 3, DATA, f"new {index}".encode()) for index in range(3, 6))]


STOPPED = (Crash, LogUnusable)
"""The errors of a log whose storage has stopped."""


def opened(storage: MemoryStorage) -> RestampedLog:
    """Return the log on this storage, recovered; its segments hold two entries each."""
    log = RestampedLog(storage, segment_size_bytes_max=40, files=SegmentedLog)
    log.recover()
    return log


def filled() -> tuple[MemoryStorage, RestampedLog]:
    """Return a storage with the old entries, and their log."""
    storage = MemoryStorage()
    log = opened(storage)
    for entry in OLD:
        log.append(entry)
    log.flush()
    return storage, log


def held(log: RestampedLog) -> list[LogEntry]:
    """Return all entries of the log."""
    return log.entries(1, log.last_index)


def effects_of_a_replacement() -> int:
    """Return the number of effects on the storage that a replacement has."""
    storage, log = filled()
    before = storage.effects
    log.replace_after(2, NEW[2:])
    return storage.effects - before


@pytest.mark.rows("LOG-R18", "HWM-S7")
@pytest.mark.parametrize("choose", [keep_all, keep_nothing])
def test_a_crash_at_any_effect_of_a_replacement_leaves_the_old_end_or_the_new_one(choose) -> None:
    ends = []
    for effects in range(effects_of_a_replacement() + 1):
        storage, log = filled()
        storage.effects_max = storage.effects + effects
        with suppress(*STOPPED):
            log.replace_after(2, NEW[2:])
        storage.crash(choose)
        ends.append(held(opened(storage)))
        assert ends[-1] in (OLD, NEW), effects
    assert ends[0] == OLD and ends[-1] == NEW
    assert ends == sorted(ends, key=lambda end: end == NEW), "once the new end is durable it stays"


@pytest.mark.rows("LOG-R18")
def test_a_recovery_that_finishes_a_replacement_can_be_interrupted_at_any_effect() -> None:
    for effects in range(30):
        storage, log = filled()
        storage.effects_max = storage.effects + effects_of_a_replacement() - 4
        with suppress(*STOPPED):
            log.replace_after(2, NEW[2:])
        storage.crash(keep_nothing)
        storage.effects_max = effects
        with suppress(*STOPPED):
            opened(storage)
        storage.crash(keep_nothing)
        assert held(opened(storage)) == NEW, effects


@pytest.mark.rows("LOG-R18")
def test_a_finished_replacement_is_not_repeated_when_its_file_comes_back() -> None:
    storage, log = filled()
    storage.effects_max = storage.effects + effects_of_a_replacement() - 1
    with suppress(*STOPPED):
        log.replace_after(2, NEW[2:])
    storage.crash(keep_nothing)
    file = storage.read("replacement.log")
    later = opened(storage)
    appended = LogEntry(6, 3, DATA, b"later")
    later.append(appended)
    later.flush()
    storage.put("replacement.log", file)
    assert file and held(opened(storage)) == [*NEW, appended]
    assert "replacement.log" not in storage.files()


def test_settled_entries_are_never_replaced() -> None:
    _, log = filled()
    log.settle(4)
    with pytest.raises(ValueError, match="entries up to 4 are settled"):
        log.replace_after(2, NEW[2:])
    assert held(log) == OLD


def test_a_replacement_that_changed_on_disk_is_refused() -> None:
    storage, log = filled()
    storage.effects_max = storage.effects + effects_of_a_replacement() - 1
    with suppress(*STOPPED):
        log.replace_after(2, NEW[2:])
    storage.crash(keep_nothing)
    storage.damage("replacement.log", 12)
    with pytest.raises(CorruptLog, match=r"replacement\.log changed"):
        opened(storage)
