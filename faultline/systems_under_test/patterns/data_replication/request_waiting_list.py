"""Request waiting list: a table of waiting requests, so that the answers of peers reach the right client.

*Problem.* A node asks several others on behalf of a client, without blocking. The answers come later, in any order, or
never. The node must know when it has enough of them, and answer the client once.

*Idea.* Before a message is sent, a callback is registered under a key. The key is the correlation id of one peer
message: one callback under several keys then counts a quorum. Or it is an index of the replicated log: the callback
runs when the high-water mark reaches the index. The end of a wait removes the entry together with its callback, so each
entry has exactly one of three outcomes: a response, an error, or expiry in the sweep, which a timer of the node starts.
An answer without an entry is late and is ignored.

After an expired or failed wait the outcome is *unknown* and never *fail*: the peers may have executed the request
(RWL-R15).

*Invariants.* RWL-I1 every request is answered at most once, and within the timeout and one sweep if its node stays up.
RWL-I2 a success means that a quorum of distinct replicas has stored the value. RWL-I3 each key has exactly one outcome.
RWL-I4 in a cluster at rest no wait is left.

*Tolerates.* Silent peers, late, repeated and unknown answers, answers at the instant of the sweep, answers to an
earlier incarnation of the node if correlation ids contain the incarnation.

*Does not tolerate.* A crash, because the list is only in memory: clients notice it by their own timeouts. A clock that
steps: the list needs the monotonic one.

*Workloads.* `register` with partitions and leader changes; `read-write` without a leader.

*Checkers.* Linearizability with indefinite outcomes; availability after heal (a leaked wait never answers).

*Planted bugs.* In `quorum-register`: `ack-before-quorum` (RWL-M1, reply after one answer), `count-duplicate-answers`
(RWL-M2), `waits-for-ever` (RWL-M3), `timeout-as-failure` (RWL-M5), `answers-twice` (RWL-M6) and
`restarted-correlation-ids` (RWL-M7). Mixed units and registration after the send (RWL-M4, M8) break the list alone, in
tests/planted_bugs/test_request_bugs.py, which says why no system shows them.

Deviations from the printed code: an error is reported as soon as success is impossible (the sample waits for a quorum
of errors and never answers two of each out of four); an error for an unknown key is ignored (the sample fails); both
sides of the age comparison are microseconds (the sample compares nanoseconds with milliseconds).

Sources: Patterns of Distributed Systems ch. 14 and the article of 7 September 2022; Cassandra's callback map, Kafka's
purgatory, etcd's wait package.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import Enum
from typing import Generic, Protocol, TypeVar

from faultline.harness.world.ports import Clock
from faultline.systems_under_test.patterns.data_replication.quorum import majority

__all__ = [
    "EXPIRATION_US",
    "CorrelationIds",
    "RequestCallback",
    "RequestExpired",
    "RequestWaitingList",
    "WriteQuorumCallback",
    "WriteResult",
]

EXPIRATION_US = 2_000_000
"""The longest wait of an entry by default; the sweep runs at the same interval."""

Key = TypeVar("Key", bound=Hashable)
Response = TypeVar("Response")
ResponseIn = TypeVar("ResponseIn", contravariant=True)


class RequestExpired(Exception):
    """No answer came in time; whether the work was done is unknown."""


class RequestCallback(Protocol[ResponseIn]):
    """The callback of a request that waits for an answer."""

    def on_response(self, response: ResponseIn) -> None:
        """Take the answer."""

    def on_error(self, error: Exception) -> None:
        """Learn that no answer will come: the wait expired, or was refused or given up."""


class RequestWaitingList(Generic[Key, Response]):
    """Callbacks by key, each called exactly once and forgotten."""

    __slots__ = ("_clock", "_expiration_us", "_pending")

    def __init__(self, clock: Clock, expiration_us: int = EXPIRATION_US) -> None:
        self._clock = clock
        self._expiration_us = expiration_us
        self._pending: dict[Key, tuple[RequestCallback[Response], int]] = {}

    def __len__(self) -> int:
        """Return the number of keys that wait."""
        return len(self._pending)

    def __contains__(self, key: Key) -> bool:
        return key in self._pending

    def oldest_us(self, now_us: int) -> int:
        """Return how long the oldest entry has waited at `now_us` of the monotonic clock; 0 without entries."""
        return now_us - min((added_us for _, added_us in self._pending.values()), default=now_us)

    def add(self, key: Key, callback: RequestCallback[Response]) -> None:
        """Let `callback` wait for `key`; to be called before the request is sent.

        Raises ValueError when a callback waits for `key` already: it would be lost without notice.
        """
        if key in self._pending:
            raise ValueError(f"something waits for {key!r} already")
        self._pending[key] = (callback, self._clock.monotonic_us())

    def handle_response(self, key: Key, response: Response) -> None:
        """Give `response` to the callback that waits for `key`; ignored when none does."""
        waiting = self._pending.pop(key, None)
        if waiting is not None:
            waiting[0].on_response(response)

    def handle_error(self, key: Key, error: Exception) -> None:
        """Tell the callback that waits for `key` that no answer will come; ignored when none does."""
        waiting = self._pending.pop(key, None)
        if waiting is not None:
            waiting[0].on_error(error)

    def complete_up_to(
        self: RequestWaitingList[int, Response], index: int, responses: Callable[[int], Response]
    ) -> None:
        """Give `responses(key)` to all keys up to `index`, which the high-water mark has reached, in index order."""
        if not self._pending:
            return
        for key in sorted(key for key in self._pending if key <= index):
            if key in self._pending:
                self.handle_response(key, responses(key))

    def expire(self) -> int:
        """Give up on all entries that have waited longer than the expiration time; run by a timer of the node.

        Return the monotonic time by which they were judged: a real clock goes on while entries are given up.
        """
        now_us = self._clock.monotonic_us()
        oldest_us = now_us - self._expiration_us
        for key in [key for key, (_, added_us) in self._pending.items() if added_us < oldest_us]:
            self.handle_error(key, RequestExpired(f"no answer within {self._expiration_us} us"))
        return now_us

    def fail_from(self: RequestWaitingList[int, Response], index: int, error: Exception) -> None:
        """Give `error` to the callbacks of `index` and above, where the log was truncated, in index order."""
        for key in sorted(key for key in self._pending if key >= index):
            self.handle_error(key, error)

    def fail_all(self, error: Exception) -> None:
        """Give up on all entries (leadership lost, shutdown), in the order of registration."""
        for key in list(self._pending):
            self.handle_error(key, error)


class WriteResult(Enum):
    """The possible answers to a write to several replicas."""

    SUCCESS = "success"
    UNKNOWN = "unknown"


class WriteQuorumCallback:
    """A callback that counts the answers to one write to `replicas` nodes, itself included, and replies once.

    To be registered under one correlation id per replica, so that an answer delivered twice counts once.
    """

    __slots__ = ("_correlation_id", "_done", "_errors", "_quorum", "_replicas", "_respond", "_responses")

    def __init__(
        self, replicas: int, correlation_id: int, respond: Callable[[int, WriteResult], None], quorum: int | None = None
    ) -> None:
        """`respond` gets the client request's own `correlation_id`; `quorum` is a majority of `replicas` by default."""
        self._replicas = replicas
        self._quorum = majority(replicas) if quorum is None else quorum
        self._correlation_id = correlation_id
        self._respond = respond
        self._responses = 0
        self._errors = 0
        self._done = False

    def on_response(self, response: object) -> None:
        """Count a replica that stored the write; the quorum-th makes it a success."""
        self._responses += 1
        if self._responses >= self._quorum:
            self._reply(WriteResult.SUCCESS)

    def on_error(self, error: Exception) -> None:
        """Count a replica that will not answer; the client hears so once a quorum cannot be reached any more."""
        self._errors += 1
        if self._errors > self._replicas - self._quorum:
            # Unknown and not failed: replicas that gave an error, or none, may have stored the write.
            self._reply(WriteResult.UNKNOWN)

    def _reply(self, result: WriteResult) -> None:
        if not self._done:
            self._done = True
            self._respond(self._correlation_id, result)


class CorrelationIds:
    """Correlation ids that no other incarnation of the node has used or will use.

    The `incarnation` must be durable and grow at every start: a `GenerationClock` of its own name, moved on by
    `adopt(generation + 1)`, serves.
    """

    __slots__ = ("_next",)

    def __init__(self, incarnation: int) -> None:
        self._next = incarnation << 32

    def next(self) -> int:
        """Return an id that was never used before."""
        self._next += 1
        return self._next
