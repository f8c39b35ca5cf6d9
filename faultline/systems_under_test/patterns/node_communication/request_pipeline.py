"""Request pipeline: send further requests before the first is answered, up to a limit.

*Problem.* A sender that waits for each answer on its channel leaves the receiver idle most of the time.

*Idea.* Sending and receiving are independent. A limited number of requests (five) may be in flight to each peer; at the
limit, the sender waits until an answer frees a place. A channel keeps order, so an answer must be for the oldest
request in flight. Any other answer is a protocol error, and the connection is dropped.

Several requests in flight can lose their order: when the first fails and is sent again, the second has already arrived.
The receiver must refuse a request that is out of order, and the sender must go back to the refused request. Raft does
it with the index and generation of the previous entry (the replicated log), Kafka's idempotent producer with a sequence
number per sender (`SequenceGuard`; `pipelined_sender` joins it to a sender that goes back, and to promises for
callers). Unsolicited messages, such as watch events, are not answers and are not shown to the pipeline.

*Invariants.* RP-I1 the number of requests in flight never exceeds the limit. RP-I2 answers come in the order of the
requests. RP-I3 requests take effect in the order of sending, without gaps and duplicates. RP-I4 a dead peer blocks no
caller for longer than the timeout. RP-I5 under load there is a moment with more than one request in flight.

*Tolerates.* Lost requests and answers (the sender goes back), dead peers, late answers of an old connection: they free
no place.

*Does not tolerate.* Receivers that answer out of order. Requests in flight when the connection breaks have an unknown
outcome: the receiver may have executed them. They need an idempotent receiver that keeps at least as many answers.

*Workloads.* `register` with loss and cuts.

*Checkers.* Linearizability; invariants LOG-I1 and IDR-I1 (effects in order, at most once).

*Planted bugs.* In `consistent-core`: `no-in-flight-limit` (RP-M1), `places-not-released` (RP-M4) and, with
`wire=channel`, `lost-request-refused` (RP-M12). The others break the component's claims in
tests/planted_bugs/test_pipeline_bugs.py.

Deviation from the printed code: ids are compared by value, and a peer's queue is made in one step.

Sources: Patterns of Distributed Systems ch. 32 and the article of 20 August 2020; Ongaro's thesis §10.2.1 on
pipelining in Raft; KIP-98 on Kafka's producer sequences.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum

__all__ = ["Arrival", "OutOfOrderResponse", "PipelineFull", "RequestPipeline", "SequenceGuard"]


class PipelineFull(Exception):
    """As many requests as allowed are in flight to this peer."""


class OutOfOrderResponse(Exception):
    """The answer is not for the oldest request in flight: the connection must be dropped, and the pipeline reset."""


class _Flight:
    """The requests in flight to one peer, oldest first, and since when none was answered."""

    __slots__ = ("ids", "moved_us")

    def __init__(self) -> None:
        self.ids: deque[int] = deque()
        self.moved_us = 0


class RequestPipeline:
    """The requests in flight to each peer, by correlation id, in the order they were sent."""

    __slots__ = ("_deepest", "_flights", "_in_flight_max", "_on_deeper")

    def __init__(self, in_flight_max: int = 5, on_deeper: Callable[[str, int], None] | None = None) -> None:
        """Call `on_deeper(peer, in_flight)` whenever more are in flight to one peer than ever before."""
        if in_flight_max < 1:
            raise ValueError(f"at least one request must be allowed in flight, not {in_flight_max}")
        self._in_flight_max = in_flight_max
        self._on_deeper = on_deeper
        self._deepest = 0
        self._flights: dict[str, _Flight] = {}

    def has_room(self, peer: str) -> bool:
        """Return whether another request may be sent to `peer` now."""
        flight = self._flights.get(peer)
        return flight is None or not self._is_full(flight.ids)

    def in_flight(self, peer: str) -> int:
        """Return the number of requests to `peer` that are not answered."""
        flight = self._flights.get(peer)
        return 0 if flight is None else len(flight.ids)

    def sent(self, peer: str, correlation_id: int, now_us: int = 0) -> None:
        """Record a request, before it is sent. Raises `PipelineFull`, ValueError when the id is in flight already."""
        flight = self._flights.get(peer)
        if flight is None:
            flight = self._flights[peer] = _Flight()
        ids = flight.ids
        if self._is_full(ids):
            raise PipelineFull(f"{self._in_flight_max} requests to {peer} are in flight")
        if correlation_id in ids:
            raise ValueError(f"request {correlation_id} to {peer} is in flight already")
        if not ids:
            flight.moved_us = now_us
        ids.append(correlation_id)
        if len(ids) > self._deepest:
            self._note_depth(peer, len(ids))

    def received(self, peer: str, correlation_id: int, now_us: int = 0) -> bool:
        """Record an answer; return True when it frees a place, False when its request is not in flight (late, unknown).

        Raises `OutOfOrderResponse`, and changes nothing, when an older request is still in flight.
        """
        flight = self._flights.get(peer)
        if flight is None or correlation_id not in flight.ids:
            return False
        # A channel keeps order, so a younger answer means that an older request or its answer is lost for good.
        if flight.ids[0] != correlation_id:
            raise OutOfOrderResponse(f"{peer} answered request {correlation_id} before request {flight.ids[0]}")
        flight.ids.popleft()
        flight.moved_us = now_us
        return True

    def go_back(self, peer: str, correlation_id: int) -> list[int]:
        """Take `correlation_id`, which the receiver refused, and all later ones out.

        They are to be sent again in this order.
        """
        flight = self._flights.get(peer)
        if flight is None or correlation_id not in flight.ids:
            return []
        ids = flight.ids
        refused: deque[int] = deque()
        while not refused or refused[0] != correlation_id:
            refused.appendleft(ids.pop())
        return list(refused)

    def is_stuck(self, peer: str, now_us: int, timeout_us: int) -> bool:
        """Return whether requests are in flight to `peer` and none was answered for longer than `timeout_us`."""
        flight = self._flights.get(peer)
        return flight is not None and bool(flight.ids) and now_us - flight.moved_us > timeout_us

    def reset(self, peer: str) -> list[int]:
        """Free all places after the connection is gone, and return the requests in flight, whose outcome is unknown."""
        flight = self._flights.pop(peer, None)
        return [] if flight is None else list(flight.ids)

    def _is_full(self, ids: deque[int]) -> bool:
        return len(ids) >= self._in_flight_max

    def _note_depth(self, peer: str, in_flight: int) -> None:
        self._deepest = in_flight
        if self._on_deeper is not None:
            self._on_deeper(peer, in_flight)


class Arrival(Enum):
    """The judgement of a receiver about a numbered request."""

    NEXT = "next"
    """The expected request: execute it."""
    DUPLICATE = "duplicate"
    """A request that was executed before: answer it without executing it again."""
    GAP = "gap"
    """Requests before it are missing: refuse it, the sender must go back."""


class SequenceGuard:
    """The receiver's side of order across retries: each sender numbers its requests without gaps."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def arrived(self, sender: str, sequence: int) -> Arrival:
        """Judge request `sequence` of `sender`, counting from 1; only the next one moves the expectation."""
        expected = self._next.get(sender, 1)
        if sequence == expected:
            self._next[sender] = expected + 1
            return Arrival.NEXT
        return Arrival.DUPLICATE if sequence < expected else Arrival.GAP

    def expected(self, sender: str) -> int:
        """Return the number that `sender` must send next."""
        return self._next.get(sender, 1)

    def forget(self, sender: str) -> None:
        """Forget the numbers of `sender`, which begins again with 1."""
        self._next.pop(sender, None)
