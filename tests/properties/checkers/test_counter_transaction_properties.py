"""Stores of counters are never accused under their own model, nor is a history that some order explains."""

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


def amount(element: int) -> int:
    return 1 + element % 3


def counter_history(level: str, seed: int, *, changed: float = 0.0, **options: Any) -> History:
    """A toy database's lists as counters: an element stands for an amount, a list for the sum of its elements."""
    rng = random.Random(seed)

    def translate(name: str, key: str, value: Any) -> list[Any]:
        if name == "append":
            return ["inc", key, amount(value)]
        total = sum(map(amount, value or ()))
        return [name, key, total + (int(rng.random() * 3) - 1 if rng.random() < changed else 0)]

    return translated_history(level, seed, translate, **options)


def explains(history: History, order: tuple[int, ...]) -> bool:
    state: dict[str, int] = {}
    for row in order:
        known = history.outcome[row] == "ok"
        for name, key, value in history.result[row] if known else history.value[row]:
            if name == "inc":
                state[key] = state.get(key, 0) + value
            elif known and value != state.get(key, 0):
                return False
    return True


@pytest.mark.parametrize("level", LEVELS[1:])
@given(seed=SEEDS)
@settings(max_examples=60)
def test_a_store_of_counters_is_never_accused_under_its_own_model(level: str, seed: int) -> None:
    result = check_transactions(counter_history(level, seed), "txn-counter", level)
    assert result.verdict in (Verdict.PASS, Verdict.VACUOUS), result.sentence


@pytest.mark.parametrize(("level", "stronger"), [(LEVELS[1], LEVELS[2]), (LEVELS[3], LEVELS[4])])
def test_a_weaker_store_of_counters_is_found_out(level: str, stronger: str) -> None:
    results = [check_transactions(counter_history(level, seed), "txn-counter", stronger) for seed in range(25)]
    assert sum(result.verdict == Verdict.VIOLATION for result in results) > 5


@given(seed=SEEDS, level=st.sampled_from(LEVELS))
@settings(max_examples=500)
def test_counters_are_only_accused_when_no_order_explains_them(seed: int, level: str) -> None:
    history = counter_history(level, seed, changed=0.15, transactions=5, clients=3, keys=2, uncertain=0.2)
    result = check_transactions(history, "txn-counter", "serializable")
    if result.verdict == Verdict.VIOLATION:
        assert not some_order(history, explains), result.sentence
