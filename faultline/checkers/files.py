"""Checking a history that lies in a file: what `faultline check` does."""

from __future__ import annotations

from pathlib import Path

from faultline.checkers.importers import FORMATS, format_named
from faultline.checkers.linearizability.checker import LinearizabilityChecker
from faultline.checkers.linearizability.models import MODELS, model_named
from faultline.harness.verdict import CheckResult, Verdict

__all__ = ["FORMATS", "MODELS", "STEPS_MAX", "check_file"]

STEPS_MAX = 5_000_000
"""The default budget of one key: a person who checks one file waits longer than a campaign of thousands of runs."""


def check_file(
    path: Path | str,
    format_name: str = "faultline",
    model: str | None = None,
    *,
    steps_max: int = STEPS_MAX,
    timeout_s: float | None = None,
) -> CheckResult:
    """Check the history in `path` for linearizability under `model` (default: the one its format is for).

    The budget is `steps_max` steps for each key, and `timeout_s` seconds for all of them if given. A file without
    operations is VACUOUS. Raises UsageError for unknown names and for what cannot be read or does not fit the model.
    """
    description = format_named(format_name)
    chosen = model_named(model or description.model)
    imported = description.read(Path(path))
    if not len(imported.history):
        sentence = f"{path} holds no operation, so there is nothing to check."
        return CheckResult(checker=LinearizabilityChecker.name, verdict=Verdict.VACUOUS, sentence=sentence)
    checker = LinearizabilityChecker(chosen.name, steps_max=steps_max, timeout_s=timeout_s, clock=imported.clock)
    return checker.check(imported.history)
