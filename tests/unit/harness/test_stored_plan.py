"""Plans that were read from a file: numbers and names that make no sense are refused with their key."""

import json

import msgspec
import pytest

from faultline.harness.errors import UsageError
from faultline.harness.operation import AnswerOf
from faultline.harness.plan import Plan, PlannedOperation
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.stored_plan import fit_plan
from faultline.harness.untrusted import DamagedInput, from_json
from faultline.registry import resolve

REQUEST = RunRequest(system="consistent-core", operations=10)
PARTS = resolve(REQUEST)
PLAN = make_plan(REQUEST, PARTS)


def read_back(**changes):
    """The plan as a file has it, with these changes, read back."""
    return from_json(json.dumps(msgspec.to_builtins(PLAN) | changes), Plan, "run.json")


def test_a_plan_that_was_written_down_is_fit():
    assert read_back() == PLAN
    fit_plan(read_back(), PARTS, "run.json")


def test_an_operation_that_depends_on_an_answer_is_written_down_and_one_that_does_not_is_as_before():
    dependent = PlannedOperation(0, 5, "write", "y", 1, AnswerOf(1, "read", "x"))
    assert msgspec.json.decode(msgspec.json.encode(dependent), type=PlannedOperation) == dependent
    assert b"answer_of" not in msgspec.json.encode(PLAN)


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("weather.drift_ppm_max", {"weather": {"drift_ppm_max": 2**63}}),
        ("weather.drift_ppm_max", {"weather": {"drift_ppm_max": -(2**63)}}),
        ("weather.loss", {"weather": {"loss": 1.5}}),
        ("weather.latency_us_max", {"weather": {"latency_us_max": 2**40}}),
        ("heal_us", {"heal_us": -1}),
        ("end_us", {"end_us": 10**30}),
        ("seed", {"seed": -1}),
        ("workers", {"workers": 0}),
        ("workers", {"workers": 1_000_000}),
        ("nodes", {"nodes": []}),
        ("nodes", {"nodes": ["../../athens"]}),
        ("operations", {"operations": [{"worker": -1, "at_us": 0, "f": "read"}]}),
        ("operations", {"operations": [{"worker": 0, "at_us": -5, "f": "read"}]}),
        ("faults", {"faults": [{"kind": "kill", "at_us": 0, "duration_us": -1}]}),
    ],
)
def test_a_number_out_of_its_range_is_refused_with_its_key(key, changes):
    with pytest.raises(DamagedInput, match=rf"run\.json cannot be read: .*\$\.{key}"):
        read_back(**changes)


@pytest.mark.parametrize(
    ("complaint", "changes"),
    [
        ("nodes has a name twice", {"nodes": ["athens", "athens"]}),
        ("not within ten minutes after heal_us", {"end_us": PLAN.heal_us - 1}),
        ("not within ten minutes after heal_us", {"end_us": PLAN.heal_us + 10**12}),
        ("weather.latency_us_min is 5000, which is more than latency_us_max", {"weather": {"latency_us_min": 5_000}}),
        ("an operation is of worker 7", {"operations": [{"worker": 7, "at_us": 0, "f": "read"}]}),
        (
            "needs an answer of worker 7, but there are only",
            {"operations": [{"worker": 0, "at_us": 0, "f": "write", "answer_of": {"worker": 7, "f": "read"}}]},
        ),
        ("no option called 'no-such'", {"options": {"no-such": "1"}}),
        ("must be a whole number", {"options": {"batch_size_bytes": "-1"}}),
        ("no planted bug called 'no-such'", {"mutants": ["no-such"]}),
    ],
)
def test_a_plan_that_does_not_fit_its_parts_is_refused(complaint, changes):
    with pytest.raises(UsageError, match=complaint):
        fit_plan(read_back(**changes), PARTS, "run.json")


def test_a_fault_of_a_kind_that_is_not_known_is_refused_by_name():
    plan = read_back(faults=[{"kind": "earthquake", "at_us": 0, "duration_us": 1}])
    with pytest.raises(UsageError, match="a fault of the unknown kind 'earthquake'"):
        run_simulated(plan, PARTS)


def test_a_planted_bug_that_is_not_known_is_refused_by_name():
    with pytest.raises(UsageError, match="a planted bug 'no-such'"):
        run_simulated(read_back(mutants=["no-such"]), PARTS)


def test_numbers_with_which_no_run_ends_are_refused_before_it_is_planned():
    for absurd in ({"operations": 10**9}, {"workers": 10**6}, {"duration_s": 1e300}, {"duration_s": float("nan")}):
        with pytest.raises(UsageError):
            make_plan(RunRequest(system="consistent-core", **absurd), PARTS)
