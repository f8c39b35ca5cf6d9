"""Agents on hosts: clocks of a store, frozen and squeezed members; and nothing of them stays."""

from __future__ import annotations

import asyncio
import os
import re
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from namespace_fixtures import groups_named, on_namespaces, opened, other_harness

from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.judge import judge
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan, PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.verdict import Verdict
from faultline.harness.world.hosts.cluster import HostCluster
from faultline.harness.world.hosts.machines.abilities import AGENT_FAULTS, CLOCK_FAULTS
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.processes.host_agent import AgentRefusal, HostAgent
from faultline.harness.world.hosts.run import run_on_hosts
from faultline.registry import resolve

pytestmark = [pytest.mark.real, pytest.mark.slow]

MS = 1_000
HOUR_US = 3_600_000_000


def planned(system: str, faults: list[PlannedFault], duration_s: float) -> tuple[Plan, Parts]:
    request = RunRequest(system=system, world="hosts", seed=1, duration_s=duration_s, faults=())
    parts = resolve(request)
    return msgspec.structs.replace(make_plan(request, parts), faults=tuple(faults)), parts


def refused_as_it_should(hosts: NamespaceHosts, plan: Plan, parts: Parts, folder: Path) -> bool:
    """Return whether a host cannot do what the plan wants; assert that the run is then refused with its reason."""
    wanted = {need for fault in plan.faults for need in parts.nemeses[fault.kind].needs} & AGENT_FAULTS
    reasons = {fault: why for fault, why in hosts.abilities.refusals().items() if fault in wanted}
    if reasons:
        with pytest.raises(UsageError) as refused:
            run_on_hosts(plan, parts, hosts, folder=folder)
        assert all(why in refused.value.message for why in reasons.values())
    return bool(reasons)


def times_in(log: str) -> list[datetime]:
    """Return the time that etcd writes in each line of its log."""
    return [datetime.fromisoformat(text) for text in re.findall(r'"ts":"([^"]+)Z"', log)]


@on_namespaces
def test_etcd_serves_under_clock_faults_and_a_restarted_member_goes_on_with_its_clock(
    hosts: NamespaceHosts, tmp_path: Path
) -> None:
    faults = [
        PlannedFault("clock-drift", 100 * MS, 400 * MS, "all", {"rate_ppm": 100_000}),
        PlannedFault("clock-strobe", 600 * MS, 300 * MS, "one", {"delta_us": -5_000_000}),
        # Until the heal, so that the restart comes before its end, however late the kill is.
        PlannedFault("clock-step", 1_000 * MS, 3_000 * MS, "athens", {"delta_us": -HOUR_US}),
        PlannedFault("kill", 1_300 * MS, 300 * MS, "athens"),
    ]
    plan, parts = planned("etcd", faults, 4.0)
    if hosts.fleet["n1"].run("command -v etcd", check=False).exit_code:
        with pytest.raises(HarnessError, match="The host n1 has no etcd"):
            run_on_hosts(plan, parts, hosts, folder=tmp_path)
        return
    if refused_as_it_should(hosts, plan, parts, tmp_path):
        return
    record = run_on_hosts(plan, parts, hosts, folder=tmp_path)
    assert record.errors == [] and record.breaches == []
    assert [(fault.kind, fault.applied) for fault in record.faults] == [(fault.kind, None) for fault in faults]
    judgement = judge(record, parts, run_id="clocks")
    assert judgement.verdict is Verdict.PASS, judgement.sentence
    # etcd says itself what time it takes it to be, also after its second start: soon, if not from its first line on.
    log = (tmp_path / "nodes" / "athens" / "node.log").read_text()
    _, first, second = log.split("starting an etcd server")
    started, *_ = times_in(first)
    assert any(timedelta(0) < time - started + timedelta(hours=1) < timedelta(minutes=10) for time in times_in(second))


@on_namespaces
def test_members_are_frozen_and_squeezed_and_recover(hosts: NamespaceHosts, tmp_path: Path) -> None:
    faults = [
        PlannedFault("freeze", 100 * MS, 300 * MS, "leader"),
        PlannedFault("cpu-squeeze", 700 * MS, 300 * MS, "byzantium", {"share": 0.2}),
        PlannedFault("memory-squeeze", 1_200 * MS, 300 * MS, "cyrene", {"headroom_kib": 2048}),
    ]
    plan, parts = planned("consistent-core", faults, 3.0)
    if refused_as_it_should(hosts, plan, parts, tmp_path):
        return
    record = run_on_hosts(plan, parts, hosts, folder=tmp_path)
    assert record.errors == [] and record.breaches == []
    assert [(fault.kind, fault.applied) for fault in record.faults] == [(fault.kind, None) for fault in faults]
    assert "by control group" in record.faults[0].description or "by SIGSTOP" in record.faults[0].description
    judgement = judge(record, parts, run_id="limits")
    assert judgement.verdict is Verdict.PASS, judgement.sentence
    assert groups_named(hosts.abilities.set_name) == []


@on_namespaces
def test_an_agent_refuses_with_a_reason_and_is_sent_again_when_it_was_lost(hosts: NamespaceHosts) -> None:
    folder = f"{hosts.hosts[0].folder}/silent"
    agent = HostAgent(hosts.fleet["n1"], folder, "silent", hosts.abilities.set_name, is_store=True)
    try:
        assert agent.ask("frozen") is False
        with pytest.raises(AgentRefusal, match="On n1, explode is not possible: that is no question"):
            agent.ask("explode")
        assert agent.ask("step", wall_ns=10**9) is None
        assert agent.ask("clock")["wall_off_ns"] == 10**9
        hosts.fleet["n1"].run("kill -KILL $(grep -lz [s]ilent[.]agent /proc/[0-9]*/cmdline | cut -d/ -f3 | head -n 1)")
        assert agent._program is not None
        agent._program.channel.status_event.wait(10)
        assert agent.ask("clock")["wall_off_ns"] == 0
    finally:
        agent.close()
    assert hosts.fleet["n1"].run(f"ls {folder}.agent", check=False).exit_code != 0
    agent.close()


@on_namespaces
def test_a_run_that_asks_for_no_such_fault_sends_no_agent(hosts: NamespaceHosts, tmp_path: Path) -> None:
    plan, parts = planned("consistent-core", [], 0.5)
    for asked in (frozenset({"pause", "clock-step"}), frozenset({"freeze"})):
        cluster = HostCluster(plan, parts.system_path, hosts, tmp_path, asked)
        asyncio.run(cluster.open_links())
        there = hosts.fleet["n1"].run(f"ls {hosts.hosts[0].folder}").text.split()
        assert ("athens.agent" in there) == ("freeze" in asked)
        can = "freeze" in asked and "freeze" not in hosts.abilities.refusals()
        assert ("freeze" in cluster.capabilities()) == can
        asyncio.run(cluster.close())
    assert "athens.agent" not in hosts.fleet["n1"].run(f"ls {hosts.hosts[0].folder}").text


@on_namespaces
def test_what_agents_can_do_is_found_out_by_trying(hosts: NamespaceHosts) -> None:
    refusals = hosts.abilities.refusals()
    assert set(refusals) <= AGENT_FAULTS
    assert (set(refusals) & CLOCK_FAULTS == set()) == (os.uname().machine == "x86_64")
    assert all(why.startswith("on n") for why in refusals.values())


def test_frozen_members_and_their_groups_go_when_the_harness_is_killed() -> None:
    probe = opened(1)
    if isinstance(probe, HarnessError):
        assert probe.next_step
        return
    probe.close()
    with other_harness(
        "from faultline.harness.world.hosts.processes.host_agent import HostAgent",
        "folder = hosts.hosts[0].folder + '/athens'",
        "start = 'setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $!'",
        "hosts.fleet['n1'].run(f'mkdir -p {folder}; {start} >{folder}/node.pid')",
        "agent = HostAgent(hosts.fleet['n1'], folder, 'athens', hosts.abilities.set_name, is_store=False)",
        "said = agent.ask('freeze').replace(' ', '-')",
        "assert agent.ask('frozen')",
    ) as other:
        assert bool(groups_named(other.folder.name)) == other.said.startswith("control-group")
        other.kill()
    assert groups_named(other.folder.name) == [] and not other.folder.exists()
