"""The client of Redis with Sentinel, against scripted servers: what it asks whom, and what it makes of each answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from patience import PATIENT_S
from scripted_redis import Answer, Refused, ScriptedRedis, end_patience
from scripted_server import HOST, HangsUp, Silent

from faultline.harness.errors import UsageError
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH
from faultline.harness.system import HostedStore, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.redis import sentinel_client
from faultline.systems_under_test.stores.redis.commands import Waiting, outcomes
from faultline.systems_under_test.stores.redis.connection import RedisConnection
from faultline.systems_under_test.stores.redis.sentinel import RedisSentinel
from faultline.systems_under_test.stores.redis.sentinel_client import SentinelClient, SentinelSession

NOT_WAITING = Waiting(0, 100)


class OneMaster:
    """A Redis and a Sentinel: `refusal` is what the next data commands meet, `role` what Redis says of itself."""

    def __init__(self) -> None:
        self.refusal: Exception | None = None
        self.role = "master"
        self.waited_for = 2
        self.result: Answer = "OK"
        self.redis = ScriptedRedis(self._redis)
        self.sentinel = ScriptedRedis(self._sentinel)

    def _redis(self, words: list[str]) -> Answer:
        if words[0] == "ROLE":
            return [self.role, 0, []]
        if words[0] == "WAIT":
            return self.waited_for
        if self.refusal is not None:
            raise self.refusal
        return self.result

    def _sentinel(self, words: list[str]) -> Answer:
        assert words == ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "faultline"]
        return [HOST, str(self.redis.port)]

    @property
    def commands(self) -> list[list[str]]:
        return [words for words in self.redis.asked if words[0] != "ROLE"]

    def close(self) -> None:
        self.redis.close()
        self.sentinel.close()


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[OneMaster]:
    pair = OneMaster()
    monkeypatch.setattr(sentinel_client, "SENTINEL_PORT", pair.sentinel.port)
    monkeypatch.setattr(sentinel_client, "REDIS_PORT", pair.redis.port)
    yield pair
    pair.close()


class HastyClient(SentinelClient):
    """Connects with patience, and then waits shortly for answers that do not come."""

    def connect(self, address: str) -> SentinelSession:
        session = super().connect(address)
        end_patience(session.master)
        return session


def client_of(
    waiting: Waiting = NOT_WAITING, reads_replicas: bool = False, kind: type[SentinelClient] = SentinelClient
) -> SentinelClient:
    return kind(
        lambda node: HOST, ("athens",), "athens", reads_replicas=reads_replicas, waiting=waiting, timeout_s=PATIENT_S
    )


@pytest.fixture
def client(pair: OneMaster) -> Iterator[SentinelClient]:
    client = client_of()
    yield client
    client.close()


def do(client: SentinelClient, f: str, value: Any = None) -> tuple[str, Any, str | None]:
    outcome = client.invoke(Operation(0, f, "k1", value))
    return outcome.kind, outcome.value, outcome.error


@pytest.mark.parametrize(
    ("f", "value", "command", "answer", "result"),
    [
        ("write", 7, ["SET", "k1", "7"], "OK", 7),
        ("add", 7, ["SADD", "k1", "7"], 1, 7),
        ("append", 7, ["RPUSH", "k1", "7"], 3, 7),
        ("increment", 5, ["INCRBY", "k1", "5"], 12, 12),
        ("increment", None, ["INCRBY", "k1", "1"], 8, 8),
        ("generate", None, ["INCR", "k1"], 9, 9),
        ("enqueue", 7, ["RPUSH", "k1", "7"], 1, 7),
        ("dequeue", None, ["LPOP", "k1"], "7", 7),
        ("dequeue", None, ["LPOP", "k1"], None, None),
    ],
)
def test_a_change_is_one_command(
    pair: OneMaster, client: SentinelClient, f: str, value: Any, command: list[str], answer: Answer, result: Any
) -> None:
    pair.result = answer
    assert do(client, f, value) == ("ok", result, None)
    assert pair.commands == [command]


@pytest.mark.parametrize(("answer", "value"), [(None, None), ("7", 7), (["1", "2"], [1, 2]), ([], [])])
def test_a_read_answers_the_whole_of_what_the_key_holds(
    pair: OneMaster, client: SentinelClient, answer: Answer, value: Any
) -> None:
    pair.result = answer
    assert do(client, "read") == ("ok", value, None)


def test_a_drain_answers_all_that_was_left(pair: OneMaster, client: SentinelClient) -> None:
    pair.result = ["1", "2"]
    assert do(client, "drain") == ("ok", [1, 2], None)
    pair.refusal = HangsUp()
    assert do(client, "drain") == ("info", None, "connection-lost")


def test_a_compare_and_set_succeeds_only_where_redis_says_so(pair: OneMaster, client: SentinelClient) -> None:
    pair.result = 1
    assert do(client, "cas", [1, 2]) == ("ok", [1, 2], None)
    pair.result = 0
    assert do(client, "cas", [1, 3]) == ("fail", None, CAS_MISMATCH)
    assert pair.commands[1][2:] == ["1", "k1", "1", "3"]


@pytest.mark.parametrize(
    "refusal",
    [
        "READONLY You can't write against a read only replica.",
        "NOREPLICAS Not enough good replicas to write.",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "LOADING Redis is loading the dataset in memory",
        "MISCONF Errors writing to the AOF file: No space left on device",
        "OOM command not allowed when used memory > 'maxmemory'.",
    ],
)
def test_what_redis_refuses_before_it_executes_did_not_happen(
    pair: OneMaster, client: SentinelClient, refusal: str
) -> None:
    pair.refusal = Refused(refusal)
    assert do(client, "write", 1) == ("fail", None, refusal.split()[0])
    assert refusal.split()[0] in outcomes.definite


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (HangsUp(), "connection-lost"),
        (Silent(), "timeout"),
        (Refused("UNBLOCKED force unblock from blocking operation"), "UNBLOCKED"),
        (Refused("ERR something new"), "ERR"),
        (Refused("Sentences are errors too"), "ERR"),
    ],
)
def test_after_any_other_error_a_change_is_unknown_and_a_read_nothing(
    pair: OneMaster, refusal: Exception, error: str
) -> None:
    client = client_of(kind=HastyClient if isinstance(refusal, Silent) else SentinelClient)
    pair.refusal = refusal
    assert do(client, "write", 1) == ("info", None, error)
    assert do(client, "cas", [1, 2]) == ("info", None, error)
    assert do(client, "read") == ("fail", None, error)
    client.close()


def test_a_write_that_too_few_replicas_have_is_unknown_and_the_same_connection_goes_on(pair: OneMaster) -> None:
    client = client_of(Waiting(2, 250))
    assert do(client, "write", 1) == ("ok", 1, None)
    pair.waited_for = 1
    assert do(client, "write", 2) == ("info", None, "too-few-replicas")
    pair.result = "2"
    assert do(client, "read") == ("ok", 2, None)
    assert pair.redis.asked.count(["WAIT", "2", "250"]) == 2
    assert pair.redis.asked.count(["ROLE"]) == 1
    client.close()


def test_no_error_of_waiting_is_definite(pair: OneMaster) -> None:
    client = client_of(Waiting(1, 100))
    answer = pair.redis.answer

    def deposed_meanwhile(words: list[str]) -> Answer:
        if words[0] == "WAIT":
            raise Refused("READONLY WAIT cannot be used with replica instances.")
        return answer(words)

    pair.redis.answer = deposed_meanwhile
    assert do(client, "write", 1) == ("info", None, "wait-unanswered")
    client.close()


def test_a_client_stays_with_its_master_until_that_answers_with_an_error(
    pair: OneMaster, client: SentinelClient
) -> None:
    do(client, "write", 1)
    do(client, "write", 2)
    assert len(pair.sentinel.asked) == 1
    pair.refusal = Refused("READONLY You can't write against a read only replica.")
    do(client, "write", 3)
    pair.refusal = None
    do(client, "write", 4)
    assert len(pair.sentinel.asked) == 2


def test_a_client_whose_master_has_hung_up_asks_for_the_master_again_and_nothing_is_unknown(
    pair: OneMaster, client: SentinelClient
) -> None:
    do(client, "write", 1)
    pair.redis.hang_up()
    assert do(client, "write", 2) == ("ok", 2, None)
    assert len(pair.sentinel.asked) == 2


def test_nothing_is_said_to_a_member_that_is_no_master(pair: OneMaster, client: SentinelClient) -> None:
    pair.role = "slave"
    assert do(client, "write", 1) == ("fail", None, "not-connected")
    assert pair.commands == []


def test_where_reads_are_local_the_role_of_the_reader_does_not_matter(pair: OneMaster) -> None:
    client = client_of(reads_replicas=True)
    assert do(client, "write", 1) == ("ok", 1, None)
    pair.result = "1"
    assert client.invoke(Operation(0, "read", "k1")).node == "athens"
    client.close()


def test_without_the_client_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(UsageError, match="The client library redis is not installed") as caught:
        RedisConnection(HOST, 1, 0.1)
    assert "pip install 'faultline[redis]'" in caught.value.next_step


def place(node: str) -> StorePlace:
    options = {name: option.default for name, option in RedisSentinel().options.items()}
    addresses = {"athens": "10.0.0.1", "byzantium": "10.0.0.2", "cyrene": "10.0.0.3"}
    return StorePlace(node=node, addresses=addresses, folder=f"/{node}", options=options)


def test_all_but_the_first_member_follow_it_and_a_majority_of_sentinels_decides() -> None:
    store = RedisSentinel()
    assert isinstance(store, HostedStore)
    assert "replicaof" not in store.files(place("athens"))["redis.conf"]
    files = store.files(place("cyrene"))
    assert "replicaof 10.0.0.1 6379\n" in files["redis.conf"] and "dir /cyrene/data\n" in files["redis.conf"]
    assert "sentinel monitor faultline 10.0.0.1 6379 2\n" in files["sentinel.conf"]


def said(role: str, master: str, *, sentinel: str = "10.0.0.1", link: str = "up", epoch: int = 0) -> NodeStatus:
    return NodeStatus(role=role, generation=epoch, detail={"master": master, "sentinel": sentinel, "link": link})


def test_the_cluster_serves_once_there_is_one_master_that_all_follow_and_all_sentinels_name() -> None:
    serving = RedisSentinel().serving
    master, replica = said("leader", "10.0.0.1"), said("follower", "10.0.0.1")
    assert serving({"athens": master, "byzantium": replica}) == "athens is the master"
    assert serving({"athens": master, "byzantium": None}) is None
    assert serving({"athens": master, "byzantium": said("leader", "10.0.0.2", epoch=1)}) is None
    assert serving({"athens": master, "byzantium": said("follower", "10.0.0.1", link="connecting")}) is None
    assert serving({"athens": master, "byzantium": said("follower", "10.0.0.1", sentinel="10.0.0.2")}) is None
