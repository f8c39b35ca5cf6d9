"""The measurement of the toy store: each known mutant has its outcome, and the same request has the same result."""

from __future__ import annotations

import sys

import msgspec
import pytest

from faultline.harness.errors import UsageError
from faultline.power.measure import Asked, candidates_of, chosen, measure
from faultline.power.result import Ending
from faultline.power.sentences import headline, lines_of, markdown_of
from faultline.power.worker import Limits

ASKED = Asked(system="toy", workloads=("read-write",), runs=4, limits=Limits(processor_s=60.0, run_s=3.0))

KNOWN = {
    ("ToyNode.answer", "invert-comparison", "request.f == 'write' → request.f != 'write'"): Ending.CLIENT,
    ("ToyNode.keep", "drop-assignment", "self.values[key] = value → (nothing)"): Ending.CLIENT,
    ("ToyNode.count", "drop-assignment", "self.served += 1 → (nothing)"): Ending.UNDISTINGUISHED,
    ("ToyNode.forget_all", "drop-reset", "self.values.clear() → (nothing)"): Ending.UNREACHED,
    ("ToyNode.wait_for_a_turn", "drop-assignment", "self.left -= 1 → (nothing)"): Ending.HANG,
}
RAISING = ("ToyNode.start", "drop-reset", "self.is_ready = True → (nothing)")


def named(candidates, place, operator, diff):
    (found,) = [
        one for one in candidates if (one.mutant.place, one.mutant.operator, one.mutant.diff) == (place, operator, diff)
    ]
    return found


def nothing(_words):
    return None


@pytest.fixture
def candidates():
    return candidates_of("toy")


@pytest.mark.real
def test_each_known_mutant_has_its_outcome(candidates):
    drawn = [named(candidates, *known) for known in [*KNOWN, RAISING]]
    power = measure(ASKED, candidates, drawn, nothing)
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
    assert "mutants that count" in headline(power)
    assert "never reached" in "\n".join(markdown_of(power).splitlines()).lower()
    assert any(found.mutant.id in line for line in lines_of(power))


@pytest.mark.real
def test_the_same_request_has_the_same_result_on_any_number_of_processes(candidates):
    asked = msgspec.structs.replace(ASKED, seed=3, mutants=4)
    drawn = [one for one in chosen(asked, candidates) if one.mutant.place != "ToyNode.wait_for_a_turn"]
    first = measure(asked, candidates, drawn, nothing)
    second = measure(msgspec.structs.replace(asked, processes=3), candidates, drawn, nothing)
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
    drawn = [named(candidates, *next(iter(KNOWN)))]
    (found,) = measure(msgspec.structs.replace(ASKED, seed=5), candidates, drawn, nothing).mutants
    assert found.first_client is not None
    asked = Asked(system="toy", workloads=(found.first_client.workload,), seed=found.first_client.seed, runs=1)
    (again,) = measure(asked, candidates, drawn, nothing).mutants
    assert again.first_client is not None
    assert (again.first_client.by, again.first_client.sentence) == (
        found.first_client.by,
        found.first_client.sentence,
    )


@pytest.mark.real
def test_an_accusation_of_the_unchanged_program_is_told_and_measures_no_mutant():
    candidates = candidates_of("forgetful")
    asked = msgspec.structs.replace(ASKED, system="forgetful", runs=2, mutants=1)
    power = measure(asked, candidates, chosen(asked, candidates), nothing)
    assert power.alarms
    assert power.alarms[0].by.startswith("linearizability/")
    assert "faultline run --system forgetful" in power.alarms[0].replay
    assert all(one.runs < 2 for one in power.mutants)
    assert len(power.mutants) + power.missing == 1
    assert not power.interrupted


@pytest.mark.real
def test_the_unchanged_program_stays_as_it_is_in_this_process_and_on_the_disk(candidates, installed):
    before = (installed / "toy_store.py").read_bytes()
    measure(msgspec.structs.replace(ASKED, runs=1), candidates, [named(candidates, *next(iter(KNOWN)))], nothing)
    assert (installed / "toy_store.py").read_bytes() == before
    assert not any(getattr(module, "__faultline_reached__", None) for module in list(sys.modules.values()))


@pytest.mark.real
def test_what_was_measured_before_an_interruption_is_kept(candidates):
    def interrupted(words):
        if words == "1 of 3 mutants":
            raise KeyboardInterrupt

    asked = msgspec.structs.replace(ASKED, runs=1, mutants=3)
    power = measure(asked, candidates, [named(candidates, *known) for known in list(KNOWN)[:3]], interrupted)
    assert power.interrupted
    assert (len(power.mutants), power.missing) == (1, 2)
    assert "Interrupted: 2 mutants not measured." in lines_of(power)


def test_mutants_are_drawn_without_replacement_by_the_seed(candidates):
    def drawn(seed, count):
        ids = [one.mutant.id for one in chosen(Asked(system="toy", seed=seed, mutants=count), candidates)]
        assert len(ids) == len(set(ids)) == min(count, len(candidates))
        return ids

    assert drawn(1, 5) == drawn(1, 5) == drawn(1, 9)[:5]
    assert drawn(1, 5) != drawn(2, 5)
    assert set(drawn(1, 10_000)) == {one.mutant.id for one in candidates}


def test_an_unknown_mutant_is_refused_with_those_of_similar_names(candidates):
    near = candidates[0].mutant.id
    with pytest.raises(UsageError, match="no mutant") as refused:
        chosen(msgspec.structs.replace(ASKED, mutant_id=f"{near[:-3]}x:0"), candidates)
    assert near in refused.value.next_step


@pytest.mark.parametrize(("system", "why"), [("etcd", "program of its own"), ("qorum-register", "no system called")])
def test_a_system_without_source_is_refused(system, why):
    with pytest.raises(UsageError, match=why):
        candidates_of(system)
