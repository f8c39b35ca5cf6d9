"""Verdicts on small histories under memory models, and their staleness, are what trying every order says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def tools_at_hand(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))


@pytest.mark.parametrize("kind", ["models", "staleness"])
@pytest.mark.parametrize("first", range(0, 300, 100))
def test_no_verdict_and_no_figure_differs_from_its_definition(kind, first):
    from fuzz_memory import KINDS, random_steps

    assert [KINDS[kind](random_steps(seed), Counter()) for seed in range(first, first + 100)] == [[]] * 100


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


def test_a_wrong_figure_would_be_a_difference(monkeypatch):
    import fuzz_memory
    from memory_oracle import Step

    stale = [Step(0, False, "x", 1, 1, 2), Step(0, False, "x", 2, 3, 4), Step(1, True, "x", 1, 7, 8)]
    assert fuzz_memory.differences_of_staleness(stale, Counter()) == []
    monkeypatch.setattr(fuzz_memory, "smallest_k", lambda steps, early_us=0: 3 if early_us == 0 else 1)
    found = fuzz_memory.differences_of_staleness(stale, Counter())
    assert found == ["k is 3, and its bounds 2 and 2", "linearizable with reads 3000 µs earlier"]
