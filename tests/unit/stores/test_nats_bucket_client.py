"""The client of a NATS bucket, against a scripted server: what it asks, and what it makes of each answer."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from patience import HASTY_S, PATIENT_S
from scripted_nats import NoResponders, ScriptedNats
from scripted_server import HOST, HangsUp, Silent

from faultline.harness.errors import UsageError
from faultline.harness.operation import Operation
from faultline.harness.system import HostedStore, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.nats import bucket, system
from faultline.systems_under_test.stores.nats.bucket import Bucket, BucketClient, BucketRefusal
from faultline.systems_under_test.stores.nats.system import NatsJetStream

CONFLICT = {"error": {"code": 400, "err_code": 10071, "description": "wrong last sequence: 6"}}
ABSENT = {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}


class OneKey:
    """Holds one key; `mood` and `reading_mood` are what happens to the next writes and reads instead."""

    def __init__(self) -> None:
        self.held: str | None = None
        self.mood: Any = None
        self.reading_mood: Any = None
        self.server = ScriptedNats(self.answer)

    def answer(self, subject: str, headers: str, payload: str) -> Any:
        is_write = subject.startswith("$KV.")
        mood = self.mood if is_write else self.reading_mood
        if isinstance(mood, Exception):
            raise mood
        if mood is not None:
            return mood
        if is_write:
            self.held = payload
            return {"stream": "KV_faultline", "seq": 6}
        if subject.startswith("$JS.API.DIRECT.GET."):
            return self.held
        if self.held is None:
            return ABSENT
        data = base64.b64encode(self.held.encode()).decode()
        return {"message": {"subject": "$KV.faultline.k1", "seq": 5, "data": data, "time": "2026-01-01T00:00:00Z"}}

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [(headers, payload) for subject, headers, payload in self.server.asked if subject.startswith("$KV.")]


def limit_s(mood: Any) -> float:
    return HASTY_S if isinstance(mood, (Silent, HangsUp)) else PATIENT_S


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> Iterator[OneKey]:
    key = OneKey()

    class KnowingBucket(Bucket):
        """Waits with patience for answers that will come, and shortly for those that will not."""

        def get(self, name: str) -> tuple[Any, int]:
            self._timeout_s = limit_s(key.reading_mood)
            return super().get(name)

        def _publish(self, name: str, content: bytes, headers: dict[str, str] | None) -> int:
            self._timeout_s = limit_s(key.mood)
            return super()._publish(name, content, headers)

    monkeypatch.setattr(bucket, "CLIENT_PORT", key.server.port)
    monkeypatch.setattr(bucket, "Bucket", KnowingBucket)
    yield key
    key.server.close()


@pytest.fixture
def client(key: OneKey) -> Iterator[BucketClient]:
    client = client_of(direct=False)
    yield client
    client.close()


def client_of(*, direct: bool, timeout_s: float = PATIENT_S) -> BucketClient:
    return BucketClient(lambda node: HOST, ("athens", "byzantium"), "athens", direct=direct, timeout_s=timeout_s)


def do(client: BucketClient, f: str, value: Any = None) -> tuple[str, Any, str | None]:
    outcome = client.invoke(Operation(0, f, "k1", value))
    return outcome.kind, outcome.value, outcome.error


def test_values_go_in_and_out_and_absence_is_nothing(client: BucketClient, key: OneKey) -> None:
    assert do(client, "read") == ("ok", None, None)
    assert do(client, "write", 7) == ("ok", 7, None)
    assert do(client, "read") == ("ok", 7, None)
    assert key.writes == [("", "7")]


def test_a_client_whose_server_has_hung_up_connects_again_before_it_asks(client: BucketClient, key: OneKey) -> None:
    assert do(client, "write", 7)[0] == "ok" and client.is_connected
    key.server.hang_up()
    assert not client.is_connected
    assert do(client, "write", 8) == ("ok", 8, None)
    assert do(client, "read") == ("ok", 8, None)


def test_direct_reads_are_asked_of_any_replica(key: OneKey) -> None:
    key.held = "[1,2]"
    client = client_of(direct=True)
    assert do(client, "read") == ("ok", [1, 2], None)
    assert key.server.asked[-1][0] == "$JS.API.DIRECT.GET.KV_faultline.$KV.faultline.k1"
    client.close()


@pytest.mark.parametrize(
    ("f", "value", "held", "after", "result"),
    [
        ("cas", [1, 2], "1", "2", [1, 2]),
        ("add", 3, "[1,2]", "[1,2,3]", 3),
        ("append", 3, None, "[3]", 3),
        ("increment", 5, "7", "12", 12),
        ("increment", None, None, "1", 1),
        ("generate", None, "7", "8", 8),
    ],
)
def test_what_depends_on_the_value_expects_the_revision_that_was_read(
    client: BucketClient, key: OneKey, f: str, value: Any, held: str | None, after: str, result: Any
) -> None:
    key.held = held
    assert do(client, f, value) == ("ok", result, None)
    [(headers, payload)] = key.writes
    assert payload == after
    assert f"Nats-Expected-Last-Subject-Sequence: {5 if held else 0}\r\n" in headers


def test_a_compare_and_set_that_read_something_else_writes_nothing_and_observes_nothing(
    client: BucketClient, key: OneKey
) -> None:
    key.held = "4"
    assert do(client, "cas", [1, 2]) == ("fail", None, "value-differs")
    assert key.writes == []


def test_a_conditional_write_that_came_too_late_did_not_happen(client: BucketClient, key: OneKey) -> None:
    key.held, key.mood = "[1]", CONFLICT
    assert do(client, "add", 2) == ("fail", None, "wrong-last-sequence")


def test_a_message_that_no_server_takes_did_not_happen(client: BucketClient, key: OneKey) -> None:
    key.mood = NoResponders()
    assert do(client, "write", 1) == ("fail", None, "no-responders")


@pytest.mark.parametrize("mood", [Silent(), HangsUp(), {"error": {"code": 503, "err_code": 10008}}])
def test_when_the_read_before_a_write_fails_nothing_was_written(client: BucketClient, key: OneKey, mood: Any) -> None:
    key.reading_mood = mood
    assert do(client, "add", 1) == ("fail", None, "read-failed")
    assert key.writes == []


@pytest.mark.parametrize(
    ("mood", "error"),
    [
        (Silent(), "timeout"),
        ({"error": {"code": 503, "err_code": 10077, "description": "?"}}, "error-10077"),
    ],
)
def test_after_any_other_error_a_change_is_unknown(client: BucketClient, key: OneKey, mood: Any, error: str) -> None:
    key.held, key.mood = "1", mood
    assert do(client, "write", 1) == ("info", None, error)
    assert do(client, "cas", [1, 2]) == ("info", None, error)


def test_a_connection_that_ends_leaves_a_change_unknown(client: BucketClient, key: OneKey) -> None:
    key.mood = HangsUp()
    kind, _, error = do(client, "write", 1)
    assert kind == "info" and error in ("timeout", "connection-lost")


def test_a_read_that_failed_changed_nothing_and_the_next_member_is_asked(client: BucketClient, key: OneKey) -> None:
    key.reading_mood = Silent()
    assert do(client, "read") == ("fail", None, "timeout")
    key.reading_mood = None
    assert client.invoke(Operation(0, "read", "k1")).node == "byzantium"


def test_what_could_not_be_sent_did_not_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((HOST, 0)) as listener:
        monkeypatch.setattr(bucket, "CLIENT_PORT", listener.getsockname()[1])
    client = client_of(direct=False, timeout_s=HASTY_S)
    assert do(client, "write", 1) == ("fail", None, "not-connected")
    client.close()


def test_an_answer_that_is_no_result_is_a_refusal_in_one_word(key: OneKey) -> None:
    opened = Bucket(HOST, direct=False, timeout_s=PATIENT_S)
    key.mood = CONFLICT
    with pytest.raises(BucketRefusal, match="^wrong-last-sequence$"):
        opened.put("k1", 1, expected=5)
    opened.close()


def test_the_configuration_names_all_servers() -> None:
    store = NatsJetStream()
    assert isinstance(store, HostedStore)
    addresses = {"athens": "10.0.0.1", "byzantium": "10.0.0.2"}
    text = store.files(StorePlace(node="athens", addresses=addresses, folder="/athens", options={}))["nats.conf"]
    assert 'routes: ["nats://10.0.0.1:6222", "nats://10.0.0.2:6222"]' in text
    assert "server_name: athens\n" in text and 'store_dir: "/athens/data"' in text


def test_a_single_host_is_refused_as_the_server_would_wait_for_others_for_ever() -> None:
    with pytest.raises(UsageError, match="never becomes ready") as refused:
        NatsJetStream().files(StorePlace(node="athens", addresses={"athens": HOST}, folder="/athens", options={}))
    assert "replicas=1" in refused.value.next_step


@pytest.mark.parametrize("replicas", ["0", "4", "6"])
def test_a_bucket_has_no_more_replicas_than_there_are_hosts(replicas: str) -> None:
    with pytest.raises(UsageError, match=f"cannot have {replicas} replicas on 3 hosts"):
        NatsJetStream().provision({str(number): HOST for number in range(3)}, {"replicas": replicas})


def test_the_leader_of_the_stream_leads_and_not_that_of_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = {"cluster": {"leader": "athens", "replicas": [{"name": "cyrene", "current": False}]}}
    pages = {
        "/varz": {"server_name": "athens"},
        "/jsz?accounts=1&streams=1": {
            "meta_cluster": {"leader": "byzantium"},
            "account_details": [{"name": "$G", "stream_detail": [stream]}],
        },
    }
    monkeypatch.setattr(system, "_monitored", lambda address, path, timeout_s: pages[path])
    status = NatsJetStream().status("10.0.0.1", 1.0)
    assert (status.role, status.leader, status.generation, status.detail["current"]) == ("leader", "athens", 1, False)
    pages["/jsz?accounts=1&streams=1"] = {"meta_cluster": {"leader": "byzantium"}}
    status = NatsJetStream().status("10.0.0.1", 1.0)
    assert (status.role, status.leader, status.generation) == ("follower", "byzantium", 0)
    assert status.detail["leader_of_servers"] == "byzantium"


def said(
    leader: str, *, leads: bool = False, generation: int = 1, current: bool = True, of_servers: str | None = "cyrene"
) -> NodeStatus:
    role, detail = "leader" if leads else "follower", {"current": current, "leader_of_servers": of_servers}
    return NodeStatus(role=role, leader=leader, generation=generation, detail=detail)


def test_the_bucket_serves_once_its_members_agree_and_its_replicas_are_current() -> None:
    serving, leader = NatsJetStream().serving, said("athens", leads=True)
    assert serving({"athens": leader, "byzantium": said("athens")}) == "athens leads"
    assert serving({"athens": leader, "byzantium": said("cyrene", generation=0)}) == "athens leads"
    assert serving({"athens": leader, "byzantium": said("cyrene")}) is None
    assert serving({"athens": leader, "byzantium": None}) is None
    assert serving({"athens": said("athens", leads=True, current=False), "byzantium": said("athens")}) is None


@pytest.mark.parametrize("told", [None, "byzantium"])
def test_the_bucket_does_not_serve_while_the_servers_have_no_leader_since_no_consumer_can_be_made(
    told: str | None,
) -> None:
    leader = said("athens", leads=True)
    assert NatsJetStream().serving({"athens": leader, "byzantium": said("athens", of_servers=told)}) is None
    leaderless = said("athens", leads=True, of_servers=None)
    assert NatsJetStream().serving({"athens": leaderless, "byzantium": said("athens", of_servers=None)}) is None
