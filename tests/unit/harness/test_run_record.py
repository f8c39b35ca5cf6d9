"""The record of a run: what it shows of itself."""

from __future__ import annotations

import msgspec

from faultline.harness.history import History
from faultline.harness.plan import PlannedOperation
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run_record import RunRecord
from faultline.registry import resolve


def test_its_text_stays_short_however_long_the_run_was() -> None:
    """asyncio makes that text twice whenever a real run ends: of a million operations it was hundreds of megabytes."""
    request = RunRequest(system="consistent-core", faults=())
    plan = make_plan(request, resolve(request))
    longer = msgspec.structs.replace(plan, operations=(PlannedOperation(0, 0, "read"),) * 10_000)
    texts = [repr(RunRecord(plan=each, world="local", history=History())) for each in (plan, longer)]
    assert texts[0] == texts[1] == "<RunRecord of consistent-core/register/calm, seed 0, local: 0 operations>"
