"""Stories of logs that are cut short: crashes at every step, damaged files, disks that refuse, marks of every kind."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from faultline.story.log_cluster import Client, Cluster
from faultline.systems_under_test.patterns.data_replication.follower_handler import FollowerHandler
from faultline.systems_under_test.patterns.data_replication.low_water_mark import SEVEN_WEEKS_US, LogCleaned
from faultline.systems_under_test.patterns.data_replication.snapshot_installation import (
    InstallSnapshotRequest,
    InstallSnapshotResponse,
)
from faultline.systems_under_test.patterns.data_replication.snapshot_store import (
    CorruptSnapshot,
    ForeignSnapshot,
    FutureSnapshotVersion,
    Snapshot,
    encode_snapshot,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import CorruptLog, LogUnusable
from faultline.systems_under_test.reference.consistent_core.system import ConsistentCore
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.parts import Parts
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.client_messages import SetValue
from faultline.systems_under_test.reference.shared.compaction import Compaction
from faultline.systems_under_test.reference.shared.trace_events import (
    EntryApplied,
    SnapshotTaken,
    StateRestored,
)
from faultline.testing.memory_storage import Crash, MemoryStorage, keep_all, keep_nothing

SHORT = {
    "snapshot_every_entries": "3",
    "snapshots_retained": "1",
    "segment_size_bytes": "1",
    "log_cleaning_interval_ms": "50",
}
INTERVAL_US = 50_000


def led_by_athens(cluster: Cluster) -> Client:
    cluster.elect("athens")
    return Client(cluster, "alice").register("athens")


def write(cluster: Cluster, client: Client, count: int) -> None:
    for value in range(count):
        client.set("athens", f"key{value}", value)
        cluster.deliver()
    cluster.pass_time(2 * INTERVAL_US)


def compacted(cluster: Cluster, name: str) -> int:
    return cluster.nodes[name].wal.compacted_index


# -- crashes and damage -----------------------------------------------------------------------------------------------


class CrashingDisk(MemoryStorage):
    """Keeps what was fsynced, or everything, when the machine stops."""

    keep = staticmethod(keep_nothing)

    def crash(self, choose: Any = None, *, lagging: bool = False) -> int:
        return super().crash(choose or self.keep, lagging=lagging)


@pytest.mark.rows("LWM-S1", "LWM-R6", "LWM-R8")
@pytest.mark.parametrize("keep", [keep_nothing, keep_all])
@pytest.mark.parametrize("steps", range(40))
def test_a_crash_at_any_step_of_snapshots_and_cleaning_leaves_the_same_state(keep: Any, steps: int) -> None:
    cluster = Cluster(**SHORT)
    disk = CrashingDisk()
    disk.keep = keep
    cluster.kill("byzantium")
    cluster.ports["byzantium"].storage = disk
    cluster.start("byzantium")
    client = led_by_athens(cluster)
    disk.effects_max = disk.effects + steps
    with suppress(Crash, LogUnusable):
        write(cluster, client, 6)
    cluster.restart("byzantium")
    cluster.pass_time(20 * INTERVAL_US)
    cluster.pass_time(20 * INTERVAL_US)
    if not cluster.leaders():
        cluster.elect("athens")
    leader = cluster.leaders()[0]
    cluster.heartbeat(leader)
    cluster.deliver()
    assert cluster.values("byzantium") == cluster.values(leader)
    assert cluster.broken() == []


def stored(cluster: Cluster, name: str) -> MemoryStorage:
    return cluster.ports[name].storage


def damaged(disk: MemoryStorage, file: str, position: int = 40) -> None:
    data = bytearray(disk.read(file))
    data[position] ^= 1
    disk.put(file, bytes(data))


def newest_snapshot(disk: MemoryStorage) -> str:
    return max((file for file in disk.files() if file.endswith(".snap")), key=lambda file: int(file[9:-5]))


@pytest.mark.rows("LWM-R8")
def test_a_damaged_newest_snapshot_costs_nothing_while_an_older_one_and_the_log_are_there() -> None:
    cluster = Cluster(**{**SHORT, "snapshots_retained": "2"})
    client = led_by_athens(cluster)
    write(cluster, client, 8)
    expected = cluster.values("byzantium")
    cluster.kill("byzantium")
    damaged(stored(cluster, "byzantium"), newest_snapshot(stored(cluster, "byzantium")))
    cluster.start("byzantium")
    cluster.heartbeat("athens")
    cluster.deliver()
    assert cluster.values("byzantium").items() >= expected.items()
    assert cluster.broken() == []


@pytest.mark.rows("LWM-R8")
def test_a_server_whose_only_snapshot_is_damaged_does_not_start() -> None:
    cluster = Cluster(**SHORT)
    client = led_by_athens(cluster)
    write(cluster, client, 7)
    write(cluster, client, 1)
    cluster.kill("byzantium")
    damaged(stored(cluster, "byzantium"), newest_snapshot(stored(cluster, "byzantium")))
    with pytest.raises(CorruptLog, match="ends at 0"):
        cluster.start("byzantium")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"PK\x03\x04", ForeignSnapshot),
        (b"FLTSNP\x00\x09", FutureSnapshotVersion),
        (encode_snapshot(Snapshot(99, 1, b"no state")), CorruptSnapshot),
        (encode_snapshot(Snapshot(99, 1, b"")) + b"x", CorruptSnapshot),
    ],
)
def test_a_server_does_not_start_from_a_snapshot_it_cannot_read(content: bytes, error: type[Exception]) -> None:
    cluster = Cluster()
    led_by_athens(cluster)
    cluster.kill("byzantium")
    disk = stored(cluster, "byzantium")
    disk.put("snapshot_99.snap", content)
    with pytest.raises(error):
        cluster.start("byzantium")
    assert disk.read("snapshot_99.snap") == content


@pytest.mark.rows("WAL-R16", "WAL-S10")
@pytest.mark.parametrize("operation", ["append", "fsync"])
def test_a_server_whose_disk_is_full_or_fails_stops_and_acknowledges_nothing(operation: str) -> None:
    cluster = Cluster()
    disk = stored(cluster, "athens")
    client = led_by_athens(cluster)
    number = client.set("athens", "title", "acknowledged")
    cluster.deliver()
    disk.failing = operation
    with pytest.raises(LogUnusable, match=f"{operation} failed"):
        client.set("athens", "title", "not acknowledged")
    assert client.answers_to(number) and not client.answers_to(client.number)
    disk.failing = ""
    cluster.restart("athens")
    cluster.elect("byzantium")
    assert cluster.values("byzantium") == {"title": "acknowledged"}
    assert cluster.broken() == []


@pytest.mark.rows("WAL-R13", "SEG-R7")
def test_an_append_that_is_asked_for_in_the_middle_of_another_waits_its_turn() -> None:
    cluster = Cluster()
    client = led_by_athens(cluster)
    ports, node = cluster.ports["athens"], cluster.nodes["athens"]
    lengths: list[int] = []
    send = ports.send

    def interrupting(to: Any, message: Any) -> None:
        if not lengths:
            before = node.wal.last_index
            client.ask("athens", SetValue("title", "second"))
            lengths[:] = [before, node.wal.last_index]
        send(to, message)

    ports.send = interrupting
    client.set("athens", "title", "first")
    assert lengths[0] == lengths[1] == node.wal.last_index - 1


# -- marks ------------------------------------------------------------------------------------------------------------


@pytest.mark.rows("LWM-R4", "LWM-R9")
def test_snapshots_come_after_so_many_applied_entries_and_by_default_after_two_thousand() -> None:
    cluster = Cluster(**SHORT)
    write(cluster, led_by_athens(cluster), 8)
    taken = [event.index for node, event in cluster.events_of(SnapshotTaken) if node == "athens"]
    assert taken == [3, 6, 9]
    assert RaftSettings.read({}).snapshot_every_entries == 2000


def test_with_the_mark_off_nothing_is_stored_or_cleaned() -> None:
    cluster = Cluster(**SHORT, low_water_mark="off")
    write(cluster, led_by_athens(cluster), 8)
    assert cluster.events_of(SnapshotTaken) == cluster.events_of(LogCleaned) == []


@pytest.mark.rows("LWM-R10", "LWM-R11", "LWM-S7")
def test_by_time_only_old_entries_go_and_none_that_a_snapshot_does_not_cover() -> None:
    cluster = Cluster(**SHORT, low_water_mark="time")
    write(cluster, led_by_athens(cluster), 6)
    assert compacted(cluster, "athens") == 0
    for name in cluster.members:
        cluster.ports[name].wall_offset_us += SEVEN_WEEKS_US * 8 // 7
    cluster.pass_time(2 * INTERVAL_US)
    assert compacted(cluster, "athens") == 5
    cluster.restart("athens")
    assert cluster.values("athens").items() >= {"key0": 0}.items()
    assert cluster.broken() == []


@pytest.mark.rows("LWM-R12")
def test_by_acknowledgement_nothing_goes_that_one_server_lacks() -> None:
    cluster = Cluster(**SHORT, low_water_mark="acknowledged")
    client = led_by_athens(cluster)
    cluster.cut("cyrene")
    write(cluster, client, 6)
    assert [compacted(cluster, name) for name in cluster.members] == [1, 1, 0], "cyrene has the first two"
    cluster.heal()
    cluster.pass_time(5 * INTERVAL_US)
    cluster.heartbeat("athens")
    cluster.deliver()
    cluster.pass_time(3 * INTERVAL_US)
    assert [compacted(cluster, name) for name in cluster.members] == [5, 5, 7]
    assert not any(event.installed for _, event in cluster.events_of(StateRestored))
    assert cluster.broken() == []


# -- installation -----------------------------------------------------------------------------------------------------


def lagging(cluster: Cluster) -> Client:
    """Cyrene needs entries that athens has discarded; the snapshot is on its way."""
    cluster.cut("cyrene")
    client = led_by_athens(cluster)
    write(cluster, client, 6)
    cluster.heal()
    cluster.heartbeat("athens")
    cluster.deliver(lambda _, __, message: not isinstance(message, InstallSnapshotRequest))
    return client


class NeverInstalls(Compaction):
    """LWM-M5: the leader goes on looking for entries that it has not."""

    def _send_snapshot(self, follower: FollowerHandler) -> None:
        pass


class CoreThatNeverInstalls(ConsistentCore):
    def node(self, ports: Any, members: Any, options: Any, planted_bugs: Any) -> KeyValueServer:
        return KeyValueServer(ports, members, RaftSettings.read(options), replace(Parts(), compaction=NeverInstalls))


class StuckCluster(Cluster):
    system_type = CoreThatNeverInstalls


@pytest.mark.rows("LWM-M5", "LWM-R12")
@pytest.mark.parametrize(("kind", "converges"), [(Cluster, True), (StuckCluster, False)])
def test_without_installation_a_follower_that_lags_never_comes_back(kind: type[Cluster], converges: bool) -> None:
    """No client sees anything wrong, and no invariant is broken: that is why no campaign could tell."""
    cluster = kind(**SHORT)
    lagging(cluster)
    cluster.pass_time(60 * INTERVAL_US)
    assert (cluster.values("cyrene") == cluster.values("athens")) == converges
    assert cluster.broken() == []


@pytest.mark.rows("LWM-S6")
def test_a_chunk_that_comes_twice_or_out_of_turn_is_answered_with_what_is_wanted() -> None:
    cluster = Cluster(**SHORT, snapshot_chunk_bytes="40")
    lagging(cluster)
    [(_, _, first)] = cluster.take(lambda *item: isinstance(item[2], InstallSnapshotRequest))
    late = InstallSnapshotRequest("athens", first.generation, first.snapshot_index, first.size, 80, b"x" * 40)
    for message, wanted in ((late, 0), (first, 40), (first, 40), (late, 40)):
        cluster.hand("athens", "cyrene", message)
        [(_, _, answer)] = cluster.take(lambda *item: isinstance(item[2], InstallSnapshotResponse))
        assert (answer.next_offset, answer.installed) == (wanted, False)


@pytest.mark.rows("LWM-S6")
def test_a_snapshot_that_was_damaged_on_its_way_is_not_installed_and_asked_for_again() -> None:
    cluster = Cluster(**SHORT)
    lagging(cluster)
    [(_, _, request)] = cluster.take(lambda *item: isinstance(item[2], InstallSnapshotRequest))
    flipped = request.data[:-1] + bytes([request.data[-1] ^ 1])
    broken = msgspec.structs.replace(request, data=flipped)
    cluster.hand("athens", "cyrene", broken)
    assert cluster.values("cyrene") == {}
    assert "damaged-snapshot-refused" in cluster.marks
    cluster.pass_time(20 * INTERVAL_US)
    assert cluster.values("cyrene") == cluster.values("athens")
    assert cluster.broken() == []


@pytest.mark.rows("LWM-S6", "LWM-R13")
def test_an_old_snapshot_does_not_take_a_server_back() -> None:
    cluster = Cluster(**SHORT)
    client = lagging(cluster)
    [(_, _, request)] = cluster.take(lambda *item: isinstance(item[2], InstallSnapshotRequest))
    cluster.hand("athens", "cyrene", request)
    cluster.deliver()
    write(cluster, client, 9)
    before = cluster.values("cyrene")
    cluster.hand("athens", "cyrene", request)
    [(_, _, answer)] = cluster.take(lambda *item: isinstance(item[2], InstallSnapshotResponse))
    assert answer.installed
    assert cluster.values("cyrene") == before


def test_the_snapshot_of_a_deposed_leader_is_refused() -> None:
    cluster = Cluster(**SHORT)
    lagging(cluster)
    [(_, _, request)] = cluster.take(lambda *item: isinstance(item[2], InstallSnapshotRequest))
    cluster.cut("athens")
    cluster.elect("byzantium")
    cluster.heal()
    cluster.hand("athens", "cyrene", request)
    [(_, _, answer)] = cluster.take(lambda *item: isinstance(item[2], InstallSnapshotResponse))
    assert (answer.generation, answer.installed) == (2, False)
    cluster.hand("cyrene", "athens", answer)
    assert not cluster.leads("athens")


@pytest.mark.rows("LWM-M9")
@pytest.mark.parametrize(("planted_bugs", "count"), [((), 1), (("snapshot-without-answers",), 2)])
def test_a_retry_after_a_restart_is_known_from_the_snapshot(planted_bugs: tuple[str, ...], count: int) -> None:
    cluster = Cluster(planted_bugs=planted_bugs, **SHORT)
    client = led_by_athens(cluster)
    number = client.set("athens", "title", "mine")
    cluster.deliver()
    write(cluster, client, 1)
    for name in cluster.members:
        cluster.restart(name)
    cluster.elect("athens")
    client.ask_again("athens", number, SetValue("title", "mine"))
    cluster.deliver()
    asked = [event for node, event in cluster.events_of(EntryApplied) if node == "athens" and event.client_id]
    assert sum(event.executed for event in asked if event.request_number == number) == count
    assert ("IDR-I1" in cluster.broken()) == (count > 1)
