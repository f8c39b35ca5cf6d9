"""The command line of `faultline check` again, with the change that may decide an undecided history."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

from faultline.harness.verdict import Cause, CheckResult, Reason, Verdict

__all__ = ["Asked", "next_step_for"]


class Asked(NamedTuple):
    """The user's request for the check: `options` as they were given, `NAME=VALUE`."""

    format_name: str
    model: str | None
    options: tuple[str, ...]
    timeout_s: float | None


def next_step_for(path: Path, result: CheckResult, asked: Asked) -> str:
    """Return the next step for `result` of the history at `path`; empty unless it is *unknown*."""
    if result.verdict is not Verdict.UNKNOWN:
        return ""
    from faultline.harness.next_step import Again, next_step

    bare = ["faultline", "check", str(path)]
    words = [*bare, *_kept(result.reason, asked)]
    again = Again(shlex.join(words), shlex.join(bare), timeout_s=asked.timeout_s or 0.0)
    return next_step(result.reason, again)


def _kept(reason: Reason | None, asked: Asked) -> list[str]:
    """Return the options that were given, without the limit that ended the check."""
    words = [] if asked.format_name == "auto" else ["--format", asked.format_name]
    words += [] if asked.model is None else ["--model", asked.model]
    ended_by = reason.option if reason else ""
    for pair in asked.options:
        if pair.partition("=")[0].replace("-", "_") != ended_by:
            words += ["--option", pair]
    if asked.timeout_s is not None and (reason is None or reason.cause is not Cause.TIME):
        words += ["--timeout", f"{asked.timeout_s:g}"]
    return words
