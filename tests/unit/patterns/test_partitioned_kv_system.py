"""partitioned-kv in its parts: options, the directory's guards, repeated messages, the client, and the invariants."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from client_story import ClientStory

from faultline.harness.errors import UsageError
from faultline.harness.invariant import Breach
from faultline.harness.operation import Operation
from faultline.harness.system import NodeSystem
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import (
    AssignPartitions,
    CancelMigration,
    ClusterDirectory,
    MembersFailed,
    MigratePartitions,
    Migration,
    MigrationCancelled,
    MigrationCompleted,
    PartitionEntry,
    PartitionOnline,
    PartitionTable,
    ReassignPartition,
    RegisterClusterNode,
)
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of
from faultline.systems_under_test.patterns.data_partitioning.retried_messages import RetriedMessages
from faultline.systems_under_test.reference.partitioned_kv.invariants import (
    DataIsTakenInOnce,
    HostingFollowsTheTable,
    KeysKeepTheirPartition,
    LoadsAreEven,
    OneOwnerAtATime,
    PartitionsHoldTheirOwnKeys,
    TablesCoverAllPartitions,
)
from faultline.systems_under_test.reference.partitioned_kv.messages import (
    HostStarted,
    KeyStored,
    PartitionRefused,
    PartitionResponse,
    PartitionsAssigned,
    PartitionsHosted,
    PartitionsMoving,
    PartitionTaken,
    ReadTable,
    TableApplied,
    TableResponse,
    WriteAccepted,
)
from faultline.systems_under_test.reference.partitioned_kv.options import PartitionSettings
from faultline.systems_under_test.reference.partitioned_kv.planted_bugs import BUGS
from faultline.systems_under_test.reference.partitioned_kv.system import PartitionedKv

# -- the system -------------------------------------------------------------------------------------------------------


def test_partitioned_kv_fulfils_the_protocol_of_systems() -> None:
    system: NodeSystem = PartitionedKv()
    assert system.name == "partitioned-kv"
    for name in system.mutants:
        assert BUGS.parts([name]) is not None


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"minimum_cluster_size": "4"}, "only 3 nodes"),
        ({"late_nodes": "3"}, "no node would be there"),
        ({"membership_check_ms": "300"}, "one heartbeat is lost"),
        ({"assignment": "by-luck"}, "cannot be 'by-luck'"),
        ({"partitions": "0"}, "whole number from 1"),
        ({"replicas": "3"}, "no option 'replicas'"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        PartitionSettings.for_cluster(options, 3)


def test_an_unknown_planted_bug_of_partitions_is_refused() -> None:
    with pytest.raises(UsageError, match="no planted bug 'typo'"):
        BUGS.parts(["typo"])


# -- the directory ----------------------------------------------------------------------------------------------------

MOVE = Migration(0, "athens", "byzantium", 2)


def directory(*commands: Any) -> tuple[ClusterDirectory, list[bool]]:
    """Two members, three partitions online, then `commands`, and whether each of these had an effect."""
    held = ClusterDirectory()
    first = [
        RegisterClusterNode("athens"),
        RegisterClusterNode("byzantium"),
        AssignPartitions(("athens", "byzantium", "athens")),
        *[PartitionOnline(partition, 1) for partition in range(3)],
    ]
    effects = [held.apply(index, msgspec.msgpack.encode(command)) for index, command in enumerate([*first, *commands])]
    return held, effects[len(first) :]


@pytest.mark.rows("FXP-R8", "FXP-R11", "FXP-R22")
@pytest.mark.parametrize(
    "command",
    [
        RegisterClusterNode("athens"),
        MembersFailed(("cyrene",)),
        AssignPartitions(("byzantium",) * 3),
        ReassignPartition(0, 1, "byzantium"),
        PartitionOnline(0, 1),
        PartitionOnline(0, 2),
        MigratePartitions((Migration(0, "byzantium", "athens", 2),)),
        MigratePartitions((Migration(0, "athens", "byzantium", 3),)),
        MigratePartitions((Migration(0, "athens", "cyrene", 2),)),
        MigrationCompleted(MOVE),
        CancelMigration(MOVE),
        MigrationCancelled(MOVE),
    ],
)
def test_a_command_that_does_not_fit_the_directory_changes_nothing(command: Any) -> None:
    before, _ = directory()
    after, effects = directory(command)
    assert effects == [False]
    assert after.snapshot() == before.snapshot()


@pytest.mark.rows("FXP-R25", "FXP-R27")
def test_the_owner_changes_when_the_move_is_completed_and_only_once() -> None:
    begun, _ = directory(MigratePartitions((MOVE,)))
    assert begun.entries[0] == PartitionEntry("athens", 1, online=True)
    held, effects = directory(MigratePartitions((MOVE,)), MigrationCompleted(MOVE), MigrationCompleted(MOVE))
    assert effects == [True, True, False]
    assert held.entries[0] == PartitionEntry("byzantium", 2)
    assert held.pending == {}


@pytest.mark.rows("FXP-R29")
def test_a_move_is_cancelled_once_and_stays_with_its_source_above_its_generation() -> None:
    held, effects = directory(
        MigratePartitions((MOVE,)), CancelMigration(MOVE), CancelMigration(MOVE), MigrationCancelled(MOVE)
    )
    assert effects == [True, True, False, True]
    assert held.entries[0] == PartitionEntry("athens", 3, online=True)


@pytest.mark.rows("FXP-R22", "FXP-R10")
def test_nothing_moves_to_a_failed_member_until_it_is_back() -> None:
    held, effects = directory(
        MembersFailed(("byzantium",)), MigratePartitions((MOVE,)), RegisterClusterNode("byzantium")
    )
    assert effects == [True, False, True]
    assert held.live() == ["athens", "byzantium"]


@pytest.mark.rows("FXP-R28")
def test_a_snapshot_holds_members_table_and_pending_moves() -> None:
    held, _ = directory(MigratePartitions((MOVE,)), CancelMigration(MOVE))
    restored = ClusterDirectory()
    restored.restore(held.snapshot())
    assert restored.snapshot() == held.snapshot()
    assert restored.pending == held.pending
    assert restored.table() == held.table()


# -- repeated messages ------------------------------------------------------------------------------------------------


class RetryPorts:
    """Timers that only collect, and jitter that depends on the name of the stream."""

    def __init__(self) -> None:
        self.timers = self.random = self.trace = self
        self.delays_us: list[int] = []
        self.callbacks: list[Any] = []

    def after(self, delay_us: int, callback: Any) -> Any:
        self.delays_us.append(delay_us)
        self.callbacks.append(callback)
        return type("Timer", (), {"cancel": lambda _: None})()

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        return low_us + len(stream) * 100

    def sometimes(self, mark: str) -> None:
        assert mark == "control-message-repeated"


@pytest.mark.rows("FXP-R14", "FXP-R15")
def test_a_message_is_repeated_with_a_back_off_that_doubles_up_to_a_limit_and_jitter_of_its_own() -> None:
    ports: Any = RetryPorts()
    sent: list[tuple[str, str]] = []
    retried = RetriedMessages(ports, lambda to, message: sent.append((to, message)))
    retried.keep({"a": ("athens", "x"), "bcd": ("byzantium", "y")})
    assert ports.delays_us == [1_000 + 900, 1_000 + 1_100]
    for _ in range(12):
        ports.callbacks[-1]()
    assert sent == [("athens", "x"), *[("byzantium", "y")] * 13]
    steps_ms = [(delay_us // 1_000) for delay_us in ports.delays_us[1:]]
    assert steps_ms[:4] == [2, 3, 5, 9]
    assert steps_ms[-2:] == [257, 257]


@pytest.mark.rows("FXP-R14")
def test_what_is_still_wanted_is_not_begun_anew_and_what_is_not_is_forgotten() -> None:
    ports: Any = RetryPorts()
    sent: list[str] = []
    retried = RetriedMessages(ports, lambda to, _: sent.append(to))
    retried.keep({"a": ("athens", "x")})
    retried.keep({"a": ("athens", "x"), "b": ("byzantium", "y")})
    retried.keep({"b": ("byzantium", "y")})
    assert sent == ["athens", "byzantium"]
    assert len(retried) == 1


# -- the client -------------------------------------------------------------------------------------------------------

TABLE = PartitionTable(5, (PartitionEntry("athens", 1, True), PartitionEntry("cyrene", 4, True)), ("athens", "cyrene"))
KEY = next(f"key-{number}" for number in range(9) if partition_of(f"key-{number}", 2) == 1)


def story_with_a_table() -> ClientStory:
    story = ClientStory(PartitionedKv())
    assert story.ports.sent == [("athens", ReadTable())]
    story.hear("athens", TableResponse(TABLE))
    return story


@pytest.mark.rows("FXP-R18", "FXP-R19")
def test_a_client_asks_the_owner_under_its_generation_and_after_a_refusal_the_new_one_under_the_same_number() -> None:
    story = story_with_a_table()
    story.client.invoke(Operation(0, "write", KEY, 7), story.outcomes.append)
    to, request = story.ports.sent[-1]
    assert (to, request.partition, request.generation, request.request_number) == ("cyrene", 1, 4, 1)
    story.hear("cyrene", PartitionRefused(1))
    assert story.ports.sent[-1] == ("cyrene", ReadTable())
    moved = PartitionTable(6, (TABLE.entries[0], PartitionEntry("athens", 5, True)), TABLE.live)
    story.hear("cyrene", TableResponse(moved))
    story.pass_time(25_000)
    to, request = story.ports.sent[-1]
    assert (to, request.generation, request.request_number) == ("athens", 5, 1)
    story.hear("athens", PartitionResponse(1, None, None))
    assert [outcome.kind for outcome in story.outcomes] == ["ok"]


def test_an_older_table_does_not_replace_a_newer_one() -> None:
    story = story_with_a_table()
    story.hear("byzantium", TableResponse(PartitionTable(4, (), ())))
    assert story.client._table == TABLE


# -- the invariants ---------------------------------------------------------------------------------------------------


def breaches(invariant: Any, *events: tuple[str, Any], end_us: int = 0) -> list[str]:
    found: list[Breach] = []
    for number, (node, event) in enumerate(events):
        invariant.observe(number, node, event, found.append)
    if end_us:
        invariant.finish(0, end_us, found.append)
    return [breach.invariant for breach in found]


def table(*entries: PartitionEntry, version: int = 1) -> TableApplied:
    return TableApplied(PartitionTable(version, entries, ("athens", "byzantium")), 2)


ATHENS, BYZANTIUM = PartitionEntry("athens", 1, True), PartitionEntry("byzantium", 1, True)


def test_a_key_in_two_partitions_is_a_breach() -> None:
    one, other = KeyStored(KEY, 1, 2), KeyStored(KEY, 0, 2)
    assert breaches(KeysKeepTheirPartition(), ("athens", one), ("byzantium", one)) == []
    assert breaches(KeysKeepTheirPartition(), ("athens", one), ("byzantium", other)) == ["FXP-I1"]
    assert breaches(PartitionsHoldTheirOwnKeys(), ("athens", one)) == []
    assert breaches(PartitionsHoldTheirOwnKeys(), ("athens", other)) == ["FXP-I6"]


@pytest.mark.rows("FXP-I2")
def test_a_table_with_a_hole_and_a_change_of_owner_under_the_old_generation_are_breaches() -> None:
    whole, later = table(ATHENS, BYZANTIUM), table(PartitionEntry("byzantium", 2), BYZANTIUM, version=2)
    stolen = table(BYZANTIUM, BYZANTIUM, version=2)
    assert breaches(TablesCoverAllPartitions(), ("athens", table()), ("athens", whole), ("athens", later)) == []
    assert breaches(TablesCoverAllPartitions(), ("athens", table(ATHENS))) == ["FXP-I2"]
    assert breaches(TablesCoverAllPartitions(), ("athens", whole), ("athens", stolen)) == ["FXP-I2"]
    restarted = (("athens", later), ("athens", HostStarted(())), ("athens", whole))
    assert breaches(TablesCoverAllPartitions(), *restarted) == []


@pytest.mark.rows("FXP-I2")
def test_two_writers_of_one_generation_and_a_writer_of_an_old_one_are_breaches() -> None:
    first, second = WriteAccepted(0, 1), WriteAccepted(0, 2)
    assert breaches(OneOwnerAtATime(), ("athens", first), ("byzantium", second), ("byzantium", second)) == []
    assert breaches(OneOwnerAtATime(), ("athens", first), ("byzantium", first)) == ["FXP-I2"]
    assert breaches(OneOwnerAtATime(), ("byzantium", second), ("athens", first)) == ["FXP-I2"]


@pytest.mark.rows("FXP-I5")
def test_loads_that_differ_by_two_are_a_breach() -> None:
    assert breaches(LoadsAreEven(), ("athens", PartitionsAssigned((7, 8, 7)))) == []
    assert breaches(LoadsAreEven(), ("athens", PartitionsAssigned((7, 9, 7)))) == ["FXP-I5"]


@pytest.mark.rows("FXP-I4")
def test_an_owner_that_does_not_serve_another_that_does_and_an_endless_move_are_breaches() -> None:
    serves, gone = PartitionsHosted(0, 1, "serving"), PartitionsHosted(0, 1, "")
    told: list[tuple[str, Any]] = [("athens", table(ATHENS)), ("athens", PartitionsMoving(0))]
    end = {"end_us": 10_000_000}
    assert breaches(HostingFollowsTheTable(), *told, ("athens", serves), **end) == []
    assert breaches(HostingFollowsTheTable(), *told, ("athens", serves), ("athens", gone), **end) == ["FXP-I4"]
    both = (("athens", serves), ("byzantium", serves))
    assert breaches(HostingFollowsTheTable(), *told, *both, **end) == ["FXP-I4"]
    moving: list[tuple[str, Any]] = [("athens", table(ATHENS)), ("athens", PartitionsMoving(1))]
    assert breaches(HostingFollowsTheTable(), *moving, **end) == ["FXP-I4"]
    assert breaches(HostingFollowsTheTable(), *moving, end_us=1_000_000) == []
    assert breaches(HostingFollowsTheTable(), *moving, ("athens", PartitionsMoving(0)), ("athens", serves), **end) == []


def test_data_that_is_taken_in_twice_is_a_breach_unless_a_crash_lay_between() -> None:
    first, second = PartitionTaken(0, 2), PartitionTaken(0, 4)
    assert breaches(DataIsTakenInOnce(), ("athens", first), ("byzantium", first), ("athens", second)) == []
    assert breaches(DataIsTakenInOnce(), ("athens", first), ("athens", first)) == ["FXP-R27"]
    assert breaches(DataIsTakenInOnce(), ("athens", second), ("athens", first)) == ["FXP-R27"]
    lost, kept = HostStarted(()), HostStarted(((0, 2),))
    assert breaches(DataIsTakenInOnce(), ("athens", first), ("athens", lost), ("athens", first)) == []
    assert breaches(DataIsTakenInOnce(), ("athens", first), ("athens", kept), ("athens", first)) == ["FXP-R27"]
