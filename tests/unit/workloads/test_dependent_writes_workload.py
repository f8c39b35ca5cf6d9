"""The workloads of chains: what their operations depend on, and that they refuse systems that cannot serve them."""

from __future__ import annotations

import msgspec
import pytest

from faultline.harness.errors import UsageError
from faultline.harness.generator import planned_operations
from faultline.harness.judge import judge
from faultline.harness.plan import PlannedOperation
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import load_workload, resolve

NAMES = ["dependent-writes", "causal-writes", "moved-sessions"]


def rows(name: str, seed: int = 1) -> list[PlannedOperation]:
    generator = load_workload(name).generator(workers=5, operations=200, seed=seed)
    return list(planned_operations(generator, workers=5, seed=seed, latency_us=4_000))


@pytest.mark.parametrize("name", NAMES)
def test_they_plan_their_functions_alike_each_time(name: str) -> None:
    planned = [row for seed in range(5) for row in rows(name, seed)]
    assert {row.f for row in planned} == set(load_workload(name).functions)
    assert rows(name) == rows(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_write_depends_on_a_read_of_the_key_before_and_the_first_key_on_none(name: str) -> None:
    writes = [row for seed in range(5) for row in rows(name, seed) if row.f == "write"]
    for row in writes:
        chain, _, place = (row.key or "").rpartition("/")
        if place == "0":
            assert row.answer_of is msgspec.UNSET
        else:
            assert row.answer_of is not msgspec.UNSET
            assert (row.answer_of.f, row.answer_of.key) == ("read", f"{chain}/{int(place) - 1}")
    dependent = [row for row in writes if row.answer_of is not msgspec.UNSET]
    told = [row for row in dependent if row.answer_of is not msgspec.UNSET and row.answer_of.worker != row.worker]
    assert (name == "dependent-writes") == bool(told)
    assert len(told) < len(dependent)


@pytest.mark.parametrize("name", NAMES)
def test_no_number_is_written_twice_to_a_key(name: str) -> None:
    written = [(row.key, row.value if isinstance(row.value, int) else row.value[0]) for row in rows(name) if row.value]
    assert len(written) == len(set(written)) > 20


def test_a_session_moves_with_the_answer_to_the_write_of_another_worker() -> None:
    moves = [row for row in rows("moved-sessions") if row.f == "read-after"]
    assert len(moves) > 5
    assert all(row.answer_of is not msgspec.UNSET and row.answer_of.worker != row.worker for row in moves)


@pytest.mark.parametrize(
    ("system", "name"),
    [
        ("consistent-core", "dependent-writes"),
        ("follower-reads", "causal-writes"),
        ("timestamped-kv", "causal-writes"),
        ("follower-reads", "moved-sessions"),
    ],
)
def test_a_correct_run_passes_with_causes_read_after_effects_and_repeats_from_its_plan(system: str, name: str) -> None:
    request = RunRequest(system=system, workload=name, faults=("partition",), seed=3)
    parts = resolve(request)
    plan = make_plan(request, parts)
    record = run_simulated(plan, parts)
    judgement = judge(record, parts, run_id="any")
    (check,) = [check for check in judgement.checks if check.checker == "dependent-writes"]
    assert judgement.verdict is Verdict.PASS
    assert check.detail["counts"]["telling"] > 10
    stored = msgspec.json.decode(msgspec.json.encode(plan), type=type(plan))
    assert run_simulated(stored, parts).history.digest() == record.history.digest()


@pytest.mark.parametrize(
    ("system", "name", "options", "why"),
    [
        ("consistent-core", "moved-sessions", {}, "it has no function read-after"),
        ("follower-reads", "causal-writes", {"follower_reads": "stamped"}, "followers answer, and may be behind"),
        ("timestamped-kv", "dependent-writes", {}, "with wait=none"),
    ],
)
def test_a_system_that_does_not_promise_it_refuses_in_a_sentence(
    system: str, name: str, options: dict[str, str], why: str
) -> None:
    request = RunRequest(system=system, workload=name, options=options)
    with pytest.raises(UsageError, match=why):
        make_plan(request, resolve(request))
