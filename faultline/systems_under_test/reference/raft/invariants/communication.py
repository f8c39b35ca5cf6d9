"""The invariants of node communication that show in the reports of `consistent-core`'s servers.

What a leader may have in flight and how large a batch may be are seen in its own reports. Other invariants of these
patterns (order and fate of single requests and connections) need both ends in view: they are checked as properties of
the components, and some by `consistent_core.wire_invariants`. How long a request lingers is one of them: a paused or
slow process may exceed any bound.
"""

from __future__ import annotations

from faultline.harness.invariant import Breach, Report
from faultline.systems_under_test.patterns.data_replication.replication_messages import PipelineDeepened
from faultline.systems_under_test.reference.raft.append_batches import BatchAppended

__all__ = ["BatchesRespectTheirSize", "InFlightRequestsAreLimited"]


class InFlightRequestsAreLimited:
    """RP-I1, at the sender: as many as it has recorded and not seen answered or given up."""

    id = "RP-I1"
    statement = "A leader never has more unanswered requests at a follower than the limit allows."
    needs_order = False
    events = (PipelineDeepened,)

    def observe(self, time_us: int, node: str, event: PipelineDeepened, report: Report) -> None:
        """Compare with the limit."""
        if event.in_flight > event.limit:
            sentence = f"{node} had {event.in_flight} requests in flight to {event.peer}; {event.limit} are allowed."
            report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))


class BatchesRespectTheirSize:
    """RB-I3, its first half: oversize commands never enter a queue, so there is no exception for them."""

    id = "RB-I3"
    statement = "No batch is empty or larger than the limit."
    needs_order = False
    events = (BatchAppended,)

    def observe(self, time_us: int, node: str, event: BatchAppended, report: Report) -> None:
        """Compare with the limit."""
        if event.commands < 1 or event.size_bytes > event.limit_bytes:
            sentence = (
                f"{node} appended a batch of {event.commands} commands and {event.size_bytes} bytes;"
                f" {event.limit_bytes} bytes are allowed."
            )
            report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))
