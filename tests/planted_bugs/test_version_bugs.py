"""Bugs of versions and follower reads that no answer of the store shows, and the anomalies that weaker modes allow.

FR-M7, latencies that no client looks up, makes reads slow and never wrong; VVL-M7, an index that is
updated before its data, needs a reader between two steps of one handler, which no world provides. Both are planted
here in the component, beside the correct one. A leader that closes a time and writes below it is the third.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from faultline.campaign.planfile import load_plan
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import resolve
from faultline.systems_under_test.patterns.data_replication.replica_selection import (
    NearestReplicas,
    ReplicaDescriptor,
)
from faultline.systems_under_test.patterns.data_replication.versioned_value import IndexedVersions

# -- components -------------------------------------------------------------------------------------------------------


class LatenciesUnderAnotherKey(NearestReplicas):
    """FR-M7: averages are kept under the descriptor and looked up under the address, so none is ever found."""

    def answered(self, address: str, latency_us: int, lag_us: int = 0) -> None:
        super().answered(str(self._replicas[address]), latency_us, lag_us)


def first_choices(selection: type[NearestReplicas]) -> list[str]:
    """Return the replicas that a client asks as latencies become known: the first of the list is far away."""
    replicas = selection([ReplicaDescriptor("far", "us-east"), ReplicaDescriptor("near", "us-east")], "us-east")
    chosen = []
    for far_us, near_us in ((90, 10), (95, 12), (90, 11)):
        replicas.answered("far", far_us)
        replicas.answered("near", near_us)
        chosen.append(replicas.nearest(None)[0])
    return chosen


@pytest.mark.rows("FR-M7", "FR-R7")
@pytest.mark.parametrize(("selection", "expected"), [(NearestReplicas, "near"), (LatenciesUnderAnotherKey, "far")])
def test_a_latency_that_is_never_found_makes_every_read_go_to_the_first_replica(
    selection: type[NearestReplicas], expected: str
) -> None:
    assert set(first_choices(selection)) == {expected}


class IndexBeforeData(IndexedVersions[int]):
    """VVL-M7: a version is in the index before its value is there."""

    def _add(self, key: str, version: int, value: Any) -> None:
        insort(self._index.setdefault(key, []), version)
        self._values[key, version] = value


def read_between_the_updates(layout: type[IndexedVersions[int]]) -> list[int]:
    """The versions that a reader finds who comes just before the value of version 2 is stored."""
    store = layout()
    store.put("title", 1, "Nitroservices")
    found: list[int] = []

    class Interrupted(dict[tuple[str, int], Any]):
        def __setitem__(self, place: tuple[str, int], value: Any) -> None:
            found.extend(entry.version for entry in store.range("title", 1, 9))
            super().__setitem__(place, value)

    store._values = Interrupted(store._values)
    store.put("title", 2, "Microservices")
    return found


@pytest.mark.rows("VVL-M7", "VVL-R10")
def test_an_index_that_is_ahead_of_its_data_makes_a_range_fail_and_the_correct_one_does_not() -> None:
    assert read_between_the_updates(IndexedVersions) == [1]
    with pytest.raises(KeyError):
        read_between_the_updates(IndexBeforeData)


# -- what weaker modes allow ------------------------------------------------------------------------------------------


def requests(plan: str, seeds: int, **options: str) -> Iterator[RunRequest]:
    campaign = load_plan(plan)
    cell = campaign.cells()[0]
    for seed in range(seeds):
        request = campaign.request(cell, seed)
        yield msgspec.structs.replace(request, options={**request.options, **options})


def judged(request: RunRequest) -> Judgement:
    parts = resolve(request)
    return judge(run_simulated(make_plan(request, parts), parts), parts, run_id=f"seed-{request.seed}")


def first_anomaly(plan: str, seeds: int, **options: str) -> set[str]:
    """The anomalies of the first run in which there are any."""
    for request in requests(plan, seeds, **options):
        judgement = judged(request)
        if judgement.verdict is Verdict.VIOLATION:
            return {finding.anomaly for finding in judgement.findings}
    return set()


def test_plain_reads_from_followers_miss_what_the_session_wrote_as_their_campaign_expects() -> None:
    expected = {cell.workload: cell.expected for cell in load_plan("plain-follower-reads").cells()}
    assert expected["read-your-writes"] == ("read-your-writes-violated",)
    assert first_anomaly("plain-follower-reads", 5) == {"read-your-writes-violated"}


@pytest.mark.rows("FR-I1", "FR-I2", "FR-I5")
@pytest.mark.parametrize(
    ("mode", "workload"),
    [
        ("stamped", "read-your-writes"),
        ("session", "follower-reads"),
        ("no-wait", "follower-reads"),
        ("read-index", "read-write"),
    ],
)
def test_what_plain_reads_miss_stamps_sessions_and_read_indexes_show(mode: str, workload: str) -> None:
    for request in requests("plain-follower-reads", 8, follower_reads=mode):
        judgement = judged(msgspec.structs.replace(request, workload=workload))
        assert judgement.verdict is Verdict.PASS, (request.seed, judgement.sentence)


def test_stamps_of_writes_alone_let_reads_go_back_now_and_then() -> None:
    """Expected of `stamped`: who reads at one follower and then at one that is behind may go back in time."""
    seen: set[str] = set()
    for request in requests("plain-follower-reads", 60, follower_reads="stamped", read_from="nearest"):
        judgement = judged(msgspec.structs.replace(request, workload="follower-reads", faults=("partition",)))
        seen |= {finding.anomaly for finding in judgement.findings}
        if seen:
            break
    assert seen == {"monotonic-reads-violated"}
