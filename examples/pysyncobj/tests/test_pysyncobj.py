"""Tests of the adapter with the store's answers. A stand-in for PySyncObj applies commands at once."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from registers import client as client_module
from registers.client import RegistersClient
from registers.system import PySyncObj

from faultline import NOT_CONNECTED, HostedStore, Operation, Outcome, StorePlace

ADDRESS = "127.0.0.1"
CODES = {"full": 1, "leaderless": 2, "deposed": 5, "late": "Timeout"}
"""The keys that the stand-in refuses, with the errors."""


class Refused(Exception):
    def __init__(self, code: object) -> None:
        self.errorCode = code


def replicated(method: Any) -> Any:
    def applied(self: Any, key: str, *arguments: object, **how: Any) -> Any:
        assert how == {"sync": True, "timeout": 2.0}
        if key in CODES:
            raise Refused(CODES[key])
        return method(self, key, *arguments)

    return applied


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The store's own server, on a free port, with the stand-in for PySyncObj."""
    stand_in = ModuleType("pysyncobj")
    vars(stand_in).update(
        FAIL_REASON=SimpleNamespace(QUEUE_FULL=1, MISSING_LEADER=2, LEADER_CHANGED=5),
        SyncObj=object, SyncObjConf=object, SyncObjConsumer=object, SyncObjException=Refused, replicated=replicated,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pysyncobj", stand_in)
    monkeypatch.delitem(sys.modules, "registers.server", raising=False)
    module = importlib.import_module("registers.server")
    raft = SimpleNamespace(getStatus=lambda: {"state": 2, "raft_term": 7})
    with module.Server((ADDRESS, 0), module.Registers(), raft) as serving:
        monkeypatch.setattr(client_module, "CLIENT_PORT", serving.server_address[1])
        threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
        yield serving
        serving.shutdown()


@pytest.fixture
def client(server: Any) -> Iterator[RegistersClient]:
    addresses = {"athens": server.server_address[0], "byzantium": server.server_address[0]}
    client = RegistersClient(addresses.__getitem__, list(addresses), "athens")
    yield client
    client.close()


def asked(client: RegistersClient, f: str, value: object = None, key: str = "k") -> Outcome:
    return client.invoke(Operation(0, f, key, value))


def test_it_is_a_store_with_a_command_for_each_member() -> None:
    store = PySyncObj()
    assert isinstance(store, HostedStore)
    addresses = {"athens": "10.0.0.1", "byzantium": "10.0.0.2"}
    place = StorePlace(
        node="byzantium", addresses=addresses, folder="/f", options={"journal": "on", "python": "python3"}
    )
    assert store.command(place) == ["python3", "server.py", "--journal", "/f/data/journal", "10.0.0.2", "10.0.0.1"]
    assert "SyncObj" in store.files(place)["server.py"]


def test_registers_are_written_read_and_compared(client: RegistersClient) -> None:
    assert asked(client, "read").value is None
    assert asked(client, "write", 3).kind == "ok"
    assert asked(client, "cas", [3, 4]).kind == "ok"
    assert asked(client, "cas", [3, 5]).kind == "fail"
    assert asked(client, "read") == Outcome("ok", 4, None, "athens")


@pytest.mark.parametrize(
    ("key", "kind", "error"),
    [
        ("full", "fail", "queue-full"),
        ("leaderless", "fail", "missing-leader"),
        ("deposed", "info", "leader-changed"),
        ("late", "info", "timeout"),
    ],
)
def test_only_what_never_came_into_a_log_is_called_a_failure(
    client: RegistersClient, key: str, kind: str, error: str
) -> None:
    told = asked(client, "write", 1, key)
    assert (told.kind, told.error) == (kind, error)
    assert asked(client, "read", key=key).kind == "fail", "a read changes nothing"


def test_an_answer_that_is_none_of_the_stores_proves_nothing(
    client: RegistersClient, monkeypatch: pytest.MonkeyPatch, server: Any
) -> None:
    monkeypatch.setattr(server.RequestHandlerClass, "answer", lambda *_: ["hello"])
    assert asked(client, "read").kind == "info"


def test_a_connection_that_the_member_has_closed_is_not_asked_over(client: RegistersClient) -> None:
    assert asked(client, "write", 1).kind == "ok" and client.is_connected
    line = client._connection
    assert line is not None
    line._socket.shutdown(2)
    assert not line.is_open()
    assert asked(client, "read").value == 1, "over a new connection"


def test_a_member_that_is_down_is_a_definite_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CLIENT_PORT", 1)
    told = asked(RegistersClient({"athens": ADDRESS}.__getitem__, ["athens"], "athens"), "write", 1)
    assert (told.kind, told.error) == ("fail", NOT_CONNECTED)


@pytest.mark.usefixtures("server")
def test_a_member_is_asked_for_its_role() -> None:
    status = PySyncObj().status(ADDRESS, 1.0)
    assert (status.role, status.generation) == ("leader", 7)
