"""Hypothesis chooses runs and histories: correct systems pass, planted bugs are told with a minimal plan."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase

from faultline.checkers import check
from faultline.harness.errors import UsageError
from faultline.harness.plan import Plan
from faultline.testing.campaigns import RunFailed
from faultline.testing.strategies import (
    SIMULATED,
    StoreMachine,
    assert_plan_passes,
    histories,
    plan_of,
    plans,
    universes,
)

ROOT = Path(__file__).resolve().parents[3]
MODELS = ("register", "linearizable-set", "linearizable-counter")


@pytest.mark.slow
@settings(SIMULATED, max_examples=10)
@given(plans("consistent-core"))
def test_a_correct_system_passes_under_every_plan(plan: Plan) -> None:
    assert_plan_passes(plan)


@pytest.mark.slow
def test_a_planted_bug_fails_with_its_minimal_plan_and_is_tried_first_the_next_time(tmp_path: Path) -> None:
    ran: list[Plan] = []

    @settings(SIMULATED, max_examples=200, derandomize=False, database=InMemoryExampleDatabase())
    @given(plans("consistent-core", planted_bugs=["stale-read"], operations=100))
    def finds(plan: Plan) -> None:
        ran.append(plan)
        assert_plan_passes(plan, output=tmp_path)

    with pytest.raises(RunFailed) as first:
        finds()
    told = str(first.value)
    assert "still show it" in told and first.value.replay in told
    assert "plan_of(" in "".join(first.value.__notes__)
    assert len(list((tmp_path / "runs").iterdir())) == 1, "only the example that is shown is kept"
    found, _ = ran[-1], ran.clear()
    with pytest.raises(RunFailed):
        finds()
    assert ran[0] == found


def test_a_failure_without_hypothesis_is_kept_at_once(tmp_path: Path) -> None:
    plan = plan_of("consistent-core", planted_bugs=("stale-read",), seed=7)
    with pytest.raises(RunFailed, match="Minimal: 3 operations and 1 fault"):
        assert_plan_passes(plan, output=tmp_path)
    assert_plan_passes(plan_of("consistent-core", seed=7), output=tmp_path / "correct")
    assert not (tmp_path / "correct").exists()


@settings(max_examples=20)
@given(plans("paxos-kv", faults=st.sampled_from(["kill", "pause,partition"]), nodes=5))
def test_a_field_is_fixed_by_a_value_or_by_a_strategy(plan: Plan) -> None:
    assert len(plan.nodes) == 5
    assert plan.fault_set in [("kill",), ("pause", "partition")]


def test_fault_sets_beyond_the_promise_are_not_drawn() -> None:
    drawn: set[tuple[str, ...]] = set()
    unflushed = {"flush_policy": "never"}

    @settings(max_examples=60)
    @given(plans("consistent-core", options=unflushed))
    def note(plan: Plan) -> None:
        drawn.add(plan.fault_set)

    with pytest.raises(UsageError, match="does not promise"):
        plan_of("consistent-core", options=unflushed, faults=("kill",))
    note()
    assert ("partition",) in drawn
    assert ("kill",) not in drawn


def test_what_does_not_exist_is_refused_before_anything_is_drawn() -> None:
    with pytest.raises(UsageError, match="A plan has no fault to be fixed"):
        plans("consistent-core", fault="kill")
    with pytest.raises(UsageError, match="Did you mean consistent-core"):
        plans("consistent-cor")
    with pytest.raises(UsageError, match="A plan has no held to be fixed"):
        universes("consistent-core", held=("nodes",))
    with pytest.raises(UsageError, match="Did you mean consistent-core"):
        universes("consistent-cor")


@settings(max_examples=10)
@given(universes("quorum-kv", operations=60, options={"write_quorum": "2"}))
def test_a_universe_draws_all_but_what_is_fixed(plan: Plan) -> None:
    assert plan.universe is not None and plan.options["write_quorum"] == "2"
    assert not {"operations", "option.write_quorum"} & plan.universe.keys()
    assert {"nodes", "workers"} <= plan.universe.keys()


def test_universes_differ_in_workload_nodes_weather_and_faults() -> None:
    drawn: list[Plan] = []

    @settings(max_examples=40)
    @given(universes("consistent-core"))
    def note(plan: Plan) -> None:
        drawn.append(plan)

    note()
    for trait in ("workload", "nodes", "weather"):
        assert len({str(getattr(plan, trait)) for plan in drawn}) > 3, trait
    assert len({plan.universe["faults"] for plan in drawn if plan.universe}) > 3


@pytest.mark.slow
@settings(SIMULATED, max_examples=10)
@given(universes("consistent-core"))
def test_a_correct_system_passes_in_every_universe(plan: Plan) -> None:
    assert_plan_passes(plan)


@pytest.mark.slow
def test_a_planted_bug_is_found_in_some_universe(tmp_path: Path) -> None:
    @settings(SIMULATED, max_examples=200)
    @given(universes("consistent-core", planted_bugs=["stale-read"], workload="register"))
    def finds(plan: Plan) -> None:
        assert_plan_passes(plan, output=tmp_path)

    with pytest.raises(RunFailed, match="Minimal: "):
        finds()


@pytest.mark.parametrize("model", MODELS)
def test_drawn_histories_are_linearizable_and_one_invented_answer_is_refused(model: str) -> None:
    refused = []

    @given(histories(model), st.data())
    def judged(history, data) -> None:
        assert str(check(model, history).verdict) != "violation"
        answered = [row for row in range(len(history)) if history.f[row] == "read" and history.outcome[row] == "ok"]
        if not answered:
            return
        history.result[data.draw(st.sampled_from(answered))] = [-1] if model == "linearizable-set" else -1
        assert str(check(model, history).verdict) == "violation"
        refused.append(history)

    judged()
    assert len(refused) > 10


def test_histories_of_an_unknown_model_are_refused() -> None:
    @given(histories("cabinet"))
    def drawn(history) -> None:
        """Draw one."""

    with pytest.raises(UsageError, match="no histories of the model cabinet"):
        drawn()


class Core(StoreMachine):
    """The consistent core, whose log is flushed before an answer."""

    system = "consistent-core"
    nodes = 3


class ForgetfulCore(Core):
    """The same with an answer before the flush."""

    planted_bugs = ("ack-before-fsync",)


def two_crashes(machine: StoreMachine) -> None:
    """Write, and crash a majority one after the other."""
    machine.invoke(worker=0)
    machine.invoke(worker=0)
    machine.strike(kind="kill", struck="follower", duration_ms=20)
    machine.strike(kind="kill", struck="leader", duration_ms=20)


def test_steps_by_hand_make_a_run_that_tells_the_bug_and_passes_without_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(StoreMachine, "output", tmp_path)
    forgetful, correct = ForgetfulCore(), Core()
    two_crashes(forgetful)
    two_crashes(correct)
    correct.teardown()
    with pytest.raises(RunFailed, match="Replay: faultline replay"):
        forgetful.teardown()


def test_the_answers_so_far_can_be_looked_at_between_steps() -> None:
    machine = Core()
    machine.perform(1, "write", "k0", 7)
    machine.wait(duration_ms=100)
    machine.perform(0, "read", "k0")
    history = machine.run().history
    assert (history.f[:2], history.result[1], history.outcome[1]) == (["write", "read"], 7, "ok")


def test_a_second_fault_begins_after_the_first_has_ended() -> None:
    machine = Core()
    two_crashes(machine)
    first, second = machine.plan().faults
    assert first.stop_us < second.at_us < machine.plan().heal_us


TestCore = Core.TestCase
TestCore.settings = settings(SIMULATED, max_examples=5, stateful_step_count=20)


def test_hypothesis_is_imported_by_the_strategies_alone() -> None:
    script = "import faultline.testing, faultline.pytest_plugin, sys; sys.exit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
    importing = [
        path.name
        for path in sorted((ROOT / "faultline").rglob("*.py"))
        if "\nfrom hypothesis import" in path.read_text()
    ]
    assert importing == ["strategies.py"]
