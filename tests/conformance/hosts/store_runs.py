"""A short run of a real store on hosts, or the proof that hosts without the store are refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from faultline.harness.errors import HarnessError
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run_record import RunRecord
from faultline.harness.system import HostedStore
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.run import run_on_hosts
from faultline.registry import resolve

__all__ = ["programs_on", "run_store"]


def programs_on(hosts: NamespaceHosts) -> dict[str, set[str]]:
    """The names of the programs that run on each host."""
    # A process that ends meanwhile has none any more.
    names = hosts.fleet.run("cat /proc/[0-9]*/comm 2>/dev/null; true")
    return {host: set(result.text.split()) for host, result in names.items()}


def run_store(
    hosts: NamespaceHosts,
    folder: Path,
    system: str,
    faults: Sequence[PlannedFault],
    *,
    workload: str = "register",
    options: Mapping[str, str] | None = None,
    duration_s: float = 3.0,
    progress: Callable[[str], None] | None = None,
) -> tuple[RunRecord, Judgement] | None:
    """Run the store and return the record and its judgement; None where the hosts lack the store.

    The refusal for want of the store is checked. Cuts are left out where links cannot be cut; every other fault must
    have been applied.
    """
    possible = tuple(fault for fault in faults if fault.kind != "partition" or not hosts.links.refusal)
    request = RunRequest(
        system=system,
        workload=workload,
        options=dict(options or {}),
        world="hosts",
        seed=1,
        duration_s=duration_s,
        faults=(),
    )
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=possible)
    assert isinstance(parts.system, HostedStore)
    for program, package in parts.system.programs.items():
        if hosts.fleet["n1"].run(f"command -v {program}", check=False).exit_code:
            with pytest.raises(HarnessError, match=f"The host n1 has no {program}") as refused:
                run_on_hosts(plan, parts, hosts, folder=folder)
            assert f"apt-get install {package}" in refused.value.next_step
            return None
    record = run_on_hosts(plan, parts, hosts, folder=folder, progress=progress)
    assert record.errors == [] and record.breaches == []
    assert [(fault.kind, fault.applied) for fault in record.faults] == [(fault.kind, None) for fault in possible]
    return record, judge(record, parts, run_id=system)
