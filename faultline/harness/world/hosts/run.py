"""Carries out a plan on hosts: the third world, in which processes, machines and the network between them are real."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from faultline.harness.errors import UsageError
from faultline.harness.history import EventSink
from faultline.harness.parts import Parts, refuse_what_cannot_run
from faultline.harness.plan import Plan
from faultline.harness.run_record import RunRecord
from faultline.harness.system import HostedStore
from faultline.harness.world.hosts.cluster import HostCluster
from faultline.harness.world.hosts.fault_port import host_fault_port
from faultline.harness.world.hosts.machines.host_options import checked_host_options
from faultline.harness.world.hosts.machines.host_sets import HostSet
from faultline.harness.world.hosts.store_cluster import StoreCluster
from faultline.harness.world.local.run import RealRun
from faultline.harness.world.local.world import make_nodes_folder

__all__ = ["refuse_on_hosts", "run_on_hosts"]


def run_on_hosts(
    plan: Plan,
    parts: Parts,
    host_set: HostSet,
    *,
    folder: Path,
    sink: EventSink | None = None,
    progress: Callable[[str], None] | None = None,
) -> RunRecord:
    """Carry out `plan` with one node on each host; logs and traces come to `folder`/nodes. The hosts stay open.

    Otherwise as `faultline.harness.world.local.world.run_local`.
    """
    _refuse_unsuitable(plan, host_set)
    make_nodes_folder(folder)
    cluster = _cluster(plan, parts, host_set, folder)
    _refuse(plan, parts, cluster)
    run = RealRun(
        plan, parts, cluster, lambda loop: host_fault_port(cluster, loop), world="hosts", sink=sink, progress=progress
    )
    return asyncio.run(run.carry_out())


def refuse_on_hosts(plan: Plan, parts: Parts, host_set: HostSet) -> None:
    """Raise UsageError for what these hosts cannot carry out of `plan`, without starting anything."""
    _refuse_unsuitable(plan, host_set)
    with tempfile.TemporaryDirectory(prefix="faultline-refusal-") as folder:
        _refuse(plan, parts, _cluster(plan, parts, host_set, Path(folder)))


def _refuse_unsuitable(plan: Plan, host_set: HostSet) -> None:
    if len(plan.nodes) > len(host_set.hosts):
        raise UsageError(
            f"{len(plan.nodes)} nodes need as many hosts, but there are {len(host_set.hosts)}.", "Use fewer --nodes."
        )
    checked_host_options(plan.host_options)


def _cluster(plan: Plan, parts: Parts, host_set: HostSet, folder: Path) -> HostCluster:
    asked = _needs(plan, parts)
    if isinstance(parts.system, HostedStore):
        return StoreCluster(plan, parts.system, host_set, folder, asked)
    return HostCluster(plan, parts.system_path, host_set, folder, asked)


def _needs(plan: Plan, parts: Parts) -> frozenset[str]:
    """Return the capabilities that the plan's faults need."""
    return frozenset(need for fault in plan.faults for need in parts.nemeses[fault.kind].needs)


def _refuse(plan: Plan, parts: Parts, cluster: HostCluster) -> None:
    try:
        refuse_what_cannot_run(plan, parts, cluster.capabilities(), "hosts")
    except UsageError as error:
        lacking = sorted(_needs(plan, parts) - cluster.capabilities())
        reasons = [f"{name}: {cluster.refusal(name)}" for name in lacking if cluster.refusal(name)]
        if reasons:
            raise UsageError(f"{error.message} The reason: {'; '.join(reasons)}.", error.next_step) from error
        raise
