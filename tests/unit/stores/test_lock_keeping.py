"""Locks that a client keeps: believed in by its own clock, refreshed by a thread, and gone for good once gone."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
from patience import PATIENT_S, HandSetClock, wait_until

from faultline.systems_under_test.stores.lock_keeping import KeptLock, LockKeeping

MS = 1_000
TTL_S = 0.04
TRUSTED_US = 20 * MS


class Hook:
    """The scripted connection of a lock; `says` is the answer to refreshes, or the error that they raise."""

    def __init__(self) -> None:
        self.says: bool | OSError = True
        self.is_there = True
        self.refreshes = 0
        self.has_been_let_go = False
        self.rests = Event()

    def refresh(self) -> bool:
        self.refreshes += 1
        if isinstance(self.says, OSError):
            raise self.says
        return self.says

    def holds(self) -> bool:
        return self.is_there

    def rest(self) -> None:
        self.rests.set()

    def let_go(self) -> None:
        self.has_been_let_go = True


@pytest.fixture
def clock() -> HandSetClock:
    return HandSetClock()


@pytest.fixture
def keeping(clock: HandSetClock) -> Iterator[LockKeeping[Hook]]:
    kept = LockKeeping[Hook](0.5, clock=clock)
    yield kept
    kept.close()


def granted(keeping: LockKeeping[Hook], hook: Hook, sent_us: int = 0) -> KeptLock[Hook] | None:
    keeping.granted("lock0", 7, hook, sent_us, TTL_S)
    return keeping.held("lock0")


def test_a_lock_is_believed_in_from_when_it_was_asked_for_and_never_again(
    keeping: LockKeeping[Hook], clock: HandSetClock
) -> None:
    hook = Hook()
    hook.says = OSError("no server answers")
    clock.now_us = 15 * MS
    lock = granted(keeping, hook)
    assert lock is not None and (lock.token, lock.ttl_s) == (7, TTL_S)
    clock.now_us = TRUSTED_US - 1
    assert keeping.held("lock0") is lock
    clock.now_us = TRUSTED_US
    assert keeping.held("lock0") is None and hook.has_been_let_go
    clock.now_us = 0
    assert keeping.held("lock0") is None


def test_each_lock_is_believed_in_for_a_part_of_the_time_for_which_it_was_granted(
    keeping: LockKeeping[Hook], clock: HandSetClock
) -> None:
    keeping.granted("short", 7, Hook(), 0, 60)
    keeping.granted("long", 8, Hook(), 0, 80)
    clock.now_us = 30_000 * MS
    assert keeping.held("short") is None
    clock.now_us = 40_000 * MS - 1
    lock = keeping.held("long")
    assert lock is not None and lock.ttl_s == 80


def test_a_refresh_counts_from_when_it_was_sent(keeping: LockKeeping[Hook], clock: HandSetClock) -> None:
    hook = Hook()
    assert granted(keeping, hook) is not None
    clock.now_us = 15 * MS
    seen = hook.refreshes
    # The first of three may have been sent before that, and the last may not be answered yet.
    wait_until(lambda: hook.refreshes >= seen + 3)
    hook.says = OSError("no server answers")
    seen = hook.refreshes
    wait_until(lambda: hook.refreshes >= seen + 2)
    clock.now_us = 15 * MS + TRUSTED_US - 1
    assert keeping.held("lock0") is not None
    clock.now_us += 1
    assert keeping.held("lock0") is None


def test_a_lock_that_the_store_does_not_know_any_more_is_lost_at_once(keeping: LockKeeping[Hook]) -> None:
    hook = Hook()
    hook.says = False
    keeping.granted("lock0", 7, hook, 0, TTL_S)
    wait_until(lambda: keeping.held("lock0") is None)
    assert hook.refreshes == 1 and hook.has_been_let_go


def test_a_lock_whose_session_has_gone_is_lost_though_its_time_is_not_over(keeping: LockKeeping[Hook]) -> None:
    hook = Hook()
    assert granted(keeping, hook) is not None
    hook.is_there = False
    assert keeping.held("lock0") is None
    hook.is_there = True
    assert keeping.held("lock0") is None


@pytest.mark.parametrize("ended", ["drop", "close"])
def test_what_is_dropped_is_refreshed_no_more(keeping: LockKeeping[Hook], ended: str) -> None:
    hook: Any = Hook()
    assert granted(keeping, hook) is not None
    keeping.drop("lock0") if ended == "drop" else keeping.close()
    assert hook.has_been_let_go and keeping.held("lock0") is None
    assert hook.rests.wait(PATIENT_S)
    keeping.drop("lock0")
