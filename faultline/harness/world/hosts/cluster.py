"""A cluster whose nodes are processes on hosts, one on each, which speak to each other over the hosts' own network."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.harness.plan import Plan
from faultline.harness.world.hosts.machines.abilities import CLOCK_FAULTS, LIMITS
from faultline.harness.world.hosts.machines.host_options import host_option
from faultline.harness.world.hosts.machines.host_sets import HostSet
from faultline.harness.world.hosts.network.host_connections import CONNECTION_FAULTS
from faultline.harness.world.hosts.network.links import QUALITIES
from faultline.harness.world.hosts.processes.host_agent import HostAgent
from faultline.harness.world.hosts.processes.remote_process import RemoteProcess
from faultline.harness.world.hosts.storage.cluster_disks import DISK_FAULTS, ClusterDisks
from faultline.harness.world.local.channel import Address
from faultline.harness.world.local.cluster import STATUS_TIMEOUT_S, NodeCluster
from faultline.harness.world.local.handshake import RunSecret
from faultline.harness.world.local.node_process import NodeConfig
from faultline.harness.world.local.trace import observe, read_traces
from faultline.harness.world.ports import NodeId, NodeStatus

__all__ = ["HostCluster", "capabilities_of"]

_ALWAYS = frozenset({"kill", "pause"})


def capabilities_of(host_set: HostSet) -> frozenset[str]:
    """Return the faults that can be injected on these hosts.

    Clocks need one monotonic clock that the harness and all nodes read, as on hosts of namespaces.
    """
    links = {"cut", "link-down", *QUALITIES} - set(_refusals(host_set))
    return _ALWAYS | links | (CLOCK_FAULTS if host_set.shares_clock else frozenset())


def _refusals(host_set: HostSet) -> dict[str, str]:
    """Return the reason why these hosts lack each capability of links that they lack, by capability."""
    found = {"cut": host_set.links.refusal, "link-down": host_set.cables.refusal, **host_set.qualities.refusals}
    return {capability: why for capability, why in found.items() if why}


class HostCluster(NodeCluster):
    """The nodes of one run on the first hosts of `host_set`; logs and traces come to `folder`/nodes at the end.

    `asked` are the capabilities that the plan's faults need: what it takes an agent on the hosts to do is found out,
    and can be done, only when it stands there.
    """

    is_store = False
    agent_faults = LIMITS
    """The faults that agents carry out."""

    def __init__(
        self, plan: Plan, system_path: str, host_set: HostSet, folder: Path, asked: frozenset[str] = frozenset()
    ) -> None:
        self.secret = RunSecret.drawn()
        self.host_set = host_set
        self.asked = asked
        self.shares_clock = host_set.shares_clock
        self.clock_asked = host_option(plan.host_options, "clock")
        self._system_path = system_path
        self._hosts = dict(zip(map(NodeId, plan.nodes), host_set.hosts))
        self._listen = {node: host.listen_address or _resolved(host.address) for node, host in self._hosts.items()}
        self._options = dict(plan.options)
        self._packets_before: dict[str, int] | None = None
        self._packets: dict[str, int] = {}
        self.remote = {node: self._make_process(node, folder / "nodes" / node) for node in self._hosts}
        self.agents = {node: self._make_agent(node) for node in self._hosts}
        self.disks = ClusterDisks(plan, host_set, self.remote, self.host_of, asked)
        super().__init__(plan, self.secret, self.remote)

    def statistics(self) -> dict[str, int]:
        """Return the fate of packets on bad links, once the cluster is closed, and ends for disks and memory."""
        ends = sum(process.ends_for_memory for process in self.remote.values())
        for_memory = {"nodes_ended_for_memory": ends} if ends else {}
        return self._packets | self.disks.statistics() | for_memory

    def host_of(self, node: NodeId) -> str:
        """Return the name of the host that carries `node`."""
        return self._hosts[node].name

    def capabilities(self) -> frozenset[str]:
        """Return the faults that can be injected; those of agents and connections only as far as they are asked for."""
        others = (capabilities_of(self.host_set) - self.agent_faults) | self.disks.capabilities()
        if self.asked & CONNECTION_FAULTS:
            others |= CONNECTION_FAULTS - set(self.host_set.connections.refusals())
        if not self.asked & self.agent_faults:
            return others
        return others | (self.agent_faults - set(self.host_set.abilities.refusals(self.clock_asked)))

    def refusal(self, capability: str) -> str:
        """Return the reason why these hosts lack `capability`; empty when no reason is known."""
        links = _refusals(self.host_set)
        if capability in links:
            return links[capability]
        if capability in CONNECTION_FAULTS:
            return self.host_set.connections.refusals().get(capability, "")
        if capability in DISK_FAULTS:
            return self.host_set.disks.refusal()
        if capability in self.agent_faults:
            return self.host_set.abilities.refusals(self.clock_asked).get(capability, "")
        return ""

    def status(self, node: NodeId) -> NodeStatus | None:
        """As everywhere; a node that is frozen still believes what it last said."""
        return self._last_status.get(node) if self.remote[node].is_frozen else super().status(node)

    def statuses(self) -> dict[NodeId, NodeStatus | None]:
        """As everywhere, but asked at once: a fault should meet the leader that there was when it was looked for."""
        return dict(zip(self.nodes, self.host_set.fleet.at_once(self.status, self.nodes), strict=True))

    def answers(self, node: NodeId) -> bool:
        """Return whether `node` itself answers now."""
        try:
            self._ask_status(node, STATUS_TIMEOUT_S)
        except (TimeoutError, OSError):
            return False
        return True

    async def open_links(self) -> None:
        """Make the nodes' folders and disks, and send the agents that will be needed; the links are there."""
        self._packets_before = self.host_set.qualities.statistics()
        if not self.asked.isdisjoint(QUALITIES):
            self.host_set.qualities.prepare()
        await asyncio.gather(*(asyncio.to_thread(process.prepare) for process in self.remote.values()))
        await self.disks.open()
        if self.asked & self.agent_faults:
            await asyncio.gather(*(asyncio.to_thread(agent.start) for agent in self.agents.values()))

    async def wait_until_serving(self, timeout_s: float) -> str:
        """As everywhere; the first time, with what belongs to the founding of a cluster."""
        is_first = not self.has_served
        serving = await super().wait_until_serving(timeout_s)
        if is_first:
            await self.found()
        return serving

    async def found(self) -> None:
        """The cluster serves for the first time."""
        await self.disks.flush()

    def spawn(self, node: NodeId) -> None:
        """Start `node` as everywhere. Its disk is in order now, so its next end is a finding again."""
        self.disks.note_ends()
        super().spawn(node)
        self.disks.started(node)

    def unexpected_exits(self) -> list[tuple[NodeId, int]]:
        """Return the exits as everywhere, less those for a bad disk; a node that never came up is told in any case."""
        if self.has_served:
            self.disks.note_ends()
        return super().unexpected_exits()

    async def close(self) -> None:
        """Kill all nodes, fetch what they wrote and let the agents go; the hosts stay."""
        await asyncio.gather(*(asyncio.to_thread(self._end, node) for node in self.remote))
        if self._packets_before is not None:
            self._packets = _increase(self._packets_before, self.host_set.qualities.statistics())
        self.host_set.qualities.close()
        self.host_set.connections.close()
        self.host_set.links.close()

    def config(self, node: NodeId) -> NodeConfig:
        """Return a node that finds its peers on their hosts."""
        plan, host, remote = self.plan, self._hosts[node], self.remote[node].remote
        return NodeConfig(
            node_id=node,
            members=plan.nodes,
            peers={str(peer): self._listening(peer) for peer in self.nodes if peer != node},
            system_path=self._system_path,
            options=dict(plan.options),
            planted_bugs=plan.planted_bugs,
            seed=plan.seed,
            data_folder=f"{remote}/data",
            trace_file=f"{remote}/trace.jsonl",
            harness_pid=0,
            clock=self.clocks[node],
            fsync_us=(plan.weather.fsync_us_min, plan.weather.fsync_us_max),
            listen=(self._listen[node], host.node_port),
        )

    def address(self, node: NodeId) -> Address | None:
        """Return the address at which clients reach `node`, or None while it is dead."""
        return self._listening(node) if self.processes[node].port is not None else None

    def marks(self) -> dict[str, int]:
        """Return the marks of the nodes when their hosts share no clock; where they do, the merged trace tells them."""
        if self.shares_clock:
            return {}
        return observe(read_traces(process.trace for process in self.remote.values()), (), lambda time_us: time_us)[1]

    def detail(self) -> dict[str, object]:
        """Return the host of each node, and a sentence about what could not be observed."""
        detail: dict[str, object] = {"hosts": {str(node): host.name for node, host in self._hosts.items()}}
        if not self.shares_clock:
            detail["not_observed"] = "Invariants: the hosts' clocks cannot order what happened on each."
        return detail

    def _make_process(self, node: NodeId, folder: Path) -> RemoteProcess:
        host = self._hosts[node]
        return RemoteProcess(node, self.host_set.fleet[host.name], f"{host.folder}/{node}", folder, self.secret)

    def _make_agent(self, node: NodeId) -> HostAgent:
        host, set_name = self._hosts[node], self.host_set.abilities.set_name
        connection = self.host_set.fleet[host.name]
        return HostAgent(connection, f"{host.folder}/{node}", node, set_name, is_store=self.is_store)

    def _end(self, node: NodeId) -> None:
        if self.remote[node].is_frozen:
            # What is frozen may not hear that it is killed.
            with suppress(HarnessError):
                self.agents[node].ask("thaw")
        with suppress(HarnessError):
            self.disks.make_reachable(node)
        self.remote[node].end()
        with suppress(HarnessError):
            self.agents[node].close()
        self.disks.close(node)

    def _listening(self, node: NodeId) -> Address:
        host = self._hosts[node]
        return host.address, host.node_port


def _increase(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: count - before.get(name, 0) for name, count in after.items()}


def _resolved(address: str) -> str:
    """Return `address` as a number, as seen from here: a host may know its own name as its loopback address."""
    try:
        return str(socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return address
