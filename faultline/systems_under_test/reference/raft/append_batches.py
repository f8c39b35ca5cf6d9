"""A leader's append batches: commands that arrive close together share one append, one flush and one message.

A request batch whose sender and receiver are the same server: clients' commands linger for a moment in a `BatchQueue`,
then all of them become log entries at once. A command that fits into no batch is refused with a definite error, since
every server would refuse it; when the queue is full, or the server stops leading, clients are sent away and ask again
under the same number. With a linger of 0 there is no queue, and each command is appended as it comes.

Sources: Patterns of Distributed Systems ch. 31, the group flush of BookKeeper; etcd proposes in batches the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import RequestCallback
from faultline.systems_under_test.patterns.node_communication.batch_queue import (
    BatchLimits,
    BatchQueue,
    BatchQueueFull,
    OversizeRequest,
)
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse

__all__ = ["REQUEST_TOO_LARGE", "AppendBatches", "BatchAppended", "Proposal"]

REQUEST_TOO_LARGE = "request-too-large"
"""The error code of a command that fits into no batch; it was not and will not be executed."""


class BatchAppended(msgspec.Struct, frozen=True):
    """Trace: a leader appended a batch of so many commands and bytes, of at most `limit_bytes`."""

    commands: int
    size_bytes: int
    limit_bytes: int


class Proposal(NamedTuple):
    """A command on its way into the log, and who waits for it."""

    reply: RequestCallback[ClientResponse]
    command: bytes


class AppendBatches:
    """The commands that linger at one leader. `append` makes a batch of them log entries, in order.

    `post_due` is called when a batch's time has come; it must see to it that `send_due` runs on the update queue.
    """

    def __init__(
        self,
        ports: Ports,
        limits: BatchLimits,
        append: Callable[[list[Proposal]], None],
        post_due: Callable[[], None],
        queue_type: type[BatchQueue[Proposal]],
    ) -> None:
        self._ports = ports
        self._append = append
        self._limit_bytes = limits.size_bytes_max
        self._queue = queue_type(ports.clock, ports.timers, limits, self._send, on_due=post_due)

    def propose(self, reply: RequestCallback[ClientResponse], command: bytes, request_number: int) -> None:
        """Queue `command`; `reply` hears at once when that is impossible."""
        try:
            self._queue.add(Proposal(reply, command), len(command))
        except OversizeRequest:
            reply.on_response(ClientResponse(request_number, REQUEST_TOO_LARGE))
        except BatchQueueFull as error:
            reply.on_error(error)

    def send_due(self) -> None:
        """Append what has lingered long enough."""
        self._queue.send_due()

    def give_up(self, error: Exception) -> None:
        """Tell each client that waits for a command that was not appended `error`: the server leads no longer."""
        for proposal in self._queue.drain():
            proposal.reply.on_error(error)

    def _send(self, batch: list[Proposal]) -> None:
        trace = self._ports.trace
        trace.emit(BatchAppended(len(batch), sum(len(each.command) for each in batch), self._limit_bytes))
        if len(batch) > 1:
            trace.sometimes("commands-batched")
        self._append(batch)
