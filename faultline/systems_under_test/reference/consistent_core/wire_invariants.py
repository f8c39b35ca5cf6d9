"""The invariants of the wire, which need both ends of it in view."""

from __future__ import annotations

from faultline.harness.invariant import Report, ReportingInvariant
from faultline.systems_under_test.reference.consistent_core.wire_events import BatchExecuted, CallAnswered
from faultline.systems_under_test.reference.shared.trace_events import NodeStarted

__all__ = ["WIRE_INVARIANTS", "AnswersReachTheirCallers", "RequestsAreExecutedInOrder"]

_NEEDS = {"wire": ("channel",)}


class AnswersReachTheirCallers(ReportingInvariant):
    """SC-I3: the answer that a caller is given was made for the call that it made."""

    id = "SC-I3"
    statement = "Each answer reaches the caller of its own request."
    events = (CallAnswered,)
    needs = _NEEDS

    def observe(self, time_us: int, node: str, event: CallAnswered, report: Report) -> None:
        """Compare the two ends."""
        if event.asked != event.answered:
            sentence = f"{node} was given {event.peer}'s answer to request {event.answered} for request {event.asked}."
            self._breach(report, time_us, node, sentence)


class RequestsAreExecutedInOrder(ReportingInvariant):
    """RP-I3, while the receiver lives: a restart forgets what it executed, and the sender begins anew."""

    id = "RP-I3"
    statement = "A receiver executes the requests of each pipeline in the order of sending, without gap or repetition."
    events = (BatchExecuted, NodeStarted)
    needs = _NEEDS

    def __init__(self) -> None:
        self._last: dict[tuple[str, str, int], int] = {}

    def observe(self, time_us: int, node: str, event: BatchExecuted | NodeStarted, report: Report) -> None:
        """Compare with the last request of the same pipeline."""
        if isinstance(event, NodeStarted):
            self._last = {key: sequence for key, sequence in self._last.items() if key[0] != node}
            return
        key = (node, event.sender, event.epoch)
        last = self._last.get(key, 0)
        self._last[key] = event.sequence
        if event.sequence != last + 1:
            sentence = f"{node} executed request {event.sequence} of {event.sender} after request {last}."
            self._breach(report, time_us, node, sentence)


WIRE_INVARIANTS = (AnswersReachTheirCallers, RequestsAreExecutedInOrder)
"""The invariants of a wire of channels."""
