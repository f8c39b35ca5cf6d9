"""A verdict *unknown* comes with one sentence of what to do next, by the reason that the check gave."""

from __future__ import annotations

import pytest

from faultline.harness.next_step import Again, check_line, next_step
from faultline.harness.verdict import Cause, Reason

AGAIN = Again("faultline check r --model m", "faultline check r", "faultline replay r", 3.0)


@pytest.mark.parametrize("again", [Again(), AGAIN])
@pytest.mark.parametrize("cause", Cause)
def test_every_reason_has_a_next_step_of_one_sentence(cause: Cause, again: Again) -> None:
    said = next_step(Reason(cause=cause, option="steps_max", value=10), again)
    assert said.endswith(".") and said[0].isupper()
    assert "  " not in said and ". " not in said


def test_a_spent_budget_names_the_command_with_a_larger_one() -> None:
    said = next_step(Reason(cause=Cause.BUDGET, option="steps_max", value=200_000), AGAIN)
    assert "faultline check r --model m --option steps-max=5000000" in said
    assert "more keys" in said


def test_spent_time_names_the_command_with_more_of_it() -> None:
    assert "faultline check r --model m --timeout 30" in next_step(Reason(cause=Cause.TIME), AGAIN)


def test_a_part_that_is_too_large_names_the_size_that_it_takes() -> None:
    reason = Reason(cause=Cause.SIZE, option="transactions_max", value=9_000)
    assert "--option transactions-max=9000" in next_step(reason, AGAIN)


def test_a_run_that_was_not_kept_is_done_again_first() -> None:
    said = next_step(Reason(cause=Cause.BUDGET, option="steps_max", value=2), Again(replay="faultline run --seed 3"))
    assert "(faultline run --seed 3)" in said and "--option steps-max=50" in said


def test_where_nothing_is_stored_no_command_is_made_up() -> None:
    for cause in Cause:
        assert "faultline check" not in next_step(Reason(cause=cause, option="steps", value=1), Again())


def test_a_checker_that_gives_no_reason_leads_to_another() -> None:
    assert next_step(None, AGAIN) == (
        "The checker gives no reason; another judges the history with faultline check r --model NAME."
    )


def test_only_the_folder_of_a_run_can_be_checked_again() -> None:
    assert check_line("faultline replay 'a run'") == "faultline check 'a run'"
    assert check_line("faultline replay 'a run' --hosts ssh:hosts.toml") == "faultline check 'a run'"
    assert check_line("faultline run --seed 3") == ""
    assert check_line("faultline replay 'a run") == ""
