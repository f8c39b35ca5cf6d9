"""The client of Redis Cluster, against scripted members: whom it asks, where it is sent, and what it makes of that."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from patience import PATIENT_S
from scripted_redis import Answer, Refused, ScriptedRedis
from scripted_server import HOST, HangsUp

from faultline.harness.errors import UsageError
from faultline.harness.operation import Operation
from faultline.harness.system import HostedStore, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.redis import cluster
from faultline.systems_under_test.stores.redis.cluster import ClusterClient, RedisCluster, shares
from faultline.systems_under_test.stores.redis.commands import Waiting

SLOT = 12706  # of the key k1, which two thirds of the table below give to the second member


class Members:
    """Two members: the first has the lower slots, the second the others. `refusal` is what one of them answers."""

    def __init__(self) -> None:
        self.refusal: dict[int, Exception] = {}
        self.servers = [ScriptedRedis(lambda words, number=number: self.answer(number, words)) for number in (0, 1)]

    def answer(self, number: int, words: list[str]) -> Answer:
        if words[:2] == ["CLUSTER", "SLOTS"]:
            first, second = ([HOST, server.port, "id"] for server in self.servers)
            return [[0, 8191, first, second], [8192, 16383, second, first]]
        if words[0] in ("ASKING", "READONLY"):
            return "OK"
        if number in self.refusal:
            raise self.refusal[number]
        return "OK" if words[0] == "SET" else "7"

    def commands(self, number: int) -> list[str]:
        return [words[0] for words in self.servers[number].asked if words[0] != "CLUSTER"]

    def close(self) -> None:
        for server in self.servers:
            server.close()


@pytest.fixture
def members(monkeypatch: pytest.MonkeyPatch) -> Iterator[Members]:
    members = Members()
    monkeypatch.setattr(cluster, "PORT", members.servers[0].port)
    yield members
    members.close()


def client_of(*, reads_replicas: bool = False) -> ClusterClient:
    return ClusterClient(
        lambda node: HOST,
        ("athens",),
        "athens",
        reads_replicas=reads_replicas,
        waiting=Waiting(0, 9),
        timeout_s=PATIENT_S,
    )


@pytest.fixture
def client(members: Members) -> Iterator[ClusterClient]:
    client = client_of()
    yield client
    client.close()


def do(client: ClusterClient, f: str, value: Any = None) -> tuple[str, Any, str | None]:
    outcome = client.invoke(Operation(0, f, "k1", value))
    return outcome.kind, outcome.value, outcome.error


def test_the_owner_of_the_slot_is_asked(members: Members, client: ClusterClient) -> None:
    assert do(client, "write", 7) == ("ok", 7, None)
    assert (members.commands(0), members.commands(1)) == ([], ["SET"])


def test_a_slot_that_has_moved_is_followed_and_remembered(members: Members, client: ClusterClient) -> None:
    members.refusal[1] = Refused(f"MOVED {SLOT} {HOST}:{members.servers[0].port}")
    assert do(client, "write", 7) == ("ok", 7, None)
    assert do(client, "write", 8) == ("ok", 8, None)
    assert (members.commands(0), members.commands(1)) == (["SET", "SET"], ["SET"])


def test_a_slot_that_is_being_moved_is_asked_for_and_not_remembered(members: Members, client: ClusterClient) -> None:
    members.refusal[1] = Refused(f"ASK {SLOT} {HOST}:{members.servers[0].port}")
    do(client, "write", 7)
    do(client, "write", 8)
    assert members.commands(0) == ["ASKING", "SET", "ASKING", "SET"]


def test_a_client_that_is_sent_in_a_circle_has_done_nothing(members: Members, client: ClusterClient) -> None:
    for number in (0, 1):
        members.refusal[number] = Refused(f"MOVED {SLOT} {HOST}:{members.servers[1 - number].port}")
    assert do(client, "write", 7) == ("fail", None, "MOVED")


@pytest.mark.parametrize("word", ["CLUSTERDOWN", "TRYAGAIN", "READONLY", "NOREPLICAS"])
def test_what_a_member_refuses_before_it_executes_did_not_happen(
    members: Members, client: ClusterClient, word: str
) -> None:
    members.refusal[1] = Refused(f"{word} for some reason")
    assert do(client, "write", 7) == ("fail", None, word)


def test_an_owner_that_hangs_up_leaves_a_change_unknown_and_the_table_is_fetched_anew(
    members: Members, client: ClusterClient
) -> None:
    members.refusal[1] = HangsUp()
    assert do(client, "write", 7) == ("info", None, "connection-lost")
    del members.refusal[1]
    assert do(client, "write", 8) == ("ok", 8, None)
    assert [words[1] for words in members.servers[0].asked if words[0] == "CLUSTER"] == ["SLOTS", "SLOTS"]


def test_a_member_that_has_hung_up_is_connected_to_again(members: Members, client: ClusterClient) -> None:
    do(client, "write", 7)
    members.servers[1].hang_up()
    assert do(client, "write", 8) == ("ok", 8, None)


def test_an_owner_that_cannot_be_reached_has_executed_nothing(members: Members, client: ClusterClient) -> None:
    with socket.create_server((HOST, 0)) as listener:
        closed_port = listener.getsockname()[1]
    members.refusal[1] = Refused(f"MOVED {SLOT} {HOST}:{closed_port}")
    assert do(client, "write", 7) == ("fail", None, "not-connected")


def test_reads_of_replicas_say_so_on_the_connection(members: Members) -> None:
    client = client_of(reads_replicas=True)
    assert do(client, "read") == ("ok", 7, None)
    assert (members.commands(0), members.commands(1)) == (["READONLY", "EVAL_RO"], [])
    client.close()


def test_slots_are_dealt_evenly_and_completely() -> None:
    assert shares(3) == [(0, 5460), (5461, 10921), (10922, 16383)]


def test_a_cluster_needs_three_masters_and_as_many_hosts() -> None:
    store = RedisCluster()
    assert isinstance(store, HostedStore)
    for masters, hosts in (("2", 6), ("4", 3)):
        with pytest.raises(UsageError, match=f"cannot have {masters} masters on {hosts} hosts") as caught:
            store.form({str(number): HOST for number in range(hosts)}, {"masters": masters})
        assert "--nodes 6" in caught.value.next_step


def test_members_are_in_cluster_mode() -> None:
    store = RedisCluster()
    options = {name: option.default for name, option in store.options.items()}
    place = StorePlace(node="athens", addresses={"athens": "10.0.0.1"}, folder="/athens", options=options)
    text = store.files(place)["redis.conf"]
    assert "cluster-enabled yes\n" in text and "cluster-node-timeout 1000\n" in text and "port 7000\n" in text


def said(role: str, slots: list[str], state: str = "ok", link: str = "up") -> NodeStatus:
    return NodeStatus(role=role, detail={"slots": slots, "state": state, "link": link})


def test_the_cluster_serves_once_all_agree_on_the_owners_of_slots() -> None:
    serving, table = RedisCluster().serving, ["10.0.0.1 0-8191", "10.0.0.2 8192-16383"]
    first, second, replica = said("leader", table), said("leader", table), said("follower", table)
    assert serving({"athens": first, "byzantium": second, "cyrene": replica}) == "athens, byzantium are the masters"
    assert serving({"athens": first, "byzantium": second, "cyrene": None}) is None
    assert serving({"athens": first, "byzantium": second, "cyrene": said("follower", table[:1])}) is None
    assert serving({"athens": first, "byzantium": said("leader", table, state="fail")}) is None
    assert serving({"athens": first, "byzantium": second, "cyrene": said("follower", table, link="connecting")}) is None
    assert serving({"athens": first, "byzantium": second, "cyrene": said("leader", table)}) is None
