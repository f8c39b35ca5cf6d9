"""Flush policy: the times at which the log is flushed, and at which a writer is answered.

*Problem.* A flush after every append is safe and slow. Flushing less often is fast, but an answer before the flush is a
promise that a crash of the machine can break.

*Idea.* Three policies, each with a known price (WAL-R9):

- `FlushEachAppend`: flush, then answer. No acknowledged entry is lost.
- `FlushInGroups`: several appends wait for one flush, and are answered together after it. No acknowledged entry is
  lost, at the price of one flush per group and a little waiting.
- `FlushInIntervals`: answer at once, flush from a timer. A crash of the machine may lose the entries acknowledged since
  the last flush: a suffix of the log, never an entry from its middle. A crash of the process alone loses nothing, as
  the operating system still has the written bytes. `NeverFlush` leaves even the timer to the operating system.

*Invariants.* WAL-I1 for the first two: acknowledged entries are recovered. WAL-I5 for all: the recovered entries are a
prefix of the appended ones.

In `logged-store` the option `flush_policy` chooses between all of them. In `consistent-core` it does so for the log:
`each-append`, or `interval` and `never`, whose losses are expected. The option `batch_linger_ms` makes groups, and
beneath it the outbox of the ports does: appends that come while an fsync is under way share the next one.

*Tolerates.* Crashes of process and machine, as above. A flush that fails: no writer is answered. As it is unknown which
part of the log is on disk, no append and no flush is accepted until the log is recovered (WAL-R16). A second attempt
would be unsafe: after a failed fsync the kernel may drop the data that it could not write, and report success next time
(Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).

*Does not tolerate.* For the policies that answer at once: a crash of the machine.

*Workloads.* Those of the write-ahead log.

*Checkers.* Properties over every crash, in the tests; linearizability for the replicated log.

*Planted bugs.* `ack-before-fsync` in `consistent-core` is `FlushInIntervals` where it was not chosen; a group that is
answered when it is queued (WAL-M3) is planted in the tests.

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
    """The decision when to flush one log."""

    def appended(self, tell: Tell) -> None:
        """Call `tell` when the writer of the appended entry may be answered.

        Raises `LogUnusable` when a flush failed.
        """


class FlushEachAppend:
    """The policy that flushes each append before it is answered."""

    def __init__(self, log: WriteAheadLog) -> None:
        self._log = log

    def appended(self, tell: Tell) -> None:
        """Flush at once, then answer."""
        self._log.flush()
        tell()


class FlushInGroups:
    """The policy of one flush for several appends: when `group_max` wait, or the first has waited for `linger_us`."""

    def __init__(
        self, log: WriteAheadLog, timers: Timers, *, group_max: int = GROUP_MAX, linger_us: int = LINGER_US
    ) -> None:
        self._log = log
        self._timers = timers
        self._group_max = group_max
        self._linger_us = linger_us
        self._waiting: list[Tell] = []

    def appended(self, tell: Tell) -> None:
        """Join the group; the append that completes it flushes for all."""
        self._waiting.append(tell)
        if len(self._waiting) >= self._group_max:
            self.flush_group()
        elif len(self._waiting) == 1:
            self._timers.after(self._linger_us, self.flush_group)

    def flush_group(self) -> None:
        """Flush, and only then answer the whole group.

        Raises `LogUnusable`, and answers no writer, when the flush fails.
        """
        group, self._waiting = self._waiting, []
        self._log.flush()
        for tell in group:
            tell()


class FlushInIntervals:
    """The policy that answers at once and flushes later: a crash of the machine may lose a suffix of acknowledged
    entries.
    """

    def __init__(self, log: WriteAheadLog, timers: Timers, *, interval_us: int = INTERVAL_US) -> None:
        self._log = log
        self._timers = timers
        self._interval_us = interval_us
        self._due = False

    def appended(self, tell: Tell) -> None:
        """Answer, and make sure that a flush will come."""
        if not self._due:
            self._due = True
            self._timers.after(self._interval_us, self._flush)
        tell()

    def _flush(self) -> None:
        self._due = False
        self._log.flush()


class LogFlushedLater(WriteAheadLog):
    """A log whose `flush` comes from a timer, up to `interval_us` later; never at all when that is 0.

    It shows systems that flush before they acknowledge what that flush is good for.
    """

    def __init__(self, ports: Ports, interval_us: int, *, segment_size_bytes_max: int) -> None:
        super().__init__(ports.storage, segment_size_bytes_max=segment_size_bytes_max)
        self._timers = ports.timers
        self._interval_us = interval_us
        self._due = False

    def flush(self) -> None:
        """Make sure that a flush will come."""
        if self._interval_us and not self._due:
            self._due = True
            self._timers.after(self._interval_us, self._flush_now)

    def _flush_now(self) -> None:
        self._due = False
        super().flush()


class NeverFlush:
    """The policy that answers at once and leaves it to the operating system when to write."""

    def __init__(self, log: WriteAheadLog) -> None:
        """`log` is never flushed."""

    def appended(self, tell: Tell) -> None:
        """Answer at once."""
        tell()
