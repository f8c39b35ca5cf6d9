"""Flush policy: when the log is flushed, and when whoever wrote may be told that it is safe.

*Problem.* A flush after every append is safe and slow. Flushing less often is fast, and what a client was told before
the flush is a promise that a crash of the machine can break.

*Idea.* Three policies, chosen with open eyes (WAL-R9):

- `FlushEachAppend`: flush, then tell. Nothing acknowledged is lost.
- `FlushInGroups`: several appends wait for one flush, and are told together after it. Nothing acknowledged is lost,
  at the price of one flush per group and a little waiting.
- `FlushInIntervals`: tell at once, flush from a timer. A crash of the machine may lose what was acknowledged since the
  last flush: a suffix of the log, never something from its middle. A crash of the process alone loses nothing, as the
  operating system still has what was written. `NeverFlush` leaves even the timer to the operating system.

*Invariants.* WAL-I1 for the first two: what was told is recovered. WAL-I5 for all: what is recovered is a prefix of
what was appended.

In `consistent-core` the option `flush_policy` chooses between them for the log: `each-append`, or `interval` and
`never`, whose losses are expected. Groups are what the option `batch_linger_ms` makes, and beneath it the outbox of the
ports: appends that come while an fsync is under way share the next one.

*Tolerates.* Crashes of process and machine, as said. A flush that fails: nobody is told, and as nobody knows what of
the log is on disk, no append and no flush is accepted any more until the log is recovered (WAL-R16). Trying again would
be worse than useless: after a failed fsync the kernel may drop what it could not write and report success next time
(Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).

*Does not tolerate.* For the policies that tell at once: a crash of the machine.

*Workloads.* Those of the write-ahead log.

*Checkers.* Properties over every crash, in the tests; linearizability for the replicated log.

*Planted bugs.* `ack-before-fsync` in `consistent-core` is `FlushInIntervals` where nobody chose it; telling a group
when it is queued (WAL-M3) is planted in the tests.

Sources: Patterns of Distributed Systems ch. 3, "Implementation considerations"; group commit in DeWitt et al. (1984).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from faultline.harness.world.ports import Ports, Timers
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog

__all__ = ["FlushEachAppend", "FlushInGroups", "FlushInIntervals", "FlushPolicy", "LogFlushedLater", "NeverFlush"]

Tell = Callable[[], None]

GROUP_MAX = 32
LINGER_US = 1_000
INTERVAL_US = 200_000


class FlushPolicy(Protocol):
    """Decides when to flush one log."""

    def appended(self, tell: Tell) -> None:
        """An entry was appended; call `tell` when its writer may be told. Raises `LogUnusable` when a flush failed."""


class FlushEachAppend:
    """Flush, then tell."""

    def __init__(self, log: WriteAheadLog) -> None:
        self._log = log

    def appended(self, tell: Tell) -> None:
        """Flush at once."""
        self._log.flush()
        tell()


class FlushInGroups:
    """One flush for several appends: when so many wait, or the first of them has waited for so long."""

    def __init__(
        self, log: WriteAheadLog, timers: Timers, *, group_max: int = GROUP_MAX, linger_us: int = LINGER_US
    ) -> None:
        self._log = log
        self._timers = timers
        self._group_max = group_max
        self._linger_us = linger_us
        self._waiting: list[Tell] = []

    def appended(self, tell: Tell) -> None:
        """Join the group; the one who completes it flushes for all."""
        self._waiting.append(tell)
        if len(self._waiting) >= self._group_max:
            self.flush_group()
        elif len(self._waiting) == 1:
            self._timers.after(self._linger_us, self.flush_group)

    def flush_group(self) -> None:
        """Flush, and only then tell everyone who waits; nobody when the flush fails. Raises `LogUnusable`."""
        group, self._waiting = self._waiting, []
        self._log.flush()
        for tell in group:
            tell()


class FlushInIntervals:
    """Tell at once, flush some time later: a crash of the machine may lose a suffix of what was told."""

    def __init__(self, log: WriteAheadLog, timers: Timers, *, interval_us: int = INTERVAL_US) -> None:
        self._log = log
        self._timers = timers
        self._interval_us = interval_us
        self._due = False

    def appended(self, tell: Tell) -> None:
        """Tell, and make sure that a flush will come."""
        if not self._due:
            self._due = True
            self._timers.after(self._interval_us, self._flush)
        tell()

    def _flush(self) -> None:
        self._due = False
        self._log.flush()


class LogFlushedLater(WriteAheadLog):
    """A log whose `flush` comes from a timer, up to `interval_us` later; never at all when that is 0.

    For those who flush before they acknowledge, and shall be shown what that is good for.
    """

    def __init__(self, ports: Ports, interval_us: int, *, segment_size_bytes_max: int) -> None:
        super().__init__(ports.storage, segment_size_bytes_max=segment_size_bytes_max)
        self._timers = ports.timers
        self._interval_us = interval_us
        self._due = False

    def flush(self) -> None:
        """See to it that a flush comes."""
        if self._interval_us and not self._due:
            self._due = True
            self._timers.after(self._interval_us, self._flush_now)

    def _flush_now(self) -> None:
        self._due = False
        super().flush()


class NeverFlush:
    """Tell at once and leave it to the operating system when to write."""

    def __init__(self, log: WriteAheadLog) -> None:
        """`log` is never flushed."""

    def appended(self, tell: Tell) -> None:
        """Tell."""
        tell()
