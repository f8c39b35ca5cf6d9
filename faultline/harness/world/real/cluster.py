"""A local cluster: one process per node on loopback addresses, a proxy on every directed link between them.

No port number is ever chosen here: nodes and proxies ask the kernel for a free one and tell, so that a port in use
cannot happen, neither at the start nor when a node comes back after others took its old port.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.harness.plan import Plan
from faultline.harness.world.ports import READY, NodeId, NodeStatus
from faultline.harness.world.real.channel import HOST, Address
from faultline.harness.world.real.clock import ClockSetting
from faultline.harness.world.real.node_process import NodeConfig
from faultline.harness.world.real.process import NodeProcess
from faultline.harness.world.real.proxy import ProxyMesh

__all__ = ["LocalCluster"]

STATUS_TIMEOUT_S = 0.3
_POLL_S = 0.01


class LocalCluster:
    """The nodes of one run. Methods without `async` may be called from any thread, except `spawn`."""

    def __init__(self, plan: Plan, system_path: str, folder: Path) -> None:
        self._plan = plan
        self._system_path = system_path
        self.nodes = tuple(map(NodeId, plan.nodes))
        self.processes = {node: NodeProcess(node, folder / "nodes" / node) for node in self.nodes}
        self.clocks = {node: ClockSetting() for node in self.nodes}
        self._last_status: dict[NodeId, NodeStatus] = {}
        self.mesh = ProxyMesh(self.nodes, self.address, plan.seed)

    async def start(self) -> None:
        """Start everything and wait until all nodes listen. Raises HarnessError naming the log of one that does not."""
        await self.mesh.listen()
        for node in self.nodes:
            self.spawn(node)
        for process in self.processes.values():
            await asyncio.to_thread(process.wait_until_up)

    async def wait_until_serving(self, timeout_s: float) -> str:
        """Wait until a node leads or, without leaders, all are ready; says which. Raises HarnessError."""
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            serving = await asyncio.to_thread(self.serving)
            if serving is not None:
                return serving
            self._refuse_early_end()
            await asyncio.sleep(_POLL_S)
        logs = ", ".join(str(process.log) for process in self.processes.values())
        raise HarnessError(
            f"No node became leader, nor were all nodes ready, within {timeout_s:g} s.", f"See the nodes' logs: {logs}."
        )

    async def close(self) -> None:
        """Kill all nodes and release all sockets, whatever state they are in."""
        for process in self.processes.values():
            process.kill()
        await self.mesh.close()
        # Transports let go of their sockets in the loop's next rounds.
        await asyncio.sleep(0.01)

    def spawn(self, node: NodeId) -> None:
        """Start the process of `node`; to be called in the event loop's thread."""
        process, plan = self.processes[node], self._plan
        process.spawn(
            NodeConfig(
                node_id=node,
                members=plan.nodes,
                peers={str(peer): address for peer, address in self.mesh.addresses(node).items()},
                system_path=self._system_path,
                options=dict(plan.options),
                mutants=plan.mutants,
                seed=plan.seed,
                data_folder=str(process.data.absolute()),
                trace_file=str(process.trace.absolute()),
                harness_pid=os.getpid(),
                clock=self.clocks[node],
                fsync_us=(plan.weather.fsync_us_min, plan.weather.fsync_us_max),
            )
        )

    def address(self, node: NodeId) -> Address | None:
        """Where `node` listens, or None while it is dead."""
        port = self.processes[node].port
        return (HOST, port) if port is not None else None

    def status(self, node: NodeId) -> NodeStatus | None:
        """What `node` says of itself, or last said when it is stopped: then it still believes so. None when dead."""
        process = self.processes[node]
        if not process.is_alive():
            return None
        if process.is_paused():
            return self._last_status.get(node)
        try:
            status = process.control.status(STATUS_TIMEOUT_S)
        except (TimeoutError, OSError):
            return None
        self._last_status[node] = status
        return status

    def leader(self) -> NodeId | None:
        """The node that says it leads in the highest generation, if any."""
        return _leader(self._statuses())

    def serving(self) -> str | None:
        """Who serves clients, in words; None while nobody leads and not all nodes of a leaderless system are ready."""
        statuses = self._statuses()
        leader = _leader(statuses)
        if leader is not None:
            return f"{leader} leads"
        ready = all(status is not None and status.role == READY for status in statuses.values())
        return "all nodes are ready" if ready else None

    def _statuses(self) -> dict[NodeId, NodeStatus | None]:
        return {node: self.status(node) for node in self.nodes}

    def unexpected_exits(self) -> list[tuple[NodeId, int]]:
        """Nodes that ended on their own since the last call, with their exit codes."""
        return [(node, code) for node, process in self.processes.items() for code in process.take_crashes()]

    def _refuse_early_end(self) -> None:
        for node, code in self.unexpected_exits():
            process = self.processes[node]
            raise HarnessError(
                f"The node {node} ended with code {code} before the run began: {process.log_tail()}",
                f"The whole log is {process.log}.",
            )


def _leader(statuses: dict[NodeId, NodeStatus | None]) -> NodeId | None:
    leaders = [(s.generation, node) for node, s in statuses.items() if s is not None and s.role == "leader"]
    return max(leaders)[1] if leaders else None
