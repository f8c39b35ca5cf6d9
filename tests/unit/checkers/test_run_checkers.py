"""The checkers that judge the run rather than the data: counts, recovery, vacuity, invariants."""

from __future__ import annotations

import pytest

from faultline.checkers import (
    CHECKERS,
    AvailabilityChecker,
    InvariantChecker,
    StatsChecker,
    VacuityChecker,
)
from faultline.checkers.common.words import counted, listed
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.invariant import Breach
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, fail, info, ok
from faultline.harness.plan import Plan, PlannedFault
from faultline.harness.run_record import FaultInterval, RunRecord
from faultline.harness.verdict import Verdict

HEAL_US = 1_000_000


def recorded(operations):
    """A history of operations in order of invocation; at equal times invocations come first."""
    history = History()
    moments = [(operation[3], 0, row) for row, operation in enumerate(operations)]
    moments += [(operation[4], 1, row) for row, operation in enumerate(operations) if operation[4] is not None]
    for time_us, is_end, row in sorted(moments):
        process, f, key, _, _, outcome = operations[row]
        if is_end:
            history.complete(row, outcome, time_us)
        else:
            history.invoke(Operation(process, f, key, [None, 1] if f == "cas" else None), time_us, process, "n")
    return history


def run_of(*operations, faults=(), applied=None, workers=2, **fields):
    """A run from (process, f, key, invoke_us, complete_us or None, outcome)."""
    history = recorded(sorted(operations, key=lambda operation: operation[3]))
    plan = Plan(
        system="s",
        workload="register",
        seed=1,
        nodes=("athens",),
        workers=workers,
        operations=(),
        faults=tuple(PlannedFault("partition", start, stop - start) for start, stop in faults),
        heal_us=HEAL_US,
        end_us=20_000_000,
    )
    intervals = [
        FaultInterval(kind="partition", target="one", start_us=start, stop_us=stop, applied=applied)
        for start, stop in faults
    ]
    return RunRecord(plan=plan, world="simulated", history=history, faults=intervals, **fields)


def check(checker, run):
    return checker.check(run.history, run)


GOOD = (
    (0, "write", "k0", 100_000, 200_000, ok()),
    (1, "cas", "k1", 150_000, 250_000, ok()),
    (0, "read", "k0", 1_200_000, 1_210_000, ok(None)),
    (1, "read", "k1", 1_200_000, 1_210_000, ok(None)),
)


def test_operations_are_counted_by_function_and_outcome():
    run = run_of(*GOOD, (1, "write", "k0", 300_000, 400_000, info("timeout")))
    result = check(StatsChecker(), run)
    assert result.verdict is Verdict.PASS
    assert result.detail["by_function"]["write"] == {"ok": 1, "fail": 0, "info": 1}
    assert result.detail["totals"] == {"ok": 4, "fail": 0, "info": 1}


def test_a_function_that_never_succeeded_makes_the_run_vacuous():
    result = check(StatsChecker(), run_of(*GOOD[:1], (1, "cas", "k0", 0, 10, fail(CAS_MISMATCH))))
    assert result.verdict is Verdict.VACUOUS
    assert result.detail["never_ok"] == ["cas"]
    assert check(StatsChecker(), run_of()).verdict is Verdict.VACUOUS


def test_a_function_that_need_not_succeed_was_tested_when_it_was_refused_for_the_right_reason():
    stats = StatsChecker(refusals={"late-write": "stale-token"})
    refused = (0, "late-write", "k0", 300_000, 310_000, fail("stale-token"))
    assert check(stats, run_of(*GOOD, refused)).verdict is Verdict.PASS
    assert check(StatsChecker(), run_of(*GOOD, refused)).verdict is Verdict.VACUOUS
    never_tried = (0, "late-write", "k0", 300_000, 310_000, fail("not-held"))
    assert check(stats, run_of(*GOOD, never_tried)).verdict is Verdict.VACUOUS


def test_recovery_is_measured_from_the_heal_and_from_the_end_of_each_fault():
    result = check(AvailabilityChecker(), run_of(*GOOD, faults=[(120_000, 700_000)]))
    assert result.verdict is Verdict.PASS
    assert result.detail["recovery_us"] == 210_000
    assert result.detail["faults"][0]["recovery_us"] == 510_000


def test_an_answer_that_was_under_way_at_the_heal_is_no_recovery():
    run = run_of((0, "read", "k0", 900_000, 1_100_000, ok()), (1, "read", "k0", 1_000_000, 1_900_000, info("timeout")))
    result = check(AvailabilityChecker(), run)
    assert result.verdict is Verdict.VIOLATION
    assert [finding.anomaly for finding in result.findings] == ["no-recovery"]
    assert result.findings[0].operations == (1,)


def test_a_refused_compare_and_set_is_an_answer():
    run = run_of((0, "cas", "k0", 1_100_000, 1_200_000, fail(CAS_MISMATCH)))
    assert check(AvailabilityChecker(), run).verdict is Verdict.PASS


def test_recovery_after_the_bound_is_late():
    result = check(AvailabilityChecker(recovery_us_max=100_000), run_of(*GOOD))
    assert [finding.anomaly for finding in result.findings] == ["late-recovery"]
    assert "210 ms" in result.sentence


def test_a_store_is_not_late_when_the_heal_was():
    run = run_of(*GOOD)
    run.history.fault("heal", {}, HEAL_US + 150_000)
    result = check(AvailabilityChecker(recovery_us_max=100_000), run)
    assert (result.verdict, result.detail["recovery_us"]) == (Verdict.PASS, 60_000)


def test_a_store_that_takes_longer_by_its_nature_is_not_late():
    checker, slow = AvailabilityChecker(recovery_us_max=100_000), run_of(*GOOD, statistics={"serving_us_max": 210_000})
    assert check(checker, slow).verdict is Verdict.PASS
    almost = run_of(*GOOD, statistics={"serving_us_max": 209_999})
    assert check(checker, almost).verdict is Verdict.VIOLATION


def test_silence_that_was_not_waited_for_is_unknown():
    run = run_of((0, "read", "k0", 1_100_000, 1_200_000, info("timeout")))
    assert check(AvailabilityChecker(), run).verdict is Verdict.UNKNOWN


def test_recovery_that_no_client_asked_for_is_vacuous_when_there_were_faults():
    faults = [(120_000, 700_000)]
    assert check(AvailabilityChecker(), run_of(*GOOD[:2], faults=faults)).verdict is Verdict.VACUOUS
    assert check(AvailabilityChecker(), run_of(faults=faults)).verdict is Verdict.VACUOUS
    assert check(AvailabilityChecker(), run_of(*GOOD[:2])).verdict is Verdict.PASS


def test_the_longest_window_counts_only_while_an_operation_waited():
    run = run_of(
        (0, "write", "k0", 0, 10_000, ok()),
        (1, "write", "k0", 500_000, 800_000, info("timeout")),
        (0, "write", "k0", 820_000, 830_000, ok()),
        (0, "read", "k0", 1_200_000, 1_201_000, ok()),
    )
    windows = check(AvailabilityChecker(), run).detail["windows"]
    assert windows[0] == {"start_us": 500_000, "stop_us": 830_000}


def test_a_good_run_has_no_warning():
    result = check(VacuityChecker(), run_of(*GOOD, faults=[(120_000, 700_000)]))
    assert (result.verdict, result.detail["warnings"]) == (Verdict.PASS, [])


VACUOUS = {
    "no-operations": run_of(),
    "faults-applied": run_of(*GOOD, faults=[(120_000, 700_000)], applied="the probe still got through"),
    "faults-struck": run_of(*GOOD, faults=[(500_000, 700_000)]),
    "no-reads-after-heal": run_of(*GOOD[:2], faults=[(120_000, 700_000)]),
    "operations-answered": run_of(*((p, "read", f"k{p}", p, None, None) for p in range(20)), workers=20),
    "writes-read": run_of(*GOOD, (3, "write", "k9", 500_000, 510_000, ok())),
    "no-concurrency": run_of(GOOD[0], GOOD[2]),
}


@pytest.mark.parametrize("name", VACUOUS)
def test_a_run_that_tested_nothing_is_vacuous_and_says_why(name):
    result = check(VacuityChecker(), VACUOUS[name])
    assert result.verdict is Verdict.VACUOUS
    named = {warning["name"]: warning for warning in result.detail["named"]}
    assert named[name]["is_grave"]
    assert named[name]["trigger"]
    assert named[name]["fix"]
    assert any(line.startswith(f"{name}: ") for line in result.detail["warnings"])


MILD = {
    "one-key": run_of(*((p, "write", "k0", 10 * p, 10 * p + 15, ok()) for p in range(4)), GOOD[2]),
    "one-worker": run_of(*GOOD, workers=1),
    "no-changes": run_of(*((p, "read", f"k{p}", p, 9, ok()) for p in range(2))),
    "often-indeterminate": run_of(*GOOD, *((5 + p, "read", f"k{p}", 300 + p, None, None) for p in range(6))),
}


@pytest.mark.parametrize("name", MILD)
def test_a_mild_warning_stands_beside_a_pass(name):
    result = check(VacuityChecker(), MILD[name])
    assert result.verdict is Verdict.PASS
    assert name in [warning["name"] for warning in result.detail["named"]]


def test_operations_that_name_no_key_are_not_all_on_the_same_key():
    run = run_of(*((p, "txn", None, 10 * p, 10 * p + 15, ok([["append", f"k{p}", 1]])) for p in range(4)))
    assert "one-key" not in [warning["name"] for warning in check(VacuityChecker(), run).detail["named"]]


def test_faults_that_partly_bit_are_told_apart():
    run = run_of(*GOOD, faults=[(120_000, 700_000)])
    run.faults.append(FaultInterval(kind="kill", target="one", start_us=260_000, stop_us=300_000))
    run.faults.append(
        FaultInterval(kind="kill", target="one", start_us=150_000, stop_us=160_000, applied="no such node")
    )
    names = [warning["name"] for warning in check(VacuityChecker(), run).detail["named"]]
    assert names == ["faults-applied", "some-faults-not-applied", "fault-without-operations"]


def test_breaches_become_findings_in_order_of_time():
    breaches = [
        Breach(invariant="LDR-I2", sentence="Two leaders in generation 3.", time_us=9, node="delphi"),
        Breach(invariant="WAL-I1", sentence="Entry 4 vanished.", time_us=5, node="athens"),
    ]
    result = check(InvariantChecker(), run_of(*GOOD, breaches=breaches))
    assert result.verdict is Verdict.VIOLATION
    assert [(finding.anomaly, finding.node) for finding in result.findings] == [
        ("WAL-I1", "athens"),
        ("LDR-I2", "delphi"),
    ]
    assert result.sentence == "Entry 4 vanished."
    assert check(InvariantChecker(), run_of(*GOOD)).verdict is Verdict.PASS


@pytest.mark.parametrize("name", CHECKERS)
def test_every_named_checker_can_be_made_and_answers_for_a_run_or_refuses_it_by_name(name):
    checker = CHECKERS[name]()
    assert checker.name == name
    run = run_of(*GOOD, faults=[(120_000, 700_000)])
    assert _answer(checker, run).startswith((name, f"The checker `{name}` cannot judge this history"))


def _answer(checker, run):
    """The name that the result bears, or the words of the refusal."""
    try:
        return check(checker, run).checker
    except UsageError as refusal:
        return refusal.message


def test_a_name_that_is_no_checker_is_an_attribute_error():
    import faultline.checkers

    with pytest.raises(AttributeError, match="Clairvoyance"):
        _ = faultline.checkers.Clairvoyance


def test_numbers_in_sentences_have_separators() -> None:
    run = run_of(*((0, "write", "k", 2 * at, 2 * at + 1, ok()) for at in range(1_530)))
    assert StatsChecker().check(run.history, run).sentence == "1,530 operations: 1,530 ok, 0 failed, 0 indeterminate."
    assert (counted(1_530, "watch"), counted(1, "watch")) == ("1,530 watches", "1 watch")
    assert listed(range(5_000), 5_000).endswith("and 4,992 more")
