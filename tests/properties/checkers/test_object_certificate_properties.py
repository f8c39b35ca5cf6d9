"""Certificates of sets, queues, stacks, locks and counters: they hold, changed ones are refused, and so are all claims
about what is legal.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest

from faultline.checkers.linearizability.certificates import Certificate, Contradiction, ObjectCalls
from faultline.checkers.linearizability.contradictions import RULES, breaks
from faultline.checkers.linearizability.data_types import MODEL_FACTORIES
from faultline.checkers.linearizability.verifier import fault_of
from faultline.checkers.porcupine import check_operations

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def tools(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))


@pytest.mark.parametrize("kind", MODEL_FACTORIES)
def test_certificates_hold_and_changed_ones_are_refused(kind):
    from corrupted_certificates import complaints_about_object

    counts: Counter[str] = Counter()
    complaints = [
        f"seed {seed}: {complaint}" for seed in range(500) for complaint in complaints_about_object(seed, kind, counts)
    ]
    assert complaints == []
    assert counts["orders"] > 200 and counts["sets"] + counts["contradictions"] > 60
    assert (counts["contradictions"] > 20) is (kind != "mutex")


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in RULES}))
def test_no_operations_of_a_legal_history_break_a_rule(kind):
    from fuzz_objects import random_object_history

    tried = 0
    for seed in range(250):
        history = random_object_history(kind, seed)
        if not check_operations(MODEL_FACTORIES[kind].model(), history):
            continue
        for rule in (rule for name, rule in RULES if name == kind):
            for size in (1, 2, 3):
                for named in permutations(range(len(history)), size):
                    tried += 1
                    assert not breaks(kind, history, Contradiction(rule, named)), (seed, rule, named)
    assert tried > 10_000


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in RULES}))
def test_a_contradiction_holds_of_a_changed_history_only_if_that_is_illegal_too(kind):
    """Each answer and each time is changed in turn, below a certificate that stays as it is."""
    from dataclasses import replace

    from fuzz_objects import random_object_history

    from faultline.checkers.linearizability.monitors.decision import decide
    from faultline.checkers.porcupine import PENDING, UNLIMITED

    model, accepted, refused = MODEL_FACTORIES[kind].model(), 0, 0
    for seed in range(400):
        history = random_object_history(kind, seed)
        certificate = decide(kind, history, UNLIMITED).certificate
        if certificate is None:
            continue
        for i, operation in enumerate(history):
            answers = {each.output for each in history if each.input[0] == operation.input[0]} - {operation.output}
            others = [replace(operation, output=answer) for answer in sorted(answers, key=repr)]
            if operation.return_ != PENDING:
                others += [replace(operation, return_=operation.return_ + 3)]
            others += [replace(operation, call=max(0, operation.call - 3))]
            for other in others:
                changed = [*history[:i], other, *history[i + 1 :]]
                moved = Certificate(ObjectCalls(model, changed, kind), contradiction=certificate.contradiction)
                if fault_of(moved):
                    refused += 1
                else:
                    accepted += 1
                    assert not check_operations(model, changed), (seed, changed)
    assert accepted > 50 and refused >= 10
