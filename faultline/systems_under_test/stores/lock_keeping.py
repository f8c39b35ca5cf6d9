"""The locks that one client keeps: each trusted by the client's own clock, and refreshed by a thread of its own.

What a store's lock hangs on is its adapter's business (`Hook`); how long its owner may believe in it is the same for
all (`HeldLease`, as the reference system's clients have it): from the moment at which the request was sent that was
granted or refreshed, for a time that is shorter than the lock's.
"""

from __future__ import annotations

import threading
from typing import Generic, Protocol, TypeVar

from faultline.harness.world.local.clock import ClockSetting, SkewedClock
from faultline.harness.world.ports import Clock
from faultline.systems_under_test.patterns.cluster_management.lease import HeldLease

__all__ = ["TRUSTED_SHARE", "Hook", "KeptLock", "LockKeeping"]

TRUSTED_SHARE = 0.75
"""How much of a lock's time an owner uses: clocks run differently, and what it does then takes a while itself."""

_REFRESHES_PER_INTERVAL = 4
"""How much sooner the next refresh comes when one was not answered."""


class Hook(Protocol):
    """What a lock hangs on: a session, an entry that times out. Asked from two threads."""

    def refresh(self) -> bool:
        """Let the lock live on; False when there is none any more. Raises OSError when nobody said."""

    def rest(self) -> None:
        """No refresh comes any more: said by the thread that refreshed."""

    def holds(self) -> bool:
        """Is it still there, as far as the client knows? Asks nobody."""

    def let_go(self) -> None:
        """Do nothing more for the lock, so that it ends by itself, and tell the store nothing. May come twice."""


HookT = TypeVar("HookT", bound=Hook)


class KeptLock(Generic[HookT]):
    """A lock that a client has, for as long as it may believe so."""

    def __init__(self, hook: HookT, clock: Clock, trusted: HeldLease, ttl_s: float) -> None:
        self.hook = hook
        self.name = trusted.name
        self.token = trusted.token
        self.ttl_s = ttl_s
        self._clock = clock
        self._trusted = trusted
        self._is_dropped = threading.Event()

    def is_valid(self) -> bool:
        """May its owner still act as such?"""
        return self._trusted.is_valid() and self.hook.holds()

    def keep_alive(self) -> None:
        """Refresh it from now on."""
        threading.Thread(target=self._refresh_until_dropped, name="lock-refresh", daemon=True).start()

    def drop(self) -> None:
        """Refresh it no more."""
        self._is_dropped.set()
        self.hook.let_go()

    def _refresh_until_dropped(self) -> None:
        interval_s = self._trusted.refresh_interval_us / 1_000_000
        wait_s = interval_s
        while not self._is_dropped.wait(wait_s) and self._trusted.is_valid():
            wait_s = interval_s if self._is_answered() else interval_s / _REFRESHES_PER_INTERVAL
        self.hook.rest()

    def _is_answered(self) -> bool:
        """Refresh once; did the store say what became of it?"""
        sent_us = self._clock.monotonic_us()
        try:
            lives = self.hook.refresh()
        except OSError:
            return False
        if lives:
            self._trusted.refreshed(sent_us)
        else:
            self._trusted.lost()
        return True


class LockKeeping(Generic[HookT]):
    """The locks of one client, which believes in each for `trusted_share` of the time that it lives unrefreshed."""

    def __init__(self, trusted_share: float = TRUSTED_SHARE, *, clock: Clock | None = None) -> None:
        self.clock = clock or SkewedClock(ClockSetting())
        self._trusted_share = trusted_share
        self._kept: dict[str, KeptLock[HookT]] = {}

    def granted(self, name: str, token: int, hook: HookT, sent_us: int, ttl_s: float) -> None:
        """The lock was granted, for `ttl_s`, to a request that was sent at `sent_us`, by `clock`: keep it alive."""
        trusted_us = int(self._trusted_share * ttl_s * 1_000_000)
        trusted = HeldLease(self.clock, name, token, trusted_us, 0, sent_us)
        self._kept[name] = lock = KeptLock(hook, self.clock, trusted, ttl_s)
        lock.keep_alive()

    @property
    def has_some(self) -> bool:
        """Whether there is a lock that was granted and not dropped."""
        return bool(self._kept)

    def held(self, name: str) -> KeptLock[HookT] | None:
        """The lock of that name, if this client may still act as its owner; if not, it never will again."""
        lock = self._kept.get(name)
        if lock is not None and not lock.is_valid():
            self.drop(name)
            return None
        return lock

    def drop(self, name: str) -> None:
        """Act as the owner no longer, and refresh no longer."""
        lock = self._kept.pop(name, None)
        if lock is not None:
            lock.drop()

    def close(self) -> None:
        """Drop all of them."""
        for name in [*self._kept]:
            self.drop(name)
