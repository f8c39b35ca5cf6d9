"""Stories about leaders that collect the entries of a majority and stamp them anew before they serve."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.errors import UsageError
from faultline.story.log_cluster import ELECTION_TIMEOUT_US, HEARTBEAT_US, Client, Cluster
from faultline.systems_under_test.patterns.data_replication.collecting_election import (
    CollectedEntries,
    CollectEntries,
)
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicationRequest

COLLECTING = {"election": "collecting", "low_water_mark": "off"}


def cluster_of(*bugs: str, size: int = 3) -> Cluster:
    """A cluster without a leader yet, with these planted bugs."""
    return Cluster(size, bugs, **COLLECTING)


def no_entries(_: str, __: str, message: Any) -> bool:
    """Match all but requests of a leader."""
    return not isinstance(message, ReplicationRequest)


def after_two_failures(*bugs: str) -> tuple[Cluster, Client, int]:
    """SYS-S5: Neptune has Bob's entry, Jupiter Alice's at the same index, and Saturn, which has neither, is down."""
    cluster = cluster_of(*bugs)
    neptune, jupiter, saturn = cluster.members
    cluster.elect(neptune)
    bob = Client(cluster, "bob").register(neptune)
    alice = Client(cluster, "alice").register(neptune)
    cluster.pass_time(2 * HEARTBEAT_US)
    cluster.cut(neptune)
    bobs = bob.set(neptune, "boston", 10)
    cluster.kill(neptune)
    cluster.elect(jupiter, no_entries)
    cluster.cut(jupiter)
    alice.set(jupiter, "boston", 20)
    cluster.kill(jupiter)
    cluster.kill(saturn)
    cluster.heal()
    cluster.start(neptune)
    cluster.start(jupiter)
    return cluster, bob, bobs


@pytest.mark.rows("LOG-R18", "SYS-S5")
def test_after_a_double_failure_the_old_leader_adopts_the_entry_of_the_higher_generation_as_its_own() -> None:
    cluster, bob, bobs = after_two_failures()
    neptune, jupiter, _ = cluster.members
    cluster.elect(neptune)
    cluster.pass_time(2 * HEARTBEAT_US)
    assert cluster.generation(neptune) == 3
    assert cluster.log(neptune)[-3:] == cluster.log(jupiter)[-3:] == [3, 3, 3]
    assert cluster.values(neptune) == cluster.values(jupiter) == {"boston": 20}
    assert bob.answers_to(bobs) == []
    assert cluster.broken() == []


@pytest.mark.rows("LOG-R18", "SYS-S7")
@pytest.mark.parametrize(("bugs", "holds"), [((), True), (("collects-its-own-entries",), False)])
def test_a_server_without_a_committed_entry_may_lead_and_collects_it(bugs: tuple[str, ...], holds: bool) -> None:
    cluster = cluster_of(*bugs)
    neptune, jupiter, saturn = cluster.members
    cluster.elect(neptune)
    bob = Client(cluster, "bob").register(neptune)
    cluster.cut(jupiter)
    number = bob.set(neptune, "boston", 10)
    cluster.deliver()
    assert bob.answer_to(number) is not None
    cluster.kill(neptune)
    cluster.heal()
    cluster.elect(jupiter)
    cluster.pass_time(2 * HEARTBEAT_US)
    assert (cluster.values(jupiter) == cluster.values(saturn) == {"boston": 10}) == holds
    assert (cluster.broken() == []) == holds


@pytest.mark.rows("LOG-R18", "HWM-R8")
@pytest.mark.parametrize(("bugs", "waits"), [((), True), (("serves-before-synchronisation",), False)])
def test_a_read_waits_until_a_majority_has_what_the_leader_collected(bugs: tuple[str, ...], waits: bool) -> None:
    cluster, _, _ = after_two_failures(*bugs)
    neptune, jupiter, _ = cluster.members
    cluster.elect(neptune, no_entries)
    reader = Client(cluster, "carol")
    number = reader.get(neptune, "boston")
    cluster.deliver(lambda _, __, message: not getattr(message, "entries", None))
    assert cluster.values(neptune) == {}
    assert (reader.answer_to(number) is None) == waits
    cluster.deliver()
    answer = reader.answer_to(number)
    assert answer is not None and (answer.value == 20) == waits
    assert cluster.mark(neptune) == len(cluster.log(jupiter))


@pytest.mark.rows("LOG-R18", "LOG-R14")
@pytest.mark.parametrize(("bugs", "holds"), [((), True), (("adopts-without-stamping",), False)])
def test_an_entry_that_was_collected_and_committed_outlives_one_of_a_generation_in_between(
    bugs: tuple[str, ...], holds: bool
) -> None:
    """Raft's figure 8: without a new stamp, the committed entry loses against the one that a crashed leader had."""
    cluster = cluster_of(*bugs)
    athens, byzantium, cyrene = cluster.members
    cluster.elect(athens)
    bob = Client(cluster, "bob").register(athens)
    cluster.pass_time(2 * HEARTBEAT_US)
    cluster.cut(athens)
    bob.set(athens, "boston", 10)
    cluster.kill(athens)
    cluster.elect(byzantium, no_entries)
    cluster.kill(byzantium)
    cluster.drop(lambda *_: True)
    cluster.heal()
    # Bob's entry, of generation 1, is collected and committed by Athens and Cyrene; Byzantium has a no-op of 2 there.
    cluster.start(athens)
    cluster.elect(athens)
    cluster.pass_time(2 * HEARTBEAT_US)
    assert cluster.values(cyrene) == {"boston": 10}
    cluster.kill(athens)
    cluster.start(byzantium)
    cluster.elect(byzantium)
    cluster.pass_time(2 * HEARTBEAT_US)
    assert (cluster.values(byzantium) == {"boston": 10}) == holds
    assert (cluster.broken() == []) == holds


@pytest.mark.rows("LOG-R18")
def test_a_server_that_has_answered_a_collection_refuses_the_leader_of_before() -> None:
    cluster = cluster_of()
    athens, byzantium, cyrene = cluster.members
    cluster.elect(athens)
    late = ReplicationRequest(athens, 1, 99, 0, 0, 0, 0, [])
    cluster.hand(byzantium, cyrene, CollectEntries(byzantium, 2, 0))
    (answer,) = [message for _, _, message in cluster.take(lambda source, *_: source == cyrene)]
    assert isinstance(answer, CollectedEntries) and answer.generation == 2
    cluster.hand(athens, cyrene, late)
    (refusal,) = [message for _, _, message in cluster.take(lambda source, *_: source == cyrene)]
    assert (refusal.succeeded, refusal.generation) == (False, 2)


@pytest.mark.rows("LOG-R18")
def test_an_answer_of_a_higher_generation_ends_the_candidacy() -> None:
    cluster = cluster_of()
    athens, byzantium, _ = cluster.members
    cluster.time_out(athens)
    cluster.deliver(lambda _, __, message: not isinstance(message, CollectEntries))
    assert not cluster.leads(athens)
    cluster.hand(byzantium, athens, CollectedEntries(byzantium, 7, 0, []))
    cluster.deliver(no_entries)
    assert cluster.generation(athens) == 7 and not cluster.leads(athens)


@pytest.mark.rows("LOG-R18", "LOG-I8")
def test_a_server_that_was_away_for_long_is_brought_in_line_in_one_piece_and_then_follows_as_usual() -> None:
    cluster = cluster_of()
    athens, byzantium, cyrene = cluster.members
    cluster.elect(athens)
    client = Client(cluster, "alice").register(athens)
    cluster.cut(cyrene)
    for number in range(150):
        client.set(athens, "title", number)
        cluster.deliver()
    cluster.heal()
    cluster.kill(athens)
    cluster.elect(byzantium)
    cluster.start(athens)
    cluster.pass_time(4 * ELECTION_TIMEOUT_US)
    client.set(byzantium, "title", "last")
    cluster.deliver()
    cluster.pass_time(2 * HEARTBEAT_US)
    # The stamps of what the leader knew to be committed may differ, and what they stand on does not.
    assert cluster.log(cyrene)[-3:] == cluster.log(byzantium)[-3:]
    assert len(cluster.log(cyrene)) == len(cluster.log(byzantium))
    assert cluster.values(athens) == cluster.values(cyrene) == {"title": "last"}
    assert cluster.broken() == []


@pytest.mark.parametrize(
    ("option", "value"), [("replication", "pull"), ("flush_policy", "never"), ("low_water_mark", "snapshot")]
)
def test_options_with_which_entries_cannot_be_collected_are_refused_with_the_ones_to_set(option, value) -> None:
    with pytest.raises(UsageError, match=f"needs {option}="):
        Cluster(3, (), **{**COLLECTING, option: value})
