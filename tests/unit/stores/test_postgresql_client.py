"""The PostgreSQL client over sessions of the test's own: what it asks for, and what it makes of each failure."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import psycopg
import pytest
from patience import HASTY_S, PATIENT_S
from psycopg import errors

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH
from faultline.harness.system import HostedStore, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.postgresql import client as client_module
from faultline.systems_under_test.stores.postgresql import options as options_module
from faultline.systems_under_test.stores.postgresql import session as session_module
from faultline.systems_under_test.stores.postgresql.client import NotCommitted, PostgresClient, ReadsAnywhere
from faultline.systems_under_test.stores.postgresql.session import Session
from faultline.systems_under_test.stores.postgresql.statements import STATEMENTS
from faultline.systems_under_test.stores.postgresql.system import PostgreSQL


class Server:
    """A scripted server: objects in a dictionary, and failures of the next statements of a kind."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.said: list[str] = []
        self.failures: list[tuple[str, Exception]] = []
        self.commit_tag = "COMMIT"
        self.is_standby = False
        self.is_down = False
        self.doubts = False

    def hear(self, statement: str) -> None:
        self.said.append(statement)
        if self.failures and self.failures[0][0] in statement:
            raise self.failures.pop(0)[1]


class ScriptedSession(Session):
    """A session with `server` whose statements never leave the process."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.connection = SimpleNamespace(closed=False)  # type: ignore[assignment]  # a stand-in
        self.expired = False
        self.unreplicated = False

    def is_open(self) -> bool:
        return not self.connection.closed

    def rows(self, statement: str, *values: Any) -> list[Any]:
        self.server.hear(statement)
        if "pg_is_in_recovery" in statement:
            return [[self.server.is_standby]]
        found = self.server.objects.get(values[0])
        return [[found]] if "coalesce" in statement else [[found]] if values[0] in self.server.objects else []

    def changes(self, statement: str, *values: Any) -> int:
        self.server.hear(statement)
        if statement.lstrip().startswith("INSERT INTO objects"):
            self.server.objects[values[0]] = values[1].obj
            return 1
        return 0

    def tag(self, command: str) -> str:
        self.server.hear(command)
        self.unreplicated |= command == "COMMIT" and self.server.doubts
        return self.server.commit_tag if command == "COMMIT" else command

    def close(self) -> None:
        self.connection.closed = True  # type: ignore[misc]  # a stand-in


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Server]:
    servers = {"athens": Server(), "byzantium": Server()}

    def open_session(address: str, timeout_s: float, password: str, isolation: str) -> ScriptedSession:
        assert isolation == "repeatable read"
        if servers[address].is_down:
            raise ConnectionRefusedError
        return ScriptedSession(servers[address])

    monkeypatch.setattr(client_module, "open_session", open_session)
    return servers


def client_at(node: str, *, primary_only: bool = True) -> PostgresClient:
    return PostgresClient(
        lambda name: name,
        ("athens", "byzantium"),
        node,
        isolation="repeatable read",
        primary_only=primary_only,
        timeout_s=PATIENT_S,
    )


@pytest.fixture
def client(servers: dict[str, Server]) -> Iterator[PostgresClient]:
    client = client_at("athens")
    yield client
    client.close()


def do(client: PostgresClient, f: str, value: Any = None, key: str | None = "k1") -> tuple[str, Any, str | None]:
    outcome = client.invoke(Operation(0, f, key, value))
    return outcome.kind, outcome.value, outcome.error


TRANSACTION = [["r", "a", None], ["append", "b", 1]]


def test_values_go_in_and_out(client: PostgresClient) -> None:
    assert do(client, "read") == ("ok", None, None)
    assert do(client, "write", 7) == ("ok", 7, None)
    assert do(client, "read") == ("ok", 7, None)
    assert do(client, "cas", [1, 2]) == ("fail", None, CAS_MISMATCH)
    assert do(client, "transfer", {"from": "x", "to": "y", "amount": 1}) == ("fail", None, "insufficient-balance")


def test_a_session_whose_server_has_hung_up_is_not_open() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = SimpleNamespace(closed=False, fileno=ours.fileno, add_notice_handler=lambda _: None)
        session = Session(connection)  # type: ignore[arg-type]  # a stand-in
        assert session.is_open()
        theirs.close()
        assert not session.is_open()


def test_a_client_whose_server_has_hung_up_connects_again_before_it_asks(client: PostgresClient) -> None:
    assert do(client, "write", 7)[0] == "ok" and client.is_connected
    assert client._connection is not None
    client._connection.close()
    assert not client.is_connected
    assert do(client, "read") == ("ok", 7, None)


def test_a_transaction_is_its_programs_statements_between_begin_and_commit(
    client: PostgresClient, servers: dict[str, Server]
) -> None:
    servers["athens"].objects["a"] = [9]
    assert do(client, "txn", TRANSACTION, key=None) == ("ok", [["r", "a", [9]], ["append", "b", 1]], None)
    said = [statement.split()[0] for statement in servers["athens"].said[1:]]
    assert said == ["BEGIN", "SELECT", "SELECT", "INSERT", "COMMIT"]
    assert do(client, "transfer", {"from": "x", "to": "y", "amount": 9, "opening": 5}, key=None)[2] == (
        "insufficient-balance"
    )
    assert servers["athens"].said[-1] == "ROLLBACK"


@pytest.mark.parametrize("refusal", [errors.SerializationFailure(), errors.DeadlockDetected()])
@pytest.mark.parametrize("where", ["INSERT", "COMMIT"])
def test_what_postgresql_rolled_back_is_tried_again_and_then_certainly_did_not_happen(
    client: PostgresClient, servers: dict[str, Server], refusal: Exception, where: str
) -> None:
    servers["athens"].failures = [(where, refusal)] * 2
    assert do(client, "txn", TRANSACTION, key=None)[0] == "ok"
    assert servers["athens"].said.count("BEGIN") == 3
    servers["athens"].failures = [(where, refusal)] * 6
    name = "serialization-failure" if isinstance(refusal, errors.SerializationFailure) else "deadlock-detected"
    assert do(client, "txn", TRANSACTION, key=None) == ("fail", None, name)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (psycopg.OperationalError("the connection is lost"), "connection-lost"),
        (errors.AdminShutdown(), "admin-shutdown"),
        (ConnectionResetError(), "connection-lost"),
    ],
)
def test_what_was_asked_to_commit_is_unknown_and_what_was_not_did_not_happen(
    client: PostgresClient, servers: dict[str, Server], failure: Exception, error: str
) -> None:
    servers["athens"].failures = [("INSERT", failure)]
    assert do(client, "write", 1) == ("info", None, error)
    servers["byzantium"].failures = [("COMMIT", failure)]
    assert do(client, "txn", TRANSACTION, key=None) == ("info", None, error)
    servers["athens"].failures = [("SELECT coalesce", failure)]
    assert do(client, "read") == ("fail", None, error)
    if isinstance(failure, psycopg.Error):
        servers["byzantium"].failures = [("INSERT", failure)]
        assert do(client, "txn", TRANSACTION, key=None) == ("fail", None, "not-committed")


def test_a_commit_that_is_answered_with_rollback_did_not_happen(
    client: PostgresClient, servers: dict[str, Server]
) -> None:
    servers["athens"].commit_tag = "ROLLBACK"
    with pytest.raises(NotCommitted, match="answered with ROLLBACK"):
        client.perform(ScriptedSession(servers["athens"]), Operation(0, "txn", None, TRANSACTION), "athens")
    assert do(client, "txn", TRANSACTION, key=None) == ("fail", None, "not-committed")


def test_a_commit_that_no_standby_confirmed_is_not_taken_for_certain(
    client: PostgresClient, servers: dict[str, Server]
) -> None:
    servers["athens"].doubts = True
    assert do(client, "txn", TRANSACTION, key=None) == ("info", None, "not-replicated")
    servers["athens"].doubts = False
    assert do(client, "txn", TRANSACTION, key=None)[0] == "ok"


def test_a_server_that_became_a_standby_refused_for_certain(client: PostgresClient, servers: dict[str, Server]) -> None:
    servers["athens"].failures = [("INSERT", errors.ReadOnlySqlTransaction())]
    assert do(client, "write", 1) == ("fail", None, "read-only-sql-transaction")


def test_a_standby_is_passed_over_by_who_wants_the_primary_and_taken_by_who_only_reads(
    servers: dict[str, Server],
) -> None:
    servers["athens"].is_standby = True
    changing, reading = client_at("athens"), client_at("athens", primary_only=False)
    assert changing.invoke(Operation(0, "write", "k1", 1)).node == "byzantium"
    either = ReadsAnywhere(changing, reading)
    assert either.invoke(Operation(0, "read", "k1")).node == "athens"
    assert either.invoke(Operation(0, "txn", None, [["r", "k1", None]])).node == "athens"
    assert either.invoke(Operation(0, "txn", None, TRANSACTION)).node == "byzantium"
    either.close()


def test_without_any_primary_nothing_happened(client: PostgresClient, servers: dict[str, Server]) -> None:
    servers["athens"].is_standby, servers["byzantium"].is_down = True, True
    assert do(client, "write", 1) == ("fail", None, "not-connected")


class Connected:
    """As much of psycopg's connection as a session needs: one end of a pair of sockets."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.handlers: list[Any] = []

    def fileno(self) -> int:
        return self.ours.fileno()

    def add_notice_handler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


def test_a_deadline_ends_a_connection_that_keeps_silent_and_no_other() -> None:
    connection = Connected()
    session = Session(connection)  # type: ignore[arg-type]  # a stand-in
    connection.ours.settimeout(PATIENT_S)
    with session.deadline(100 * PATIENT_S):
        connection.theirs.sendall(b"answer")
        assert connection.ours.recv(6) == b"answer"
    assert not session.expired
    with session.deadline(HASTY_S):
        assert connection.ours.recv(1) == b"", "the socket was shut down while it waited"
    assert session.expired
    session.close()


def test_a_session_hears_the_warning_that_no_standby_confirmed() -> None:
    connection = Connected()
    session = Session(connection)  # type: ignore[arg-type]  # a stand-in
    connection.handlers[0](SimpleNamespace(message_primary="relation exists, skipping"))
    assert not session.unreplicated
    warning = "canceling wait for synchronous replication due to user request"
    connection.handlers[0](SimpleNamespace(message_primary=warning))
    assert session.unreplicated
    session.close()


def test_a_client_whose_deadline_ended_the_connection_says_timeout(
    client: PostgresClient, servers: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(session: ScriptedSession, operation: Operation) -> None:
        session.expired = True
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setitem(STATEMENTS, "write", slow)  # type: ignore[arg-type]  # a stand-in
    assert do(client, "write", 1) == ("info", None, "timeout")


PLACES = {
    name: StorePlace(
        node=name,
        addresses={"athens": "10.0.0.1", "byzantium": "10.0.0.2", "cyrene": "10.0.0.3"},
        folder=f"/{name}",
        options={name: option.default for name, option in PostgreSQL.options.items()},
    )
    for name in ("athens", "cyrene")
}


def test_the_first_member_makes_the_database_and_the_others_copy_it() -> None:
    store = PostgreSQL()
    assert isinstance(store, HostedStore) and set(STATEMENTS) < set(store.functions)
    assert options_module.PORT == session_module.PORT
    primary, standby = store.files(PLACES["athens"])["start.sh"], store.files(PLACES["cyrene"])["start.sh"]
    assert "initdb -D /athens/data/postgresql" in store.preparation(PLACES["athens"])
    assert "initdb" not in store.preparation(PLACES["cyrene"])
    assert "pg_basebackup" in standby and "host=10.0.0.1 user=postgres application_name=cyrene" in standby
    assert "pg_basebackup" not in primary and "ANY 1 (byzantium,cyrene)" in primary


def test_without_synchronous_replication_no_standby_has_to_confirm() -> None:

    place = PLACES["athens"]
    alone = msgspec.structs.replace(place, options={**place.options, "synchronous": "off"})
    assert "synchronous_standby_names=''" in PostgreSQL().files(alone)["start.sh"]


def test_a_primary_serves_once_all_others_stream_from_it() -> None:
    def leader(streaming: int) -> NodeStatus:
        return NodeStatus(role="leader", generation=1, detail={"streaming": streaming})

    standby = NodeStatus(role="standby", generation=1, detail={"streaming": 0})
    store = PostgreSQL()
    assert store.serving({"athens": leader(1), "byzantium": standby, "cyrene": None}) is None
    assert store.serving({"athens": leader(2), "byzantium": standby, "cyrene": standby}) == "athens leads"
    assert store.serving({"athens": leader(0)}) == "athens leads"
