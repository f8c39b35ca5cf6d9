"""The steps of one run as a campaign needs them: resolve, refuse, plan, run, judge.

A campaign does not depend on the way in which a world carries out a plan. It takes an engine, and tests pass another
one.

On hosts each run gets hosts of its own: namespaces are made in half a second, so that no run finds leftovers of
another, and a store that breaks its host spoils one run only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.minimal import Minimal, keep_minimal_run
from faultline.harness.parts import Parts, refuse_what_cannot_run
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord, WorldName
from faultline.harness.store import open_history
from faultline.harness.world.faults import LOCAL_CAPABILITIES, SIMULATED_CAPABILITIES
from faultline.harness.world.simulated.trace import Watch as NodeWatch

__all__ = ["Engine", "default_engine"]


Minimize = Callable[[Path, Plan, Judgement, Parts, Callable[[Path], str], str], tuple[Minimal, RunRecord, Judgement]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """`resolve` names to parts once per cell, `refuse` plans the world cannot carry out; per seed `plan`, run, `judge`.

    `simulate` carries out a plan and records messages when asked to; `collect` carries it out on real processes,
    keeping its files in the folder of the run. `observe` simulates and shows an observer what nodes report; None where
    that cannot be seen. `minimize` shrinks a violation of a signature and keeps its minimal run below the folder of the
    run; None where runs cannot be repeated.
    """

    resolve: Callable[[RunRequest], Parts]
    refuse: Callable[[Plan, Parts], None]
    plan: Callable[[RunRequest, Parts], Plan]
    simulate: Callable[[Plan, Parts, bool], RunRecord]
    collect: Callable[[Plan, Parts, Path], RunRecord]
    judge: Callable[[RunRecord, Parts, str], Judgement]
    minimize: Minimize | None = None
    observe: Callable[[Plan, Parts, NodeWatch], RunRecord] | None = None

    def judged(self, request: RunRequest) -> Judgement:
        """Return the judgement of one simulated run. Raise `UsageError` when it cannot be planned or carried out."""
        parts = self.resolve(request)
        plan = self.plan(request, parts)
        self.refuse(plan, parts)
        return self.judge(self.simulate(plan, parts, False), parts, "run")


def default_engine(world: WorldName, hosts: str = "") -> Engine:
    """Return the engine of ordinary campaigns in `world`, on `hosts` where that is the world."""
    from faultline.registry import resolve

    refusals: dict[WorldName, Callable[[Plan, Parts], None]] = {
        "simulated": _refuse_simulated,
        "local": _refuse_local,
        "hosts": partial(_refuse_on_hosts, hosts),
    }
    return Engine(
        resolve=resolve,
        refuse=refusals[world],
        plan=make_plan,
        simulate=_simulate,
        collect=partial(_collect_on_hosts, hosts) if world == "hosts" else _collect,
        judge=_judge,
        minimize=keep_minimal_run if world == "simulated" else None,
        observe=_observe if world == "simulated" else None,
    )


def _refuse_simulated(plan: Plan, parts: Parts) -> None:
    refuse_what_cannot_run(plan, parts, frozenset(SIMULATED_CAPABILITIES), "simulated")


def _refuse_local(plan: Plan, parts: Parts) -> None:
    refuse_what_cannot_run(plan, parts, frozenset(LOCAL_CAPABILITIES), "local")


def _simulate(plan: Plan, parts: Parts, record_messages: bool) -> RunRecord:
    return run_simulated(plan, parts, record_messages=record_messages)


def _observe(plan: Plan, parts: Parts, observer: NodeWatch) -> RunRecord:
    return run_simulated(plan, parts, observer=observer)


def _collect(plan: Plan, parts: Parts, folder: Path) -> RunRecord:
    from faultline.harness.world.local.world import run_local

    with open_history(folder) as sink:
        return run_local(plan, parts, folder=folder, sink=sink)


def _refuse_on_hosts(hosts: str, plan: Plan, parts: Parts) -> None:
    from faultline.harness.world.hosts.machines.host_sets import open_hosts, parse_hosts
    from faultline.harness.world.hosts.run import refuse_on_hosts

    with contextlib.closing(open_hosts(parse_hosts(hosts))) as host_set:
        refuse_on_hosts(plan, parts, host_set)


def _collect_on_hosts(hosts: str, plan: Plan, parts: Parts, folder: Path) -> RunRecord:
    from faultline.harness.world.hosts.machines.host_sets import open_hosts, parse_hosts
    from faultline.harness.world.hosts.run import run_on_hosts

    with contextlib.closing(open_hosts(parse_hosts(hosts))) as host_set, open_history(folder) as sink:
        return run_on_hosts(plan, parts, host_set, folder=folder, sink=sink)


def _judge(record: RunRecord, parts: Parts, run_id: str) -> Judgement:
    return judge(record, parts, run_id=run_id, probes=True)
