"""The measurement of the toy store: each known mutant has its outcome, and the same request has the same result."""

from __future__ import annotations

import sys

import msgspec
import pytest

from faultline.campaign.planfile import plan_from_flags
from faultline.harness.errors import UsageError
from faultline.power.measure import Asked, candidates_of, measure
from faultline.power.processes import carry_out
from faultline.power.result import Ending
from faultline.power.sentences import headline, lines_of, markdown_of
from faultline.power.worker import Limits, Task

ASKED = Asked(system="toy", workloads=("read-write",), runs=4, limits=Limits(processor_s=60.0, run_s=3.0))

KNOWN = {
    ("ToyNode.answer", "invert-comparison", "request.f == 'write' → request.f != 'write'"): Ending.CLIENT,
    ("ToyNode.keep", "drop-assignment", "self.values[key] = value → (nothing)"): Ending.CLIENT,
    ("ToyNode.count", "drop-assignment", "self.served += 1 → (nothing)"): Ending.UNDISTINGUISHED,
    ("ToyNode.forget_all", "drop-reset", "self.values.clear() → (nothing)"): Ending.UNREACHED,
    ("ToyNode.wait_for_a_turn", "drop-assignment", "self.left -= 1 → (nothing)"): Ending.HANG,
}
RAISING = ("ToyNode.start", "drop-reset", "self.is_ready = True → (nothing)")


def asking(candidates, *names, **others):
    """Return a request for the mutants of these places, operators and changes."""
    ids = {(one.mutant.place, one.mutant.operator, one.mutant.diff): one.mutant.id for one in candidates}
    return msgspec.structs.replace(ASKED, mutant_ids=tuple(ids[each] for each in names), **others)


def nothing(_words):
    return None


@pytest.fixture
def candidates():
    return candidates_of("toy")


@pytest.mark.real
def test_each_known_mutant_has_its_outcome(candidates):
    power = measure(asking(candidates, *KNOWN, RAISING), candidates, nothing)
    assert power.alarms == ()
    *known, raising = power.mutants
    assert [one.ending for one in known] == list(KNOWN.values())
    found = known[0]
    assert found.first_client is not None
    assert found.first_client.by.startswith("linearizability/")
    assert f"--mutant {found.mutant.id}" in found.first_client.replay.replace("'", "")
    # A node that raises is seen by the harness first; clients may see besides that the store never serves.
    assert raising.first is not None
    assert Ending.CRASH in {raising.first.kind, raising.ending} or raising.first.by == "availability/no-recovery"
    assert (power.any.of, power.any.found, power.clients.of) == (4, 4, 4)
    assert headline(power).startswith("Of 4 mutants that count, 75 % (30–95 %) were found by clients")
    assert "never reached" in markdown_of(power).lower()
    assert "## Not reached" in markdown_of(power)
    assert any(found.mutant.id in line for line in lines_of(power))


@pytest.mark.real
def test_the_same_request_has_the_same_result_on_any_number_of_processes(candidates):
    # A mutant without an end takes its time.
    quick = [one for one in candidates if one.mutant.place != "ToyNode.wait_for_a_turn"]
    asked = msgspec.structs.replace(ASKED, seed=3, mutants=4)
    first = measure(asked, quick, nothing)
    second = measure(msgspec.structs.replace(asked, processes=3), quick, nothing)
    assert without_times(first) == without_times(second)


def without_times(power):
    """Return the result as plain data, without what a machine's speed decides."""

    def plain(value):
        if isinstance(value, dict):
            timed = ("processor_s", "processor_min", "per_minute", "median_s")
            return {name: plain(each) for name, each in value.items() if name not in timed}
        return list(map(plain, value)) if isinstance(value, (list, tuple)) else value

    return plain(msgspec.to_builtins(power))


@pytest.mark.real
def test_a_sighting_is_seen_again_with_its_own_seed_and_one_run(candidates):
    known = next(iter(KNOWN))
    (found,) = measure(asking(candidates, known, seed=5), candidates, nothing).mutants
    assert found.first_client is not None
    place = found.first_client
    asked = asking(candidates, known, workloads=(place.workload,), seed=place.seed, runs=1)
    (again,) = measure(asked, candidates, nothing).mutants
    assert again.first_client is not None
    assert (again.first_client.by, again.first_client.sentence) == (
        found.first_client.by,
        found.first_client.sentence,
    )


@pytest.mark.real
def test_an_accusation_of_the_unchanged_program_is_told_and_measures_no_mutant():
    candidates = candidates_of("forgetful")
    asked = msgspec.structs.replace(ASKED, system="forgetful", runs=2, mutants=1)
    power = measure(asked, candidates, nothing)
    assert power.alarms
    assert power.alarms[0].by.startswith("linearizability/")
    assert "faultline run --system forgetful" in power.alarms[0].replay
    assert all(one.runs < 2 for one in power.mutants)
    assert len(power.mutants) + power.missing == 1
    assert not power.interrupted


@pytest.mark.real
def test_the_unchanged_program_stays_as_it_is_in_this_process_and_on_the_disk(candidates, installed):
    before = (installed / "toy_store.py").read_bytes()
    measure(asking(candidates, next(iter(KNOWN)), runs=1), candidates, nothing)
    assert (installed / "toy_store.py").read_bytes() == before
    assert not any(getattr(module, "__faultline_reached__", None) for module in list(sys.modules.values()))


@pytest.mark.real
def test_what_was_measured_before_an_interruption_is_kept(candidates):
    def interrupted(words):
        if words == "1 of 3 mutants":
            raise KeyboardInterrupt

    power = measure(asking(candidates, *list(KNOWN)[:3], runs=1), candidates, interrupted)
    assert power.interrupted
    assert (len(power.mutants), power.missing) == (1, 2)
    assert "Interrupted: 2 mutants not measured." in lines_of(power)
    assert "Interrupted: 2 mutants not measured." in markdown_of(power).splitlines()


@pytest.mark.real
def test_marks_change_no_run(candidates):
    campaign = plan_from_flags(systems=["toy"], workloads=["read-write"], seeds="0..3")
    task = Task(campaign=campaign, numbers=(0, 1, 2, 3), limits=ASKED.limits, modules=())
    marked = msgspec.structs.replace(task, modules=tuple({one.module for one in candidates}))
    ((_, without),) = carry_out([task], 1)
    ((_, others),) = carry_out([marked], 1)
    assert [one.digest for one in without] == [one.digest for one in others]
    assert all(one.digest and one.reached for one in others)


@pytest.mark.real
def test_only_mutants_that_the_unchanged_program_comes_to_are_drawn_once_each_by_the_seed(candidates):
    quick = [one for one in candidates if one.mutant.place != "ToyNode.wait_for_a_turn"]

    def drawn(seed, count):
        power = measure(msgspec.structs.replace(ASKED, seed=seed, mutants=count, runs=1), quick, nothing)
        apart = {one.id for one in power.not_reached}
        ids = [one.mutant.id for one in power.mutants]
        assert len(set(ids)) == len(ids) == min(count, len(quick) - len(apart))
        assert not apart & set(ids)
        assert Ending.UNREACHED not in {one.ending for one in power.mutants}
        assert {"ToyNode.forget_all", "ForgetfulNode.answer"} <= {one.place for one in power.not_reached}
        return ids

    assert drawn(1, 3) == drawn(1, 10_000)[:3]
    assert drawn(1, 3) != drawn(2, 3)


def test_an_unknown_mutant_is_refused_with_those_of_similar_names(candidates):
    near = candidates[0].mutant.id
    with pytest.raises(UsageError, match="no mutant") as refused:
        measure(msgspec.structs.replace(ASKED, mutant_ids=(near, f"{near[:-3]}x:0")), candidates, nothing)
    assert near in refused.value.next_step


@pytest.mark.parametrize(("system", "why"), [("etcd", "program of its own"), ("qorum-register", "no system called")])
def test_a_system_without_source_is_refused(system, why):
    with pytest.raises(UsageError, match=why):
        candidates_of(system)
