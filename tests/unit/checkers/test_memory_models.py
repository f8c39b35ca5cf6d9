"""Memory models between linearizability and nothing, by the small histories that tell them apart.

The histories of figure 3 in Bouajjani et al., "On Verifying Causal Consistency" (POPL 2017), keep one causal model and
break another.
"""

from __future__ import annotations

import pytest
from classic_histories import history_of, op

from faultline.checkers import CHECKERS
from faultline.checkers.judges import judge, models
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.verdict import Cause, CheckResult, Verdict

CHECKED = ("sequential", "causal-memory", "causal-convergence", "weak-causal", "pram")


def at_once(*clients: str) -> History:
    """Clients that act at once: `"wx1 ry2 rx-"` writes 1 to x, reads 2 from y, and nothing from x."""
    operations = []
    for client, text in enumerate(clients):
        for place, part in enumerate(text.split()):
            value = None if part[2:] == "-" else int(part[2:])
            asked, answered = (value, None) if part[0] == "w" else (None, value)
            f = {"w": "write", "r": "read"}[part[0]]
            span = (2 * place * len(clients) + client, 2 * place * len(clients) + len(clients) + client)
            operations.append(op(f, asked, answered, span=span, process=client, key=part[1]))
    return history_of(*sorted(operations, key=lambda operation: operation["span"]))


def kept(history: History) -> set[str]:
    """Return the checkers that let the history pass; each other one must refute it."""
    verdicts = {name: CHECKERS[name]().check(history).verdict for name in CHECKED}
    assert set(verdicts.values()) <= {Verdict.PASS, Verdict.VIOLATION}
    return {name for name, verdict in verdicts.items() if verdict is Verdict.PASS}


STALE = op("write", 1, key="x"), op("write", 2, key="x"), op("read", None, 1, process=1, key="x")
"""Sequentially consistent, and not linearizable: the read could have come earlier."""


def checked(name: str, *steps, **options) -> CheckResult:
    return CHECKERS[name](**options).check(history_of(*steps))


@pytest.mark.parametrize(
    ("clients", "keeps"),
    [
        (("wx1 rx2", "wx2 rx1"), {"causal-memory", "weak-causal", "pram"}),
        (
            ("wz1 wx1 wy1", "wx2 rz- ry1 rx2"),
            {"causal-convergence", "weak-causal"},
        ),
        (("wx1", "wx2 rx1 rx2"), {"weak-causal"}),
        (("wx1 ry-", "wy1 rx-"), {"causal-memory", "causal-convergence", "weak-causal", "pram"}),
        (("wx1 wy1", "ry1 wx2", "rx2 rx1"), {"pram"}),
        (("wx1", "rx1 wy2", "ry2 rx-"), {"pram"}),
        (("wx1 wx2", "rx2 rx1"), set()),
        (("wx1 wx2", "rx1 rx2", "rx- rx2"), set(CHECKED)),
    ],
    ids=["3a", "3b", "3c", "store buffers", "3e", "a cause is missed", "back in time", "only stale"],
)
def test_a_history_keeps_the_models_that_the_paper_says_and_no_others(clients, keeps):
    assert kept(at_once(*clients)) == keeps


def test_a_stale_read_is_sequentially_consistent_and_the_result_says_that_it_is_not_linearizable():
    result = checked("sequential", *STALE)
    assert (result.verdict, result.detail["holds"]) == (Verdict.PASS, ["sequential"])
    assert result.detail["not"] == ["linearizable"]
    assert "They keep sequential; the weakest ruled out: linearizable." in result.sentence


def test_sequential_consistency_is_of_all_keys_together():
    both = at_once("wx1 ry-", "wy1 rx-")
    for key in ("x", "y"):
        rows = [row for row in both.rows() if row.key == key]
        steps = [op(row.f, row.value, row.result, process=row.process, key=key) for row in rows]
        assert checked("sequential", *sorted(steps, key=lambda step: step["f"] == "write")).verdict is Verdict.PASS
    assert CHECKERS["sequential"]().check(both).verdict is Verdict.VIOLATION


def test_the_strongest_models_that_hold_and_the_weakest_that_are_ruled_out_are_named():
    result = CHECKERS["sequential"]().check(at_once("wx1 ry-", "wy1 rx-"))
    assert result.detail["holds"] == ["causal-memory", "causal-convergence"]
    assert result.detail["not"] == ["sequential"]
    assert {"linearizable", "strict-serializable"} <= set(result.detail["also_not"])


def test_the_evidence_is_the_few_operations_that_break_the_model():
    noise = " ".join(f"wz{number}" for number in range(10, 60))
    result = CHECKERS["pram"]().check(at_once("wx1 wx2 " + noise, "rx2 rx1", "rz30 rz40"))
    (finding,) = result.findings
    assert len(finding.operations) == 4
    assert "client 1 read 2 from x; client 1 read 1 from x" in finding.sentence


@pytest.mark.parametrize("name", CHECKED)
def test_a_value_that_no_client_wrote_breaks_every_model(name):
    result = checked(name, op("write", 1, key="x"), op("read", None, 7, key="x"))
    assert (result.verdict, result.findings[0].anomaly) == (Verdict.VIOLATION, "garbage-read")
    assert result.detail["holds"] == []


def test_a_value_of_a_write_that_failed_is_an_aborted_read():
    result = checked("weak-causal", op("write", 1, outcome="fail", key="x"), op("read", None, 1, key="x"))
    assert (result.findings[0].anomaly, result.findings[0].operations) == ("aborted-read", (0, 1))


@pytest.mark.parametrize("name", CHECKED)
def test_a_write_of_unknown_outcome_may_be_seen_or_not(name):
    lost = op("write", 1, outcome="info", key="x")
    assert checked(name, lost, op("read", None, None, process=1, key="x")).verdict is Verdict.PASS
    assert checked(name, lost, op("read", None, 1, process=1, key="x")).verdict is Verdict.PASS
    back = op("read", None, 1, process=1, key="x"), op("read", None, None, process=1, key="x")
    assert checked(name, lost, *back).verdict is Verdict.VIOLATION


def test_a_write_of_unknown_outcome_may_take_effect_after_what_its_process_did_next():
    late = op("write", 1, outcome="info", key="x"), op("write", 2, key="x")
    reads = op("read", None, 2, process=1, key="x"), op("read", None, 1, process=1, key="x")
    assert checked("sequential", *late, *reads).verdict is Verdict.PASS


def test_repeated_values_leave_a_causal_model_unknown_unless_one_order_explains_all():
    twice = [op("write", 1, process=client, key="x") for client in range(4)]
    flips = [op("read", None, value, process=9, key="x") for value in (1, 2, 1, 2, 1, 2, 1, 2)]
    result = checked("causal-memory", *twice, op("write", 2, process=5, key="x"), *flips)
    assert (result.verdict, result.reason.cause) == (Verdict.UNKNOWN, Cause.REPEATED_VALUES)
    assert checked("causal-memory", *twice, flips[0]).verdict is Verdict.PASS
    assert checked("sequential", *twice, op("write", 2, process=5, key="x"), *flips).verdict is Verdict.VIOLATION


def test_what_is_certain_without_the_repeated_values_is_a_violation():
    twice = op("write", 5, key="y"), op("write", 5, process=1, key="y"), op("read", None, 5, key="y")
    steps = op("write", 1, key="x"), op("write", 2, key="x"), op("read", None, 2, process=3, key="x")
    assert checked("pram", *twice, *steps, op("read", None, 1, process=3, key="x")).verdict is Verdict.VIOLATION


def test_a_search_that_spends_its_budget_is_unknown_and_names_the_option():
    writes = [op("write", value % 2, process=value, key="x", span=(0, 90)) for value in range(12)]
    reads = [op("read", None, value % 2, process=20, key="x") for value in range(14)]
    result = checked("sequential", *writes, *reads, steps_max=50)
    assert (result.verdict, result.reason.option) == (Verdict.UNKNOWN, "steps_max")
    ended = checked("sequential", *writes, *reads, timeout_s=0.0)
    assert (ended.verdict, ended.reason.cause) == (Verdict.UNKNOWN, Cause.TIME)


def test_a_compare_and_set_reads_and_writes_and_a_refused_one_says_nothing():
    swaps = op("cas", [1, 2], process=1, key="x"), op("cas", [1, 3], process=2, key="x")
    assert checked("sequential", op("write", 1, key="x"), *swaps).verdict is Verdict.VIOLATION
    refused = op("cas", [7, 3], process=2, key="x", outcome="fail", error="precondition-failed")
    assert checked("sequential", op("write", 1, key="x"), swaps[0], refused, op("read", None, 2, key="x")).verdict is (
        Verdict.PASS
    )


def test_puts_and_gets_are_writes_and_reads_of_keys_that_begin_empty():
    put = op("put", "a", key="x")
    assert checked("sequential", put, op("get", None, "", process=1, key="x")).verdict is Verdict.PASS
    back = op("get", None, "a", process=1, key="x"), op("get", None, "", process=1, key="x")
    assert checked("pram", put, *back).verdict is Verdict.VIOLATION
    with pytest.raises(UsageError, match="`sequential` cannot judge this history: operation 1"):
        checked("sequential", put, op("append", "b", key="x"))


@pytest.mark.parametrize("name", CHECKED)
def test_each_is_a_model_by_name_with_a_time_limit(name):
    assert name in models()
    history = history_of(*STALE)
    assert judge(name, history).check(history).verdict is Verdict.PASS
