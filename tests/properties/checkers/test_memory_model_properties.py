"""Verdicts on small histories under memory models are what trying every order says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def tools_at_hand(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_no_verdict_differs_from_the_definition_of_its_model(first):
    from fuzz_memory import differences, random_steps

    assert [differences(random_steps(seed), Counter()) for seed in range(first, first + 100)] == [[]] * 100


def test_such_histories_keep_and_break_every_model_and_tell_the_models_apart():
    from fuzz_memory import CHECKED, random_steps
    from memory_oracle import keeps

    answers = [tuple(keeps(random_steps(seed), model) for model in CHECKED.values()) for seed in range(400)]
    assert {True} < {answer[0] for answer in answers}
    assert len(set(answers)) > 2


def test_a_wrong_verdict_would_be_a_difference(monkeypatch):
    import fuzz_memory
    from memory_oracle import Step

    stale = [Step(0, False, "x", 1, 1, 2), Step(1, True, "x", 1, 3, 4), Step(1, True, "x", None, 5, 6)]
    assert fuzz_memory.differences(stale, Counter()) == []
    monkeypatch.setattr(fuzz_memory, "keeps", lambda steps, model: True)
    assert any("sequential says violation" in found for found in fuzz_memory.differences(stale, Counter()))
