"""Ask one checker, and take its answer with care: checkers are plug-ins, and their errors are their own.

A checker that raises, exits, or answers with something that is no result is *unknown*, by name. A finding is never lost
because a part of it is malformed: a violation with details that JSON cannot hold stays a violation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from faultline.harness.deadline import Overdue, deadline
from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult, Finding, Reason, Verdict
from faultline.harness.workload import Checker

__all__ = ["ask", "judged_nothing", "left_out", "name_of", "unknown_check"]


def ask(checker: Checker, record: RunRecord, limit_s: float | None = None) -> CheckResult:
    """Return the result of `checker` for `record`, or *unknown* with the checker's own error.

    A checker that finds itself contradicted (HarnessError) is a harness error. One that takes more than `limit_s`
    seconds is ended: a checker answers within its own budget, and this one has none, or does not keep to it.
    """
    name = name_of(checker)
    try:
        with deadline(limit_s) if limit_s is not None else contextlib.nullcontext():
            answer: object = checker.check(record.history, record)
    except Overdue:
        return CheckResult(
            checker=name,
            verdict=Verdict.UNKNOWN,
            sentence=f"The checker {name} was ended: it had not answered after {limit_s:g} s.",
            reason=Reason(cause=Cause.TIME),
        )
    except HarnessError as error:
        return CheckResult(
            checker=name,
            verdict=Verdict.HARNESS_ERROR,
            sentence=f"The checker {name} itself failed: {type(error).__name__}: {error}.",
        )
    except UsageError as error:
        return unknown_check(name, f"The history does not fit the checker {name}: {error}")
    except SystemExit as error:
        return unknown_check(name, f"The checker {name} itself failed: it called sys.exit({error.code!r}).")
    except Exception as error:
        return unknown_check(name, f"The checker {name} itself failed: {type(error).__name__}: {error}.")
    return _taken(name, answer)


def name_of(checker: Checker) -> str:
    """Return the name of `checker`, or of its class where it has none that can be used."""
    name: object = getattr(checker, "name", None)
    return name if isinstance(name, str) and _holds(name) else type(checker).__name__


def left_out(name: str, why: str) -> CheckResult:
    """Return the result of a check that should have run and did not, for the reason `why`, half a sentence."""
    return CheckResult(
        checker=name,
        verdict=Verdict.UNKNOWN,
        sentence=f"The check {name} was left out: {why}.",
        reason=Reason(cause=Cause.LEFT_OUT),
    )


def judged_nothing() -> CheckResult:
    """Return the result for a run that no checker of the workload judged: it neither kept nor broke a promise."""
    return CheckResult(
        checker="judged",
        verdict=Verdict.VACUOUS,
        sentence="No check judged what the clients saw: the workload has no checker of its own.",
    )


def unknown_check(name: str, sentence: str) -> CheckResult:
    """Return the result of a checker that failed itself."""
    return CheckResult(checker=name, verdict=Verdict.UNKNOWN, sentence=sentence, reason=Reason(cause=Cause.CHECKER))


def _taken(name: str, answer: Any) -> CheckResult:
    """Return `answer` where it can be written as JSON, else the parts of it that can."""
    problem = _problem(answer)
    if not problem:
        result: CheckResult = answer
        return result
    sentence = f"The checker {name} itself failed: {problem}."
    if not isinstance(answer, CheckResult) or answer.verdict is not Verdict.VIOLATION:
        return unknown_check(name, sentence)
    findings = tuple(_readable(name, each) for each in _sequence(answer.findings) if isinstance(each, Finding))
    told = answer.sentence if _is_text(answer.sentence) else sentence
    return CheckResult(
        checker=name, verdict=Verdict.VIOLATION, sentence=told, findings=findings, detail={"warnings": [sentence]}
    )


def _problem(answer: Any) -> str:
    """Return the reason why `answer` is no result of a check; '' when it is one."""
    if not isinstance(answer, CheckResult):
        return f"it returned {_short(answer)} and no CheckResult"
    if not isinstance(answer.verdict, Verdict):
        return f"its verdict is {_short(answer.verdict)} and none of {', '.join(Verdict)}"
    try:
        # A round trip through JSON checks the type of every field, on which the readers of verdict.json rely.
        msgspec.convert(msgspec.json.decode(msgspec.json.encode(answer)), CheckResult)
    except Exception as error:
        return f"its result cannot be written as JSON ({type(error).__name__}: {_short(str(error), 200)})"
    warnings: Any = answer.detail.get("warnings", ())
    if not isinstance(warnings, list | tuple) or not all(isinstance(warning, str) for warning in warnings):
        return f"its warnings are {_short(warnings)} and no list of sentences"
    return ""


def _readable(name: str, finding: Finding) -> Finding:
    """Return `finding` as it is where JSON can hold it, else without the fields that it cannot."""
    if not _problem(CheckResult(checker=name, verdict=Verdict.VIOLATION, sentence="", findings=(finding,))):
        return finding
    return Finding(
        checker=_text(finding.checker),
        anomaly=_text(finding.anomaly),
        sentence=_text(finding.sentence),
        operations=tuple(row for row in _sequence(finding.operations) if type(row) is int),
    )


def _text(value: Any) -> str:
    return value if _is_text(value) else _short(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and _holds(value)


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple | list) else ()


def _holds(value: object) -> bool:
    """Return whether JSON can hold `value`."""
    try:
        msgspec.json.encode(value)
    except Exception:
        return False
    return True


def _short(value: object, length: int = 80) -> str:
    """Return `value` for a person to read, in ASCII and in at most `length` characters."""
    try:
        text = ascii(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= length else f"{text[: length - 1]}…"
