"""The planted bugs of the wire (`wire=channel`): answers that reach the wrong caller, and losses told as refusals.

Each overrides one step of the pattern's own code, under the wire that clients and servers talk over. They
break consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from faultline.systems_under_test.patterns.node_communication.deferred_answers import DeferredBatchReceiver
from faultline.systems_under_test.patterns.node_communication.request_batch import (
    BatchingClient,
    NumberedResponse,
    RequestBatch,
)
from faultline.systems_under_test.reference.consistent_core.calls import Call, refused_as_too_large
from faultline.systems_under_test.reference.consistent_core.parts import CoreParts
from faultline.systems_under_test.reference.consistent_core.wire_line import WireLine
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs(
    "consistent-core",
    CoreParts,
    pattern="request-batch",
    campaign="channels",
    options={"wire": "channel", "find_leader": "forward"},
    caught_by=("linearizability", "SC-I3"),
)


@BUGS.plant("batch-answered-by-position", "RB-M12", part="wire.batch_receiver")
class _AnsweredByPosition(DeferredBatchReceiver):
    """The answers of a batch are put in the order in which they were done, and numbered by their position.

    Shows as: of two requests in one batch each gets the other's answer, such as a read the one of another key.
    """

    def _in_order(self, batch: RequestBatch, done: list[NumberedResponse]) -> list[NumberedResponse]:
        pairs = zip(batch.requests, done, strict=True)
        return [replace(response, number=request.number) for request, response in pairs]


@BUGS.plant("numbered-within-the-batch", "RB-M5", part="wire.batches")
class _NumberedWithinTheBatch(BatchingClient):
    """Requests are numbered by their place in the queue, so those of several batches in flight share a number.

    Shows as: the answer to a request of one batch completes one of a later batch, whose own is lost.
    """

    def _next_request_number(self) -> int:
        return len(self._queue) + 1


@BUGS.plant(
    "lost-request-refused",
    "RP-M12",
    part="wire.line",
    pattern="request-pipeline",
    # A client that asks another server before the wire gives up has its answer from there.
    options={"wire": "channel", "request_timeout_ms": "600"},
    caught_by=("linearizability",),
)
class _LostRequestRefused(WireLine):
    """A request that was in flight when its connection was given up is reported as refused.

    Shows as: a write that failed for certain is read.
    """

    def _answer_to_lost(self, call: Call) -> Any:
        return refused_as_too_large(call)
