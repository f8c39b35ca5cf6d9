"""HeartBeat: show that a server is alive by sending messages at a regular interval.

*Problem.* Followers must notice within bounded time that their leader is gone. A missing reply never proves a failure,
so "gone" can only mean "silent for longer than agreed".

*Idea.* The leader sends a heartbeat to every follower at a fixed interval. A follower notes on its *monotonic* clock
when the last one arrived; silence for the whole timeout makes it suspect the leader. A suspicion is allowed to be
wrong: it costs an election, never safety, because the Generation Clock makes the old leader's messages recognisable.

Three rules keep suspicions rare. The interval is a small part of the timeout (HB-R1). Heartbeats leave ahead of disk
writes, so a slow disk at the leader looks like a slow disk and not like a crash (HB-R10). And a follower whose own
check runs late was itself asleep: what it missed says nothing about the leader, so that check accuses nobody
(HB-R12).

*Invariants.* HB-I3 nobody is suspected within the timeout of the last heartbeat that was processed. HB-I5 verdicts of
the detector never gate safety; the log's invariants must hold with a detector that lies.

*Tolerates.* Lost and late heartbeats up to the timeout; steps of the wall clock (it is never read); drift of the
monotonic clock, which scales the timeout; a pause of the checking node itself.

*Does not tolerate.* Delays longer than the timeout: they cost an unnecessary election. There is no way to tell a dead
leader from an unreachable one.

*Workloads.* `register`, with pauses, kills and one-way partitions.

*Checkers.* Availability after heal, linearizability (through elections).

*Planted bugs.* None of its own in the first cut; `wall-clock-lease` breaks the same rule in the leader's lease.

Sources: Patterns of Distributed Systems ch. 7; the local-pause rule is Apache Cassandra's `FailureDetector`
(`cassandra.max_local_pause_in_ms`, 5 s there because its timeouts are longer; here it is one heartbeat timeout).
"""

from __future__ import annotations

from collections.abc import Callable

from faultline.harness.errors import UsageError
from faultline.harness.world.ports import Clock, Timer, Timers

__all__ = ["HeartBeatScheduler", "TimeoutBasedFailureDetector", "check_heartbeat_timing"]


def check_heartbeat_timing(interval_us: int, timeout_us: int) -> None:
    """Refuse an interval that leaves no room for a single lost heartbeat within the timeout (HB-R1). UsageError."""
    if interval_us < 1_000:
        raise UsageError(
            f"a heartbeat interval of {interval_us / 1_000:g} ms is shorter than a network round trip.",
            "Set heartbeat_interval_ms to 1 or more.",
        )
    if timeout_us < 2 * interval_us:
        raise UsageError(
            f"an election timeout of {timeout_us / 1_000:g} ms does not leave room to lose one heartbeat"
            f" at an interval of {interval_us / 1_000:g} ms.",
            "Set election_timeout_ms to at least twice heartbeat_interval_ms.",
        )


class HeartBeatScheduler:
    """Runs an action at a fixed delay while it is started: the sending side, and every other periodic duty."""

    __slots__ = ("_action", "_interval_us", "_timer", "_timers")

    def __init__(self, timers: Timers, interval_us: int, action: Callable[[], None]) -> None:
        self._timers = timers
        self._interval_us = interval_us
        self._action = action
        self._timer: Timer | None = None

    def start(self) -> None:
        """Call the action `interval_us` from now, and again and again."""
        self.stop()
        self._timer = self._timers.every(self._interval_us, self._action)

    def stop(self) -> None:
        """Call the action no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class TimeoutBasedFailureDetector:
    """Suspects the one server it watches after a whole timeout of silence, by the monotonic clock.

    Until something was heard, silence counts from the start of the detector (HB-R6): a leader that never speaks is
    suspected too. The timeout may change from check to check, because elections draw it at random.
    """

    __slots__ = ("_clock", "_due_us", "_heard_us", "_pause_us", "timeout_us")

    def __init__(self, clock: Clock, timeout_us: int) -> None:
        self._clock = clock
        self.timeout_us = timeout_us
        self._pause_us = timeout_us
        self._heard_us = clock.monotonic_us()
        self._due_us = self._heard_us + timeout_us

    def heartbeat_received(self) -> None:
        """Note a sign of life of the watched server."""
        self._heard_us = self._clock.monotonic_us()

    def silence_us(self) -> int:
        """How long nothing has been heard."""
        return self._clock.monotonic_us() - self._heard_us

    def next_check_in_us(self, timeout_us: int) -> int:
        """Restart the count with a new `timeout_us`, and return when to check: that much from now."""
        self.timeout_us = timeout_us
        return self._promise(timeout_us)

    def check(self) -> int:
        """The microseconds until the next check, or 0 when the watched server is to be suspected now.

        A check that runs a whole `pause` later than it was due slept through heartbeats that may be waiting in the
        node's own queue: it judges nothing and asks for a full timeout more.
        """
        now_us = self._clock.monotonic_us()
        if now_us - self._due_us >= self._pause_us:
            return self._promise(self.timeout_us)
        remaining_us = self._heard_us + self.timeout_us - now_us
        return self._promise(remaining_us) if remaining_us > 0 else 0

    def _promise(self, delay_us: int) -> int:
        self._due_us = self._clock.monotonic_us() + delay_us
        return delay_us
