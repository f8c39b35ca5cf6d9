"""The clocks of a store's members, which have no clock port: an agent on each host moves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from faultline.harness.world.hosts.processes.host_agent import HostAgent
from faultline.harness.world.ports import NodeId

__all__ = ["MemberClocks"]

_NS_PER_US = 1000


class MemberClocks:
    """Implements `faultline.harness.world.local.clock_faults.Clocks` with an agent for each node.

    `answers` asks a node something and returns whether it answered. A program under libfaketime reads its time by
    itself; once it has answered it must have read it.
    """

    def __init__(self, agents: Mapping[NodeId, HostAgent], answers: Callable[[NodeId], bool]) -> None:
        self._agents = agents
        self._answers = answers

    def step(self, node: NodeId, delta_us: int) -> None:
        """Move the wall clock that the member's processes see."""
        self._agents[node].ask("step", wall_ns=delta_us * _NS_PER_US)

    def drift(self, node: NodeId, rate_ppm: int) -> None:
        """Let both clocks that the member's processes see run fast by `rate_ppm`."""
        self._agents[node].ask("drift", rate_ppm=rate_ppm)

    def reset(self, node: NodeId) -> None:
        """Put the wall clock right and end the drift."""
        self._agents[node].ask("reset")

    def offset_us(self, node: NodeId) -> int:
        """Return the time that the member's processes see minus their host's time; of those the worst."""
        return int(self._view(node)["wall_off_ns"]) // _NS_PER_US

    def rate_ppm(self, node: NodeId) -> int:
        """Return the drift that stands in the processes' memory."""
        return int(self._view(node)["rate_ppm"])

    def _view(self, node: NodeId) -> dict[str, int]:
        agent = self._agents[node]
        has_answered = agent.clock == "libfaketime" and self._answers(node)
        view: dict[str, int] = agent.ask("clock", has_answered=has_answered)
        return view
