"""The decisions of a run can be repeated: the same nodes and links, whichever roles they have the second time."""

from __future__ import annotations

import msgspec
import pytest

from faultline.harness.decisions import as_it_happened
from faultline.harness.history import History
from faultline.harness.plan import Plan, PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.registry import resolve

REQUEST = RunRequest(system="consistent-core", faults=("partition", "kill", "pause", "packet"), operations=60, nodes=5)


def run(plan: Plan) -> RunRecord:
    return run_simulated(plan, resolve(plan))


@pytest.mark.parametrize("seed", range(6))
def test_faults_hit_the_same_nodes_and_links_again(seed: int) -> None:
    request = msgspec.structs.replace(REQUEST, seed=seed)
    first = run(make_plan(request, resolve(request)))
    decided = as_it_happened(first.plan, first.history)
    assert not {fault.target for fault in decided.faults} & {"leader", "one", "follower", "minority", "majority", "all"}
    again = run(decided)
    hit = [(fault.kind, fault.nodes, set(fault.links)) for fault in first.faults if fault.nodes]
    assert [(fault.kind, fault.nodes, set(fault.links)) for fault in again.faults if fault.nodes] == hit != []


def test_operations_are_invoked_when_they_were_and_nothing_else_is() -> None:
    first = run(make_plan(REQUEST, resolve(REQUEST)))
    decided = as_it_happened(first.plan, first.history)
    history = first.history
    assert [operation.at_us for operation in decided.operations] == history.invoke_us
    assert [(operation.worker, operation.f, operation.key, operation.value) for operation in decided.operations] == [
        (row.worker, row.f, row.key, row.value) for row in history.rows()
    ]


def test_operations_that_depend_on_an_answer_depend_on_it_again() -> None:
    request = RunRequest(system="follower-reads", workload="moved-sessions", operations=60)
    first = run(make_plan(request, resolve(request)))
    decided = as_it_happened(first.plan, first.history)
    needed = [one.answer_of for one in first.plan.operations if one.answer_of is not msgspec.UNSET]
    assert sorted(map(str, needed)) == sorted(
        str(one.answer_of) for one in decided.operations if one.answer_of is not msgspec.UNSET
    )
    assert run(decided).history.value == first.history.value


def test_a_decided_plan_keeps_the_rest_of_the_plan_and_is_data() -> None:
    first = run(make_plan(REQUEST, resolve(REQUEST)))
    decided = as_it_happened(first.plan, first.history)
    assert msgspec.structs.replace(decided, operations=first.plan.operations, faults=first.plan.faults) == first.plan
    assert msgspec.json.decode(msgspec.json.encode(decided), type=Plan) == decided


def test_a_fault_that_never_stopped_lasts_until_the_heal_and_one_that_hit_no_node_stays_as_planned() -> None:
    plan = msgspec.structs.replace(make_plan(REQUEST, resolve(REQUEST)), heal_us=9_000)
    plan = msgspec.structs.replace(plan, faults=(PlannedFault("kill", 1_000, 10, "leader"),))
    history = History()
    history.fault("start-kill", {"fault": 0, "nodes": [], "links": []}, 2_000)
    (fault,) = as_it_happened(plan, history).faults
    assert fault == PlannedFault("kill", 2_000, 7_000, "leader")
