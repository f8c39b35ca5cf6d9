"""A cluster of a real store: one of its processes on each host, and clients that speak its own protocol."""

from __future__ import annotations

from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.harness.plan import Plan
from faultline.harness.system import HostedStore
from faultline.harness.world.ports import NodeId, NodeStatus
from faultline.hosts.cluster import HostCluster
from faultline.hosts.host_sets import HostSet
from faultline.hosts.remote_process import RemoteProcess
from faultline.hosts.store_clients import StoreClients
from faultline.hosts.store_process import StoreProcess

__all__ = ["StoreCluster"]


class StoreCluster(HostCluster):
    """The processes of `store` on the first hosts of `host_set`."""

    def __init__(self, plan: Plan, store: HostedStore, host_set: HostSet, folder: Path) -> None:
        self._store = store
        super().__init__(plan, "", host_set, folder)

    def capabilities(self) -> frozenset[str]:
        """Those of the hosts, without clocks: the store reads its host's own."""
        return super().capabilities() - {"clock-step", "clock-drift"}

    async def open_links(self) -> None:
        """Make the folders, and see that every host has the store."""
        await super().open_links()
        for host in self._hosts.values():
            known = self.host_set.fleet[host.name].run(f"command -v {self._store.program}", check=False)
            if known.exit_code:
                raise HarnessError(
                    f"The host {host.name} has no {self._store.program}.", f"Run: apt-get install {self._store.package}"
                )

    def open_clients(self, errors: list[str]) -> StoreClients:
        """Clients of the store itself."""
        plan, store = self.plan, self._store
        return StoreClients(
            self.nodes,
            plan.workers,
            lambda node: store.store_client(self._host_address, self.nodes, node, plan.options),
            errors,
        )

    def detail(self) -> dict[str, object]:
        """Which host carried which process."""
        return {"hosts": {str(node): host.name for node, host in self._hosts.items()}}

    def _ask_status(self, node: NodeId, timeout_s: float) -> NodeStatus:
        return self._store.status(self._host_address(node), timeout_s)

    def _make_process(self, node: NodeId, folder: Path) -> RemoteProcess:
        host, store, options = self._hosts[node], self._store, self._options
        remote = f"{host.folder}/{node}"
        addresses = {str(name): other.address for name, other in self._hosts.items()}
        return StoreProcess(
            node,
            self.host_set.fleet[host.name],
            remote,
            folder,
            lambda: store.command(node, addresses, f"{remote}/data", options),
            up_port=store.up_port,
            client_port=store.client_port,
        )

    def _host_address(self, node: str) -> str:
        return self._hosts[NodeId(node)].address
