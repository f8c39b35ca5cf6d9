"""Lamport clock: a counter that travels with requests and answers, so that a later event has the larger number.

*Problem.* Values on several servers need versions that can be compared. Wall clocks cannot give them: two clocks differ
by an unknown amount, and each can be set back.

*Idea.* Every server has a counter. A write comes with the largest number its client has seen; the server takes the
maximum of that and its own, adds one, and stores the value under the result, which the client takes over. If one write
could have influenced another, through a server or through a chain of clients and messages, then its number is smaller.

    client (1)                 Blue (1)              Green (1)
       │── write name, 1 ────────▶│ max(1, 1) + 1 = 2
       │◀───────────────────── 2 ─│
       │── write title, 2 ──────────────────────────────▶│ max(2, 1) + 1 = 3
       │◀──────────────────────────────────────────── 3 ─│

*Invariants.* LMC-I1 an event that happened before has the smaller stamp. LMC-I2 the stamps of a server ascend, restarts
included. LMC-I3 an answer's stamp is larger than its request's. LMC-I4 a client's clock never goes back.

*Tolerates.* Clocks of any kind, late answers, restarts (a server goes on above every stamp it has stored).

*Does not tolerate.* Being read backwards: a smaller stamp does not mean earlier. Writes of clients that know nothing of
each other may get equal stamps on two servers, and their order says nothing. A value that is read carries its stamp on
(LMC-R9); otherwise the reader's next write could be stamped below its cause.

*Workloads.* `causal-pairs` on `timestamped-kv` with `clock=lamport`.

*Checkers.* `causal-pairs`; invariants LMC-I2, LMC-I3, LMC-I4.

*Planted bugs.* `ignore-request-stamp`, `stamp-without-increment`, `clock-not-restored`, `client-keeps-last-stamp`.

Sources: Patterns of Distributed Systems ch. 22; Lamport, "Time, Clocks, and the Ordering of Events in a Distributed
System" (CACM 1978). A generation clock is one of these, ticking at elections only.
"""

from __future__ import annotations

__all__ = ["FIRST_TIME", "LamportClock"]

FIRST_TIME = 1
"""The time of a clock before any event."""


class LamportClock:
    """The counter of one server or client."""

    __slots__ = ("latest_time",)

    def __init__(self, time: int = FIRST_TIME) -> None:
        self.latest_time = time

    def tick(self, request_time: int) -> int:
        """Return the stamp of a new event that knows of `request_time`: larger than it, and than all earlier stamps
        here.
        """
        self.latest_time = max(self.latest_time, request_time) + 1
        return self.latest_time

    def update_to(self, time: int) -> None:
        """Take over a stamp that was seen; it is not an event here, so nothing is added."""
        self.latest_time = max(self.latest_time, time)
