"""A run of processes in which everything must go well: what is planned strikes, and the promise is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run_record import RunRecord
from faultline.harness.world.local.world import run_local
from faultline.registry import resolve

__all__ = ["assert_kept"]


def assert_kept(request: RunRequest, folder: Path, **planned: Any) -> RunRecord:
    """Run `request` with `planned` in its plan: nothing broke, each fault took effect, and the first checker passes."""
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), **planned)
    record = run_local(plan, parts, folder=folder)
    assert record.errors == []
    assert record.breaches == []
    assert [interval.applied for interval in record.faults] == [None] * len(plan.faults), record.faults
    promise, *_ = parts.checkers
    result = promise.check(record.history, record)
    assert result.verdict == "pass", result.sentence
    return record
