"""Verdicts on small histories of lists and registers are what trying everything says, at every level."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def tools_at_hand(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_no_verdict_differs_from_the_definition_of_its_level(first):
    from fuzz_transactions import disagreements

    assert list(disagreements(range(first, first + 40))) == []


@pytest.mark.parametrize("kind", ["list-append", "rw-register"])
def test_such_histories_keep_and_break_every_level(kind):
    from fuzz_transactions import random_history
    from transaction_oracle import LEVELS, keeps

    histories = [random_history(seed, kind) for seed in range(60)]
    for level in LEVELS:
        assert {keeps(history, level) for history in histories} == {True, False}
