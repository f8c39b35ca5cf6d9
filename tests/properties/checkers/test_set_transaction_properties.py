"""Stores of sets are never accused under their own model, and verdicts equal those of trying every order."""

from __future__ import annotations

import random
from typing import Any

import pytest
from every_order import some_order
from hypothesis import given, settings
from hypothesis import strategies as st
from interleaved_databases import LEVELS
from translated_databases import translated_history

from faultline.checkers.transactions.checker import check_transactions
from faultline.harness.history import History
from faultline.harness.verdict import Verdict

SEEDS = st.integers(0, 2**32)


def sets_history(level: str, seed: int, *, changed: float = 0.0, **options: Any) -> History:
    """A toy database's lists as sets, elements in any order, and a share of the reads `changed`."""
    rng = random.Random(seed)
    return translated_history(level, seed, lambda name, key, value: as_set(rng, name, key, value, changed), **options)


def as_set(rng: random.Random, name: str, key: str, value: Any, changed: float) -> list[Any]:
    if name == "append":
        return ["add", key, value]
    elements = list(value or ())
    rng.shuffle(elements)
    if rng.random() < changed:
        elements = elements[1:] if rng.random() < 0.7 else [*elements, 1 + int(rng.random() * 3)]
    return [name, key, elements]


def explains(history: History, order: tuple[int, ...]) -> bool:
    state: dict[str, set[Any]] = {}
    for row in order:
        known = history.outcome[row] == "ok"
        for name, key, value in history.result[row] if known else history.value[row]:
            elements = state.setdefault(key, set())
            if name == "add":
                elements.add(value)
            elif known and sorted(value) != sorted(elements):
                return False
    return True


@pytest.mark.parametrize("level", LEVELS[1:])
@given(seed=SEEDS)
@settings(max_examples=50)
def test_a_store_of_sets_is_never_accused_under_its_own_model(level: str, seed: int) -> None:
    result = check_transactions(sets_history(level, seed), "txn-set", level)
    assert result.verdict in (Verdict.PASS, Verdict.VACUOUS), result.sentence


def test_a_store_of_sets_without_isolation_is_found_out() -> None:
    verdicts = [check_transactions(sets_history("none", seed), "txn-set", "read-committed") for seed in range(25)]
    assert sum(result.verdict == Verdict.VIOLATION for result in verdicts) > 5


@given(seed=SEEDS, level=st.sampled_from(LEVELS))
@settings(max_examples=500)
def test_sets_are_serializable_exactly_when_some_order_explains_them(seed: int, level: str) -> None:
    history = sets_history(level, seed, changed=0.15, transactions=4, clients=3, keys=2, uncertain=0.2)
    result = check_transactions(history, "txn-set", "serializable")
    assert (result.verdict == Verdict.VIOLATION) == (not some_order(history, explains)), result.sentence
