"""HeartBeat: show that a server is alive by sending messages at a regular interval.

*Problem.* Followers must notice within bounded time that their leader is gone. A missing reply never proves a failure,
so "gone" can only mean "silent for longer than agreed".

*Idea.* The leader sends a heartbeat to every follower at a fixed interval. A follower notes the arrival of each on its
*monotonic* clock, and suspects the leader after a whole timeout of silence. A suspicion may be wrong: it then costs an
election and never safety, because the Generation Clock makes the old leader's messages recognisable.

Three rules keep wrong suspicions rare. The interval is a small part of the timeout (HB-R1). Heartbeats leave ahead of
disk writes, so a slow disk at the leader does not look like a crash (HB-R10). And a follower whose own check runs late
was paused itself: the heartbeats that it missed say nothing about the leader, so that check accuses no server (HB-R12).

*Invariants.* HB-I3 no server is suspected within the timeout of the last heartbeat that was processed. HB-I5 safety
does not depend on the detector: the log's invariants must hold even with a detector that lies.

*Tolerates.* Lost and late heartbeats up to the timeout. Steps of the wall clock, which is never read. Drift of the
monotonic clock, which scales the timeout. A pause of the checking node itself.

*Does not tolerate.* Delays longer than the timeout: they cost an unnecessary election. A dead leader cannot be
distinguished from an unreachable leader.

*Workloads.* `register`, with pauses, kills and one-way partitions.

*Checkers.* Availability after heal, linearizability (through elections).

*Planted bugs.* `wall-clock-timeout` (HB-M1): silence is measured on the wall clock. The bugs that no campaign meets are
beside the tests of the detectors: a monitor that does not notice its own pause (HB-M2), that watches only servers it
has heard (HB-M5) or never takes a mark back (HB-M6), and heartbeats that wait for the disk (HB-M3).

The rule that judges a silence can be chosen: a fixed timeout, a timeout that allows for the node's own pauses (the
default), or a suspicion that adapts to the arrival of heartbeats (`phi_accrual`). `HeartBeatMonitor` watches many
servers with any of them. In large clusters `gossip_heartbeats` brings it news, and `lifeguard_probing` needs no
heartbeats.

Sources: Patterns of Distributed Systems ch. 7; the local-pause rule is Apache Cassandra's `FailureDetector`
(`cassandra.max_local_pause_in_ms`, 5 s there because its timeouts are longer; here it is one heartbeat timeout).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from faultline.harness.errors import UsageError
from faultline.harness.world.ports import Clock, Timer, Timers

__all__ = [
    "FailureDetector",
    "HeartBeatMonitor",
    "HeartBeatScheduler",
    "LocalPause",
    "PauseAwareFailureDetector",
    "TimeoutBasedFailureDetector",
    "check_heartbeat_timing",
]


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
    """A scheduler that runs an action at a fixed delay: the sending side, and every other periodic duty."""

    __slots__ = ("_action", "_interval_us", "_timer", "_timers")

    def __init__(self, timers: Timers, interval_us: int, action: Callable[[], None]) -> None:
        self._timers = timers
        self._interval_us = interval_us
        self._action = action
        self._timer: Timer | None = None

    def start(self) -> None:
        """Call the action `interval_us` from now, and at that interval from then on."""
        self.stop()
        self._timer = self._timers.every(self._interval_us, self._action)

    def stop(self) -> None:
        """Call the action no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class FailureDetector(Protocol):
    """A watch on one server; its verdict is an opinion about time, on which no safety may rest (HB-I5)."""

    def heartbeat_received(self) -> None:
        """Note a sign of life of the watched server."""

    def restart(self, timeout_us: int) -> int:
        """Count silence anew from now, with this timeout, and return the time until the first check."""

    def silence_us(self) -> int:
        """Return for how long the server was not heard."""

    def check(self) -> int:
        """Return the microseconds until the next check, or 0 when the watched server is to be suspected now."""


class TimeoutBasedFailureDetector:
    """A detector that suspects after a whole timeout of silence, by the monotonic clock (HB-R5).

    Until the first heartbeat, silence counts from the start of the detector (HB-R6): a leader that never speaks is
    suspected too. The timeout may change from restart to restart, because elections draw it at random.
    """

    __slots__ = ("_heard_us", "_now_us", "timeout_us")

    def __init__(self, clock: Clock, timeout_us: int) -> None:
        self._now_us = clock.monotonic_us
        self.timeout_us = timeout_us
        self._heard_us = self._now_us()

    def heartbeat_received(self) -> None:
        """Note the time of the sign of life."""
        self._heard_us = self._now_us()

    def restart(self, timeout_us: int) -> int:
        """Count from now; the first check is due when the timeout is over."""
        self.timeout_us = timeout_us
        self._heard_us = self._now_us()
        return timeout_us

    def silence_us(self) -> int:
        """Return the time since the last sign of life."""
        return self._now_us() - self._heard_us

    def check(self) -> int:
        """Return the rest of the timeout; 0 when it is over."""
        return max(0, self._heard_us + self.timeout_us - self._now_us())


class LocalPause:
    """A check for a pause of this process, which made it miss the time of its next action (HB-R12)."""

    __slots__ = ("_clock", "_due_us", "_pause_us")

    def __init__(self, clock: Clock, pause_us: int) -> None:
        self._clock = clock
        self._pause_us = pause_us
        self._due_us = clock.monotonic_us()

    def promise(self, delay_us: int) -> int:
        """Note that the next action is due `delay_us` from now, and return `delay_us`."""
        self._due_us = self._clock.monotonic_us() + delay_us
        return delay_us

    def slept(self) -> bool:
        """Return whether it is later than promised by a whole pause."""
        return self._clock.monotonic_us() - self._due_us >= self._pause_us


class PauseAwareFailureDetector:
    """A detector around another: a check that comes a whole pause late judges nothing and asks for another timeout.

    The process was paused. The heartbeats of that time may be waiting in the node's own queue behind the check.
    """

    __slots__ = ("_inner", "_pause", "_timeout_us", "heartbeat_received", "silence_us")

    def __init__(self, inner: FailureDetector, clock: Clock, pause_us: int) -> None:
        self._inner = inner
        self._pause = LocalPause(clock, pause_us)
        self._timeout_us = pause_us
        # The inner detector's own methods: this wrapper costs nothing for each heartbeat.
        self.heartbeat_received: Callable[[], None] = inner.heartbeat_received
        self.silence_us: Callable[[], int] = inner.silence_us

    def restart(self, timeout_us: int) -> int:
        """Restart the inner detector, and remember when the check is due."""
        self._timeout_us = timeout_us
        return self._pause.promise(self._inner.restart(timeout_us))

    def check(self) -> int:
        """Ask the inner detector, unless this check comes so late that its own process must have slept."""
        if self._pause.slept():
            return self._pause.promise(self._timeout_us)
        return self._pause.promise(self._inner.check())


class HeartBeatMonitor:
    """The receiving side for many servers, which marks each of them up or down and reports changes (HB-R4).

    `heartbeat_check` is to be called every `interval_us`, by a `HeartBeatScheduler`. A server that has never been heard
    is judged like any other, from the start of the monitor (HB-R6); one that was marked down is marked up by its next
    heartbeat (HB-R7). A check that comes a whole `pause_us` late marks none down (HB-R12; the book's figure is 5 s).
    """

    def __init__(
        self,
        servers: Iterable[str],
        new_detector: Callable[[], FailureDetector],
        pause: LocalPause,
        interval_us: int,
        on_change: Callable[[str, bool], None],
    ) -> None:
        self._detectors = {server: new_detector() for server in servers}
        self._down: list[str] = []
        self._pause = pause
        self._interval_us = interval_us
        self._on_change = on_change
        pause.promise(interval_us)

    def heartbeat_received(self, server: str) -> None:
        """Note a sign of life of `server`; unknown servers are ignored."""
        detector = self._detectors.get(server)
        if detector is not None:
            detector.heartbeat_received()
            self._mark_up(server)

    def heartbeat_check(self) -> None:
        """Mark down the servers that were silent for too long, unless this process itself was asleep."""
        slept = self._pause.slept()
        self._pause.promise(self._interval_us)
        if slept:
            return
        for server, detector in self._detectors.items():
            if server not in self._down and not detector.check():
                self._down.append(server)
                self._on_change(server, False)

    def patience_us(self, server: str) -> int:
        """Return for how long `server` may stay silent from now on."""
        return self._detectors[server].check()

    def down(self) -> tuple[str, ...]:
        """Return the servers that are marked down, in the order in which they were."""
        return tuple(self._down)

    def _mark_up(self, server: str) -> None:
        if server in self._down:
            self._down.remove(server)
            self._on_change(server, True)
