"""A simulated world: hosts, network and virtual time, put together for one plan."""

from __future__ import annotations

from collections.abc import Callable

from faultline.harness.errors import UsageError
from faultline.harness.invariant import Breach
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.plan import Plan
from faultline.harness.system import NodeSystem, PortClient
from faultline.harness.world.ports import Node, NodeId, NodeStatus
from faultline.harness.world.simulated.fault_port import simulated_fault_port
from faultline.harness.world.simulated.host import SimulatedHost
from faultline.harness.world.simulated.network import SimulatedNetwork
from faultline.harness.world.simulated.page_cache import PageCacheDisk
from faultline.harness.world.simulated.scheduler import Scheduler
from faultline.harness.world.simulated.storage import SimulatedDisk
from faultline.harness.world.simulated.trace import SimulatedTrace, Watch
from faultline.harness.world.weather import salt, uniform

__all__ = ["BOOT_US_MAX", "SimulatedClient", "SimulatedWorld"]

BOOT_US_MAX = 20_000
"""The time within which every node is started."""


class SimulatedWorld:
    """The cluster and the clients of one run in virtual time. One plan is one execution."""

    def __init__(
        self,
        plan: Plan,
        system: NodeSystem,
        errors: list[str],
        *,
        record_messages: bool = False,
        scheduler: Scheduler | None = None,
    ) -> None:
        """`errors` takes what goes wrong in clients: theirs is the harness's side, a node's crash is the system's."""
        self.plan = plan
        self._errors = errors
        self.scheduler = scheduler or Scheduler()
        self.trace = SimulatedTrace(self.scheduler, system.invariants())
        self.network = SimulatedNetwork(
            self.scheduler, plan.weather, plan.seed_of_chances, plan.nodes, record=record_messages
        )
        self._system = system
        self._members = tuple(map(NodeId, plan.nodes))
        self._planted_bugs = frozenset(plan.planted_bugs)
        self.hosts = {name: self._node_host(name) for name in self._members}
        self.fault_port = simulated_fault_port(self.hosts, self.network, self._build, plan.racks or {})

    def boot(self) -> None:
        """Start every node, within the first few milliseconds."""
        for name, host in self.hosts.items():
            host.on_crash = self._note_crash
            delay_us = uniform(salt(self.plan.seed_of_chances, "boot", name), 0, 0, BOOT_US_MAX)
            self.scheduler.at(delay_us, self._boot_once, host)

    def _boot_once(self, host: SimulatedHost) -> None:
        """Start `host`, unless a heal that comes before its time has done so."""
        if host.node is None:
            host.start(self._build)

    def watch_nodes(self, watch: Watch) -> None:
        """Let `watch` see what nodes report from now on; called before they are started."""
        for name, host in self.hosts.items():
            host.trace = self.trace.port(name, watch)

    def open_client(self, process: int, node: str) -> SimulatedClient:
        """Return a fresh client of the system, for one process, that talks to `node` first."""
        host = SimulatedHost(
            f"client-{process}",
            scheduler=self.scheduler,
            network=self.network,
            trace=self.trace,
            seed=self.plan.seed_of_chances,
        )
        host.on_crash = self._note_client_error
        client = self._system.client(host, self._members, NodeId(node), self.plan.options, self._planted_bugs)
        host.node = _ClientNode(client)
        host.guard(client.start)
        return SimulatedClient(client, host)

    def _node_host(self, name: NodeId) -> SimulatedHost:
        weather, seed = self.plan.weather, self.plan.seed_of_chances
        drift_ppm = uniform(salt(seed, "drift", name), 0, -weather.drift_ppm_max, weather.drift_ppm_max + 1)
        return SimulatedHost(
            name,
            scheduler=self.scheduler,
            network=self.network,
            trace=self.trace,
            seed=seed,
            drift_ppm=drift_ppm,
            fsync_us=(weather.fsync_us_min, weather.fsync_us_max),
            disk=PageCacheDisk() if weather.disk == "page-cache" else SimulatedDisk(),
        )

    def _build(self, host: SimulatedHost) -> Node:
        return self._system.node(host, self._members, self.plan.options, self._planted_bugs)

    def _note_client_error(self, client: str, error: BaseException) -> None:
        self._errors.append(f"{client} raised {type(error).__name__}: {error}.")

    def _note_crash(self, node: str, error: BaseException) -> None:
        if isinstance(error, UsageError):
            raise error
        if self.hosts[NodeId(node)].disk.struck:
            return
        sentence = f"{node} crashed of its own: {type(error).__name__}: {error}."
        self.trace.report(Breach(invariant="node-crash", sentence=sentence, time_us=self.scheduler.now_us, node=node))


class SimulatedClient:
    """One open client and the host it lives on."""

    __slots__ = ("_client", "_host")

    def __init__(self, client: PortClient, host: SimulatedHost) -> None:
        self._client = client
        self._host = host

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`. A client that raises leaves it open, and the run becomes a harness error."""
        self._host.guard(lambda: self._client.invoke(operation, done))

    def close(self) -> None:
        """Forget the client: its timers and late answers come to nothing."""
        self._host.kill()


class _ClientNode:
    """A client in the place of a host's node, so that hosts need only one kind of occupant."""

    __slots__ = ("receive",)

    def __init__(self, client: PortClient) -> None:
        self.receive = client.receive

    def start(self) -> None:
        """Clients are started by the world."""

    def status(self) -> NodeStatus:
        return NodeStatus(role="client")
