"""One client process of RabbitMQ: it puts elements into quorum queues and takes them out.

**Definite errors**, after which a change certainly did not happen:

| error | why nothing happened |
|---|---|
| `not-connected` | there was no channel for the request |
| `unroutable` | RabbitMQ gave a mandatory publication back, since its queue does not exist |

Every other failure is `info`. So is a publication that was not confirmed in time, and one that was refused (`nacked`):
the documentation promises for it only that RabbitMQ takes no responsibility. So is every failed attempt to take an
element out. An element that is handed out for good may be gone with the answer. One that is lent comes back only when
RabbitMQ notices the end of the channel, and meanwhile other clients find the queue empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import NOT_CONNECTED, Outcome, OutcomeRegistry, ok
from faultline.systems_under_test.stores.client import MemberClient
from faultline.systems_under_test.stores.rabbitmq.channel import ChannelRefusal, QueueChannel

__all__ = ["FUNCTIONS", "QueueClient", "outcomes"]

FUNCTIONS = ("enqueue", "dequeue", "drain")

outcomes = OutcomeRegistry([NOT_CONNECTED, "unroutable"])
"""The errors after which a change certainly did not happen."""


class QueueClient(MemberClient[QueueChannel]):
    """One client process; an element that it takes out `is_lent` until it is acknowledged, or belongs to it at once."""

    outcomes = outcomes
    failures = (OSError, ChannelRefusal)
    reads: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        address_of: Callable[[str], str],
        members: Sequence[str],
        node: str,
        *,
        confirms: bool,
        is_lent: bool,
        timeout_s: float,
        password: str = "",
    ) -> None:
        super().__init__(address_of, members, node)
        self._password = password
        self._confirms = confirms
        self._is_lent = is_lent
        self._timeout_s = timeout_s

    def connect(self, address: str) -> QueueChannel:
        """Return a channel to the member at `address`."""
        return QueueChannel(address, self._timeout_s, confirms=self._confirms, password=self._password)

    def hang_up(self, connection: QueueChannel) -> None:
        """Close the channel; lent elements go back to the queue."""
        connection.close()

    def is_open(self, connection: QueueChannel) -> bool:
        """Return whether the channel is open: a member that pauses in a minority hangs up on its clients."""
        return connection.is_open()

    def perform(self, connection: QueueChannel, operation: Operation, node: str) -> Outcome:
        """Put an element in, take one out, or take all out."""
        queue = str(operation.key)
        if operation.f == "enqueue":
            connection.publish(queue, msgspec.json.encode(operation.value))
            return ok(operation.value, node)
        if operation.f == "dequeue":
            return ok(next(iter(self._taken(connection, queue, 1)), None), node)
        return ok(self._taken(connection, queue, None), node)

    def word_for(self, error: Exception) -> str:
        """Return the refusal, `timeout`, or `connection-lost`."""
        if isinstance(error, ChannelRefusal):
            return str(error)
        return "timeout" if isinstance(error, TimeoutError) else "connection-lost"

    def _taken(self, channel: QueueChannel, queue: str, count_max: int | None) -> list[Any]:
        """Take elements out until the queue is empty or there are enough, and return them."""
        taken: list[Any] = []
        number = 0
        while count_max is None or len(taken) < count_max:
            element = channel.get(queue, is_lent=self._is_lent)
            if element is None:
                break
            body, number = element
            taken.append(msgspec.json.decode(body))
        if taken and self._is_lent:
            # After the last element: an acknowledgement covers all before it, and one that is lost only brings elements
            # back.
            channel.acknowledge(queue, number)
        return taken
