"""Stories about watches, told step by step: WA-S1 to WA-S16 of the requirements."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.world.ports import NodeId
from faultline.story.log_cluster import Client, Cluster
from faultline.systems_under_test.patterns.cluster_management.state_watch import EVENTS_COMPACTED, SLOW_WATCHER
from faultline.systems_under_test.reference.coordination_service.system import CoordinationService
from faultline.systems_under_test.reference.leases_and_watches.messages import (
    CloseWatch,
    WatchBatch,
    WatchRefused,
    WatchRequest,
    WatchState,
)
from faultline.systems_under_test.reference.shared.key_commands import (
    DeleteKey,
    RegisterLease,
    RevokeLease,
    SetValue,
    SetWithLease,
)

SECOND_US = 1_000_000
TTL_US = 10 * SECOND_US
SLOW = {"heartbeat_interval_ms": "250", "election_timeout_ms": "1000", "watch_confirm_ms": "60000"}
OF_WATCHES = (WatchBatch, WatchState, WatchRefused)


class Watcher:
    """A watcher whose every request is the test's decision; it keeps the position that the last batch gave it."""

    def __init__(self, cluster: Cluster, name: str, path: str = "servers") -> None:
        self.cluster = cluster
        self.name = name
        self.path = path
        self.position: tuple[int, int] | None = None
        self._read = 0

    def ask(self, node: str, *, is_live: bool = True, is_once: bool = False) -> Watcher:
        """Set the watch at `node`, at the position reached so far."""
        self.cluster.hand(self.name, node, WatchRequest(self.path, 1, self.position, is_live, is_once))
        self.cluster.deliver()
        return self

    def told(self) -> list[Any]:
        """The messages since the last time."""
        self.cluster.deliver(lambda _, target, __: target == self.name)
        messages = [each for _, each in self.cluster.inbox.get(self.name, []) if isinstance(each, OF_WATCHES)]
        fresh, self._read = messages[self._read :], len(messages)
        for each in fresh:
            if not isinstance(each, WatchRefused):
                self.position = max(self.position or each.upto, each.upto)
        return fresh

    def events(self) -> list[tuple[str, Any]]:
        """Keys and values (None for deletions) since the last time."""
        batches = [each for each in self.told() if isinstance(each, WatchBatch)]
        return [(event.key, event.value) for batch in batches for event in batch.events]


class Service(Cluster):
    """A hand-cranked cluster of `coordination-service`."""

    system_type = CoordinationService


def led_by_athens(*planted_bugs: str, **options: str) -> tuple[Cluster, Client]:
    cluster = Service(3, planted_bugs, lease_check_ms="500", **{**SLOW, **options})
    cluster.elect("athens")
    return cluster, Client(cluster, "alice").register("athens")


def put(cluster: Cluster, client: Client, key: str, value: Any = 1, node: str = "athens") -> None:
    client.ask(node, SetValue(key, value))
    cluster.deliver()


def with_lease(cluster: Cluster, client: Client, *keys: str) -> int:
    number = client.ask("athens", RegisterLease("x", TTL_US))
    cluster.deliver()
    for key in keys:
        client.ask("athens", SetWithLease(key, key, "x"))
        cluster.deliver()
    answer = client.answer_to(number)
    assert answer is not None
    token: int = answer.value
    return token


@pytest.mark.rows("WA-S1", "WA-R4", "WA-R5", "WA-R10", "WA-R14", "WA-I3", "LS-R20", "WA-S5", "SYS-S13")
def test_a_watcher_is_told_of_what_is_set_and_of_what_goes_with_a_lease() -> None:
    cluster, alice = led_by_athens()
    watcher = Watcher(cluster, "w").ask("athens")
    with_lease(cluster, alice, "servers/1")
    put(cluster, alice, "servers/2", "two")
    cluster.pass_time(TTL_US + SECOND_US)
    batches = [each for each in watcher.told() if isinstance(each, WatchBatch)]
    events = [event for batch in batches for event in batch.events]
    assert [(event.key, event.is_deleted) for event in events] == [
        ("servers/1", False),
        ("servers/2", False),
        ("servers/1", True),
    ]
    positions = [event.position for event in events]
    assert positions == sorted(set(positions))


@pytest.mark.rows("WA-R28", "WA-R29")
def test_a_new_watch_says_from_where_on_it_tells_and_what_there_is() -> None:
    cluster, alice = led_by_athens()
    put(cluster, alice, "servers/1", "one")
    (state,) = Watcher(cluster, "w").ask("athens").told()
    assert isinstance(state, WatchState) and state.error is None
    assert [(each.key, each.value) for each in state.state] == [("servers/1", "one")]
    assert state.upto[0] == cluster.nodes["athens"].log.last_applied


@pytest.mark.rows("WA-S2", "WA-S3", "WA-R15", "WA-R18", "WA-I2", "WA-M2")
@pytest.mark.parametrize("source", ["versions", "history"])
@pytest.mark.parametrize(("planted_bugs", "misses"), [((), False), (("watch-starts-live",), True)])
def test_what_happened_while_the_link_was_cut_is_told_afterwards(
    source: str, planted_bugs: tuple[str, ...], misses: bool
) -> None:
    cluster, alice = led_by_athens(*planted_bugs, watch_source=source)
    watcher = Watcher(cluster, "w").ask("athens")
    watcher.told()
    cluster.cut("athens", "w")
    put(cluster, alice, "servers/1", "came")
    alice.ask("athens", DeleteKey("servers/1"))
    cluster.deliver()
    cluster.heal()
    events = watcher.ask("athens").events()
    assert events == ([] if misses else [("servers/1", "came"), ("servers/1", None)])


@pytest.mark.rows("WA-S3", "WA-R16")
def test_a_source_without_a_past_gives_the_state_and_says_so() -> None:
    cluster, alice = led_by_athens(watch_source="state")
    watcher = Watcher(cluster, "w").ask("athens")
    watcher.told()
    put(cluster, alice, "servers/1", "first")
    put(cluster, alice, "servers/1", "last")
    watcher.events()
    (state,) = watcher.ask("athens").told()
    assert state.error == EVENTS_COMPACTED
    assert [(each.key, each.value) for each in state.state] == [("servers/1", "last")]


@pytest.mark.rows("WA-S4", "WA-R26", "WA-M14")
@pytest.mark.parametrize(("planted_bugs", "is_announced"), [((), True), (("silent-eviction",), False)])
def test_a_gap_is_announced_with_the_state(planted_bugs: tuple[str, ...], is_announced: bool) -> None:
    cluster, alice = led_by_athens(*planted_bugs, watch_history_max="10")
    watcher = Watcher(cluster, "w").ask("athens", is_live=False)
    watcher.told()
    for value in range(90):
        put(cluster, alice, "servers/1", value)
    answer = watcher.ask("athens", is_live=False).told()[0]
    assert (isinstance(answer, WatchState) and answer.error == EVENTS_COMPACTED) is is_announced


@pytest.mark.rows("WA-S6", "WA-R14", "WA-R19", "WA-R27", "WA-M7", "WA-I4")
@pytest.mark.parametrize(
    ("planted_bugs", "events"), [((), [("servers/1", "one")]), (("history-on-the-leader-only",), [])]
)
def test_the_next_leader_tells_what_the_last_one_could_not(
    planted_bugs: tuple[str, ...], events: list[tuple[str, str]]
) -> None:
    cluster, alice = led_by_athens(*planted_bugs)
    watcher = Watcher(cluster, "w").ask("athens")
    watcher.told()
    cluster.cut("athens", "w")
    put(cluster, alice, "servers/1", "one")
    cluster.heartbeat("athens")
    cluster.deliver()
    cluster.kill("athens")
    cluster.heal()
    cluster.elect("byzantium")
    assert watcher.ask("byzantium").events() == events


@pytest.mark.rows("WA-S7", "WA-R7", "WA-R8", "WA-S8")
def test_a_watcher_that_leaves_and_one_that_cannot_be_reached_do_not_keep_the_others_waiting() -> None:
    cluster, alice = led_by_athens()
    one, other, third = (Watcher(cluster, name).ask("athens") for name in ("w1", "w2", "w3"))
    cluster.hand("w1", "athens", CloseWatch("servers", 1))
    cluster.cut("athens", "w2")
    put(cluster, alice, "servers/1")
    assert one.events() == [] and other.events() == [] and third.events() == [("servers/1", 1)]
    cluster.heal()
    assert other.ask("athens").events() == [("servers/1", 1)]


@pytest.mark.rows("WA-S9", "WA-R11", "WA-I6")
def test_a_client_that_gives_no_sign_of_life_is_forgotten_with_all_its_watches() -> None:
    cluster, _ = led_by_athens(watch_confirm_ms="100")
    Watcher(cluster, "w1").ask("athens")
    Watcher(cluster, "w1", "servers/1").ask("athens")
    assert len(cluster.nodes["athens"].extensions[0].watching.registry) == 2
    cluster.pass_time(SECOND_US)
    registry = cluster.nodes["athens"].extensions[0].watching.registry
    assert len(registry) == 0 and registry.is_consistent()
    assert "silent-watcher-forgotten" in cluster.marks


@pytest.mark.rows("WA-S11", "WA-R20")
def test_a_one_time_watch_tells_the_next_change_and_no_other() -> None:
    cluster, alice = led_by_athens(watch_delivery="once")
    watcher = Watcher(cluster, "w").ask("athens", is_once=True)
    put(cluster, alice, "servers/1", "first")
    put(cluster, alice, "servers/1", "second")
    assert watcher.events() == [("servers/1", "first")]
    watcher.position = None
    (state,) = watcher.ask("athens", is_once=True).told()
    assert [each.value for each in state.state] == ["second"]


@pytest.mark.rows("WA-R21")
def test_a_watcher_that_pulls_leaves_nothing_at_the_server_and_misses_nothing() -> None:
    cluster, alice = led_by_athens(watch_delivery="pull")
    watcher = Watcher(cluster, "w").ask("athens", is_live=False)
    watcher.told()
    for value in range(3):
        put(cluster, alice, "servers/1", value)
    assert len(cluster.nodes["athens"].extensions[0].watching.registry) == 0
    assert watcher.ask("athens", is_live=False).events() == [("servers/1", value) for value in range(3)]


@pytest.mark.rows("WA-S12", "WA-R22")
def test_a_watcher_that_confirms_nothing_is_cancelled_and_told_so_while_others_go_on() -> None:
    cluster, alice = led_by_athens(watch_unconfirmed_max="20")
    slow, quick = Watcher(cluster, "w1").ask("athens"), Watcher(cluster, "w2").ask("athens")
    for value in range(60):
        put(cluster, alice, "servers/1", value)
        quick.told()
        quick.ask("athens")
    refused = [each for each in slow.told() if isinstance(each, WatchRefused)]
    assert [each.error for each in refused] == [SLOW_WATCHER]
    assert len(cluster.nodes["athens"].extensions[0].watching.registry) == 1
    put(cluster, alice, "servers/1", "more")
    assert quick.events() == [("servers/1", "more")]


@pytest.mark.rows("WA-S13", "WA-R24", "WA-M5", "WA-M9")
@pytest.mark.parametrize(("planted_bugs", "told_again"), [((), 0), (("replay-to-all",), 2)])
def test_a_replay_goes_to_the_watcher_that_asked_and_joins_what_is_live(
    planted_bugs: tuple[str, ...], told_again: int
) -> None:
    cluster, alice = led_by_athens(*planted_bugs)
    one, other = Watcher(cluster, "w1").ask("athens"), Watcher(cluster, "w2").ask("athens")
    one.told()
    cluster.cut("athens", "w1")
    for value in range(2):
        put(cluster, alice, "servers/1", value)
    assert other.events() == [("servers/1", 0), ("servers/1", 1)]
    cluster.heal()
    one.ask("athens")
    put(cluster, alice, "servers/1", 2)
    assert one.events()[-3:] == [("servers/1", value) for value in range(3)]
    assert len(other.events()) == 1 + told_again


@pytest.mark.rows("WA-S14", "WA-R25", "WA-M13")
@pytest.mark.parametrize(("planted_bugs", "rest"), [((), ["servers/3"]), (("resume-by-index",), [])])
def test_of_several_deletions_in_one_entry_none_is_lost_when_the_link_breaks_between_them(
    planted_bugs: tuple[str, ...], rest: list[str]
) -> None:
    cluster, alice = led_by_athens(*planted_bugs)
    token = with_lease(cluster, alice, "servers/1", "servers/2", "servers/3")
    watcher = Watcher(cluster, "w").ask("athens")
    watcher.told()
    alice.ask("athens", RevokeLease("x", token))
    cluster.deliver(lambda _, target, __: target != "w")
    cluster.step(lambda _, target, __: target == "w")
    cluster.drop(lambda _, target, __: target == "w")
    assert [key for key, _ in watcher.events()] == ["servers/1", "servers/2"]
    assert [key for key, _ in watcher.ask("athens").events()] == rest


@pytest.mark.rows("WA-S15", "WA-R23", "WA-M8")
@pytest.mark.parametrize(("planted_bugs", "events"), [((), []), (("notify-at-append",), [("servers/1", 1)])])
def test_no_watcher_is_told_of_a_change_that_is_not_committed(
    planted_bugs: tuple[str, ...], events: list[tuple[str, int]]
) -> None:
    cluster, alice = led_by_athens(*planted_bugs)
    watcher = Watcher(cluster, "w").ask("athens")
    cluster.cut("athens", "byzantium", "cyrene")
    put(cluster, alice, "servers/1")
    assert watcher.events() == events


@pytest.mark.rows("WA-R19", "CC-R9", "CC-S5")
def test_a_server_that_does_not_lead_says_who_does_and_a_deposed_leader_sends_its_watchers_away() -> None:
    cluster, _ = led_by_athens()
    watcher = Watcher(cluster, "w").ask("byzantium")
    (refused,) = watcher.told()
    assert isinstance(refused, WatchRefused) and refused.leader_id == "athens"
    watcher.ask("athens").told()
    cluster.split("athens")
    cluster.elect("byzantium")
    cluster.heal()
    cluster.pass_time(SECOND_US)
    assert [each.error for each in watcher.told()] == ["not-leader"]
    assert len(cluster.nodes["athens"].extensions[0].watching.registry) == 0


@pytest.mark.rows("WA-S16", "WA-R2", "WA-R3", "CC-R17")
def test_events_and_answers_share_a_client_without_being_taken_for_each_other() -> None:
    cluster, _ = led_by_athens()
    ports = cluster.ports_type(cluster, "carol")
    outcomes: list[Any] = []
    client: Any = cluster.system.client(ports, cluster.members, NodeId("athens"), cluster.options, frozenset())

    def deliver() -> None:
        for _ in range(5):
            cluster.deliver()
            for source, message in cluster.inbox.pop("carol", []):
                client.receive(source, message)

    from faultline.harness.operation import Operation

    client.start()
    deliver()
    client.invoke(Operation(0, "watch", "servers"), outcomes.append)
    deliver()
    for value in ("one", "two"):
        client.invoke(Operation(0, "put", "servers/1", value), outcomes.append)
        deliver()
    client.invoke(Operation(0, "drain", "servers"), outcomes.append)
    assert [outcome.kind for outcome in outcomes] == ["ok"] * 4
    items = outcomes[-1].value["items"]
    assert [item[4] for item in items if item[0] == "event"] == ["one", "two"]
    assert [item[1] for item in items if item[0] == "event"] == [outcome.value for outcome in outcomes[1:3]]
