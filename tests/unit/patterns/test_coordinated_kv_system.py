"""coordinated-kv in its parts: options, the decisions about the table, copies, the client, and the invariants."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from client_story import ClientStory

from faultline.harness.errors import UsageError
from faultline.harness.invariant import Breach
from faultline.harness.system import NodeSystem
from faultline.harness.universe import domains_of, option_values
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.reference.coordinated_kv.invariants import (
    AnswersAreCopied,
    AppointedAreInSync,
    CopiesDoNotGoBack,
    NothingServedIsLost,
    OneControllerPerLease,
    OneOwnerPerGeneration,
    PartitionsComeBack,
    TablesSucceedEachOther,
)
from faultline.systems_under_test.reference.coordinated_kv.messages import (
    ClusterTableRead,
    ControllerActed,
    DataRefused,
    DataRequest,
    DataResponse,
    LeadershipBegan,
    ReadClusterTable,
    ReplicaChanged,
    ReplicaCounted,
    ReplicasRecovered,
    RequestServed,
    TableSeen,
    TableTaken,
)
from faultline.systems_under_test.reference.coordinated_kv.options import CoordinatedSettings
from faultline.systems_under_test.reference.coordinated_kv.planted_bugs import BUGS
from faultline.systems_under_test.reference.coordinated_kv.system import CoordinatedKv
from faultline.systems_under_test.reference.coordinated_kv.table import (
    NO_NODE,
    Appointments,
    ClusterTable,
    Entry,
    balanced,
    first_entries,
    table_of,
    value_of,
)

SIX = tuple(map(NodeId, ("athens", "byzantium", "cyrene", "delphi", "ephesus", "fatima")))
MEMBERS = {"delphi": 11, "ephesus": 12, "fatima": 13}
ENTRY = Entry(("delphi", "ephesus"), ("delphi", "ephesus"), "delphi", 11, 3, 5)

# -- the system -------------------------------------------------------------------------------------------------------


def test_coordinated_kv_fulfils_the_protocol_of_systems() -> None:
    system: NodeSystem = CoordinatedKv()
    assert system.name == "coordinated-kv"
    for name in system.planted_bugs:
        assert BUGS.parts([name]) is not None


@pytest.mark.parametrize(
    ("nodes", "options", "complaint"),
    [
        (4, {}, "4 nodes are too few: 3 are the core"),
        (6, {"replication_factor": "4"}, "4 data nodes are needed"),
        (6, {"replica_silence_ms": "150"}, "before anything is sent to it a second time"),
        (6, {"aim": "moon"}, "cannot be 'moon'"),
        (6, {"partitions": "0"}, "whole number from 1"),
        (6, {"partitions": "1001"}, "one value in the core"),
        (6, {"replicas": "3"}, "no option 'replicas'"),
    ],
)
def test_options_and_clusters_that_cannot_be_used_are_refused(
    nodes: int, options: dict[str, str], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        CoordinatedSettings.for_members(options, SIX[:nodes])


def test_too_few_nodes_are_told_how_many_would_do() -> None:
    with pytest.raises(UsageError, match=r"--nodes 5 or more.* core_size=1"):
        CoordinatedSettings.for_members({}, SIX[:3])


def test_an_unknown_planted_bug_of_the_composition_is_refused() -> None:
    with pytest.raises(UsageError, match="no planted bug 'typo'"):
        BUGS.parts(["typo"])


# -- decisions --------------------------------------------------------------------------------------------------------


def changed(**fields: Any) -> Entry:
    return msgspec.structs.replace(ENTRY, **fields)


def after(entry: Entry, *alive: str, **incarnations: int) -> Entry:
    members = {name: MEMBERS[name] for name in alive} | incarnations
    (revised,) = Appointments(members).after_failures((entry,))
    return revised


def test_a_table_survives_its_way_through_the_core() -> None:
    table = ClusterTable(4, "fatima", 21, (ENTRY, changed(heir="ephesus")))
    assert table_of(msgspec.msgpack.decode(msgspec.msgpack.encode(value_of(table)))) == table
    assert table_of(None) == ClusterTable()


def test_partitions_are_first_given_out_in_turn_each_with_its_neighbour_as_a_follower() -> None:
    entries = first_entries(4, MEMBERS, 2)
    assert [entry.leader for entry in entries] == ["delphi", "ephesus", "fatima", "delphi"]
    assert entries[2].replicas == entries[2].in_sync == ("fatima", "delphi")
    assert [entry.incarnation for entry in entries] == [11, 12, 13, 11]


def test_nothing_changes_while_all_members_live() -> None:
    assert after(ENTRY, *MEMBERS) == ENTRY


def test_a_follower_whose_lease_is_gone_is_not_in_sync_and_the_generation_stays() -> None:
    assert after(ENTRY, "delphi", "fatima") == changed(in_sync=("delphi",), revision=6)


def test_a_leader_whose_lease_is_gone_is_followed_by_one_in_sync_in_the_next_generation() -> None:
    new = after(ENTRY, "ephesus", "fatima")
    assert (new.leader, new.incarnation, new.generation, new.in_sync) == ("ephesus", 12, 4, ("ephesus",))


def test_a_leader_with_a_new_lease_is_appointed_anew() -> None:
    new = after(changed(in_sync=("delphi",)), "ephesus", delphi=99)
    assert (new.leader, new.incarnation, new.generation) == ("delphi", 99, 4)


def test_when_no_replica_in_sync_lives_no_replica_leads_and_those_in_sync_stay() -> None:
    new = after(changed(in_sync=("delphi",)), "ephesus", "fatima")
    assert (new.leader, new.in_sync, new.generation) == (NO_NODE, ("delphi",), 3)
    assert after(new, "ephesus", "fatima") == new
    assert after(new, *MEMBERS).leader == "delphi"


def test_who_is_asked_into_sync_must_live_and_be_a_replica_and_the_leader_stays() -> None:
    asked = Appointments({"delphi": 11}).in_sync_altered(changed(in_sync=("delphi",)), ("ephesus", "fatima"))
    assert (asked.in_sync, asked.revision) == (("delphi",), 6)
    asked = Appointments(MEMBERS).in_sync_altered(changed(in_sync=("delphi",)), ("delphi", "ephesus", "fatima"))
    assert asked.in_sync == ("delphi", "ephesus")


def test_an_heir_takes_over_or_another_when_it_has_died() -> None:
    handing = changed(heir="ephesus")
    assert Appointments(MEMBERS).handed_over(handing).leader == "ephesus"
    assert Appointments({"delphi": 11}).handed_over(handing).leader == "delphi"


def test_replicas_that_died_are_replaced_and_leaders_evened_out_step_by_step() -> None:
    entries: tuple[Entry, ...] = tuple(changed() for _ in range(3))
    appointments = Appointments(MEMBERS)
    for _ in range(12):
        entries = balanced(appointments.after_failures(entries), MEMBERS, 2)
        # The leaders do what is theirs: bring replicas level, and resign for their heirs.
        entries = tuple(
            appointments.handed_over(entry) if entry.heir else appointments.in_sync_altered(entry, entry.replicas)
            for entry in entries
        )
    entries = balanced(entries, MEMBERS, 2)
    assert sorted(entry.leader for entry in entries) == sorted(MEMBERS)
    assert all(len(entry.replicas) == len(entry.in_sync) == 2 for entry in entries)


def test_a_partition_with_a_dead_replica_gets_a_living_one_only_while_it_has_a_leader() -> None:
    alive = {"delphi": 11, "fatima": 13}
    (entry,) = balanced((changed(in_sync=("delphi",)),), alive, 2)
    assert entry.replicas == ("delphi", "fatima")
    orphan = changed(leader=NO_NODE, in_sync=("ephesus",))
    assert balanced((orphan,), alive, 2) == (orphan,)


# -- the client -------------------------------------------------------------------------------------------------------

TABLE = ClusterTable(2, "cyrene", 21, (Entry(("byzantium", "cyrene"), ("byzantium", "cyrene"), "byzantium", 11, 3),))


def client_story() -> ClientStory:
    """A client of a core of one, athens, and two data nodes."""
    return ClientStory(CoordinatedKv(), core_size="1")


def asked(story: ClientStory) -> list[tuple[str, int, int]]:
    """Return the receiver, the number and the generation of each request."""
    requests = [(to, message) for to, message in story.ports.sent if isinstance(message, DataRequest)]
    return [(to, message.request_number, message.generation) for to, message in requests]


def test_a_client_asks_for_the_table_then_the_leader_then_whom_it_is_referred_to() -> None:
    story = client_story()
    story.invoke("read")
    assert ("byzantium", ReadClusterTable()) in story.ports.sent and asked(story) == []
    story.hear("byzantium", ClusterTableRead(TABLE))
    assert asked(story) == [("byzantium", 1, 3)]
    story.hear("byzantium", DataRefused(1, 0, "cyrene", 4))
    assert asked(story) == [("byzantium", 1, 3), ("cyrene", 1, 4)]
    story.hear("cyrene", DataResponse(1, None, 7))
    assert story.ended == [("ok", 7, None)]


def test_a_client_without_a_table_fails_for_certain_and_one_without_an_answer_does_not_know() -> None:
    story = client_story()
    story.invoke("write", 1)
    story.pass_time(1_100_000)
    assert story.ended == [("fail", None, "no-partition-table")]
    story.hear("cyrene", ClusterTableRead(TABLE))
    story.invoke("write", 1)
    story.pass_time(1_100_000)
    assert story.ended[1:] == [("info", None, "timeout")]
    assert len(asked(story)) > 1 and {number for _, number, _ in asked(story)} == {2}


def test_a_client_that_cannot_be_asked_for_something_says_so() -> None:
    story = client_story()
    story.invoke("dance")
    assert story.ended == [("fail", None, "unsupported-operation")]


# -- the invariants ---------------------------------------------------------------------------------------------------


def broken(invariant: Any, *events: tuple[str, Any]) -> list[str]:
    """The sentences of the breaches when these nodes report these events."""
    breaches: list[Breach] = []
    for time_us, (node, event) in enumerate(events):
        invariant.observe(time_us, node, event, breaches.append)
    return [breach.sentence for breach in breaches]


def taken(version: int, token: int = 21, **fields: Any) -> TableTaken:
    return TableTaken(ClusterTable(version, "fatima", token, (changed(**fields),)))


NEXT: dict[str, Any] = {"leader": "ephesus", "incarnation": 12, "generation": 4, "revision": 6, "in_sync": ("ephesus",)}

CASES: list[tuple[Any, list[tuple[str, Any]], list[tuple[str, Any]]]] = [
    (
        OneOwnerPerGeneration,
        [("delphi", RequestServed(0, 3, 5)), ("ephesus", RequestServed(0, 4, 5)), ("delphi", taken(1))],
        [("ephesus", RequestServed(0, 4, 5)), ("delphi", RequestServed(0, 3, 5))],
    ),
    (
        OneOwnerPerGeneration,
        [("ephesus", RequestServed(0, 4, 5)), ("delphi", RequestServed(0, 3, 5, under_lease=False))],
        [("ephesus", RequestServed(0, 4, 5)), ("delphi", RequestServed(0, 4, 5, under_lease=False))],
    ),
    (
        OneOwnerPerGeneration,
        [("delphi", taken(1)), ("fatima", taken(2, **NEXT))],
        [("delphi", taken(1)), ("fatima", taken(2, leader="ephesus", incarnation=12))],
    ),
    (
        OneControllerPerLease,
        [("fatima", ControllerActed(taken(1).table)), ("delphi", ControllerActed(taken(2, token=30).table))],
        [("fatima", ControllerActed(taken(1).table)), ("delphi", ControllerActed(taken(2).table))],
    ),
    (
        OneControllerPerLease,
        [("fatima", ControllerActed(taken(1).table)), ("fatima", ControllerActed(taken(2).table))],
        [("delphi", ControllerActed(taken(2, token=30).table)), ("fatima", ControllerActed(taken(3).table))],
    ),
    (
        TablesSucceedEachOther,
        [
            ("delphi", taken(1)),
            ("fatima", taken(2, **NEXT)),
            ("fatima", TableSeen(2, 21)),
            ("delphi", TableSeen(1, 21)),
        ],
        [("delphi", taken(1, **NEXT)), ("fatima", taken(2))],
    ),
    (
        TablesSucceedEachOther,
        [("delphi", TableSeen(5, 21)), ("delphi", ReplicasRecovered(())), ("delphi", TableSeen(4, 21))],
        [("delphi", TableSeen(5, 21)), ("delphi", TableSeen(4, 21))],
    ),
    (
        TablesSucceedEachOther,
        [("delphi", taken(1)), ("fatima", taken(1))],
        [("delphi", taken(1)), ("fatima", taken(1, **NEXT))],
    ),
    (
        AppointedAreInSync,
        [("delphi", taken(1)), ("delphi", taken(2, **NEXT))],
        [("delphi", taken(1, in_sync=("delphi",))), ("delphi", taken(2, **NEXT))],
    ),
    (
        NothingServedIsLost,
        [
            ("delphi", RequestServed(0, 3, 5)),
            ("ephesus", LeadershipBegan(0, 4, 5)),
            ("delphi", LeadershipBegan(0, 3, 4)),
        ],
        [("delphi", RequestServed(0, 3, 5)), ("ephesus", LeadershipBegan(0, 4, 4))],
    ),
    (
        CopiesDoNotGoBack,
        [
            ("ephesus", ReplicaChanged(0, 3, 5)),
            ("ephesus", ReplicaChanged(0, 4, 4)),
            ("ephesus", RequestServed(0, 4, 4)),
        ],
        [("ephesus", ReplicaChanged(0, 4, 4)), ("ephesus", ReplicaChanged(0, 3, 5))],
    ),
    (
        CopiesDoNotGoBack,
        [("ephesus", ReplicaChanged(0, 3, 5)), ("ephesus", ReplicasRecovered(()))],
        [("delphi", ReplicaCounted("ephesus", 0, 3, 5)), ("ephesus", ReplicasRecovered(((0, 3, 4),)))],
    ),
    (
        CopiesDoNotGoBack,
        [("delphi", LeadershipBegan(0, 3, 5)), ("delphi", ReplicasRecovered(((0, 2, 5),)))],
        [
            ("delphi", LeadershipBegan(0, 3, 5)),
            ("ephesus", ReplicaChanged(0, 3, 5)),
            ("delphi", ReplicasRecovered(((0, 2, 5),))),
        ],
    ),
    (
        CopiesDoNotGoBack,
        [("delphi", RequestServed(0, 3, 5))],
        [("delphi", ReplicaChanged(0, 4, 5)), ("delphi", RequestServed(0, 3, 5))],
    ),
    (
        AnswersAreCopied,
        [("fatima", taken(1)), ("ephesus", ReplicaChanged(0, 3, 5)), ("delphi", RequestServed(0, 3, 5))],
        [("fatima", taken(1)), ("ephesus", ReplicaChanged(0, 3, 4)), ("delphi", RequestServed(0, 3, 5))],
    ),
]


@pytest.mark.parametrize(("invariant", "right", "wrong"), CASES)
def test_each_invariant_of_the_composition_accepts_what_is_right_and_refuses_what_is_not(
    invariant: Any, right: list[tuple[str, Any]], wrong: list[tuple[str, Any]]
) -> None:
    assert broken(invariant(), *right) == []
    assert len(broken(invariant(), *wrong)) == 1


def test_no_drawn_lease_is_shorter_than_an_owner_needs_to_refresh_it_in_the_slowest_drawn_network() -> None:
    system: Any = CoordinatedKv()
    domains = domains_of(system)
    leases_ms = map(int, option_values(system, domains)["lease_ttl_ms"])
    refresh_us = 4 * max(domains.weather["latency_us_max"])
    assert min(leases_ms) * 1_000 // 4 > refresh_us


def test_a_partition_without_a_leader_long_after_the_heal_is_reported() -> None:
    def at_the_end(*events: TableTaken, end_us: int = 9_000_000) -> list[str]:
        invariant, breaches = PartitionsComeBack(), list[Breach]()
        for event in events:
            invariant.observe(0, "delphi", event, breaches.append)
        invariant.finish(1_000_000, end_us, breaches.append)
        return [breach.sentence for breach in breaches]

    assert at_the_end(taken(1, leader=NO_NODE), taken(2)) == []
    assert at_the_end(taken(2, leader=NO_NODE), taken(1)) == ["Partition 0 has no leader."]
    # The longest drawn lease, 2.4 s, runs anew when the core is back at the heal, and messages of 1.2 s may be lost.
    assert at_the_end(taken(2, leader=NO_NODE), end_us=5_000_000) == []
    assert at_the_end() == ["No partition was ever given to a node."]
