"""A node of Slate. It touches nothing but its ports, so it runs in the simulated world and as a process of its own."""

from __future__ import annotations

import json
from typing import Any

from faultline import NodeId, NodeStatus, Ports
from slate.messages import Answer, Copy, Request

__all__ = ["SlateNode"]

LOG = "log"


class SlateNode:
    """The first member is the primary and does all the work; the others hold copies of its values."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], flushes: bool) -> None:
        self.ports = ports
        self.members = members
        self.flushes = flushes
        self.values: dict[str, int] = {}  # The value of each key, as far as this node knows.

    @property
    def is_primary(self) -> bool:
        """True for the node that may write."""
        return self.ports.node_id == self.members[0]

    def start(self) -> None:
        """Read the log up to the first line that a crash tore or left as zeros: no client got an answer after that."""
        storage, content, size = self.ports.storage, self.ports.storage.read(LOG), 0
        for line in content.splitlines(keepends=True):
            if b"\0" in line or not line.endswith(b"\n"):
                storage.truncate(LOG, size)
                break
            key, value = json.loads(line)
            self.values[key] = value
            size += len(line)
        if content and self.flushes:
            # A killed process may leave lines that can be read and are not on the disk: sync before a client reads.
            storage.fsync(LOG)
            storage.fsync_folder()

    def status(self) -> NodeStatus:
        """Return the role of the node, by which faults are aimed."""
        return NodeStatus(role="leader" if self.is_primary else "follower", generation=1, leader=self.members[0])

    def receive(self, source: NodeId, message: Any) -> None:
        """Handle a request of a client, or a copy from the primary."""
        if isinstance(message, Copy):
            self.values[message.key] = message.value
        else:
            self.ports.network.send(source, self.answer(message))

    def answer(self, request: Request) -> Answer:
        """Carry out `request`; only the primary writes."""
        now = self.values.get(request.key)
        if request.f == "read":
            return Answer(request.number, now)
        if not self.is_primary:
            return Answer(request.number, error="not-primary")
        if request.f == "cas" and now != request.old:
            return Answer(request.number, error="cas-mismatch")
        assert request.value is not None, "a write has a value"
        self.write(request.key, request.value)
        return Answer(request.number)

    def write(self, key: str, value: int) -> None:
        """Write to disk first: messages sent after `fsync` leave when it is done, so no answer promises too much."""
        self.ports.storage.append(LOG, json.dumps([key, value]).encode() + b"\n")
        if self.flushes:
            self.ports.storage.fsync(LOG)
            self.ports.storage.fsync_folder()  # Makes the name of a new log durable; costs nothing later.
        self.values[key] = value
        for copy in self.members[1:]:
            self.ports.network.send(copy, Copy(key, value))
