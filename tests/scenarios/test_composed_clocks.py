"""Composed scenarios of time: X-S8, pauses of leaders and of holders of leases, and X-S9, clocks that are wrong.

They run `coordinated-kv` (and `emergent-leader`) in the simulated world, with faults that the test plans.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import resolve

HOUR_US = 3_600_000_000
CUTS = [(1_500, 1_200), (3_000, 1_200)]
LEASE = {"aim": "owner", "partitions": "1", "table_refresh_ms": "20000", "request_timeout_ms": "150"}


def run(request: RunRequest, faults: list[PlannedFault]) -> tuple[Judgement, frozenset[str]]:
    """One run with these faults; what is said about it, and the situations that it reached."""
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=tuple(sorted(faults, key=lambda f: f.at_us)))
    record = run_simulated(plan, parts)
    return judge(record, parts, run_id=f"seed-{request.seed}"), frozenset(record.marks)


def coordinated(seed: int, *kinds: str, **options: str) -> RunRequest:
    return RunRequest(system="coordinated-kv", seed=seed, nodes=6, faults=kinds, options=options)


def pauses() -> list[PlannedFault]:
    return [PlannedFault("pause", 1_000 * at_ms, 800_000, "leader") for at_ms in (1_000, 2_000, 3_000)]


# -- pauses -----------------------------------------------------------------------------------------------------------


@pytest.mark.rows("X-S8")
@pytest.mark.parametrize(
    ("aim", "mark"), [("core", "leader-changed"), ("controller", "controller-deposed"), ("owner", "lease-lost")]
)
def test_a_leader_may_be_paused_again_and_again_and_clients_notice_only_by_waiting(aim: str, mark: str) -> None:
    for seed in range(2):
        judgement, marks = run(coordinated(seed, "pause", aim=aim), pauses())
        assert (judgement.verdict, judgement.sentence) == (Verdict.PASS, judgement.sentence)
        assert {"nodes-paused", mark} <= marks


@pytest.mark.rows("X-S8")
def test_an_emergent_coordinator_may_be_paused_again_and_again() -> None:
    for seed in range(2):
        request = RunRequest(system="emergent-leader", workload="membership", seed=seed, nodes=5, faults=("pause",))
        judgement, marks = run(request, pauses())
        assert judgement.verdict is Verdict.PASS, judgement.sentence
        assert "nodes-paused" in marks


# -- clocks -----------------------------------------------------------------------------------------------------------


def cut_off_owners(rate_ppm: int) -> list[PlannedFault]:
    """The leader of the partition is cut off from all other nodes, while its clock runs at another rate."""
    faults = []
    for at_ms, for_ms in CUTS:
        faults += [
            PlannedFault("partition", 1_000 * at_ms, 1_000 * for_ms, "leader", {"shape": "leader-alone"}),
            PlannedFault("clock-drift", 1_000 * at_ms - 100_000, 1_000 * for_ms, "leader", {"rate_ppm": rate_ppm}),
        ]
    return faults


def verdicts(rate_ppm: int, seeds: range, **options: str) -> Iterator[Judgement]:
    for seed in seeds:
        yield run(coordinated(seed, "partition", "clock", **LEASE, **options), cut_off_owners(rate_ppm))[0]


@pytest.mark.rows("X-S9")
def test_wall_clocks_that_jump_by_hours_on_all_nodes_change_nothing() -> None:
    for seed, delta_us in enumerate((HOUR_US, -HOUR_US)):
        steps = [PlannedFault("clock-step", 1_000_000, 1_500_000, "all", {"delta_us": delta_us})]
        cuts = [PlannedFault("partition", 1_200_000, 900_000, "leader", {"shape": "leader-alone"})]
        judgement, marks = run(coordinated(seed, "partition", "clock", aim="owner"), steps + cuts)
        assert judgement.verdict is Verdict.PASS, judgement.sentence
        assert {"clocks-stepped", "lease-lost"} <= marks


@pytest.mark.rows("X-S9")
def test_rates_that_differ_by_less_than_the_margin_of_a_lease_change_nothing() -> None:
    # A quarter of the lease is left unused, so an owner's clock may be slower by a fifth.
    assert [judgement.sentence for judgement in verdicts(-200_000, range(6)) if judgement.verdict != "pass"] == []


@pytest.mark.rows("X-S9")
def test_an_owner_whose_clock_is_slower_than_the_margin_allows_shows_old_values_as_predicted() -> None:
    found = [judgement for judgement in verdicts(-700_000, range(6)) if judgement.verdict is Verdict.VIOLATION]
    anomalies = {finding.anomaly for judgement in found for finding in judgement.findings}
    assert "X-I1" in anomalies
    assert "stale-read" in anomalies
    # Nothing else: reads are old, but no write is lost, and the table is the core's alone.
    assert not anomalies & {"X-I2", "X-I3", "X-I4", "X-I5", "X-I6", "X-I7"}


@pytest.mark.rows("X-S9")
def test_reads_that_are_confirmed_by_all_in_sync_do_not_depend_on_any_clock() -> None:
    failures = [one.sentence for one in verdicts(-700_000, range(6), read_mode="confirmed") if one.verdict != "pass"]
    assert failures == []
