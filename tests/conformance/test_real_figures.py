"""Messages of a run of processes: a violation's figure draws those that decide; a run without one decodes none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from faultline.cli.single_run import judge_and_report
from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.world.local.decoded_messages import DecodedMessages
from faultline.harness.world.local.world import run_local
from faultline.registry import resolve

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from deciding_messages import outcome_of

pytestmark = [pytest.mark.real, pytest.mark.slow]


def request(*planted_bugs: str) -> RunRequest:
    """Two clients that contend for few registers, for a moment and without faults."""
    return RunRequest(
        system="paxos-kv", planted_bugs=planted_bugs, seed=1, world="local", duration_s=1.5, faults=(), workers=2
    )


def test_a_violation_of_processes_is_drawn_with_every_message_that_decides(tmp_path: Path) -> None:
    parts = resolve(request("ids-not-unique"))
    record = run_local(make_plan(request("ids-not-unique"), parts), parts, folder=tmp_path)
    outcome = outcome_of(record, judge(record, parts, run_id="figure"), "ids-not-unique")
    assert {"own", "copies"} <= outcome.deciding.keys()
    assert outcome.missing == ()
    assert outcome.figures > 0
    assert outcome.cut == 0
    assert record.messages_dropped_us == record.statistics["messages_dropped"] == 0


def test_a_run_of_processes_without_a_finding_decodes_no_message_and_stores_none(tmp_path: Path) -> None:
    parts = resolve(request())
    record = run_local(make_plan(request(), parts), parts, folder=tmp_path)
    finished = judge_and_report(record, parts, "passes", tmp_path, shrinks=False)
    assert finished.judgement.findings == [], finished.lines
    assert isinstance(record.messages, DecodedMessages)
    assert "_records" not in vars(record.messages)
    stored = [path for path in tmp_path.iterdir() if path.is_file()]
    assert not [path for path in stored if b"PrepareRequest" in path.read_bytes()]
    assert any(message.name == "PrepareRequest" for message in record.messages)
