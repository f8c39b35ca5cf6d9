"""Limits on processes, and clocks of stores, through the agents on the hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from faultline.harness.world.hosts.processes.host_agent import HostAgent
from faultline.harness.world.hosts.processes.remote_process import RemoteProcess
from faultline.harness.world.ports import NodeId

__all__ = ["AgentClocks", "AgentLimits"]

_NS_PER_US = 1000


class AgentLimits:
    """Implements `faultline.harness.world.process_limits.ProcessLimits` with an agent for each node."""

    def __init__(self, agents: Mapping[NodeId, HostAgent], processes: Mapping[NodeId, RemoteProcess]) -> None:
        self._agents = agents
        self._processes = processes

    def freeze(self, node: NodeId) -> str:
        """Freeze all processes of the node; says by which means."""
        self._processes[node].is_frozen = True
        return str(self._agents[node].ask("freeze"))

    def thaw(self, node: NodeId) -> None:
        """Let a frozen node go on."""
        if self._processes[node].is_frozen:
            self._agents[node].ask("thaw")
            self._processes[node].is_frozen = False

    def is_frozen(self, node: NodeId) -> bool:
        """Probe: does the kernel of the host say that the group is frozen, with all of the node's processes in it?"""
        return bool(self._agents[node].ask("frozen"))

    def squeeze_cpu(self, node: NodeId, share: float) -> None:
        """Let the node have `share` of one processor; the agent proves it."""
        self._agents[node].ask("squeeze-cpu", share=share)

    def cpu_share(self, node: NodeId) -> float:
        """Probe: the share in force as the kernel of the host has it."""
        return float(self._agents[node].ask("cpu"))

    def squeeze_memory(self, node: NodeId, headroom_bytes: int) -> None:
        """Let the node take no more than `headroom_bytes` more; the agent proves it."""
        self._processes[node].is_short_of_memory = True
        self._agents[node].ask("squeeze-memory", headroom_bytes=headroom_bytes)

    def memory_limit(self, node: NodeId) -> int:
        """Probe: the limit in force as the kernel of the host has it."""
        return int(self._agents[node].ask("memory")["limit"])

    def lift_squeezes(self, node: NodeId) -> None:
        """Lift both limits."""
        self._agents[node].ask("lift")
        # What has ended by now ended for want of memory; what ends later did not.
        self._processes[node].note_end()
        self._processes[node].take_crashes()
        self._processes[node].is_short_of_memory = False


class AgentClocks:
    """The clocks of programs that know nothing of us: the part of the fault port that sets and probes them.

    `answers` asks a node something, and says whether it answered: where programs read by themselves what time it is to
    be (libfaketime), one that has answered must have read it.
    """

    def __init__(self, agents: Mapping[NodeId, HostAgent], answers: Callable[[NodeId], bool]) -> None:
        self._agents = agents
        self._answers = answers

    def step_clock(self, node: NodeId, delta_us: int) -> None:
        """Move the wall clock that the member's processes see."""
        self._agents[node].ask("step", wall_ns=delta_us * _NS_PER_US)

    def drift_clock(self, node: NodeId, rate_ppm: int) -> None:
        """Let both clocks that the member's processes see run fast by `rate_ppm`."""
        self._agents[node].ask("drift", rate_ppm=rate_ppm)

    def reset_clock(self, node: NodeId) -> None:
        """Put the wall clock right and end the drift."""
        self._agents[node].ask("reset")

    def clock_offset_us(self, node: NodeId) -> int:
        """What the member's processes take the time to be, minus their host's time; of those the worst."""
        return int(self._clock(node)["wall_off_ns"]) // _NS_PER_US

    def clock_rate_ppm(self, node: NodeId) -> int:
        """The drift that stands in the processes' memory."""
        return int(self._clock(node)["rate_ppm"])

    def _clock(self, node: NodeId) -> dict[str, int]:
        agent = self._agents[node]
        has_answered = agent.clock == "libfaketime" and self._answers(node)
        view: dict[str, int] = agent.ask("clock", has_answered=has_answered)
        return view
