"""`consistent-core` with wire=channel: runs over channels that reset, in batches, and bugs that clients see."""

from __future__ import annotations

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Verdict
from faultline.registry import resolve

FORWARDED = {"wire": "channel", "wire_linger_ms": "2", "find_leader": "forward", "in_flight_max": "2"}


def judged(seed: int, *bugs: str, faults: tuple[str, ...] = (), **options: str) -> tuple[RunRecord, Judgement]:
    """One short run of ten busy clients."""
    request = RunRequest(
        system="consistent-core",
        workload="register",
        faults=faults,
        planted_bugs=bugs,
        options=options,
        workers=10,
        operations=100,
        seed=seed,
    )
    parts = resolve(request)
    record = run_simulated(make_plan(request, parts), parts)
    return record, judge(record, parts, run_id=f"seed-{seed}")


@pytest.mark.rows("RP-R17", "RB-R12", "SC-R1")
def test_forwarded_requests_travel_in_batches_through_a_full_pipeline_and_are_linearizable() -> None:
    record, judgement = judged(0, **{**FORWARDED, "in_flight_max": "1", "wire_linger_ms": "0"})
    assert judgement.verdict is Verdict.PASS
    assert {"batch-sent", "pipeline-full", "request-forwarded"} <= record.marks.keys()
    assert "channel-reconnected" not in record.marks


@pytest.mark.rows("SC-S6", "RP-R3", "RP-R15")
def test_channels_reconnect_under_load_and_nothing_is_executed_twice_or_lost() -> None:
    record, judgement = judged(0, faults=("partition", "packet"), **FORWARDED)
    assert judgement.verdict is Verdict.PASS
    assert {"channel-reconnected", "connection-reset", "call-lost-on-the-wire"} <= record.marks.keys()


def test_clients_reach_their_leader_over_channels_by_redirects() -> None:
    record, judgement = judged(1, faults=("kill",), wire="channel")
    assert judgement.verdict is Verdict.PASS
    assert {"client-redirected", "channel-reconnected"} <= record.marks.keys()


def test_one_seed_is_one_run() -> None:
    (one, _), (other, _) = (judged(2, faults=("partition",), **FORWARDED) for _ in range(2))
    assert one.statistics == other.statistics and one.marks == other.marks


@pytest.mark.parametrize("bug", ["batch-answered-by-position", "numbered-within-the-batch", "lost-request-refused"])
def test_clients_see_the_planted_bug(bug: str) -> None:
    checkers = {
        finding.checker
        for seed in range(8)
        for finding in judged(seed, bug, faults=("partition", "packet"), **FORWARDED)[1].findings
    }
    assert "linearizability" in checkers


def test_a_linger_longer_than_clients_wait_is_refused() -> None:
    with pytest.raises(UsageError, match="before a batch that lingers for 300 ms is sent"):
        judged(0, wire="channel", wire_linger_ms="300")
