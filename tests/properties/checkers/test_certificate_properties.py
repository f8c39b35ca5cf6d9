"""Certificates of random histories are accepted by both verifiers, and refused when any field was changed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from faultline.checkers.linearizability.certificates import Certificate
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.proofs import frontier
from faultline.checkers.linearizability.engine.registers import columns_of
from faultline.checkers.linearizability.models import referee_operations, register_model
from faultline.checkers.linearizability.operations import INFINITY, RegisterOperation
from faultline.checkers.linearizability.verifier import fault_of
from faultline.checkers.porcupine import check_operations

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("model", ["cas-register", "kv"])
def test_certificates_hold_and_changed_ones_are_refused(monkeypatch, model):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from verify_certificates import complaints_about

    counts: Counter[str] = Counter()
    complaints = [complaint for seed in range(1500) for complaint in complaints_about(seed, model, counts)]
    assert complaints == []
    assert counts["sets"] > 40 and counts["orders"] > 1000 and counts["corrupted sets"] > 800


@pytest.mark.parametrize("model", ["lists", "registers"])
def test_certificates_of_transactions_hold_and_none_claims_the_contrary_of_what_is_so(monkeypatch, model):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from verify_certificates import complaints_about

    counts: Counter[str] = Counter()
    complaints = [complaint for seed in range(200) for complaint in complaints_about(seed, model, counts)]
    assert complaints == []
    assert counts["kept, order"] > 100 and counts["broken, cycle"] > 10 and counts["corrupted certificates"] > 1000
    assert counts["certificates of others that claim the contrary"] > 20


def test_a_set_is_accepted_for_a_changed_history_only_if_that_is_illegal_too(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from fuzz_linearizability import random_history

    accepted = refused = 0
    for seed in range(4000):
        history = random_history(seed)
        if check_operations(register_model(), referee_operations(history)):
            continue
        configurations = frontier(columns_of(history)).configurations
        for changed in _changed(history):
            columns = _numbered_alike(history, changed)
            if fault_of(Certificate(columns, configurations=configurations)):
                refused += 1
            else:
                accepted += 1
                assert not check_operations(register_model(), referee_operations(changed)), (seed, changed)
    assert accepted > 100 and refused > 1000


def _changed(history: list[RegisterOperation]) -> list[list[RegisterOperation]]:
    """Return the histories that differ from `history` in one field of one operation."""
    values = sorted({value for each in history for value in (each.demand, each.produce)}, key=repr)
    found: list[list[RegisterOperation]] = []
    for i, operation in enumerate(history):
        others = [operation._replace(demand=value) for value in values if value != operation.demand]
        others += [operation._replace(produce=value) for value in values if value != operation.produce]
        others += [operation._replace(kind=kind) for kind in range(4) if kind != operation.kind]
        others += [operation._replace(call=call) for call in (0, operation.call - 3) if 0 <= call < operation.call]
        others += [operation._replace(return_=return_) for return_ in (operation.return_ + 4, INFINITY)]
        found += [[*history[:i], other, *history[i + 1 :]] for other in others if _is_one(other)]
    return found


def _is_one(operation: RegisterOperation) -> bool:
    observes = operation.kind < 2
    return not (observes and operation.return_ >= INFINITY) and operation.return_ <= INFINITY


def _numbered_alike(history: list[RegisterOperation], changed: list[RegisterOperation]) -> Columns:
    """Return `changed` as columns in which values have the numbers that they have in those of `history`."""
    columns = columns_of(changed)
    known = list(columns_of(history).values)
    number = {value: i for i, value in enumerate([*known, *(v for v in columns.values if v not in known)])}
    for column in (columns.demand, columns.produce):
        for i, value in enumerate(column):
            column[i] = number[columns.values[value]]
    columns.values = list(number)
    return columns
