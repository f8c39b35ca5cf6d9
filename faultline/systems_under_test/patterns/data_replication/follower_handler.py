"""A leader's view of one follower: the entries that it stores, the requests in flight, and the time of its last answer.

*Problem.* A leader must send each follower exactly the entries it lacks, over a network that loses messages. It may
rely only on the follower's answers.

*Idea.* Two indexes per follower (Raft's matchIndex and nextIndex): the last entry that it is known to store, and the
next entry that it needs, which is a guess at first and is corrected by refusals. A third index is the last entry that
the requests in flight carry. To go back, the leader forgets the requests in flight and sends again from the next entry
that is needed.

*Invariants.* match < next <= sent + 1. Within a leadership `match_index`, `acknowledged_id` and `contact_us` never
decrease.

*Tolerates.* Answers in any order, repeated or lost.

*Does not tolerate.* Answers of another leadership: compare the generation first.

*Workloads.* `register` with lossy links. *Checkers.* Linearizability. *Planted bugs.* Those of the replicated log.

Sources: Patterns of Distributed Systems ch. 9, class FollowerHandler; Ongaro and Ousterhout (2014), figure 2.
"""

from __future__ import annotations

from faultline.harness.world.ports import NodeId

__all__ = ["NO_CONTACT", "FollowerHandler"]

NO_CONTACT = -1
"""The follower has not answered in this leadership."""


class FollowerHandler:
    """One follower, for one leadership.

    `go_back_id` is the number of the first request since the leader last went back: refusals of earlier ones are
    ignored. `contact_us` is the time at which the newest answered request was *sent*.
    """

    __slots__ = ("acknowledged_id", "contact_us", "go_back_id", "id", "match_index", "next_index", "sent_index")

    def __init__(self, follower: NodeId, last_index: int, next_id: int) -> None:
        self.id = follower
        self.match_index = 0
        self.next_index = last_index + 1
        self.sent_index = last_index
        self.acknowledged_id = next_id - 1
        self.go_back_id = next_id
        self.contact_us = NO_CONTACT

    def note_contact(self, correlation_id: int, sent_us: int) -> None:
        """Record an answer: the follower still followed when it took the request."""
        if correlation_id > self.acknowledged_id:
            self.acknowledged_id = correlation_id
        if sent_us > self.contact_us:
            self.contact_us = sent_us

    def note_match(self, index: int) -> None:
        """Record that the follower stores all entries up to `index`, which is more than was known."""
        self.match_index = index
        if index >= self.next_index:
            self.next_index = index + 1
        if index > self.sent_index:
            self.sent_index = index

    def note_mismatch(self, try_after_index: int) -> None:
        """Record a refusal: the follower may match at `try_after_index`, and in any case further back than was
        tried.
        """
        self.next_index = max(self.match_index, min(try_after_index, self.next_index - 1)) + 1

    def go_back(self, next_id: int) -> None:
        """Forget the requests in flight; those numbered from `next_id` on start at the next entry that is needed."""
        self.sent_index = self.next_index - 1
        self.go_back_id = next_id
