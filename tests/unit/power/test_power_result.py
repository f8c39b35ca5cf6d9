"""The result: which mutants count, the shares of those that were found, and the matrix."""

from __future__ import annotations

import pytest

from faultline.power.mutants import Mutant
from faultline.power.result import Ending, Measured, Place, Power, cells_of, measured, share_of
from faultline.power.sentences import lines_of
from faultline.power.worker import HANG, INVARIANTS, NODE_CRASH, REFUSED, Found, Ran

CLEAN = {number: Ran(number=number, verdict="pass", digest=f"d{number}") for number in range(4)}
PLACES = {number: Place(7 + number, "register", f"faultline power --seed {7 + number}") for number in range(4)}


def mutant(name: str) -> Mutant:
    return Mutant(
        id=name,
        module="faultline.systems_under_test.patterns.data_replication.high_water_mark",
        place=name,
        operator="drop-send",
        line=1,
        before="send()",
        after="",
    )


def found(checker: str, anomaly: str) -> Found:
    return Found(checker=checker, anomaly=anomaly, sentence="Said.", by_client=checker != INVARIANTS)


def run(number: int, *accusations: Found, **others) -> Ran:
    reached = frozenset({"its-id"})
    usual = {"verdict": "pass", "digest": f"d{number}", "reached": reached, "processor_s": 6.0, "faults": ("kill",)}
    return Ran(number=number, found=accusations, **(usual | others))


CRASH = found(INVARIANTS, NODE_CRASH)
STALE = found("linearizability", "stale-read")

CASES = {
    "client": ([run(0), run(1, found(INVARIANTS, "HWM-I1")), run(2, STALE, digest="x")], Ending.CLIENT),
    "invariant": ([run(0, found(INVARIANTS, "HWM-I1")), run(1)], Ending.INVARIANT),
    "crash": ([run(0), run(1, CRASH)], Ending.CRASH),
    "hang": ([run(0, ended=HANG, digest="")], Ending.HANG),
    "error": ([run(0, verdict="harness-error", error="Boom.")], Ending.ERROR),
    "inconclusive": ([run(0, digest="x", verdict="vacuous"), run(1)], Ending.INCONCLUSIVE),
    "survived": ([run(0, digest="x"), run(1)], Ending.SURVIVED),
    "same": ([run(0), run(1)], Ending.UNDISTINGUISHED),
    "unreached": ([run(0, reached=frozenset()), run(1, reached=frozenset())], Ending.UNREACHED),
    "refused": ([run(0, ended=REFUSED, digest=""), run(1, ended=REFUSED, digest="")], Ending.REFUSED),
}


def result(name: str) -> Measured:
    return measured(mutant(name), CASES[name][0], CLEAN, PLACES, time_s=60.0)


@pytest.mark.parametrize("name", CASES)
def test_a_mutant_has_the_ending_of_its_runs(name):
    assert result(name).ending is CASES[name][1]


@pytest.mark.parametrize(
    ("verdicts", "unchanged", "ending"),
    [
        # Runs 0 and 1 are of one workload, runs 2 and 3 of another.
        (["vacuous", "vacuous", "pass", "pass"], ["pass"] * 4, Ending.INCONCLUSIVE),
        (["vacuous", "pass", "pass", "pass"], ["pass"] * 4, Ending.INCONCLUSIVE),
        (["pass", "pass", "unknown", "pass"], ["pass"] * 4, Ending.INCONCLUSIVE),
        (["vacuous", "pass", "pass", "pass"], ["pass", "vacuous", "pass", "pass"], Ending.SURVIVED),
        (["pass"] * 4, ["pass"] * 4, Ending.SURVIVED),
    ],
)
def test_a_campaign_that_was_a_pass_and_is_none_with_the_mutant_is_inconclusive(verdicts, unchanged, ending):
    places = {number: Place(7, ("register", "cart")[number // 2], "") for number in range(4)}
    ran = [run(number, verdict=verdict, digest="x") for number, verdict in enumerate(verdicts)]
    clean = {number: Ran(number=number, verdict=verdict) for number, verdict in enumerate(unchanged)}
    assert measured(mutant("quiet"), ran, clean, places, time_s=60.0).ending is ending


def test_the_first_sighting_of_any_kind_and_that_of_clients_are_told_apart():
    one = result("client")
    assert one.first is not None
    assert one.first_client is not None
    assert (one.first.by, one.first.runs, one.first.processor_s) == ("HWM-I1", 2, 12.0)
    assert (one.first_client.by, one.first_client.runs) == ("linearizability/stale-read", 3)
    assert (one.first_client.seed, one.first_client.replay) == (9, "faultline power --seed 9")


def test_shares_are_of_the_mutants_that_count():
    results = list(map(result, CASES))
    clients, anyhow = share_of(results, by_client=True), share_of(results, by_client=False)
    assert (clients.found, clients.of) == (1, 7)
    assert (anyhow.found, anyhow.of) == (5, 7)
    assert clients.low < clients.share < clients.high
    assert anyhow.median_runs == 1
    assert share_of([], by_client=True).share == 0


@pytest.mark.parametrize(("within", "by_clients", "by_any"), [(1, 0, 3), (2, 0, 5), (3, 1, 5)])
def test_a_smaller_campaign_finds_what_its_first_runs_found(within, by_clients, by_any):
    results = list(map(result, CASES))
    assert share_of(results, by_client=True, within=within).found == by_clients
    assert share_of(results, by_client=False, within=within).found == by_any


def test_a_package_that_found_nothing_has_a_cell_too():
    cells = cells_of([result("survived")], {"survived": CASES["survived"][0]})
    by_package = [(cell.checker, cell.found, cell.mutants) for cell in cells if cell.faults == "kill"]
    assert by_package == 2 * [("any", 0, 1), ("clients", 0, 1)]


def test_a_run_with_two_packages_counts_for_each_and_once_for_any():
    one = run(0, STALE, faults=("kill", "pause"))
    cells = cells_of([measured(mutant("two"), [one], CLEAN, PLACES, time_s=60.0)], {"two": [one]})
    minutes = {cell.faults: cell.processor_min for cell in cells if cell.checker == "clients"}
    assert minutes == {"kill": 0.1, "pause": 0.1, "any": 0.1}


def test_a_cell_of_the_matrix_is_the_share_under_one_package_of_faults():
    ran = {name: list(runs) for name, (runs, _ending) in CASES.items()}
    found = cells_of(map(result, CASES), ran)
    assert {(cell.group, cell.faults) for cell in found} == {
        (group, faults) for group in ("high-water-mark", "any") for faults in ("kill", "any")
    }
    cells = {(cell.faults, cell.checker): cell for cell in found if cell.group == "high-water-mark"}
    assert cells["any", "any"].found == cells["kill", "any"].found
    assert (cells["kill", "linearizability"].found, cells["kill", "linearizability"].mutants) == (1, 7)
    assert cells["kill", "any"].found == 5
    assert cells["kill", INVARIANTS].found == 2
    assert cells["kill", NODE_CRASH].found == 1
    # Thirteen runs of six seconds are of mutants that count.
    assert cells["kill", "clients"].processor_min == pytest.approx(1.3)
    assert cells["kill", "clients"].per_minute == pytest.approx(1 / 1.3, abs=0.001)


def test_a_mutant_that_ran_out_of_time_is_told():
    assert measured(mutant("slow"), [run(0), run(1)], CLEAN, PLACES, time_s=10.0).out_of_time
    assert not result("same").out_of_time


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (
            ["client", "survived"],
            "The other 1 changed answers and were never accused: bugs that were missed, or no bugs.",
        ),
        (
            ["client", "inconclusive", "survived"],
            "The other 2 changed answers and were never accused: with 1 the campaign is no pass, as runs of a workload "
            "tested too little or were not decided; 1 are bugs that were missed, or no bugs.",
        ),
    ],
)
def test_mutants_without_an_accusation_are_told_apart_by_the_campaign_being_a_pass(names, told):
    results = tuple(map(result, names))
    power = Power(
        version="1",
        command="faultline power --system toy",
        system="toy",
        workloads=("register",),
        seed=0,
        runs_max=4,
        processor_s_max=60.0,
        unchanged_runs=4,
        unchanged_refused=0,
        unchanged_verdicts={"pass": 4},
        alarms=(),
        mutants=results,
        clients=share_of(results, by_client=True),
        any=share_of(results, by_client=False),
        processor_s=6.0,
    )
    assert lines_of(power)[1].endswith(told)
