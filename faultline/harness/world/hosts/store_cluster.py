"""A cluster of a real store: one member on each host, and clients that speak its own protocol."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.feature import possible_features
from faultline.harness.plan import Plan
from faultline.harness.system import GuardedStore, HostedStore, StorePlace
from faultline.harness.world.hosts.clocks.store_clocks import StoreClocks
from faultline.harness.world.hosts.cluster import HostCluster
from faultline.harness.world.hosts.machines.abilities import AGENT_FAULTS, CLOCK_FAULTS
from faultline.harness.world.hosts.machines.host_sets import HostSet
from faultline.harness.world.hosts.processes.log_features import features_in_log
from faultline.harness.world.hosts.processes.store_clients import StoreClients
from faultline.harness.world.hosts.processes.store_process import StoreProcess
from faultline.harness.world.ports import NodeId, NodeStatus

__all__ = ["StoreCluster"]

_NEEDED = {"python3": "python3-minimal"}
"""For the supervisor."""
# Debian keeps some servers where only root's path finds them.
_PATH = "PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin"


class StoreCluster(HostCluster):
    """The members of `store` on the first hosts of `host_set`."""

    is_store = True
    agent_faults = AGENT_FAULTS
    """The store knows nothing of clock ports."""

    def __init__(
        self, plan: Plan, store: HostedStore, host_set: HostSet, folder: Path, asked: frozenset[str] = frozenset()
    ) -> None:
        _refuse_without_libraries(store)
        self._store = store
        self.serving_timeout_s, self.steady_s = store.serving_timeout_s, store.steady_s
        self._members: dict[NodeId, StoreProcess] = {}
        super().__init__(plan, "", host_set, folder, asked)
        if isinstance(store, GuardedStore):
            store.password = self.secret.password()
        self._clocks = StoreClocks(store.name, self.agents if asked & CLOCK_FAULTS else {}, self.remote)

    async def open_links(self) -> None:
        """Make the folders, and see that every host has the store."""
        self._clocks.choose(self.host_set.abilities, self.host_of, self.clock_asked)
        await super().open_links()
        await self._clocks.bring()
        for host in self._hosts.values():
            for program, package in {**self._store.programs, **_NEEDED}.items():
                known = self.host_set.fleet[host.name].run(f"{_PATH} command -v {program}", check=False)
                if known.exit_code:
                    raise HarnessError(f"The host {host.name} has no {program}.", f"Run: apt-get install {package}")

    async def start(self) -> None:
        """Prepare and start all members, at once or one after the other as the store wants it, and join them."""
        await self.open_links()
        if self._store.starts_in_order:
            for member in self._members:
                await self._first_start([member])
        else:
            await self._first_start(list(self._members))
        await self._ask_store(self._store.form, "become a cluster")

    async def found(self) -> None:
        """Make what the workload needs, and let it be flushed with the rest."""
        await self._ask_store(self._store.provision, "be given what the workload needs")
        await self._clocks.prove(self.answers)
        await super().found()
        await asyncio.gather(*(asyncio.to_thread(member.note_founded) for member in self._members.values()))

    def open_clients(self, errors: list[str]) -> StoreClients:
        """Return clients of the store itself."""
        plan, store = self.plan, self._store
        return StoreClients(
            self.nodes,
            plan.workers,
            lambda node: store.store_client(self._host_address, self.nodes, node, plan.options),
            errors,
        )

    def marks(self) -> dict[str, int]:
        """Return the features that the members' logs tell of, since the cluster served for the first time."""
        features = possible_features(self._store, self._options)
        counted = Counter[str]()
        for member in self._members.values():
            if member.founding_lines is not None:
                counted += features_in_log(member.log, features, member.founding_lines)
        return dict(counted)

    def detail(self) -> dict[str, object]:
        """Return the host of each member."""
        return {name: told for name, told in super().detail().items() if name != "not_observed"}

    async def _first_start(self, nodes: list[NodeId]) -> None:
        await asyncio.gather(*(asyncio.to_thread(self._members[node].install) for node in nodes))
        for node in nodes:
            self.spawn(node)
        await self._clocks.refuse_unfit(nodes)
        try:
            await asyncio.gather(*(asyncio.to_thread(self._members[node].wait_until_up) for node in nodes))
        except HarnessError as error:
            raise self._clocks.explained(error) from error

    async def _ask_store(self, step: Callable[[dict[str, str], dict[str, str]], None], aim: str) -> None:
        addresses = {str(node): host.address for node, host in self._hosts.items()}
        try:
            await asyncio.to_thread(step, addresses, self._options)
        except (OSError, HarnessError) as error:
            logs = "; ".join(f"{node}: {member.log_tail()}" for node, member in self._members.items())
            raise HarnessError(
                f"The members of {self._store.name} did not {aim}: {error} Their logs end: {logs}",
                f"The whole logs are under {next(iter(self._members.values())).log.parent.parent}.",
            ) from error

    def _ask_status(self, node: NodeId, timeout_s: float) -> NodeStatus:
        return self._store.status(self._host_address(node), timeout_s)

    def _serving(self, statuses: Mapping[NodeId, NodeStatus | None]) -> str | None:
        return self._store.serving({str(node): status for node, status in statuses.items()})

    def _make_process(self, node: NodeId, folder: Path) -> StoreProcess:
        host = self._hosts[node]
        addresses = {str(name): other.address for name, other in self._hosts.items()}
        place = StorePlace(node=node, addresses=addresses, folder=f"{host.folder}/{node}", options=self._options)
        member = StoreProcess(self._store, place, self.host_set.fleet[host.name], folder, self.secret)
        self._members[node] = member
        return member

    def _host_address(self, node: str) -> str:
        return self._hosts[NodeId(node)].address


def _refuse_without_libraries(store: HostedStore) -> None:
    for module, extra in store.libraries.items():
        if find_spec(module) is None:
            raise UsageError(
                f"Clients of {store.name} need the Python library {module}, which is not installed.",
                f"Run: pip install 'faultline[{extra}]'",
            )
