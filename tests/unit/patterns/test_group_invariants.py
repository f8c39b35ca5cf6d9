"""Event sequences that the invariants of replicated groups accept or report, in memory and read from a trace file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from faultline.harness.invariant import Breach
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import LockMode
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import (
    Finished,
    LockGranted,
    LocksAreBounded,
    LocksReleased,
    ParticipantStarted,
    Promised,
)
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import BecameLeader
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp
from faultline.systems_under_test.reference.transactional_kv.group_invariants import (
    GroupDecisionsAgree,
    GroupLogs,
    GroupTransactions,
    PromisesOutliveTheirLeader,
    TimesAscendOverLeaders,
)
from faultline.systems_under_test.reference.transactional_kv.group_messages import (
    LeadershipEvent,
    ReplicaEvent,
    TookOver,
    VoteTaken,
)
from faultline.systems_under_test.reference.transactional_kv.records import TimeGiven

ONE, TWO = TransactionId(1, "group-1"), TransactionId(2, "group-1")
LOCKS = {"key": LockMode.WRITE}
NOON = HybridTimestamp(12, 0)
SECOND = 1_000_000


def in_memory(event: Any) -> Any:
    return event


def from_a_trace(event: Any) -> Any:
    """As a real node's event comes back from its file: plain data inside."""
    return msgspec.convert(msgspec.json.decode(msgspec.json.encode(event)), type(event))


@pytest.fixture(params=[in_memory, from_a_trace])
def told(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    found: Callable[[Any], Any] = request.param
    return found


def led(generation: int, event: Any, group: str = "group-2") -> LeadershipEvent:
    return LeadershipEvent(group, generation, type(event).__name__, event)


def breaches(invariant: Any, told: Callable[[Any], Any], *events: Any, end_us: int = 0) -> list[str]:
    found: list[Breach] = []
    for time_us, event in enumerate(events):
        node, event = event if isinstance(event, tuple) else ("athens", event)
        invariant.observe(time_us, node, told(event), found.append)
    if end_us:
        invariant.finish(0, end_us, found.append)
    return [breach.invariant for breach in found]


def test_two_leaders_in_one_generation_are_refused_within_a_group_and_not_between_groups(told: Any) -> None:
    def elected(node: str, group: str) -> Any:
        return node, ReplicaEvent(group, "BecameLeader", BecameLeader(3, 0, 0))

    assert breaches(GroupLogs(), told, elected("athens", "group-1"), elected("cyrene", "group-2")) == []
    assert breaches(GroupLogs(), told, elected("athens", "group-1"), elected("cyrene", "group-1")) == ["LDR-I1"]


@pytest.mark.rows("TPC-R44")
def test_a_promise_must_outlive_its_leader_with_its_locks_unless_it_ended(told: Any) -> None:
    promised = led(1, Promised(ONE, LOCKS))

    def takes_over(promises: list[Promised], ended: list[TransactionId]) -> LeadershipEvent:
        return led(2, TookOver(promises, ended))

    kept = takes_over([Promised(ONE, LOCKS)], [])
    for passes in (
        [promised, kept],
        [promised, takes_over([], [ONE])],
        [promised, led(1, Finished(ONE, NOON)), takes_over([], [])],
    ):
        assert breaches(PromisesOutliveTheirLeader(), told, *passes) == []
    for refused in (takes_over([], []), takes_over([], [TWO]), takes_over([Promised(ONE, {})], [])):
        assert breaches(PromisesOutliveTheirLeader(), told, promised, refused) == ["TPC-R44"]


@pytest.mark.rows("TPC-R44")
def test_a_vote_that_was_counted_rests_on_a_promise_whatever_the_group_reported(told: Any) -> None:
    counted = led(1, VoteTaken(ONE, "group-2"), group="group-1")
    empty = led(2, TookOver([], []))
    assert breaches(PromisesOutliveTheirLeader(), told, counted, empty) == ["TPC-R44"]
    assert breaches(PromisesOutliveTheirLeader(), told, led(1, Finished(ONE, None)), counted, empty) == []
    assert breaches(PromisesOutliveTheirLeader(), told, counted, led(2, TookOver([Promised(ONE, {})], []))) == []
    assert breaches(PromisesOutliveTheirLeader(), told, counted, led(2, TookOver([], []), group="group-3")) == []


@pytest.mark.rows("TPC-I2")
def test_groups_that_promised_end_alike_and_who_only_forgot_may_learn_anew(told: Any) -> None:
    commits, forgets = led(2, Finished(ONE, NOON)), led(1, Finished(ONE, None))
    promised = led(1, Promised(ONE, LOCKS))
    other = led(1, Finished(ONE, NOON), group="group-3")
    assert breaches(GroupDecisionsAgree(), told, forgets, commits, other) == []
    assert breaches(GroupDecisionsAgree(), told, promised, forgets, other) == ["TPC-I2"]
    assert breaches(GroupDecisionsAgree(), told, commits, led(1, Finished(ONE, BEFORE_ALL), "group-3")) == ["TPC-I2"]


@pytest.mark.rows("TPC-I6", "TPC-I8")
def test_locks_exclude_under_one_leader_and_only_the_latest_leaders_must_be_freed(told: Any) -> None:
    started = ParticipantStarted(BEFORE_ALL)
    mine, yours = LockGranted(ONE, "key", LockMode.WRITE), LockGranted(TWO, "key", LockMode.WRITE)
    later = [led(2, started), led(2, Promised(TWO, {})), led(2, yours), led(2, LocksReleased(TWO))]
    # A leader that grants locks without knowing that it is deposed does no harm: no client can commit with them.
    both = [led(1, mine), later[0], led(1, mine), led(2, yours), led(2, LocksReleased(TWO))]
    assert breaches(GroupTransactions(), told, *both, end_us=9 * SECOND) == []
    assert breaches(GroupTransactions(), told, *later) == ["TPC-I6"]
    assert breaches(GroupTransactions(), told, led(1, mine), led(1, yours)) == ["TPC-I6"]
    kept = [led(1, LocksAreBounded(8 * SECOND)), led(1, started), led(1, mine)]
    assert breaches(GroupTransactions(), told, *kept, end_us=9 * SECOND) == ["TPC-I8"]
    assert breaches(GroupTransactions(), told, *kept, end_us=7 * SECOND) == []


@pytest.mark.rows("TPC-S18")
def test_times_of_the_oracle_ascend_over_all_leaders(told: Any) -> None:
    assert breaches(TimesAscendOverLeaders(), told, led(1, TimeGiven(5)), led(2, TimeGiven(1_001))) == []
    for late in (5, 1_001):
        events = [led(2, TimeGiven(1_001)), led(1, TimeGiven(late))]
        assert breaches(TimesAscendOverLeaders(), told, *events) == ["TPC-S18"]
