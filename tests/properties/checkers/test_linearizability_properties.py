"""Random small histories: the fast search, the port of Porcupine and a brute-force oracle must agree."""

from __future__ import annotations

from itertools import chain, combinations, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from faultline.checkers import LinearizabilityChecker
from faultline.checkers.linearizability.evidence import illegal_prefix, likely_cores, register_evidence, relaxations
from faultline.checkers.linearizability.models import referee_operations, register_model
from faultline.checkers.linearizability.operations import (
    AVOID,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    RegisterOperation,
    register_operations,
)
from faultline.checkers.linearizability.replay import is_linearization
from faultline.checkers.linearizability.search import search
from faultline.checkers.porcupine import UNLIMITED, check_operations
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, fail, info, ok
from faultline.harness.verdict import Verdict

VALUES = st.sampled_from([None, 0, 1, 2])


@st.composite
def register_histories(draw, size_max=6):
    """Any history of a register at all, mostly illegal: operations of any kind at any times, some never returning."""
    size = draw(st.integers(0, size_max))
    places = draw(st.permutations(range(2 * size)))
    operations = []
    for row in range(size):
        kind = draw(st.sampled_from([OBSERVE, AVOID, WRITE, SWAP]))
        call, return_ = sorted(places[2 * row : 2 * row + 2])
        if kind in (WRITE, SWAP) and draw(st.booleans()):
            return_ = INFINITY
        operations.append(RegisterOperation(kind, draw(VALUES), draw(VALUES), call, return_, row))
    return [
        operation
        for operation in sorted(operations, key=lambda operation: operation.call)
        if operation.kind != SWAP or operation.demand != operation.produce
    ]


@st.composite
def atomic_executions(draw, operations_max=14):
    """A history of a true atomic register: each operation takes effect at one moment while it is in flight.

    Some are cut off before or after their effect (indeterminate), some fail for certain without any.
    """
    history, state, waiting, worker_of = History(), None, {}, list(range(3))
    for number in range(draw(st.integers(1, operations_max)) * 3):
        worker = draw(st.integers(0, 2))
        if worker not in waiting:
            f = draw(st.sampled_from(["read", "write", "cas"]))
            value = {"read": None, "write": draw(VALUES), "cas": [draw(VALUES), draw(VALUES)]}[f]
            waiting[worker] = (history.invoke(Operation(worker_of[worker], f, "k0", value), number, worker, "n"), None)
            continue
        row, outcome = waiting[worker]
        fate = draw(st.sampled_from(["go on", "go on", "go on", "crash", "refuse"]))
        if outcome is None and fate == "go on":
            outcome, state = _take_effect(history, row, state)
            waiting[worker] = (row, outcome)
            continue
        del waiting[worker]
        if fate == "crash":
            worker_of[worker] += 3
            history.complete(row, info("timeout"), number)
        else:
            history.complete(row, outcome or fail("not-leader"), number)
    return history


def _take_effect(history, row, state):
    f, value = history.f[row], history.value[row]
    if f == "read":
        return ok(state), state
    if f == "write":
        return ok(), value
    return (ok(), value[1]) if state == value[0] else (fail(CAS_MISMATCH), state)


def brute_force(operations):
    """Return whether some order of all completed and some pending operations is a linearization."""
    calls, model = referee_operations(operations), register_model()
    must = [i for i, operation in enumerate(operations) if operation.return_ != INFINITY]
    may = [i for i, operation in enumerate(operations) if operation.return_ == INFINITY]
    some = chain.from_iterable(combinations(may, size) for size in range(len(may) + 1))
    return any(is_linearization(model, calls, order) for extra in some for order in permutations([*must, *extra]))


@given(register_histories())
def test_search_port_and_brute_force_agree(operations):
    expected = brute_force(operations)
    found = search(operations)
    assert found.is_legal == expected
    assert check_operations(register_model(), referee_operations(operations)) == expected


@settings(max_examples=300)
@given(register_histories(size_max=12))
def test_search_and_port_agree_on_longer_histories_and_every_ok_has_a_witness(operations):
    found = search(operations)
    assert found.is_legal == check_operations(register_model(), referee_operations(operations))
    placed = [operations[i] for i in found.order]
    assert is_linearization(register_model(), referee_operations(placed), range(len(placed)))
    assert not found.is_legal or is_linearization(register_model(), referee_operations(operations), found.order)


@given(register_histories(size_max=12))
def test_the_shortest_illegal_prefix_is_illegal_and_one_return_earlier_it_is_not(operations):
    found = search(operations)
    if found.is_illegal:
        assert not check_operations(register_model(), referee_operations(illegal_prefix(operations, found.furthest)))
        if found.furthest:
            before = illegal_prefix(operations, found.furthest - 1)
            assert check_operations(register_model(), referee_operations(before))


@given(register_histories(size_max=10))
def test_a_core_is_illegal_and_legal_after_any_single_relaxation(operations):
    found = search(operations)
    if not found.is_illegal:
        return
    evidence = register_evidence(operations, found, None, UNLIMITED)
    assert evidence is not None
    assert evidence.is_minimal
    core = list(evidence.core)
    assert not check_operations(register_model(), referee_operations(core))
    assert evidence.refused in core
    for position, operation in enumerate(core):
        for relaxed in relaxations(operation, core):
            weaker = core[:position] + [relaxed] * (relaxed is not None) + core[position + 1 :]
            assert check_operations(register_model(), referee_operations(weaker))


@given(register_histories(size_max=7))
def test_no_relaxation_turns_a_legal_history_illegal(operations):
    if search(operations).is_legal:
        for position, operation in enumerate(operations):
            for relaxed in relaxations(operation, operations):
                weaker = operations[:position] + [relaxed] * (relaxed is not None) + operations[position + 1 :]
                assert brute_force(weaker)


@settings(max_examples=300)
@given(atomic_executions(operations_max=30))
def test_no_likely_core_of_a_legal_history_is_illegal(history):
    operations = register_operations(history, range(len(history)))
    for guess in likely_cores(operations):
        assert search(guess).is_legal


@settings(max_examples=300)
@given(atomic_executions())
def test_an_atomic_register_is_never_accused(history):
    result = LinearizabilityChecker().check(history)
    assert result.verdict in (Verdict.PASS, Verdict.VACUOUS), result.sentence
    assert not LinearizabilityChecker(failed_cas="ignore").check(history).findings


@settings(max_examples=200)
@given(atomic_executions(), st.data())
def test_a_corrupted_read_is_judged_as_the_port_judges_it(history, data):
    reads = [row for row in range(len(history)) if history.f[row] == "read" and history.outcome[row] == "ok"]
    if reads:
        history.result[data.draw(st.sampled_from(reads))] = data.draw(st.sampled_from([0, 1, 2, 99]))
    result = LinearizabilityChecker().check(history)
    operations = register_operations(history, range(len(history)))
    legal = check_operations(register_model(), referee_operations(operations))
    assert result.verdict in ((Verdict.PASS, Verdict.VACUOUS) if legal else (Verdict.VIOLATION,))
    for finding in result.findings:
        assert set(finding.operations) <= set(range(len(history)))
        assert finding.sentence.endswith("to show it.")
