"""The RabbitMQ client: what it asks of a channel, what it makes of each failure, and a channel without an answer."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pika
import pytest
from patience import HASTY_S, PATIENT_S

from faultline.harness.operation import Operation
from faultline.harness.system import HostedStore, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.rabbitmq import channel as channel_module
from faultline.systems_under_test.stores.rabbitmq import client as client_module
from faultline.systems_under_test.stores.rabbitmq.channel import ChannelRefusal, QueueChannel
from faultline.systems_under_test.stores.rabbitmq.client import QueueClient
from faultline.systems_under_test.stores.rabbitmq.system import RabbitMQ, status_from


class Broker:
    """One queue, what was asked, and the failures that lie ahead by what they follow."""

    def __init__(self) -> None:
        self.elements: deque[bytes] = deque()
        self.asked: list[tuple[Any, ...]] = []
        self.failures: dict[str, Exception] = {}
        self.is_down = False

    def hear(self, *said: Any) -> None:
        self.asked.append(said)
        if failure := self.failures.pop(said[0], None):
            raise failure


class ScriptedChannel:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.handed_out = 0

    def publish(self, queue: str, body: bytes) -> None:
        self.broker.hear("publish", queue, body)
        self.broker.elements.append(body)

    def get(self, queue: str, *, is_lent: bool) -> tuple[bytes, int] | None:
        self.broker.hear("get", queue, is_lent)
        self.handed_out += 1
        return (self.broker.elements.popleft(), self.handed_out) if self.broker.elements else None

    def acknowledge(self, queue: str, number: int) -> None:
        self.broker.hear("acknowledge", queue, number)

    def is_open(self) -> bool:
        return True

    def close(self) -> None:
        self.broker.asked.append(("close",))


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()

    def open_channel(address: str, timeout_s: float, *, confirms: bool, password: str) -> ScriptedChannel:
        assert confirms
        if broker.is_down:
            raise ConnectionRefusedError
        return ScriptedChannel(broker)

    monkeypatch.setattr(client_module, "QueueChannel", open_channel)
    return broker


def client(*, is_lent: bool = False) -> QueueClient:
    return QueueClient(
        lambda node: node, ("athens", "byzantium"), "athens", confirms=True, is_lent=is_lent, timeout_s=PATIENT_S
    )


def do(client: QueueClient, f: str, value: Any = None) -> tuple[str, Any, str | None]:
    outcome = client.invoke(Operation(0, f, "queue-0", value))
    return outcome.kind, outcome.value, outcome.error


def test_elements_go_in_and_come_out(broker: Broker) -> None:
    one = client()
    for element in (1, 2, 3):
        assert do(one, "enqueue", element) == ("ok", element, None)
    assert do(one, "dequeue") == ("ok", 1, None)
    assert do(one, "drain") == ("ok", [2, 3], None)
    assert do(one, "dequeue") == ("ok", None, None)
    assert do(one, "drain") == ("ok", [], None)
    assert "acknowledge" not in {said[0] for said in broker.asked}


def test_what_is_lent_counts_as_taken_once_its_acknowledgement_was_heard(broker: Broker) -> None:
    one = client(is_lent=True)
    broker.elements.extend([b"1", b"2", b"3"])
    assert do(one, "dequeue") == ("ok", 1, None)
    assert broker.asked == [("get", "queue-0", True), ("acknowledge", "queue-0", 1)]
    broker.failures["acknowledge"] = TimeoutError()
    assert do(one, "drain") == ("info", None, "timeout")
    assert broker.asked[-2:] == [("acknowledge", "queue-0", 3), ("close",)]
    assert do(one, "dequeue") == ("ok", None, None)
    assert broker.asked[-1][0] == "get", "nothing came out, so nothing is acknowledged"


@pytest.mark.parametrize(
    ("failure", "kind", "error"),
    [
        (ChannelRefusal("nacked"), "info", "nacked"),
        (ChannelRefusal("unroutable"), "fail", "unroutable"),
        (ChannelRefusal("error-404"), "info", "error-404"),
        (TimeoutError(), "info", "timeout"),
        (ConnectionError(), "info", "connection-lost"),
    ],
)
def test_only_what_was_given_back_was_certainly_not_put_in(
    broker: Broker, failure: Exception, kind: str, error: str
) -> None:
    broker.failures["publish"] = failure
    assert do(client(), "enqueue", 1) == (kind, None, error)


@pytest.mark.parametrize("is_lent", [True, False])
@pytest.mark.parametrize("f", ["dequeue", "drain"])
def test_a_failed_taking_has_an_unknown_outcome(broker: Broker, f: str, is_lent: bool) -> None:
    broker.failures["get"] = ConnectionError()
    assert do(client(is_lent=is_lent), f) == ("info", None, "connection-lost")


def test_without_a_channel_nothing_happened_and_the_next_member_is_asked_next(broker: Broker) -> None:
    one = client()
    broker.is_down = True
    assert do(one, "enqueue", 1) == ("fail", None, "not-connected")
    assert do(one, "dequeue") == ("fail", None, "not-connected")
    broker.is_down = False
    assert one.invoke(Operation(0, "enqueue", "queue-0", 1)).node == "athens"


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(channel_module, "CLIENT_PORT", listener.getsockname()[1])
        yield listener


def test_a_closed_port_and_a_silent_server_are_no_connection(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "_FAREWELL_S", PATIENT_S)
    # Where a machine is slow, the time is over before there is a connection on which the server could keep silent.
    with pytest.raises(OSError, match="ConnectionOpenAborted|AMQPConnection"):
        QueueChannel("127.0.0.1", HASTY_S, confirms=True)
    listener.close()
    with pytest.raises(OSError, match="AMQPConnection"):
        QueueChannel("127.0.0.1", PATIENT_S, confirms=True)


class AnsweringLoop:
    """Answers whatever is asked with what the script says, as pika's loop would by its callbacks."""

    def __init__(self, channel: QueueChannel, script: list[Any]) -> None:
        self.channel, self.script = channel, script

    def start(self) -> None:
        if self.script:
            self.channel._answers.append(self.script.pop(0))

    def stop(self) -> None: ...

    def call_later(self, delay_s: float, callback: Any) -> None: ...

    def remove_timeout(self, timer: None) -> None: ...


def confirmed(*script: Any) -> QueueChannel:
    """A channel on which these answers come."""
    channel = QueueChannel.__new__(QueueChannel)
    channel._answers, channel._confirms, channel._timeout_s = [], True, PATIENT_S if script else 0.01
    channel._errors, channel._specification, channel._persistent = pika.exceptions, pika.spec, None
    channel._channel = SimpleNamespace(basic_publish=lambda *_, mandatory: None)
    channel._connection = SimpleNamespace(ioloop=AnsweringLoop(channel, list(script)))
    return channel


ACK = SimpleNamespace(method=pika.spec.Basic.Ack(1))
NACK = SimpleNamespace(method=pika.spec.Basic.Nack(1))


def test_a_publication_is_done_when_it_is_confirmed_and_not_before() -> None:
    confirmed(ACK).publish("queue-0", b"1")
    with pytest.raises(ChannelRefusal, match="nacked"):
        confirmed(NACK).publish("queue-0", b"1")
    with pytest.raises(ChannelRefusal, match="unroutable"):
        confirmed(channel_module._RETURNED, ACK).publish("queue-0", b"1")
    with pytest.raises(TimeoutError):
        confirmed().publish("queue-0", b"1")
    with pytest.raises(ConnectionError):
        confirmed(ConnectionError("gone")).publish("queue-0", b"1")


def test_what_pika_says_becomes_a_refusal_or_a_lost_connection() -> None:
    channel = confirmed()
    refusal = channel._translated(pika.exceptions.ChannelClosedByBroker(404, "NOT_FOUND"))
    assert isinstance(refusal, ChannelRefusal) and str(refusal) == "error-404"
    assert isinstance(channel._translated(pika.exceptions.StreamLostError("reset")), ConnectionError)


PLACE = StorePlace(
    node="athens",
    addresses={"athens": "10.0.0.1", "byzantium": "10.0.0.2"},
    folder="/athens",
    options={name: option.default for name, option in RabbitMQ.options.items()},
)


def test_members_find_each_other_by_address_and_share_a_secret() -> None:
    store = RabbitMQ()
    store.password = "a-secret"
    assert isinstance(store, HostedStore)
    assert store.up_port != store.client_port, "members killed together let clients in only when all are up"
    files = store.files(PLACE)
    assert "cluster_formation.classic_config.nodes.2 = rabbit@10.0.0.2\n" in files["rabbitmq.conf"]
    assert "cluster_partition_handling = pause_minority\n" in files["rabbitmq.conf"]
    assert files[".erlang.cookie"] == "a-secret" and "chmod 400 .erlang.cookie" in store.preparation(PLACE)
    assert "default_pass = a-secret\n" in files["rabbitmq.conf"]
    command = store.command(PLACE)
    assert {"HOME=/athens", "ERL_EPMD_ADDRESS=10.0.0.1", "RABBITMQ_MNESIA_BASE=/athens/data"} <= set(command)


def test_the_leader_of_the_first_queue_serves_once_all_see_each_other_and_name_it() -> None:
    def told(node: str, leader: str | None, seen: int = 2) -> NodeStatus:
        queues = [{"name": "queue-1", "node": "rabbit@z"}, {"name": "queue-0", "node": f"rabbit@{leader}"}]
        return status_from(node, queues if leader else [], seen)

    serving = RabbitMQ().serving
    assert told("a", "a").role == "leader" and told("b", "a").role == "follower"
    assert serving({"a": told("a", "a"), "b": told("b", "a")}) == "a leads"
    assert serving({"a": told("a", None), "b": told("b", None)}) == "all members see each other"
    assert serving({"a": told("a", "a"), "b": told("b", "b")}) is None
    assert serving({"a": told("a", "b", seen=1), "b": told("b", "b")}) is None
    assert serving({"a": None, "b": told("b", "b")}) is None
    assert serving({"a": told("a", "c"), "b": told("b", "c")}) is None
