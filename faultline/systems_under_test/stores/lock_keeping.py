"""The locks that one client keeps: each trusted by the client's own clock, and refreshed by a thread of its own.

A store's lock depends on a session or an entry, which the adapter knows (`Hook`). The time for which its owner may
trust it is the same for all stores (`HeldLease`, as in the reference system's clients): it begins when the request was
sent that was granted or refreshed, and is shorter than the lock's time to live.
"""

from __future__ import annotations

import threading
from typing import Generic, Protocol, TypeVar

from faultline.harness.world.local.clock import ClockSetting, SkewedClock
from faultline.harness.world.ports import Clock
from faultline.systems_under_test.patterns.cluster_management.lease import HeldLease

__all__ = ["TRUSTED_SHARE", "Hook", "KeptLock", "LockKeeping"]

TRUSTED_SHARE = 0.75
"""The share of a lock's time that an owner uses: clocks run differently, and its own acts take time."""

_REFRESHES_PER_INTERVAL = 4
"""The number of refreshes per interval while none is answered."""


class Hook(Protocol):
    """The session, or the entry with a timeout, that a lock depends on; two threads call it."""

    def refresh(self) -> bool:
        """Let the lock live on; return False when it is gone. Raises OSError without an answer."""

    def rest(self) -> None:
        """End the work of the refreshing thread, which calls this last."""

    def holds(self) -> bool:
        """Return whether it still exists, as far as the client knows; sends no request."""

    def let_go(self) -> None:
        """Stop keeping the lock, so that it ends by itself, without a message to the store; may be called twice."""


HookT = TypeVar("HookT", bound=Hook)


class KeptLock(Generic[HookT]):
    """A lock that a client has, for as long as it may trust it."""

    def __init__(self, hook: HookT, clock: Clock, trusted: HeldLease, ttl_s: float) -> None:
        self.hook = hook
        self.name = trusted.name
        self.token = trusted.token
        self.ttl_s = ttl_s
        self._clock = clock
        self._trusted = trusted
        self._is_dropped = threading.Event()

    def is_valid(self) -> bool:
        """Return whether its owner may still act as such."""
        return self._trusted.is_valid() and self.hook.holds()

    def keep_alive(self) -> None:
        """Refresh it from now on."""
        threading.Thread(target=self._refresh_until_dropped, name="lock-refresh", daemon=True).start()

    def drop(self) -> None:
        """Refresh it no more, and let it go."""
        self._is_dropped.set()
        self.hook.let_go()

    def _refresh_until_dropped(self) -> None:
        interval_s = self._trusted.refresh_interval_us / 1_000_000
        wait_s = interval_s
        while not self._is_dropped.wait(wait_s) and self._trusted.is_valid():
            wait_s = interval_s if self._is_answered() else interval_s / _REFRESHES_PER_INTERVAL
        self.hook.rest()

    def _is_answered(self) -> bool:
        """Refresh once; return whether the store has answered."""
        # Before the request: the store may count the new time to live from any moment after this one.
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
    """The locks of one client, which trusts each for `trusted_share` of its time to live."""

    def __init__(self, trusted_share: float = TRUSTED_SHARE, *, clock: Clock | None = None) -> None:
        self.clock = clock or SkewedClock(ClockSetting())
        self._trusted_share = trusted_share
        self._kept: dict[str, KeptLock[HookT]] = {}

    def granted(self, name: str, token: int, hook: HookT, sent_us: int, ttl_s: float) -> None:
        """Keep a lock alive that was granted for `ttl_s` to a request that was sent at `sent_us`, by `clock`."""
        trusted_us = int(self._trusted_share * ttl_s * 1_000_000)
        trusted = HeldLease(self.clock, name, token, trusted_us, 0, sent_us)
        self._kept[name] = lock = KeptLock(hook, self.clock, trusted, ttl_s)
        lock.keep_alive()

    @property
    def has_some(self) -> bool:
        """True while there is a lock that was granted and not dropped."""
        return bool(self._kept)

    def held(self, name: str) -> KeptLock[HookT] | None:
        """Return the lock of that name, if this client may still act as its owner; if not, it never will again."""
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
        """Drop all of the locks."""
        for name in [*self._kept]:
            self.drop(name)
