"""The Galera client over sessions of the test's own: what it asks for, and what it makes of each failure."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pymysql
import pytest
from patience import PATIENT_S

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH
from faultline.harness.system import HostedStore, StorePlace
from faultline.harness.world.ports import READY, NodeStatus
from faultline.systems_under_test.stores.galera import client as client_module
from faultline.systems_under_test.stores.galera.client import (
    FUNCTIONS,
    GaleraClient,
    GaleraSession,
    NothingCommitted,
)
from faultline.systems_under_test.stores.galera.system import Galera


class Server:
    """A scripted member: rows in a dictionary, and failures of the next statements of a kind."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self.said: list[str] = []
        self.failures: list[tuple[str, Exception]] = []
        self.is_down = False

    def hear(self, statement: str) -> None:
        self.said.append(statement)
        if self.failures and self.failures[0][0] in statement:
            raise self.failures.pop(0)[1]


class ScriptedSession(GaleraSession):
    def __init__(self, server: Server) -> None:
        self.server = server
        self.connection = SimpleNamespace(open=True, _force_close=lambda: None)

    def is_open(self) -> bool:
        return bool(self.connection.open)

    def rows(self, statement: str, *values: Any) -> list[Any]:
        self.server.hear(statement)
        return [(self.server.rows[values[0]],)] if "objects" in statement and values[0] in self.server.rows else []

    def changes(self, statement: str, *values: Any) -> int:
        self.server.hear(statement)
        if "INSERT INTO objects" in statement:
            self.server.rows[values[0]] = values[1]
            return 1
        return 0


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    server = Server()

    def open_session(address: str, timeout_s: float, settings: dict[str, str], password: str) -> ScriptedSession:
        assert settings == {"wsrep_sync_wait": "7"}
        if server.is_down:
            raise pymysql.OperationalError(2003, "Can't connect")
        return ScriptedSession(server)

    monkeypatch.setattr(client_module, "open_session", open_session)
    return server


@pytest.fixture
def client(server: Server) -> Iterator[GaleraClient]:
    client = GaleraClient(
        lambda node: node, ("athens", "byzantium"), "athens", settings={"wsrep_sync_wait": "7"}, timeout_s=PATIENT_S
    )
    yield client
    client.close()


def do(client: GaleraClient, f: str, value: Any = None, key: str | None = "k1") -> tuple[str, Any, str | None]:
    outcome = client.invoke(Operation(0, f, key, value))
    return outcome.kind, outcome.value, outcome.error


TRANSACTION = [["r", "a", None], ["append", "b", 1]]
DEADLOCK = pymysql.OperationalError(1213, "Deadlock found when trying to get lock; try restarting transaction")
LOST = pymysql.OperationalError(2013, "Lost connection to MySQL server during query")


def test_values_go_in_and_out(client: GaleraClient) -> None:
    assert do(client, "read") == ("ok", None, None)
    assert do(client, "write", 7) == ("ok", 7, None)
    assert do(client, "read") == ("ok", 7, None)
    assert do(client, "cas", [1, 2]) == ("fail", None, CAS_MISMATCH)


def test_a_session_whose_member_has_hung_up_is_not_open() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        session = GaleraSession(SimpleNamespace(open=True, _sock=ours))
        assert session.is_open()
        theirs.close()
        assert not session.is_open()


def test_a_client_whose_member_has_hung_up_connects_again_before_it_asks(client: GaleraClient) -> None:
    assert do(client, "write", 7)[0] == "ok" and client.is_connected
    assert client._connection is not None
    client._connection.connection.open = False
    assert not client.is_connected
    assert do(client, "read") == ("ok", 7, None)


def test_a_transaction_is_its_programs_statements_between_begin_and_commit(
    client: GaleraClient, server: Server
) -> None:
    server.rows["a"] = "[9]"
    assert do(client, "txn", TRANSACTION, key=None) == ("ok", [["r", "a", [9]], ["append", "b", 1]], None)
    assert [said.split()[0] for said in server.said] == ["USE", "BEGIN", "SELECT", "SELECT", "INSERT", "COMMIT"]
    poor = {"from": "x", "to": "y", "amount": 9, "opening": 5}
    assert do(client, "transfer", poor, key=None) == ("fail", None, "insufficient-balance")
    assert server.said[-1] == "ROLLBACK"


@pytest.mark.parametrize("where", ["INSERT", "COMMIT"])
def test_what_was_rolled_back_is_tried_again_and_then_certainly_did_not_happen(
    client: GaleraClient, server: Server, where: str
) -> None:
    server.failures = [(where, DEADLOCK)] * 2
    assert do(client, "txn", TRANSACTION, key=None)[0] == "ok"
    assert server.said.count("BEGIN") == 3
    server.failures = [(where, DEADLOCK)] * 6
    assert do(client, "txn", TRANSACTION, key=None) == ("fail", None, "deadlock")


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (LOST, "connection-lost"),
        (pymysql.OperationalError(2013, "Lost connection (timed out)"), "timeout"),
        (pymysql.OperationalError(1205, "Lock wait timeout exceeded"), "error-1205"),
        (ConnectionResetError(), "connection-lost"),
    ],
)
def test_what_was_asked_to_commit_is_unknown_and_a_read_that_failed_is_nothing(
    client: GaleraClient, server: Server, failure: Exception, error: str
) -> None:
    server.failures = [("INSERT", failure)]
    assert do(client, "write", 1) == ("info", None, error)
    server.failures = [("COMMIT", failure)]
    assert do(client, "txn", TRANSACTION, key=None) == ("info", None, error)
    server.failures = [("SELECT", failure)]
    assert do(client, "read") == ("fail", None, error)


def test_a_transaction_that_was_never_asked_to_commit_did_not_happen(client: GaleraClient, server: Server) -> None:
    server.failures = [("INSERT", LOST)]
    with pytest.raises(NothingCommitted, match="Lost connection"):
        client.perform(ScriptedSession(server), Operation(0, "txn", None, TRANSACTION), "athens")
    server.failures = [("INSERT", LOST)]
    assert do(client, "txn", TRANSACTION, key=None) == ("fail", None, "not-committed")


def test_a_member_outside_the_primary_component_refuses_for_certain(client: GaleraClient, server: Server) -> None:
    server.failures = [("INSERT", pymysql.OperationalError(1047, "WSREP has not yet prepared node"))]
    assert do(client, "write", 1) == ("fail", None, "not-ready")
    server.is_down = True
    assert do(client, "write", 1) == ("fail", None, "not-connected")


PLACE = StorePlace(
    node="athens",
    addresses={"athens": "10.0.0.1", "byzantium": "10.0.0.2"},
    folder="/athens",
    options={name: option.default for name, option in Galera.options.items()},
)


def test_the_first_member_makes_the_cluster_once_and_all_join_it_later() -> None:
    store = Galera()
    assert isinstance(store, HostedStore) and set(store.functions) == set(FUNCTIONS)
    files = store.files(PLACE)
    assert "bootstrap" in files and "rm bootstrap" in files["start.sh"]
    assert "gcomm://10.0.0.1,10.0.0.2" in files["start.sh"]
    assert "bootstrap" not in store.files(msgspec.structs.replace(PLACE, node="byzantium"))


def test_all_members_serve_once_they_have_found_each_other() -> None:
    def ready(size: int) -> NodeStatus:
        return NodeStatus(role=READY, detail={"size": size})

    joining = NodeStatus(role="joining", detail={"size": 2})
    serving = Galera().serving
    assert serving({"athens": ready(2), "byzantium": ready(2)}) == "all members are ready"
    assert serving({"athens": ready(1), "byzantium": ready(1)}) is None
    assert serving({"athens": ready(2), "byzantium": joining}) is None
    assert serving({"athens": ready(2), "byzantium": None}) is None
