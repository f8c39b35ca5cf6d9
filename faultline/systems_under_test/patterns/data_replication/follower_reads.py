"""Follower Reads: serve reads from followers, and say how old an answer may be.

*Problem.* All requests go to the leader, which is busy, and far from some clients. Followers hold the same data, but
they are always a little behind. A follower that is cut off does not even know how far it is behind.

*Idea.* A follower answers from the entries that it has applied, up to *its* high-water mark. They are a prefix of the
log. The promise of an answer depends on the mode:

| mode | the follower answers | promise |
|---|---|---|
| `plain` | at once | committed data, a prefix of the log |
| `bounded` | if it was up to date within the bound | no older than the bound |
| `stamped` | when it has applied the reader's last write | read your writes |
| `session` | when it has applied all the reader has written *or seen* | and reads never go back |
| `at-stamp` | the same, with the value as of the stamp | a snapshot (versioned values) |
| `no-wait` | as in `session`, or says at once that it is behind | the same |
| `closed` | at once, if a time is closed for it that reaches all the session has written or seen | as in `session` |
| `read-index` | when it has applied what the leader had committed when the read came | linearizable |

A write returns a *version stamp*: the index of its entry, which is the same on every server for ever. A read carries
the stamp, and waits in `WaitingReads` until the follower has applied it *or more*. The wait is bounded
(`followerWaitTimeout`).

    alice ── title := Microservices ─► athens (leader)         stamp 2
    alice ── title, stamp 2 ─► byzantium, still at 1, waits ... entry 2 is applied ─► Microservices

A follower cannot tell from the messages of its leader how fresh its own state is, because a message may have been under
way for a long time. So the follower asks. Once the leader is sure that it still leads, it answers with the committed
index. A follower that has applied that index was up to date when it *asked*, by its own clock (`LeaderContact`). It
must prove this also after a start and after a silence, so that no server ever shows less than it has shown before.

The client chooses the follower by region and latency: `replica_selection`. In mode `closed` versions are times, and a
follower answers at a closed time without waiting or asking: `closed_timestamp`.

The median latency of reads without faults in the simulated world is 3.1 ms at the leader, which asks a majority. It is
0.6 ms at a follower, also with a bound or a stamp, and 5.9 ms at a follower with a read index.

*Invariants.* FR-I1 a session reads its writes. FR-I2 it never reads an older state than before. FR-I3 no read shows an
uncommitted value. FR-I4 reads of one server follow one order, restarts included. FR-I5 leader and read-index reads are
linearizable. FR-I6 a bounded answer is no older than the bound. FR-R9 a follower that has not heard its leader for long
does not answer. FR-R14 a waiting read is answered as soon as its stamp is applied.

*Tolerates.* Followers that are cut off, paused or slow. Changes of leader while reads wait. Any wall clock.

*Does not tolerate.* Slow monotonic clocks: the bound and the silence stretch as much as the clock is slow.

*Workloads.* `follower-reads`, `read-your-writes`, `bounded-staleness`; `read-write` for `read-index`.

*Checkers.* `follower-reads`, linearizability, the invariants.

*Planted bugs.* `stamp-ignored`, `stamp-passed-not-reached`, `answer-to-another-key`, `one-reader-per-stamp`,
`reads-above-the-mark`, `serves-though-cut-off`, `read-index-without-asking`, `version-per-batch`.

Deviations from the printed code. It keeps one read per version, wakes the read only at exactly that version, gives it
the value of the key that this version wrote, and checks versions at followers but not at candidates.

Sources: Patterns of Distributed Systems ch. 16; Terry et al., "Session Guarantees" (PDIS 1994); MongoDB's
`operationTime` and `maxStaleness`, Neo4j's bookmarks; Ongaro's thesis 6.4; Kafka's KIP-392.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar
from zlib import crc32

import msgspec

from faultline.harness.world.ports import Clock, Timer, Timers

__all__ = ["FollowerReadServed", "FollowerReadTimedOut", "LeaderContact", "WaitingReads", "checksum_of"]

R = TypeVar("R")

_QUESTIONS_MAX = 32


class FollowerReadServed(msgspec.Struct, frozen=True, kw_only=True):
    """Trace: this server, which does not lead, answered a read of `key` with a value of that `checksum`.

    The answer is the state at `version`, out of a log applied up to `log_index`. The leader had been silent for
    `silence_us` of at most `silence_us_max`; `bound_us` is the age that the answer may have, 0 without a promise.
    `closed` is the newest closed time where answers are given at such times, which needs no sign of a leader; else 0.
    """

    key: str
    version: int
    checksum: int
    log_index: int
    silence_us: int
    silence_us_max: int
    bound_us: int
    closed: int = 0


class FollowerReadTimedOut(msgspec.Struct, frozen=True):
    """Trace: a read that waited for `stamp` was given up, with `version` applied."""

    stamp: int
    version: int


class _Waiting(Generic[R]):
    __slots__ = ("read", "stamp", "timer")

    def __init__(self, stamp: int, read: R) -> None:
        self.stamp = stamp
        self.read: R | None = read
        self.timer: Timer | None = None


class WaitingReads(Generic[R]):
    """Reads that wait for a version to be applied; `serve` answers a read, `give_up` gets a stamp and the read to
    refuse.

    Any number may wait for one version. All whose stamp is reached are served when the version moves, no matter how far
    it jumps; each reads its own key then. A read that has waited for `timeout_us` is given up and forgotten.
    """

    def __init__(
        self, timers: Timers, timeout_us: int, serve: Callable[[R], None], give_up: Callable[[int, R], None]
    ) -> None:
        self.version = 0
        self._timers = timers
        self._timeout_us = timeout_us
        self._serve = serve
        self._give_up = give_up
        self._heap: list[tuple[int, int, _Waiting[R]]] = []
        self._arrivals = 0
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def read(self, stamp: int, read: R) -> bool:
        """Serve `read` now if `stamp` is reached, else once it is; return True when it was served."""
        if self._is_reached(stamp):
            self._serve(read)
            return True
        waiting = _Waiting(stamp, read)
        waiting.timer = self._timers.after(self._timeout_us, lambda: self._expire(waiting))
        self._waiting += 1
        self._keep(waiting)
        return False

    def applied(self, version: int) -> None:
        """Serve all reads that waited for `version`, the newest that is applied, or for an earlier one."""
        self.version = version
        heap = self._heap
        while heap and self._is_reached(heap[0][0]):
            _, _, waiting = heappop(heap)
            read = self._take(waiting)
            if read is not None:
                self._serve(read)

    def _keep(self, waiting: _Waiting[R]) -> None:
        self._arrivals += 1
        heappush(self._heap, (waiting.stamp, self._arrivals, waiting))

    def _expire(self, waiting: _Waiting[R]) -> None:
        read = self._take(waiting)
        if read is not None:
            self._heap = [entry for entry in self._heap if entry[2] is not waiting]
            self._heap.sort()
            self._give_up(waiting.stamp, read)

    def _take(self, waiting: _Waiting[R]) -> R | None:
        read, waiting.read = waiting.read, None
        if read is not None:
            self._waiting -= 1
            if waiting.timer is not None:
                waiting.timer.cancel()
        return read

    # A method of its own, so that a planted bug can override it.

    def _is_reached(self, stamp: int) -> bool:
        return self.version >= stamp


class LeaderContact:
    """A follower's knowledge of its freshness: the time of its leader's last message, and when it was last up to date.

    `asking` and `answered` frame one question to the leader; the answer names an index that covers all entries
    committed when the question was sent. Once that index is applied, the state is complete *as of* the sending. Ids
    start at `first_id`, which should differ from start to start: an answer to a former life proves nothing.
    """

    def __init__(self, clock: Clock, silence_us_max: int, first_id: int) -> None:
        self.silence_us_max = silence_us_max
        self._clock = clock
        self._next_id = first_id
        self._heard_us = self._lost_us = clock.monotonic_us()
        self._up_to_date_us: int | None = None
        self._asked: dict[int, int] = {}
        self._ahead: list[tuple[int, int]] = []

    def heard(self) -> None:
        """Note a message of the leader; after a silence, catching up has to be proved anew."""
        now_us = self._clock.monotonic_us()
        if now_us - self._heard_us > self.silence_us_max:
            self._lost_us = now_us
        self._heard_us = now_us

    def silence_us(self) -> int:
        """Return for how long the leader was not heard."""
        return self._clock.monotonic_us() - self._heard_us

    def asking(self) -> int:
        """Return the id of a question that is about to be sent; only the last few unanswered ones are remembered."""
        self._next_id += 1
        self._asked[self._next_id] = self._clock.monotonic_us()
        self._asked.pop(self._next_id - _QUESTIONS_MAX, None)
        return self._next_id

    def answered(self, question_id: int, index: int, applied_index: int) -> None:
        """Note the answer that all committed entries are within `index`; it is also a sign of life of the leader."""
        asked_us = self._asked.pop(question_id, None)
        if asked_us is not None:
            self.heard()
            # The time of the question, not of the answer: the state at the answer may miss entries committed in
            # between.
            heappush(self._ahead, (index, asked_us))
            self.applied(applied_index)

    def applied(self, index: int) -> None:
        """Note that the log is applied up to `index`."""
        while self._ahead and self._ahead[0][0] <= index:
            _, asked_us = heappop(self._ahead)
            if self._up_to_date_us is None or asked_us > self._up_to_date_us:
                self._up_to_date_us = asked_us

    def age_us(self) -> int | None:
        """Return the greatest possible age of the state; None when it is unknown."""
        return None if self._up_to_date_us is None else self._clock.monotonic_us() - self._up_to_date_us

    def is_caught_up(self) -> bool:
        """Return whether the state was complete at some time since the start, and since the last silence."""
        return self._up_to_date_us is not None and self._up_to_date_us >= self._lost_us

    # A method of its own, so that a planted bug can override it.

    def may_serve(self, age_us_max: int = 0) -> bool:
        """Return whether to answer reads: the leader was heard lately, the state has caught up, its age is within
        the bound.
        """
        if self.silence_us() > self.silence_us_max or not self.is_caught_up():
            return False
        age_us = self.age_us()
        return not age_us_max or (age_us is not None and age_us <= age_us_max)


def checksum_of(value: Any) -> int:
    """Return a checksum of `value` for traces."""
    return crc32(msgspec.msgpack.encode(value))
