"""Claims about real stores: their files make sense, come in pairs, and are borne out by the right runs only."""

from __future__ import annotations

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.judgement import Judgement
from faultline.harness.planning import make_plan
from faultline.harness.verdict import Finding, Verdict
from faultline.harness.world.hosts.evidence.cases import Case, case_names, load_case, parse_case
from faultline.registry import resolve

MINIMAL = 'claim = "It loses."\nexpected = "violation"\nsystem = "etcd"\nseeds = [3, 4]\n'


def judged(verdict: Verdict, *anomalies: str, seed: int = 0) -> Judgement:
    findings = [Finding(checker="linearizability", anomaly=anomaly, sentence="It shows.") for anomaly in anomalies]
    return Judgement(
        run_id="run",
        cell="cell",
        system="etcd",
        workload="register",
        fault_set=(),
        planted_bugs=(),
        options={},
        seed=seed,
        world="hosts",
        verdict=verdict,
        sentence="A sentence.",
        findings=findings,
    )


PASS, STALE = judged(Verdict.PASS), judged(Verdict.VIOLATION, "stale-read")


@pytest.mark.parametrize("name", case_names())
def test_every_claim_can_be_planned_and_its_twin_expects_the_other_verdict(name: str) -> None:
    case = load_case(name)
    request = case.request(case.seeds[0])
    plan = make_plan(request, resolve(request))
    assert len(plan.nodes) == case.hosts and plan.operations and bool(plan.faults) == bool(case.faults)
    assert case.claim.endswith(".") and case.command == f"faultline evidence {name}"
    if case.twin:
        twin = load_case(case.twin)
        assert twin.twin == name and {case.expected, twin.expected} == {"pass", "violation"}
        assert (case.system, case.hosts) == (twin.system, twin.hosts)


def test_a_violation_is_expected_of_one_seed_and_a_pass_of_all() -> None:
    bad = parse_case("bad", MINIMAL)
    assert bad.is_borne_out([PASS, STALE]) and not bad.is_borne_out([PASS, PASS])
    good = parse_case("good", MINIMAL.replace("violation", "pass"))
    assert good.is_borne_out([PASS, PASS]) and not good.is_borne_out([PASS, STALE]) and not good.is_borne_out([])
    assert not good.is_borne_out([PASS, judged(Verdict.VACUOUS)])


def test_another_violation_than_the_one_that_is_meant_does_not_count() -> None:
    meant = parse_case("bad", MINIMAL + 'anomaly = "linearizability/lost-update"\n')
    assert not meant.is_borne_out([STALE])
    assert meant.is_borne_out([judged(Verdict.VIOLATION, "stale-read", "lost-update")])
    assert not meant.is_borne_out([judged(Verdict.HARNESS_ERROR, "lost-update")])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("claim = ", "cannot be read"),
        (MINIMAL.replace("violation", "maybe"), "expected"),
        (MINIMAL + "sedes = [1]\n", "sedes"),
        (MINIMAL.replace("[3, 4]", "[]"), "names no seeds"),
    ],
)
def test_a_claim_that_makes_no_sense_names_the_key(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse_case("bad", text)


def test_an_unknown_claim_is_answered_with_the_nearest_one_and_the_command_that_lists_all() -> None:
    with pytest.raises(UsageError, match="no evidence called 'etcd-lying-fsink'") as refused:
        load_case("etcd-lying-fsink")
    assert refused.value.next_step == "Did you mean etcd-lying-fsync? See it with `faultline evidence`."
    with pytest.raises(UsageError, match="no evidence called 'xyz'") as refused:
        load_case("xyz")
    assert refused.value.next_step == "See it with `faultline evidence`."


def test_a_request_is_the_claim_in_full() -> None:
    case: Case = parse_case("bad", MINIMAL + "[options]\nread_mode = 'serializable'\n[host_options]\nfsync = 'lies'\n")
    request = case.request(4)
    assert (request.seed, request.world, request.nodes) == (4, "hosts", 3)
    assert request.options == {"read_mode": "serializable"} and request.host_options == {"fsync": "lies"}
