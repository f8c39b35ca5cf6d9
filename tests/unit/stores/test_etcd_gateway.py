"""The etcd client against a gateway of the test's own: what it says on the wire, and what it makes of each failure."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
from patience import HASTY_S, PATIENT_S
from scripted_etcd import HOST, Gateway, text

from faultline.harness.errors import UsageError
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.system import HostedStore, StorePlace
from faultline.registry import resolve
from faultline.systems_under_test.stores.client import FOREIGN_ANSWER
from faultline.systems_under_test.stores.etcd import gateway
from faultline.systems_under_test.stores.etcd.gateway import EtcdClient, EtcdRefusal
from faultline.systems_under_test.stores.etcd.system import Etcd


def new_client(timeout_s: float = PATIENT_S) -> EtcdClient:
    return EtcdClient(lambda node: HOST, ("athens", "byzantium"), "athens", serializable=False, timeout_s=timeout_s)


@pytest.fixture
def client(etcd: Gateway) -> Iterator[EtcdClient]:
    client = new_client()
    yield client
    client.close()


def do(client: EtcdClient, f: str, value: Any = None) -> tuple[str, Any, str | None]:
    outcome = client.invoke(Operation(0, f, "k1", value))
    return outcome.kind, outcome.value, outcome.error


def test_values_go_in_and_out_and_absence_is_nothing(client: EtcdClient, etcd: Gateway) -> None:
    assert do(client, "read") == ("ok", None, None)
    assert do(client, "write", 7) == ("ok", 7, None)
    assert do(client, "read") == ("ok", 7, None)
    assert text(etcd.asked[1][1]["key"]) == "k1" and text(etcd.asked[1][1]["value"]) == "7"
    assert etcd.asked[0][1]["serializable"] is False


def test_a_compare_and_set_succeeds_only_where_etcd_says_so(client: EtcdClient) -> None:
    do(client, "write", 1)
    assert do(client, "cas", [1, 2]) == ("ok", [1, 2], None)
    assert do(client, "cas", [1, 3]) == ("fail", None, CAS_MISMATCH)
    assert do(client, "read") == ("ok", 2, None)


def test_a_connection_that_etcd_has_closed_is_not_asked_over(client: EtcdClient) -> None:
    assert do(client, "write", 7)[0] == "ok" and client.is_connected
    assert client._connection is not None and client._connection.sock is not None
    client._connection.sock.shutdown(socket.SHUT_RD)
    assert not client.is_connected
    assert do(client, "read") == ("ok", 7, None)


@pytest.mark.parametrize(
    ("mood", "error"),
    [("hang up", "connection-lost"), ("silence", "timeout"), ("503", "http-503")],
)
def test_a_change_that_was_sent_is_unknown_and_a_read_that_failed_is_nothing(
    etcd: Gateway, mood: str, error: str
) -> None:
    etcd.mood = mood
    client = new_client(HASTY_S if mood == "silence" else PATIENT_S)
    assert do(client, "write", 1) == ("info", None, error)
    assert do(client, "cas", [1, 2]) == ("info", None, error)
    assert do(client, "read") == ("fail", None, error)
    client.close()


FOREIGN = [
    b"{",
    b"",
    b"{}",
    b"null",
    b"[]",
    b'"ok"',
    b'{"succeeded": true}',
    b'{"kvs": [{"value": "Nw=="}]}',
    b'{"header": {}}',
    b'{"header": null, "succeeded": true}',
    b'{"header": {"revision": "x"}}',
    b'{"header": "7"}',
    b"[" * 5_000,
    b'{"header": "\xff"}',
    b"<html>It works!</html>",
]


@pytest.mark.parametrize("content", FOREIGN, ids=range(len(FOREIGN)))
@pytest.mark.parametrize(("f", "value"), [("read", None), ("write", 1), ("cas", [1, 2])])
def test_an_answer_that_etcd_does_not_give_says_nothing_of_any_operation(
    client: EtcdClient, etcd: Gateway, content: bytes, f: str, value: Any
) -> None:
    etcd.says = content
    assert do(client, f, value) == ("info", None, FOREIGN_ANSWER)
    etcd.says = None
    assert client.invoke(Operation(0, "read", "k1")).node == "byzantium", "another member is asked from then on"


def test_an_answer_of_etcd_that_is_no_result_is_an_error_with_its_status(etcd: Gateway) -> None:
    etcd.mood = "503"
    connection = HTTPConnection(HOST, etcd.port)
    with pytest.raises(EtcdRefusal, match="http-503"):
        gateway.ask(connection, "/v3/kv/put", {})
    connection.close()


def test_what_could_not_be_sent_did_not_happen(monkeypatch: pytest.MonkeyPatch, client: EtcdClient) -> None:
    with socket.create_server((HOST, 0)) as listener:
        monkeypatch.setattr(gateway, "CLIENT_PORT", listener.getsockname()[1])
    assert do(client, "write", 1) == ("fail", None, "not-connected")


def test_a_client_goes_to_the_next_member_when_one_fails(client: EtcdClient, etcd: Gateway) -> None:
    assert client.invoke(Operation(0, "read", "k1")).node == "athens"
    etcd.mood = "503"
    assert client.invoke(Operation(0, "read", "k1")).node == "athens"
    etcd.mood = ""
    assert client.invoke(Operation(0, "read", "k1")).node == "byzantium"


def test_etcd_fulfils_the_protocol_and_its_command_names_all_members() -> None:
    store = Etcd()
    assert isinstance(store, HostedStore)
    options = {name: option.default for name, option in store.options.items()}
    addresses = {"athens": "10.0.0.1", "cyrene": "10.0.0.2"}
    place = StorePlace(node="athens", addresses=addresses, folder="/athens", options=options)
    command = store.command(place)
    assert "--initial-cluster=athens=http://10.0.0.1:2380,cyrene=http://10.0.0.2:2380" in command
    assert "--data-dir=/athens/data" in command and "--heartbeat-interval=100" in command


def test_etcd_is_refused_where_there_are_no_hosts() -> None:
    request = RunRequest(system="etcd", faults=())
    parts = resolve(request)
    plan: Plan = make_plan(request, parts)
    with pytest.raises(UsageError, match="etcd is a program of its own and runs on hosts only") as caught:
        run_simulated(plan, parts)
    assert "--hosts namespaces:3" in caught.value.next_step
