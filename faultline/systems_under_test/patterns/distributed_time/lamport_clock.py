"""Lamport clock: a counter that travels with requests and answers, so that a later event has the larger number.

*Problem.* Values on several servers need versions that can be compared. Wall clocks cannot give them: two clocks differ
by an unknown amount, and each can be set back.

*Idea.* Every server has a counter. A write carries the largest timestamp that its client has seen. The server takes the
maximum of that and its own, adds one, and stores the value under the result, which the client takes over. If one write
could have influenced another, through a server or a chain of clients and messages, then its timestamp is smaller.

    client (1)                 Blue (1)              Green (1)
       │── write name, 1 ────────▶│ max(1, 1) + 1 = 2
       │◀───────────────────── 2 ─│
       │── write title, 2 ──────────────────────────────▶│ max(2, 1) + 1 = 3
       │◀──────────────────────────────────────────── 3 ─│

*Invariants.* LMC-I1 an event that happened before another has the smaller timestamp. LMC-I2 the timestamps of a server
increase strictly, also across restarts. LMC-I3 an answer's timestamp is larger than its request's. LMC-I4 a client's
clock never goes back.

*Tolerates.* Wall clocks of any kind, late answers, restarts (a server goes on above every timestamp it has stored).

*Does not tolerate.* The reverse conclusion: a smaller timestamp does not mean an earlier event. Unrelated clients may
get equal timestamps on two servers, and the order of their timestamps says nothing. A reader must take over the
timestamp of the value it reads (LMC-R9); otherwise its next write could get a timestamp below its cause.

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
        """Return the timestamp of a new event that knows of `request_time`: larger than that and than all earlier ones
        here.
        """
        self.latest_time = max(self.latest_time, request_time) + 1
        return self.latest_time

    def update_to(self, time: int) -> None:
        """Take over a timestamp that was seen; it is not an event here, so nothing is added."""
        self.latest_time = max(self.latest_time, time)
