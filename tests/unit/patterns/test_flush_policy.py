"""Flush policies: who is told when, and what a crash may cost under each of them (WAL-R9, WAL-S3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faultline.systems_under_test.patterns.data_replication.flush_policy import (
    FlushEachAppend,
    FlushInGroups,
    FlushInIntervals,
    NeverFlush,
)
from faultline.systems_under_test.patterns.data_replication.logged_store import LoggedStore
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import LogUnusable
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import MemoryStorage, keep_all, keep_nothing

Keep = Callable[[int], int]


def opened(storage: MemoryStorage, policy=FlushEachAppend) -> LoggedStore:
    store = LoggedStore(storage, policy)
    store.open()
    return store


def recovered(storage: MemoryStorage, keep: Keep = keep_nothing) -> dict[str, str]:
    storage.crash(keep)
    return dict(opened(storage).values)


@pytest.mark.rows("WAL-R9")
def test_a_group_shares_one_flush_and_is_told_after_it() -> None:
    timers, storage, told = FakePorts(), MemoryStorage(), []
    store = opened(storage, lambda log: FlushInGroups(log, timers, group_max=3, linger_us=500))
    for key in "ab":
        store.put(key, "value", lambda key=key: told.append(key))
    assert told == []
    assert store.values == {}
    store.put("c", "value", lambda: told.append("c"))
    assert told == ["a", "b", "c"]
    assert recovered(storage) == dict.fromkeys("abc", "value")


@pytest.mark.rows("WAL-R9")
def test_a_group_that_stays_small_is_flushed_when_its_first_member_has_waited_long_enough() -> None:
    timers, storage, told = FakePorts(), MemoryStorage(), []
    store = opened(storage, lambda log: FlushInGroups(log, timers, group_max=3, linger_us=500))
    store.put("a", "value", lambda: told.append("a"))
    store.put("b", "value", lambda: told.append("b"))
    assert [timer.due_us - timers.now_us for timer in timers.waiting] == [500]
    timers.ring()
    assert told == ["a", "b"]
    timers2 = len(timers.waiting)
    store.put("c", "value")
    assert len(timers.waiting) == timers2 + 1


@pytest.mark.rows("WAL-R9", "WAL-S3", "WAL-I1")
@pytest.mark.parametrize("keep", [keep_nothing, keep_all, lambda n: n // 2])
def test_who_was_told_by_a_group_finds_the_write_again_after_any_crash(keep: Keep) -> None:
    timers, storage, told = FakePorts(), MemoryStorage(), {}
    store = opened(storage, lambda log: FlushInGroups(log, timers, group_max=4))
    for number in range(10):
        store.put(f"key{number}", "value", lambda number=number: told.update({f"key{number}": "value"}))
    assert len(told) == 8
    assert recovered(storage, keep).items() >= told.items()


@pytest.mark.rows("WAL-R9", "WAL-S3", "WAL-I5")
@pytest.mark.parametrize("keep", [keep_nothing, keep_all, lambda n: n // 2, lambda n: n // 3])
def test_with_delayed_flushes_a_crash_of_the_machine_loses_a_suffix_and_nothing_else(keep: Keep) -> None:
    timers, storage, told = FakePorts(), MemoryStorage(), []
    store = opened(storage, lambda log: FlushInIntervals(log, timers))
    for number in range(10):
        if number == 6:
            timers.ring()
        store.put(f"key{number}", "value", lambda number=number: told.append(f"key{number}"))
    assert len(told) == 10
    found = list(recovered(storage, keep))
    assert found == told[: len(found)]
    assert len(found) >= 6


@pytest.mark.rows("WAL-R9", "WAL-S3")
@pytest.mark.parametrize("policy", [NeverFlush, lambda log: FlushInIntervals(log, FakePorts())])
def test_the_crash_of_the_process_alone_loses_nothing_under_any_policy(policy) -> None:
    storage = MemoryStorage()
    store = opened(storage, policy)
    store.put("title", "value")
    assert opened(storage).values == {"title": "value"}


@pytest.mark.rows("WAL-R9", "WAL-S3")
def test_without_flushes_the_crash_of_the_machine_can_lose_what_was_told() -> None:
    """The anomaly that the other policies exclude."""
    storage, told = MemoryStorage(), []
    opened(storage, NeverFlush).put("title", "value", lambda: told.append("title"))
    assert told == ["title"]
    assert recovered(storage) == {}


@pytest.mark.rows("WAL-R16", "WAL-S10")
def test_when_the_flush_of_a_group_fails_no_writer_in_it_is_told() -> None:
    timers, storage, told = FakePorts(), MemoryStorage(), []
    store = opened(storage, lambda log: FlushInGroups(log, timers))
    for key in "abc":
        store.put(key, "value", lambda key=key: told.append(key))
    storage.failing = "fsync"
    with pytest.raises(LogUnusable):
        timers.ring()
    assert (told, dict(store.values)) == ([], {})
