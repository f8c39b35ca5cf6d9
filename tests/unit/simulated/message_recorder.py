"""A node of a simulated host that notes what it receives."""

import msgspec

from faultline.harness.world.ports import NodeStatus
from faultline.harness.world.simulated.host import SimulatedHost

__all__ = ["Note", "Recorder"]


class Note(msgspec.Struct, frozen=True):
    number: int


class Recorder:
    """A node that notes each message with its time of arrival."""

    def __init__(self, host: SimulatedHost) -> None:
        self.host = host
        self.seen: list[tuple[int, int]] = []

    def start(self) -> None:
        """Do nothing."""

    def receive(self, source, message) -> None:
        self.seen.append((message.number, self.host.scheduler.now_us))

    def status(self) -> NodeStatus:
        return NodeStatus(role="follower")
