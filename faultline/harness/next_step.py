"""The next step for a run or a history that was not decided: one sentence, chosen by the reason that its check gave.

Results that were established stand, and are told elsewhere; the next step only says how to establish the rest.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import NamedTuple

from faultline.harness.judgement import Judgement
from faultline.harness.verdict import Cause, Reason, Verdict

__all__ = ["Again", "check_line", "next_step", "next_step_of"]

_MORE_STEPS = 25
"""The factor from the budget of a run to that of `faultline check`, and on from there."""

_MORE_TIME = 10


class Again(NamedTuple):
    """The commands that judge the history again.

    `check` is the command without the option that is to change, empty when no history was kept; `model_free` is the
    command without a model; `replay` repeats the run; `timeout_s` is the limit that was set.
    """

    check: str = ""
    model_free: str = ""
    replay: str = ""
    timeout_s: float = 0.0


def next_step_of(judgement: Judgement) -> str:
    """Return the next step for `judgement`; empty unless it is *unknown*, or *vacuous* by a check that says why."""
    if judgement.verdict not in (Verdict.UNKNOWN, Verdict.VACUOUS):
        return ""
    checks = [check for check in judgement.checks if check.verdict is judgement.verdict]
    reason = next((check.reason for check in checks), None)
    if judgement.verdict is Verdict.VACUOUS and reason is None:
        return ""
    line = check_line(judgement.replay)
    return next_step(reason, Again(line, line, judgement.replay))


def check_line(replay: str) -> str:
    """Return the command that judges the recorded history again, when the line `replay` names the folder of a run."""
    try:
        words = shlex.split(replay)
    except ValueError:
        # The line comes from a stored run and may be any text, so it is parsed as a shell would and never trusted.
        return ""
    return shlex.join(["faultline", "check", words[2]]) if words[:2] == ["faultline", "replay"] and words[2:] else ""


def next_step(reason: Reason | None, again: Again) -> str:
    """Return one sentence with the next step for `reason`, or a general one when there is no reason."""
    if reason is None:
        return _ask_another(again, "The checker gives no reason")
    return _STEPS[reason.cause](reason, again)


def _more_steps(reason: Reason, again: Again) -> str:
    option = f"{reason.option.replace('_', '-')}={max(reason.value, 1) * _MORE_STEPS}"
    fewer = "let fewer operations come together: fewer of them, or more keys"
    if not again.check and again.replay:
        again_kept = f"Repeat the run, which keeps its history ({again.replay})"
        return f"{again_kept}, and check that with --option {option}; or {fewer}."
    if not again.check:
        return f"Judge it with a larger budget ({option}), or {fewer}."
    return f"Judge it again with a larger budget: {again.check} --option {option}; or {fewer}."


def _more_time(_reason: Reason, again: Again) -> str:
    fewer = "let fewer operations come together: fewer of them, or more keys"
    if not again.check or not again.timeout_s:
        return f"Give the check more time, or {fewer}."
    return f"Give it more time: {again.check} --timeout {again.timeout_s * _MORE_TIME:g}; or {fewer}."


def _smaller(reason: Reason, again: Again) -> str:
    if reason.option and again.check:
        option = f"{reason.option.replace('_', '-')}={reason.value}"
        return f"Let larger parts be searched: {again.check} --option {option}; or record fewer transactions."
    return "Record fewer transactions, by fewer clients: a search that is too large is not begun."


def _test_more(_reason: Reason, again: Again) -> str:
    errors = f"; see how operations ended: {again.model_free} --model errors" if again.model_free else ""
    return f"Let more of the judged operations succeed: with more operations, a longer run, or fewer faults{errors}."


def _fewer_lost(_reason: Reason, _again: Again) -> str:
    return (
        "The recorded history cannot decide it: run it again with fewer faults or with clients that wait longer, "
        "so that fewer operations end without an answer."
    )


def _read_out(_reason: Reason, _again: Again) -> str:
    return (
        "Run it again with fewer operations or faults, so that its final reads reach every key and go on until nothing "
        "more comes."
    )


def _distinct(_reason: Reason, _again: Again) -> str:
    return "Run it again with a different value for each write of a key."


def _to_the_end(_reason: Reason, again: Again) -> str:
    return f"Let the run go on after the heal, without an interruption{_by(again.replay)}."


def _mend_harness(_reason: Reason, again: Again) -> str:
    return f"First repair the failure of the harness (see the errors), then repeat the run{_by(again.replay)}."


def _mend_checker(_reason: Reason, again: Again) -> str:
    return _ask_another(again, "Report this to the authors of the checker, with the history")


def _do_again(_reason: Reason, again: Again) -> str:
    return f"Repeat the run, to its end, so that nothing is missing{_by(again.replay)}."


def _name_logs(_reason: Reason, _again: Again) -> str:
    return "Tell the checker where the logs are (`folder` and `files`), or use it on runs of real processes."


def _by(command: str) -> str:
    return f": {command}" if command else ""


def _ask_another(again: Again, first: str) -> str:
    if not again.model_free:
        return f"{first}; ask another one, or its authors."
    return f"{first}; another judges the history with {again.model_free} --model NAME."


_STEPS: Mapping[Cause, Callable[[Reason, Again], str]] = {
    Cause.BUDGET: _more_steps,
    Cause.TIME: _more_time,
    Cause.SIZE: _smaller,
    Cause.NOTHING_SEEN: _test_more,
    Cause.INDEFINITE: _fewer_lost,
    Cause.NOT_READ_OUT: _read_out,
    Cause.REPEATED_VALUES: _distinct,
    Cause.ENDED_EARLY: _to_the_end,
    Cause.HARNESS: _mend_harness,
    Cause.CHECKER: _mend_checker,
    Cause.LEFT_OUT: _do_again,
    Cause.NO_LOGS: _name_logs,
}
