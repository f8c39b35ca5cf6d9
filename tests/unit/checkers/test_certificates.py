"""Certificates of illegal histories of busy clients, and their verification."""

from __future__ import annotations

import random

import pytest
from busy_registers import BusyRegister, busy_history

from faultline.checkers.linearizability import LinearizabilityChecker, kv
from faultline.checkers.linearizability.certificates import Certificate, Configuration, Configurations, Relaxed
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.proofs import fault_of_refutation, frontier
from faultline.checkers.linearizability.engine.registers import columns_of, register_columns
from faultline.checkers.linearizability.operations import INFINITY, OBSERVE, SWAP, WRITE, RegisterOperation
from faultline.checkers.linearizability.refutation import refute
from faultline.checkers.linearizability.value_rules import ValueRules, fault_of_relaxation
from faultline.checkers.linearizability.verifier import fault_of
from faultline.checkers.linearizability.verify import fault_of_set
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, ok
from faultline.harness.verdict import Verdict

PLAIN = BusyRegister()
WITH_SWAPS = BusyRegister(compare_and_sets=1 / 3)


@pytest.mark.parametrize("seed", [2, 9, 12, 15, 22, 24, 25, 26, 34, 51])
def test_an_ordinary_busy_register_with_one_read_changed_is_a_violation(seed: int) -> None:
    result = LinearizabilityChecker().check(busy_history(seed, PLAIN, changed=0.9))
    assert result.verdict is Verdict.VIOLATION, result.sentence


@pytest.mark.parametrize("seed", [1, 4, 6, 8, 14, 15])
def test_a_busy_register_with_compare_and_sets_is_a_violation_too(seed: int) -> None:
    result = LinearizabilityChecker().check(busy_history(seed, WITH_SWAPS, changed=0.9))
    assert result.verdict is Verdict.VIOLATION, result.sentence


def test_ten_thousand_operations_with_a_write_open_throughout_are_decided_within_the_default_budget() -> None:
    shape = BusyRegister(10_000, has_open_write=True)
    assert LinearizabilityChecker().check(busy_history(1, shape, changed=0.9)).verdict is Verdict.VIOLATION
    assert LinearizabilityChecker().check(busy_history(1, shape)).verdict is Verdict.PASS


@pytest.mark.parametrize("shape", [PLAIN, WITH_SWAPS], ids=["plain", "compare-and-sets"])
def test_the_same_histories_unchanged_pass(shape: BusyRegister) -> None:
    for seed in (1, 2, 4, 9):
        assert LinearizabilityChecker().check(busy_history(seed, shape)).verdict is Verdict.PASS


def test_a_large_core_is_told_as_one_moment_and_the_operations_open_then() -> None:
    history = busy_history(2, PLAIN, changed=0.9)
    (finding,) = LinearizabilityChecker().check(history).findings
    cut = finding.detail["cut"]
    accused = next(row for row in finding.operations if history.result[row] not in (None, *cut["states"]))
    assert len(finding.operations) <= PLAIN.clients
    assert history.f[accused] == "read" and history.result[accused] not in cut["states"]
    assert "could only hold" in finding.sentence
    returned = sum(index < history.complete_index[accused] for index in history.complete_index)
    assert cut["ended"] == returned


def test_a_budget_of_a_few_steps_leaves_the_same_history_undecided() -> None:
    result = LinearizabilityChecker(steps_max=50).check(busy_history(2, PLAIN, changed=0.9))
    assert result.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("seed", "verdict"), [(1, Verdict.PASS), (83, Verdict.UNKNOWN)])
def test_dense_compare_and_sets_of_fifty_clients_are_decided_or_said_to_be_undecided(
    seed: int, verdict: Verdict
) -> None:
    dense, checker = BusyRegister(clients=50, compare_and_sets=0.33), LinearizabilityChecker(steps_max=20_000)
    assert checker.check(busy_history(seed, dense)).verdict is Verdict.PASS
    assert checker.check(busy_history(seed, dense, changed=0.99)).verdict is verdict


def test_the_kernel_and_plain_python_refute_with_the_same_configurations() -> None:
    columns = register_columns(busy_history(4, BusyRegister(150, 5, 3, 1 / 3), changed=0.7))
    made, plain = frontier(columns), frontier(columns, engine="python")
    assert made.legality == plain.legality == "Illegal"
    assert made.furthest == plain.furthest
    assert _as_set(made.configurations) == _as_set(plain.configurations)


def _as_set(configurations: Configurations) -> set[Configuration]:
    members = (configurations[k] for k in range(len(configurations)))
    return {each._replace(ahead=tuple(sorted(each.ahead)), used=tuple(sorted(each.used))) for each in members}


def test_a_frontier_that_needs_too_many_looks_is_undecided() -> None:
    columns = register_columns(busy_history(2, PLAIN, changed=0.9))
    for engine in (None, "python"):
        assert frontier(columns, looks_max=100, engine=engine).legality == "Unknown"


def test_a_frontier_stops_when_the_time_is_over() -> None:
    columns = register_columns(busy_history(1, BusyRegister(10_000), changed=0.9))
    for engine in (None, "python"):
        assert frontier(columns, Budget(None, 0.0), engine=engine).legality == "Unknown"


def test_the_frontier_of_a_legal_history_does_not_end() -> None:
    columns = register_columns(busy_history(2, PLAIN))
    assert frontier(columns).legality == "Ok"


def test_a_set_is_refused_for_the_history_without_the_changed_read() -> None:
    changed = register_columns(busy_history(4, WITH_SWAPS, changed=0.9))
    legal = register_columns(busy_history(4, WITH_SWAPS))
    configurations = frontier(changed).configurations
    assert not fault_of_refutation(changed, configurations)
    # Which member is refused first differs between the kernel and plain Python.
    assert fault_of_refutation(legal, configurations)
    assert fault_of_set(ValueRules(legal), configurations)


STALE = [
    RegisterOperation(WRITE, None, 1, 0, 1, 0),
    RegisterOperation(SWAP, 1, 2, 2, 3, 1),
    RegisterOperation(OBSERVE, 1, None, 4, 5, 2),
    RegisterOperation(WRITE, None, 9, 6, INFINITY, 3),
]


def test_a_stale_read_has_a_certificate_of_a_few_configurations() -> None:
    columns = columns_of(STALE)
    made = frontier(columns)
    certificate = Certificate(columns, configurations=made.configurations)
    assert made.furthest == 2 and len(made.configurations) == 3
    assert fault_of(certificate) == ""


def test_an_order_is_verified_by_replaying_it() -> None:
    columns = columns_of(STALE[:2])
    assert fault_of(Certificate(columns, order=check_columns(columns)[0].order)) == ""
    assert fault_of(Certificate(columns, order=[1, 0])) == "its order is no linearization"
    assert fault_of(Certificate(columns, order=[0, 7])) == "its order is no linearization"


def test_a_certificate_has_either_an_order_or_a_set() -> None:
    columns = columns_of(STALE)
    configurations = frontier(columns).configurations
    assert fault_of(Certificate(columns)) == "it must have one of an order, a set of configurations and a contradiction"
    assert fault_of(Certificate(columns, order=[], configurations=configurations)) != ""


@pytest.mark.parametrize(
    ("relaxed", "fault"),
    [
        ([Relaxed(0), Relaxed(1), Relaxed(2)], ""),
        ([Relaxed(0), Relaxed(1, is_blind=True), Relaxed(2)], ""),
        ([Relaxed(0, is_early=True), Relaxed(1, is_late=True), Relaxed(2)], ""),
        ([Relaxed(1), Relaxed(2)], "its relaxation leaves out operation 0, whose value another one looks for"),
        ([Relaxed(1), Relaxed(0), Relaxed(2)], "its relaxation does not name operations in their order"),
        ([Relaxed(0), Relaxed(1), Relaxed(9)], "its relaxation does not name operations in their order"),
        ([Relaxed(0), Relaxed(2, is_blind=True)], "its relaxation takes the demand from an operation"),
        ([Relaxed(0), Relaxed(2, is_late=True)], "its relaxation keeps an operation that only observes"),
    ],
    ids=["unseen left out", "blind", "early and late", "seen left out", "order", "range", "read", "late read"],
)
def test_a_relaxation_is_accepted_only_when_it_is_one(relaxed: list[Relaxed], fault: str) -> None:
    assert fault_of_relaxation(columns_of(STALE), relaxed).startswith(fault)
    assert bool(fault_of_relaxation(columns_of(STALE), relaxed)) == bool(fault)


def test_many_clients_with_unique_values_are_refuted_by_the_few_operations_that_the_monitor_names() -> None:
    history = busy_history(0, BusyRegister(1000, 50, 10**6))
    reads = [row for row, f in enumerate(history.f) if f == "read"]
    history.result[reads[400]] = history.result[reads[50]]
    columns = register_columns(history)
    (decision,) = check_columns(columns)
    refutation = refute(columns, decision.core)
    assert decision.engine == "zones" and frontier(columns).legality == "Unknown"
    assert refutation is not None and refutation.certificate.relaxed is not None
    assert len(refutation.certificate.relaxed) <= 6
    assert fault_of(refutation.certificate) == ""
    assert LinearizabilityChecker().check(history).verdict is Verdict.VIOLATION


def _put_and_grown(answer: str) -> History:
    """A long string that is replaced by p, to which a, b, c and d are appended; at last a get has the given answer."""
    grown = [(f, f"<{number}>") for number in range(60) for f in ("append", "get")]
    history, text = History(), ""
    for f, value in [*grown, ("put", "p"), *((f, letter) for letter in "abcd" for f in ("append", "get"))]:
        text = value if f == "put" else text + value if f == "append" else text
        row = history.invoke(Operation(0, f, "k", None if f == "get" else value), 0, 0, "n1")
        history.complete(row, ok(text if f == "get" else None), 0)
    history.complete(history.invoke(Operation(1, "get", "k", None), 0, 1, "n1"), ok(answer), 0)
    return history


def test_the_few_operations_that_show_a_stale_get_of_a_string_are_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[int] = []
    monkeypatch.setattr(kv, "check_columns", lambda columns, budget: checks.append(1) or check_columns(columns, budget))
    result = LinearizabilityChecker("kv").check(_put_and_grown("pab"))
    assert [len(finding.operations) for finding in result.findings] == [5] and len(checks) <= 25
    assert LinearizabilityChecker("kv").check(_put_and_grown("pabcd")).verdict is Verdict.PASS


def test_strings_of_fifty_clients_whose_texts_repeat_are_decided_key_by_key() -> None:
    history = _late_texts(3, operations=1200)
    result = LinearizabilityChecker("kv").check(history)
    assert result.detail["illegal_keys"] == 4 and result.detail["unknown_keys"] == {}
    assert LinearizabilityChecker("kv").check(_late_texts(3, operations=1200, is_changed=False)).verdict is Verdict.PASS


def _late_texts(seed: int, operations: int, is_changed: bool = True) -> History:
    """Return strings that 50 clients read and append to; one late get of each answers a text of long before.

    Half of the texts that are appended may repeat, so that no monitor decides.
    """
    rng, history, time = random.Random(seed), History(), 0
    texts: dict[str, list[str]] = {key: [""] for key in "abcd"}
    under_way: dict[int, tuple[int, Outcome | None]] = {}
    changed: set[str] = set()
    while len(history) < operations or under_way:
        time += 1
        client = rng.randrange(50)
        row, outcome = under_way.pop(client, (-1, None))
        if row < 0 and len(history) < operations:
            f, key = rng.choice(("get", "append")), rng.choice("abcd")
            text = None if f == "get" else f"{rng.randrange(40) if rng.random() < 0.5 else len(history)};"
            under_way[client] = (history.invoke(Operation(client, f, key, text), time, client, "n1"), None)
        elif row >= 0 and outcome is not None:
            history.complete(row, outcome, time)
        elif row >= 0:
            key, text = history.key[row] or "", history.value[row]
            if text is not None:
                texts[key].append(texts[key][-1] + text)
            is_late = text is None and is_changed and len(history) > 0.8 * operations and key not in changed
            changed.update({key} if is_late else ())
            seen = texts[key][-30:][0] if is_late else texts[key][-1]
            under_way[client] = (row, ok(seen if text is None else None))
    return history
