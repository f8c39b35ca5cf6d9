"""Carries out a plan on hosts: the third world, in which processes, machines and the network between them are real."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from faultline.harness.errors import UsageError
from faultline.harness.history import EventSink
from faultline.harness.parts import Parts, refuse_what_cannot_run
from faultline.harness.plan import Plan
from faultline.harness.run_record import RunRecord
from faultline.harness.world.real.local import make_nodes_folder
from faultline.harness.world.real.run import RealRun
from faultline.hosts.cluster import HostCluster, capabilities_of
from faultline.hosts.fault_port import HostFaultPort
from faultline.hosts.host_sets import HostSet

__all__ = ["run_on_hosts"]


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

    Otherwise as `faultline.harness.world.real.local.run_local`.
    """
    if len(plan.nodes) > len(host_set.hosts):
        raise UsageError(
            f"{len(plan.nodes)} nodes need as many hosts, but there are {len(host_set.hosts)}.", "Use fewer --nodes."
        )
    _refuse(plan, parts, host_set)
    make_nodes_folder(folder)
    cluster = HostCluster(plan, parts.system_path, host_set, folder)
    run = RealRun(
        plan, parts, cluster, lambda loop: HostFaultPort(cluster, loop), world="hosts", sink=sink, progress=progress
    )
    return asyncio.run(run.carry_out())


def _refuse(plan: Plan, parts: Parts, host_set: HostSet) -> None:
    try:
        refuse_what_cannot_run(plan, parts, capabilities_of(host_set), "hosts")
    except UsageError as error:
        if host_set.links.refusal and "cut" in error.message:
            raise UsageError(f"{error.message} The reason: {host_set.links.refusal}.", error.next_step) from error
        raise
