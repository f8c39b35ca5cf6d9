"""A cluster of node processes; and the local one, on loopback addresses, with a proxy on every directed link.

In the local cluster no port number is ever chosen: nodes and proxies ask the kernel for a free one and tell, so that
a port in use cannot happen, neither at the start nor when a node comes back after others took its old port.
"""

from __future__ import annotations

import asyncio
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from faultline.harness.errors import HarnessError
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.plan import Plan
from faultline.harness.world.leadership import Steadiness, leader_of
from faultline.harness.world.local.channel import HOST, Address
from faultline.harness.world.local.clock import ClockSetting
from faultline.harness.world.local.handshake import RunSecret
from faultline.harness.world.local.kept_messages import KeptMessages
from faultline.harness.world.local.node_process import NodeConfig
from faultline.harness.world.local.process import HeldProcess, NodeProcess
from faultline.harness.world.local.proxy import ProxyMesh
from faultline.harness.world.ports import READY, NodeId, NodeStatus

__all__ = ["STATUS_TIMEOUT_S", "Clients", "LocalCluster", "NodeCluster"]

STATUS_TIMEOUT_S = 1.0
"""The silence after which a member's role is taken for unknown: longer than a loaded machine lets it wait."""
_POLL_S = 0.01


class Clients(Protocol):
    """The clients of all workers of a run, in its event loop."""

    def node_of(self, worker: int) -> NodeId:
        """Return the node that `worker` talks to first."""

    def invoke(self, worker: int, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Let the client of the operation's process perform it; `done` is called exactly once, in the event loop."""

    def is_ready(self, worker: int) -> bool:
        """Return whether the client of `worker` has a connection, as far as is known, or makes its own."""

    def reconnect(self, worker: int, process: int, error: str, done: Callable[[], None]) -> None:
        """Call `done` in the event loop once the client of `process` has a connection, or it is time to try without.

        It is called once, now or later; `error` is what went wrong with the worker's operation before.
        """

    def close(self) -> None:
        """Close all clients."""


class NodeCluster(ABC):
    """The nodes of one run, each a process. Methods without `async` may be called from any thread, except `spawn`.

    What differs from one real world to another is where the processes are and how messages travel between them.
    `shares_clock` says whether all nodes and the harness read one monotonic clock, `serving_timeout_s` how long the
    cluster may take to serve, at first and after the heal, and `steady_s` for how long it must do so after the heal.
    `kept` has the messages of the run, in a world that keeps them.
    """

    shares_clock = True
    serving_timeout_s = 10.0
    steady_s = 0.0
    kept: KeptMessages | None = None

    def __init__(self, plan: Plan, secret: RunSecret, processes: Mapping[NodeId, HeldProcess]) -> None:
        self.plan = plan
        self.secret = secret
        self.nodes = tuple(processes)
        self.processes = processes
        self.clocks = {node: ClockSetting() for node in self.nodes}
        self._last_status: dict[NodeId, NodeStatus] = {}
        self.has_served = False

    @abstractmethod
    def config(self, node: NodeId) -> NodeConfig:
        """Return the configuration that the process of `node` gets at its start."""

    @abstractmethod
    def address(self, node: NodeId) -> Address | None:
        """Return the address at which clients reach `node`, or None while it is dead."""

    async def open_links(self) -> None:  # noqa: B027  # a hook: only some worlds have links to open
        """Make what nodes need to reach each other, before the first of them starts."""

    @abstractmethod
    async def close(self) -> None:
        """Kill all nodes and release everything, whatever state they are in."""

    def open_clients(self, errors: list[str]) -> Clients | None:
        """Return clients of a store that speaks a protocol of its own; None where clients are built from ports."""
        return None

    def statistics(self) -> dict[str, int]:
        """Return numbers about the messages between nodes, as far as this world can count them."""
        return {}

    def marks(self) -> dict[str, int]:
        """Return marks that nodes reached and that stand in no trace, once the cluster is closed."""
        return {}

    def detail(self) -> dict[str, Any]:
        """Return further facts for the record of the run."""
        return {}

    async def start(self) -> None:
        """Start everything and wait until all nodes listen. Raises HarnessError naming the log of one that does not."""
        await self.open_links()
        for node in self.nodes:
            self.spawn(node)
        for process in self.processes.values():
            await asyncio.to_thread(process.wait_until_up)

    def spawn(self, node: NodeId) -> None:
        """Start the process of `node`; to be called in the event loop's thread."""
        self.processes[node].spawn(self.config(node))

    async def wait_until_serving(self, timeout_s: float) -> str:
        """Wait until a node leads or, without leaders, all are ready; says which. Raises HarnessError.

        A node that ends meanwhile is an error only before the cluster has served: later it is a finding.
        """
        deadline_s = time.monotonic() + timeout_s
        serves = Steadiness(self.steady_s if self.has_served else 0.0)
        while time.monotonic() < deadline_s:
            serving = await asyncio.to_thread(self.serving)
            if serves.is_reached(serving, time.monotonic()) and serving is not None:
                self.has_served = True
                return serving
            if not self.has_served:
                self._refuse_early_end()
            await asyncio.sleep(_POLL_S)
        logs = ", ".join(str(process.log) for process in self.processes.values())
        raise HarnessError(
            f"No node became leader, nor were all nodes ready, within {timeout_s:g} s.", f"See the nodes' logs: {logs}."
        )

    def status(self, node: NodeId) -> NodeStatus | None:
        """Return the status that `node` reports, or last reported when it is stopped. None when dead."""
        process = self.processes[node]
        if not process.is_alive():
            return None
        if process.is_paused():
            return self._last_status.get(node)
        try:
            status = self._ask_status(node, STATUS_TIMEOUT_S)
        except (TimeoutError, OSError):
            return None
        self._last_status[node] = status
        return status

    def _ask_status(self, node: NodeId, timeout_s: float) -> NodeStatus:
        """Return the status of `node`. Raises TimeoutError or OSError when it does not answer."""
        return self.processes[node].control.status(timeout_s)

    def leader(self) -> NodeId | None:
        """Return the node that says it leads in the highest generation, if any."""
        return leader_of(self.statuses())

    def serving(self) -> str | None:
        """Return in words which node serves; None while none leads and some of a leaderless system are not ready."""
        return self._serving(self.statuses())

    def _serving(self, statuses: Mapping[NodeId, NodeStatus | None]) -> str | None:
        leader = leader_of(statuses)
        if leader is not None:
            return f"{leader} leads"
        ready = all(status is not None and status.role == READY for status in statuses.values())
        return "all nodes are ready" if ready else None

    def statuses(self) -> dict[NodeId, NodeStatus | None]:
        """Return the status of every node, each as `status` has it."""
        return {node: self.status(node) for node in self.nodes}

    def unexpected_exits(self) -> list[tuple[NodeId, int]]:
        """Return nodes that ended on their own since the last call, with their exit codes."""
        return [(node, code) for node, process in self.processes.items() for code in process.take_crashes()]

    def _refuse_early_end(self) -> None:
        for node, code in self.unexpected_exits():
            process = self.processes[node]
            raise HarnessError(
                f"The node {node} ended with code {code} before the run began: {process.log_tail()}",
                f"The whole log is {process.log}.",
            )


class LocalCluster(NodeCluster):
    """Nodes on loopback addresses of this machine; their files are under `folder`/nodes."""

    def __init__(self, plan: Plan, system_path: str, folder: Path) -> None:
        secret = RunSecret.drawn()
        held = {NodeId(name): NodeProcess(name, folder / "nodes" / name, secret) for name in plan.nodes}
        super().__init__(plan, secret, held)
        self._held = held
        self._system_path = system_path
        self.kept = KeptMessages()
        self.mesh = ProxyMesh(self.nodes, secret, self.address, plan.seed, self.kept)

    async def open_links(self) -> None:  # a hook: only some worlds have links to open
        """Open all proxies."""
        await self.mesh.listen()

    async def close(self) -> None:
        """Kill all nodes and release all sockets, whatever state they are in."""
        for process in self.processes.values():
            process.kill()
        await self.mesh.close()
        # Transports let go of their sockets in the loop's next rounds.
        await asyncio.sleep(0.01)

    def config(self, node: NodeId) -> NodeConfig:
        """Return a node whose peers are its links' proxies."""
        process, plan = self._held[node], self.plan
        return NodeConfig(
            node_id=node,
            members=plan.nodes,
            peers={str(peer): address for peer, address in self.mesh.addresses(node).items()},
            system_path=self._system_path,
            options=dict(plan.options),
            planted_bugs=plan.planted_bugs,
            seed=plan.seed,
            data_folder=str(process.data.absolute()),
            trace_file=str(process.trace.absolute()),
            harness_pid=os.getpid(),
            clock=self.clocks[node],
            fsync_us=(plan.weather.fsync_us_min, plan.weather.fsync_us_max),
        )

    def address(self, node: NodeId) -> Address | None:
        """Return the address at which `node` listens, or None while it is dead."""
        port = self.processes[node].port
        return (HOST, port) if port is not None else None

    def statistics(self) -> dict[str, int]:
        """Return the counters of all links, summed."""
        return self.mesh.statistics()
