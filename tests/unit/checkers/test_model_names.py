"""The names that `--model` takes: checkers that need nothing but a history, and no others."""

from __future__ import annotations

import pytest

from faultline.checkers.judges import judge, models
from faultline.harness.errors import UsageError
from faultline.harness.history import History


@pytest.mark.parametrize("model", ["watches", "siblings", "convergence", "membership", "follower-reads", "vacuity"])
def test_a_checker_that_needs_the_plan_of_a_run_is_no_model_and_says_so(model):
    assert model not in models()
    with pytest.raises(UsageError, match=f"The checker `{model}` judges runs of Faultline") as refused:
        judge(model, History())
    assert "without --model" in refused.value.next_step


@pytest.mark.parametrize("model", models())
def test_every_model_answers_for_an_empty_history_without_a_plan(model):
    assert judge(model, History()).check(History()).checker
