"""The four waits of `timestamped-kv`: the ways in which a node shows its writes and answers its readers.

A wait writes or reads, and answers through a callback once it has waited enough. It asks the node's own clock again and
again, and never counts on one timer: a clock can be set back meanwhile, and then the wait goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.distributed_time.clock_bound_wait import (
    BoundedClock,
    PendingWrites,
    uncertain_version,
)
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.reference.timestamped_kv.clocks import Stamps
from faultline.systems_under_test.reference.timestamped_kv.messages import (
    ReadAnswered,
    ReadAt,
    ReadResponse,
    StampIssued,
    VersionShown,
    WriteRequest,
)
from faultline.systems_under_test.reference.timestamped_kv.options import TimestampSettings
from faultline.systems_under_test.reference.timestamped_kv.store import StampedVersions

__all__ = ["WAITS", "Answered", "CommitWait", "NoWait", "ReadRestart", "Waits", "WriteWait", "Written"]

Written = Callable[[HybridTimestamp], None]
"""The callback for the stamp of a write that may be acknowledged."""

Answered = Callable[[ReadResponse], None]
"""The callback for the answer to a reader."""

_LAST_TICK = 2**31 - 1


class Waits(Protocol):
    """One way to write and to read."""

    def read_time(self, seen: HybridTimestamp) -> HybridTimestamp:
        """Return the time at which a client of this node, which knows of `seen`, reads the latest version."""

    def write(self, client: str, request: WriteRequest, written: Written) -> None:
        """Stamp a value of `client`, show it, and call `written` once it may be acknowledged.

        Raise `ClockTooFarAhead`.
        """

    def read(self, request: ReadAt, answered: Answered) -> None:
        """Read a key at a time; call `answered` once that is safe."""


class NoWait:
    """Write and read at once: stamps order causes, and a reader whose clock is slow misses writes."""

    def __init__(self, ports: Ports, settings: TimestampSettings, stamps: Stamps, versions: StampedVersions) -> None:
        self._ports = ports
        self._settings = settings
        self._stamps = stamps
        self._versions = versions

    def read_time(self, seen: HybridTimestamp) -> HybridTimestamp:
        return self._stamps.read_time(seen)

    def write(self, client: str, request: WriteRequest, written: Written) -> None:
        stamp = self._stamp(request)
        self._show(client, request, stamp)
        written(stamp)

    def read(self, request: ReadAt, answered: Answered) -> None:
        answered(self._answer(request))

    def _stamp(self, request: WriteRequest) -> HybridTimestamp:
        stamp = self._stamps.tick(request.seen)
        wall_us = self._ports.clock.wall_us()
        if stamp.wall_us > wall_us:
            self._ports.trace.sometimes("stamp-ahead-of-clock")
        self._ports.trace.emit(StampIssued(stamp, request.seen, wall_us))
        return stamp

    def _show(self, client: str, request: WriteRequest, stamp: HybridTimestamp) -> None:
        self._versions.put(request.key, stamp, request.value, client, request.request_number)
        self._ports.trace.emit(VersionShown(request.key, stamp))

    def _answer(self, request: ReadAt) -> ReadResponse:
        found = self._versions.get(request.key, request.read_time)
        if found is None:
            return ReadResponse(request.request_number)
        return ReadResponse(request.request_number, found.value, found.version)

    def _once(self, shown_us: Callable[[], int], passed_us: int, then: Callable[[], None], last_us: int = 0) -> None:
        """Call `then` once `shown_us()` is beyond `passed_us`; ask the clock again as long as it is not."""
        now_us = shown_us()
        if now_us < last_us:
            self._ports.trace.sometimes("clock-went-back")
        if now_us > passed_us:
            then()
        else:
            self._ports.timers.after(
                passed_us - now_us + 1, lambda: self._once(shown_us, passed_us, then, last_us=now_us)
            )


class WriteWait(NoWait):
    """The writer waits until the slowest clock has passed the stamp; only then the value is shown and acknowledged."""

    def write(self, client: str, request: WriteRequest, written: Written) -> None:
        stamp = self._stamp(request)

        def show() -> None:
            self._show(client, request, stamp)
            written(stamp)

        self._once(self._ports.clock.wall_us, stamp.wall_us + self._settings.max_offset_us, show)


class ReadRestart(NoWait):
    """No wait; a reader is told when a version is too close to its time to be placed before or after it."""

    def read(self, request: ReadAt, answered: Answered) -> None:
        stamps = self._versions.stamps(request.key)
        uncertain = uncertain_version(stamps, request.read_time, request.limit_us)
        if uncertain is None:
            answered(self._answer(request))
        else:
            answered(ReadResponse(request.request_number, uncertain=uncertain))


class CommitWait(NoWait):
    """Writers wait until their stamp is past for certain; readers until their time is, and nothing before it pends."""

    def __init__(self, ports: Ports, settings: TimestampSettings, stamps: Stamps, versions: StampedVersions) -> None:
        super().__init__(ports, settings, stamps, versions)
        self._clock = BoundedClock(ports.clock.wall_us, settings.error_bound_us)
        self._pending = PendingWrites()
        self._readers: list[Callable[[], bool]] = []

    def read_time(self, seen: HybridTimestamp) -> HybridTimestamp:
        return max(HybridTimestamp(self._clock.now().latest_us, _LAST_TICK), seen)

    def write(self, client: str, request: WriteRequest, written: Written) -> None:
        # The stamp must not lie before the true time: another node may have answered a read there already.
        self._stamps.update_to(HybridTimestamp(self._latest_us(), 0))
        stamp = self._stamp(request)
        self._pending.add(request.key, stamp)

        def show() -> None:
            self._show(client, request, stamp)
            self._pending.remove(request.key, stamp)
            written(stamp)
            self._readers = [answers for answers in self._readers if not answers()]

        self._once(self._earliest_us, stamp.wall_us, show)

    def read(self, request: ReadAt, answered: Answered) -> None:
        give_up_us = self._ports.clock.monotonic_us() + self._settings.request_timeout_us

        def answers() -> bool:
            """Answer unless a pending write could still come before the time that is read; True when done with it."""
            if self._pending.at_or_before(request.key, request.read_time):
                return self._ports.clock.monotonic_us() >= give_up_us
            self._ports.trace.emit(ReadAnswered(request.key, request.read_time))
            answered(self._answer(request))
            return True

        def in_the_past() -> None:
            if not answers():
                self._ports.trace.sometimes("read-waited")
                self._readers.append(answers)

        self._once(self._earliest_us, request.read_time.wall_us, in_the_past)

    def _earliest_us(self) -> int:
        return self._clock.now().earliest_us

    def _latest_us(self) -> int:
        return self._clock.now().latest_us


WAITS: dict[str, Any] = {"none": NoWait, "write": WriteWait, "restart": ReadRestart, "commit": CommitWait}
"""The classes by the option `wait`."""
