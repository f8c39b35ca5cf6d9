"""Stories of a store that is divided by ranges of keys: KRP-S* of the requirements."""

from __future__ import annotations

from random import Random

import pytest
from range_driver import RangeCluster

from faultline.harness.outcome import CAS_MISMATCH
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    HostPartition,
    MovePartition,
    SplitPartition,
)
from faultline.systems_under_test.reference.range_kv.client import NO_HOST_FOUND
from faultline.systems_under_test.reference.range_kv.messages import (
    InstallPartition,
    KeyResponse,
    ReadKey,
    ScanKeys,
    SplitProposed,
)
from faultline.systems_under_test.reference.ranges.messages import (
    PartitionReady,
    RegisterMember,
    SplitTrigger,
    TableRequest,
)
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT

A, B, C = "athens", "byzantium", "cyrene"
WHOLE = "['', MAX)"
TEN_BYTES = {"partition_size_max": "10"}


def stopped_before(cluster: RangeCluster, kind: type) -> tuple[str, str, object]:
    """Let time pass until a message of `kind` is on its way; take it."""
    for _ in range(1_500):
        cluster.deliver(lambda _, __, message: not isinstance(message, kind))
        found = cluster.take(lambda _, __, message: isinstance(message, kind))
        if found:
            return found[0]
        due = min(
            (timer.due_us, name) for name in cluster.members if (timer := cluster.ports[name].next_timer()) is not None
        )
        timer = cluster.ports[due[1]].next_timer()
        assert timer is not None
        cluster.ports[due[1]].ring(timer)
    raise AssertionError(f"no {kind.__name__} was ever sent")


# -- predefined ranges -----------------------------------------------------------------------------------------------


@pytest.mark.rows("KRP-S1", "KRP-R2", "KRP-R4", "KRP-R6", "KRP-R7")
def test_a_query_asks_only_the_hosts_of_the_ranges_it_overlaps() -> None:
    cluster = RangeCluster(splits="b,d")
    assert cluster.table() == [("['', 'b')", A), ("['b', 'd')", B), ("['d', MAX)", C)]
    cluster.write(alice="1", bob="2", carol="3", dora="4")
    assert cluster.held(B) == {"['b', 'd')": ["bob", "carol"]}
    cluster.sent.clear()
    assert cluster.scan(start="a", end="d") == [("alice", "1"), ("bob", "2"), ("carol", "3")]
    assert cluster.asked(ScanKeys) == [A, B]
    assert cluster.ask("client", "read", "dora") == "4"
    assert cluster.asked(ReadKey) == [C]
    assert cluster.asked(TableRequest) == []


@pytest.mark.rows("KRP-R7", "KRP-R8")
def test_there_is_no_table_before_enough_members_have_registered_and_then_one_range() -> None:
    cluster = RangeCluster(3, formed=False)
    cluster.deliver(lambda source, _, message: source != C and isinstance(message, RegisterMember))
    assert cluster.table() == []
    cluster.deliver()
    assert cluster.table() == [(WHOLE, A)]
    cluster.restart(A)
    assert cluster.table() == [(WHOLE, A)]


def test_who_finds_no_table_in_time_knows_that_nothing_was_written() -> None:
    cluster = RangeCluster(3, formed=False)
    for node in (B, C):
        cluster.restart_losing_messages(node)
        cluster.kill(node)
        cluster.drop(lambda source, _, __, node=node: source == node)
    outcome = cluster.ended(cluster.begin("client", "write", "k", "1"))
    assert (outcome.kind, outcome.error) == ("fail", NO_HOST_FOUND)


def test_a_write_without_an_answer_may_have_happened_and_is_not_repeated() -> None:
    cluster = RangeCluster()
    cluster.write(k="1")
    outcomes = cluster.begin("client", "write", "k", "2")
    cluster.deliver(lambda _, target, __: target != "client")
    cluster.drop(lambda _, __, message: isinstance(message, KeyResponse))
    outcome = cluster.ended(outcomes)
    assert (outcome.kind, outcome.error) == ("info", TIMEOUT)
    assert cluster.ask("other", "read", "k") == "2"


@pytest.mark.rows("KRP-I6")
def test_a_key_is_set_only_from_what_is_expected_wherever_it_has_moved() -> None:
    cluster = RangeCluster(spread="after-split", **TEN_BYTES)
    cluster.write("early", alice="1", bob="2")
    cluster.wait(1_100)
    assert cluster.partition_of("bob").address == B
    outcome = cluster.ended(cluster.begin("early", "cas", "bob", ["1", "3"]))
    assert (outcome.kind, outcome.error) == ("fail", CAS_MISMATCH)
    cluster.ask("early", "cas", "bob", ["2", "3"])
    assert cluster.ask("other", "read", "bob") == "3"


# -- splits ----------------------------------------------------------------------------------------------------------


@pytest.mark.rows("KRP-S2", "KRP-R8", "KRP-R9", "KRP-R10", "KRP-R13", "KRP-I5")
def test_a_partition_that_has_reached_the_maximum_is_split_at_its_middle_key() -> None:
    cluster = RangeCluster(**TEN_BYTES)
    cluster.write(alice="1")
    cluster.wait(2_000)
    assert cluster.table() == [(WHOLE, A)], "six bytes are more than half of ten, and no reason to split"
    cluster.write(bob="1")
    cluster.wait(1_000)
    assert cluster.table() == [("['', 'bob')", A), ("['bob', MAX)", A)]
    assert cluster.held(A) == {"['', 'bob')": ["alice"], "['bob', MAX)": ["bob"]}
    assert cluster.open_tasks() == 0
    assert cluster.broken() == []


@pytest.mark.rows("KRP-S3", "KRP-R18", "KRP-M1")
def test_a_client_with_an_old_table_is_corrected_and_gets_all_of_a_range() -> None:
    cluster = RangeCluster(**TEN_BYTES)
    cluster.write("early", alice="1")
    cluster.write("other", bob="1")
    cluster.wait(1_000)
    assert len(cluster.table()) == 2
    cluster.write("early", carol="2")
    assert cluster.held(A)["['bob', MAX)"] == ["bob", "carol"]
    assert cluster.marks.count("stale-client-refused") == 1
    assert cluster.scan("other", "a", "z") == [("alice", "1"), ("bob", "1"), ("carol", "2")]
    assert cluster.marks.count("stale-client-refused") == 2
    assert cluster.broken() == []


@pytest.mark.rows("KRP-R19")
def test_a_client_that_knows_of_a_split_before_the_host_waits_and_never_reads_absent() -> None:
    cluster = RangeCluster(**TEN_BYTES)
    cluster.write("early", alice="1", bob="2")
    split = stopped_before(cluster, SplitPartition)
    outcomes = cluster.begin("late", "read", "bob")
    cluster.deliver()
    assert outcomes == []
    assert "early-client-refused" in cluster.marks
    cluster.hand(*split)
    assert cluster.ended(outcomes).value == "2"


@pytest.mark.rows("KRP-S4", "KRP-R15")
@pytest.mark.parametrize("when", ["before the host has split", "after all is done"])
def test_a_trigger_that_comes_twice_makes_one_split(when: str) -> None:
    cluster = RangeCluster(**TEN_BYTES)
    cluster.write(alice="1", bob="2")
    trigger = stopped_before(cluster, SplitTrigger)
    cluster.hand(*trigger)
    if when == "after all is done":
        cluster.deliver()
    cluster.hand(*trigger)
    cluster.wait(5_000)
    assert len(cluster.table()) == 2
    assert "trigger-refused" in cluster.marks
    assert cluster.broken() == []


@pytest.mark.rows("KRP-R15")
def test_a_host_does_not_trigger_again_with_every_check_and_does_when_nothing_comes_of_it() -> None:
    cluster = RangeCluster(splits="a", **TEN_BYTES)
    cluster.write(alice="1", bob="2")
    cluster.kill(A)
    proposals = []
    for _ in range(11):
        timer = next(timer for timer in cluster.ports[B].waiting if timer.interval_us == 1_000_000)
        cluster.ports[B].ring(timer)
        proposals.append(len(cluster.events_of(SplitProposed)))
    assert proposals == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3]


@pytest.mark.rows("KRP-S5", "KRP-R16", "KRP-M2")
def test_a_host_that_is_told_of_a_split_again_keeps_what_was_written_since() -> None:
    cluster = RangeCluster(**TEN_BYTES)
    cluster.write(alice="1", bob="2")
    split = stopped_before(cluster, SplitPartition)
    cluster.hand(*split)
    cluster.deliver()
    cluster.write(carol="3")
    cluster.hand(*split)
    cluster.deliver()
    assert "split-repeated" in cluster.marks
    assert cluster.scan() == [("alice", "1"), ("bob", "2"), ("carol", "3")]


@pytest.mark.rows("KRP-S6", "KRP-R13", "KRP-R17")
def test_a_host_that_dies_between_the_split_of_the_table_and_its_own_does_its_part_later() -> None:
    cluster = RangeCluster(splits="a", **TEN_BYTES)
    cluster.write(alice="1", bob="2")
    assert cluster.held(B) == {"['a', MAX)": ["alice", "bob"]}
    stopped_before(cluster, SplitPartition)
    cluster.restart_losing_messages(B)
    assert cluster.held(B) == {"['a', MAX)": ["alice", "bob"]}
    cluster.wait(100)
    assert cluster.held(B) == {"['a', 'bob')": ["alice"], "['bob', MAX)": ["bob"]}
    cluster.restart(B)
    assert cluster.held(B) == {"['a', 'bob')": ["alice"], "['bob', MAX)": ["bob"]}
    assert cluster.scan() == [("alice", "1"), ("bob", "2")]
    assert cluster.open_tasks() == 0


@pytest.mark.rows("KRP-S7", "KRP-R22")
@pytest.mark.parametrize("before", [SplitTrigger, SplitPartition, PartitionReady, MovePartition, InstallPartition])
def test_a_coordinator_that_dies_at_any_step_of_a_split_finishes_it_or_is_asked_again(before: type) -> None:
    cluster = RangeCluster(splits="a", spread="after-split", **TEN_BYTES)
    cluster.write(alice="1", bob="2")
    cluster.wait(10)
    stopped_before(cluster, before)
    cluster.restart_losing_messages(A)
    cluster.wait(7_000)
    assert [bounds for bounds, _ in cluster.table()] == ["['', 'a')", "['a', 'bob')", "['bob', MAX)"]
    assert cluster.open_tasks() == 0
    assert cluster.scan() == [("alice", "1"), ("bob", "2")]
    assert cluster.broken() == []


@pytest.mark.rows("KRP-S8", "KRP-I3")
@pytest.mark.parametrize("spread", ["never", "after-split"])
def test_a_scan_that_goes_on_while_a_range_splits_and_moves_has_each_key_once(spread: str) -> None:
    cluster = RangeCluster(splits="b,d", spread=spread, **TEN_BYTES)
    keys = {"alice": "1", "anna": "1", "bea": "1", "bob": "1", "carol": "1", "dora": "1", "emil": "1"}
    cluster.write("other", **keys)
    cluster.scan("scanner")
    cluster.wait(950)
    outcomes = cluster.begin("scanner", "scan", None, ["", None])
    cluster.step(lambda _, __, message: isinstance(message, ScanKeys))
    cluster.step(lambda _, target, __: target == "scanner")
    held_back = cluster.take(lambda source, _, __: source == "scanner")
    cluster.wait(100)
    for message in held_back:
        cluster.hand(*message)
    assert len(cluster.table()) == 6
    assert [key for key, _ in cluster.ended(outcomes).value] == sorted(keys)
    assert "scan-continued" in cluster.marks
    assert cluster.broken() == []


@pytest.mark.rows("KRP-S9", "KRP-R11")
def test_one_huge_value_is_no_reason_to_split() -> None:
    cluster = RangeCluster(**TEN_BYTES)
    cluster.write(huge="x" * 1_000)
    cluster.wait(10_000)
    assert cluster.table() == [(WHOLE, A)]
    assert cluster.events_of(SplitProposed) == []


@pytest.mark.rows("KRP-S10", "KRP-R21")
def test_a_range_that_is_asked_too_often_is_split_and_half_of_it_moves() -> None:
    cluster = RangeCluster(split_by="load", partition_load_max="6")
    cluster.write(a="1", hot1="1", hot2="1", z="1")
    cluster.wait(1_100)
    assert len(cluster.table()) == 1, "four requests are no load"
    for _ in range(4):
        cluster.ask("client", "read", "hot1")
        cluster.ask("client", "read", "hot2")
    cluster.wait(1_100)
    assert cluster.table() == [("['', 'hot2')", A), ("['hot2', MAX)", B)]
    assert cluster.held(A) == {"['', 'hot2')": ["a", "hot1"]}
    assert cluster.held(B) == {"['hot2', MAX)": ["hot2", "z"]}
    assert [key for key, _ in cluster.scan()] == ["a", "hot1", "hot2", "z"]
    assert cluster.nodes[A].host.store.leaving == {}


def test_one_hot_key_cannot_be_split() -> None:
    cluster = RangeCluster(split_by="load", partition_load_max="6")
    cluster.write(a="1", hot="1")
    cluster.wait(1_100)
    for _ in range(10):
        cluster.ask("client", "read", "hot")
    cluster.wait(1_100)
    assert len(cluster.table()) == 1


@pytest.mark.rows("KRP-S11", "KRP-R1", "KRP-R5")
def test_the_empty_key_prefixes_and_letters_beyond_ascii_lie_where_they_belong() -> None:
    cluster = RangeCluster(splits="a,ab,é")
    for key in ("", "a", "aa", "ab", "abc", "z", "é", "\U0001f600"):
        cluster.ask("client", "write", key, key)
    found = [cluster.held(each.address)[str(each.range)] for each in cluster.partitions()]
    assert found == [[""], ["a", "aa"], ["ab", "abc", "z"], ["é", "\U0001f600"]]
    assert [key for key, _ in cluster.scan(start="", end="a")] == [""]
    assert [key for key, _ in cluster.scan(start="ab")] == ["ab", "abc", "z", "é", "\U0001f600"]
    assert cluster.ask("client", "read", "") == ""


@pytest.mark.rows("KRP-S12", "KRP-I3", "KRP-I1")
@pytest.mark.parametrize("split_into", ["one-new", "two-new"])
def test_after_fifty_splits_of_splits_a_scan_is_what_was_written(split_into: str) -> None:
    cluster = RangeCluster(spread="after-split", split_into=split_into, split_check_ms="100", partition_size_max="40")
    rng, model = Random(7), {}
    while len(cluster.partitions()) < 50:
        key, value = f"{rng.randrange(3_000):04}", f"{rng.randrange(1_000)}"
        if rng.random() < 0.15 and key in model:
            cluster.ask("client", "delete", key)
            del model[key]
        else:
            cluster.ask("client", "write", key, value)
            model[key] = value
        cluster.wait(10)
    cluster.wait(1_000)
    assert cluster.scan("fresh") == sorted(model.items())
    assert cluster.scan("client", "0700", "2100") == sorted((k, v) for k, v in model.items() if "0700" <= k < "2100")
    assert {each.address for each in cluster.partitions()} == {A, B, C}
    assert cluster.broken() == []


# -- moves -----------------------------------------------------------------------------------------------------------


@pytest.mark.rows("KRP-R16")
def test_a_partition_that_is_sent_again_does_not_replace_what_was_written_to_it() -> None:
    cluster = RangeCluster(spread="after-split", **TEN_BYTES)
    cluster.write(alice="1", bob="2")
    install = stopped_before(cluster, InstallPartition)
    cluster.hand(*install)
    cluster.deliver()
    cluster.write(bob="3")
    cluster.hand(*install)
    cluster.deliver()
    assert "install-repeated" in cluster.marks
    assert cluster.ask("client", "read", "bob") == "3"


def test_between_two_hosts_a_partition_is_served_by_neither_and_lost_by_neither() -> None:
    cluster = RangeCluster(spread="after-split", **TEN_BYTES)
    cluster.write(alice="1", bob="2")
    stopped_before(cluster, InstallPartition)
    outcomes = cluster.begin("client", "read", "bob")
    cluster.deliver(lambda source, target, _: "client" in (source, target))
    assert outcomes == []
    cluster.restart(A)
    cluster.restart(B)
    assert cluster.ended(outcomes).value == "2"
    cluster.wait(200)
    assert cluster.held(B) == {"['bob', MAX)": ["bob"]}
    assert cluster.nodes[A].host.store.leaving == {}
    assert cluster.broken() == []


def test_a_partition_goes_to_no_node_that_has_fallen_silent() -> None:
    cluster = RangeCluster(spread="after-split", **TEN_BYTES)
    cluster.kill(B)
    cluster.wait(1_000)
    cluster.write(alice="1", bob="2")
    cluster.wait(2_000)
    assert cluster.table() == [("['', 'bob')", A), ("['bob', MAX)", C)]


def test_a_host_that_hears_of_its_partition_twice_makes_it_once() -> None:
    cluster = RangeCluster(formed=False)
    cluster.deliver(lambda _, __, message: isinstance(message, RegisterMember))
    hosting = next(item for item in cluster.queue if isinstance(item[2], HostPartition))
    cluster.deliver()
    cluster.write(k="1")
    cluster.hand(*hosting)
    assert cluster.ask("client", "read", "k") == "1"
