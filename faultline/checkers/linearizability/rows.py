"""Checking one key apart from its history: the unit of work a campaign spreads over a cluster.

A task reads the columns of one (run, key) from a file and calls `check_rows`; nothing else of the run is needed, and
the answer is small. The verdict is the same as that of the whole history's check, since keys are checked apart anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faultline.checkers.linearizability.checker import STEPS_MAX, LinearizabilityChecker
from faultline.checkers.linearizability.judgement import KeyJudgement
from faultline.checkers.linearizability.operations import FailedCas
from faultline.harness.history import History

__all__ = ["check_rows"]


def check_rows(
    *,
    key: str | None,
    process: Sequence[int],
    node: Sequence[str],
    f: Sequence[str],
    value: Sequence[Any],
    outcome: Sequence[str],
    result: Sequence[Any],
    error: Sequence[str | None],
    invoke_us: Sequence[int],
    complete_us: Sequence[int],
    invoke_index: Sequence[int],
    complete_index: Sequence[int],
    model: str = "cas-register",
    steps_max: int = STEPS_MAX,
    failed_cas: FailedCas = "observe",
) -> KeyJudgement:
    """Judge the operations of one key, given as columns of equal length in order of invocation.

    `value` and `result` are decoded JSON values; times and indexes that are not there are `harness.history.OPEN`. Rows
    named in the finding count from 0 within these columns.
    """
    history = History()
    history.process, history.worker, history.node = list(process), list(process), list(node)
    history.f, history.key, history.value = list(f), [key] * len(f), list(value)
    history.outcome, history.result, history.error = list(outcome), list(result), list(error)
    history.invoke_us, history.complete_us = list(invoke_us), list(complete_us)
    history.invoke_index, history.complete_index = list(invoke_index), list(complete_index)
    checker = LinearizabilityChecker(model, steps_max=steps_max, failed_cas=failed_cas)
    return checker.judge_key(history, key, range(len(history)))
