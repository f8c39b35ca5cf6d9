"""The ZooKeeper client over sessions of the test's own: what it asks for, and what it makes of each failure."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import msgspec
import pyspark
import pytest
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from patience import PATIENT_S

from faultline.harness.errors import UsageError
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH
from faultline.harness.system import HostedStore, StorePlace
from faultline.harness.world.hosts.store_cluster import StoreCluster
from faultline.systems_under_test.stores.lock_owner import LOCK_FUNCTIONS
from faultline.systems_under_test.stores.zookeeper import client as client_module
from faultline.systems_under_test.stores.zookeeper import system as system_module
from faultline.systems_under_test.stores.zookeeper.client import BAD_VERSION, FUNCTIONS, ZooKeeperClient
from faultline.systems_under_test.stores.zookeeper.system import ZooKeeper
from faultline.systems_under_test.stores.zookeeper.tree import ReadMode

HOST = "127.0.0.1"


class Answer:
    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work

    def get(self, timeout: float) -> Any:
        assert 0 < timeout <= PATIENT_S
        return self._work()


class Tree:
    """A ZooKeeper without a network: data and version of each node, and how often it was asked to sync."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes, int]] = {"/faultline": (b"", 0)}
        self.asked: list[str] = []
        self.failure: Exception | None = None
        self.fails_on = ""
        self.before: dict[str, Callable[[], None]] = {}

    def do(self, name: str, work: Callable[[], Any]) -> Answer:
        def ask() -> Any:
            self.asked.append(name)
            self.before.pop(name, lambda: None)()
            if self.failure is not None and name == self.fails_on:
                raise self.failure
            return work()

        return Answer(ask)

    def get(self, path: str) -> tuple[bytes, Any]:
        if path not in self.nodes:
            raise NoNodeError
        data, version = self.nodes[path]
        return data, SimpleNamespace(version=version)

    def create(self, path: str, data: bytes, sequence: bool) -> str:
        if path.rpartition("/")[0] not in self.nodes:
            raise NoNodeError
        if sequence:
            path += f"{len(self.children(path.rpartition('/')[0])):010}"
        if path in self.nodes:
            raise NodeExistsError
        self.nodes[path] = (data, 0)
        return path

    def put(self, path: str, data: bytes, version: int) -> None:
        if path not in self.nodes:
            raise NoNodeError
        self.check(path, version)
        self.nodes[path] = (data, self.nodes[path][1] + 1)

    def check(self, path: str, version: int) -> None:
        if path not in self.nodes:
            raise NoNodeError
        if version not in (-1, self.nodes[path][1]):
            raise BadVersionError

    def children(self, path: str) -> list[str]:
        return [node[len(path) + 1 :] for node in self.nodes if node.startswith(path + "/")]


class Session:
    """The part of a KazooClient that the client uses."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.connected = True
        self.last_zxid = 7
        self.stopped = Event()

    def start_async(self) -> Event:
        started = Event()
        started.set()
        return started

    def stop(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        """Nothing is held."""

    def sync_async(self, path: str) -> Answer:
        return self.tree.do("sync", lambda: path)

    def get_async(self, path: str) -> Answer:
        return self.tree.do("get", lambda: self.tree.get(path))

    def set_async(self, path: str, data: bytes, version: int = -1) -> Answer:
        return self.tree.do("set", lambda: self.tree.put(path, data, version))

    def create_async(self, path: str, data: bytes = b"", sequence: bool = False) -> Answer:
        return self.tree.do("create", lambda: self.tree.create(path, data, sequence))

    def get_children_async(self, path: str) -> Answer:
        return self.tree.do("children", lambda: self.tree.children(path))

    def transaction(self) -> Transaction:
        return Transaction(self.tree)


class Transaction:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.checks: list[tuple[str, int]] = []
        self.puts: list[tuple[str, bytes]] = []

    def check(self, path: str, version: int) -> None:
        self.checks.append((path, version))

    def set_data(self, path: str, data: bytes, version: int) -> None:
        self.checks.append((path, version))
        self.puts.append((path, data))

    def commit_async(self) -> Answer:
        return self.tree.do("multi", self._commit)

    def _commit(self) -> list[Any]:
        # Every step but the one at fault is answered with a roll-back.
        for place, (path, version) in enumerate(self.checks):
            try:
                self.tree.check(path, version)
            except (BadVersionError, NoNodeError) as error:
                return [error if step == place else RolledBackError() for step in range(len(self.checks))]
        for path, data in self.puts:
            self.tree.put(path, data, -1)
        return [True] * len(self.checks)


@pytest.fixture
def tree() -> Tree:
    return Tree()


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch, tree: Tree) -> Iterator[list[Session]]:
    """The sessions that clients opened; a listener lets the look whether a member answers succeed."""
    opened: list[Session] = []

    def make(hosts: str, timeout: float) -> Session:
        opened.append(Session(tree))
        return opened[-1]

    with socket.create_server((HOST, 0)) as listener:
        monkeypatch.setattr(client_module, "CLIENT_PORT", listener.getsockname()[1])
        monkeypatch.setattr(client_module, "KazooClient", make)
        yield opened


def client_that(read_mode: ReadMode) -> ZooKeeperClient:
    return ZooKeeperClient(
        lambda node: HOST, ("athens", "byzantium"), "athens", read_mode=read_mode, timeout_s=PATIENT_S, session_s=1.0
    )


@pytest.fixture
def client(sessions: list[Session]) -> Iterator[ZooKeeperClient]:
    client = client_that("commit")
    yield client
    client.close()


def do(client: ZooKeeperClient, f: str, value: Any = None, key: str | None = "k1") -> tuple[str, Any, str | None]:
    outcome = client.invoke(Operation(0, f, key, value))
    return outcome.kind, outcome.value, outcome.error


def test_values_go_in_and_out_and_absence_is_nothing(client: ZooKeeperClient) -> None:
    assert do(client, "read") == ("ok", None, None)
    assert do(client, "write", 7) == ("ok", 7, None)
    assert do(client, "write", 8) == ("ok", 8, None)
    assert do(client, "read") == ("ok", 8, None)


@pytest.mark.parametrize(("read_mode", "before"), [("commit", ["multi"]), ("sync", ["sync"]), ("local", [])])
def test_a_read_follows_a_commit_a_sync_or_nothing_but_a_change_is_built_on_what_followed_a_commit(
    sessions: list[Session], tree: Tree, read_mode: ReadMode, before: list[str]
) -> None:
    client = client_that(read_mode)
    do(client, "read")
    assert tree.asked == [*before, "get"]
    tree.asked.clear()
    assert do(client, "cas", [None, 1])[0] == "ok"
    assert tree.asked == ["multi", "get", "create"]
    client.close()


def test_a_read_whose_commit_is_refused_is_not_answered(client: ZooKeeperClient, tree: Tree) -> None:
    do(client, "write", 7)
    del tree.nodes["/faultline"]
    assert do(client, "read") == ("fail", None, "no-node-error")


def test_a_compare_and_set_that_sees_another_value_differs_from_one_that_lost_a_race(
    client: ZooKeeperClient, tree: Tree
) -> None:
    assert do(client, "cas", [None, 1]) == ("ok", [None, 1], None)
    assert do(client, "cas", [1, 2]) == ("ok", [1, 2], None)
    assert do(client, "cas", [1, 3]) == ("fail", None, CAS_MISMATCH)
    tree.before["set"] = lambda: tree.put("/faultline/k1", b"9", -1)
    assert do(client, "cas", [2, 3]) == ("fail", None, BAD_VERSION)
    assert do(client, "read") == ("ok", 9, None)


def test_sets_lists_counters_and_identifiers(client: ZooKeeperClient) -> None:
    assert do(client, "add", 12, "set")[0] == do(client, "add", 3, "set")[0] == "ok"
    assert sorted(do(client, "read", key="set")[1]) == [3, 12]
    assert do(client, "append", 1, "list")[0] == do(client, "append", 2, "list")[0] == "ok"
    assert do(client, "read", key="list") == ("ok", [1, 2], None)
    assert [do(client, "increment", 2, "count")[1], do(client, "increment", None, "count")[1]] == [2, 3]
    assert [do(client, "generate", key="ids")[1] for _ in range(3)] == [0, 1, 2]


def test_a_change_that_meets_another_is_tried_again(client: ZooKeeperClient, tree: Tree) -> None:
    do(client, "append", 1)
    tree.before["set"] = lambda: tree.put("/faultline/k1", b"[1,5]", -1)
    assert do(client, "append", 2) == ("ok", 2, None)
    assert do(client, "read") == ("ok", [1, 5, 2], None)


def test_a_transfer_within_one_object_refuses_what_is_not_there(client: ZooKeeperClient) -> None:
    move = {"from": "boston", "to": "london", "amount": 30}
    assert do(client, "transfer", move) == ("fail", None, "no-such-account")
    do(client, "write", {"boston": 50, "london": 20})
    assert do(client, "transfer", move) == ("ok", None, None)
    assert do(client, "transfer", move) == ("fail", None, "insufficient-balance")
    assert do(client, "read") == ("ok", {"boston": 20, "london": 50}, None)


def test_a_transaction_commits_only_if_nothing_that_it_read_has_changed(client: ZooKeeperClient, tree: Tree) -> None:
    steps = [["r", "a", None], ["append", "b", 1], ["r", "b", None]]
    done = [["r", "a", None], ["append", "b", 1], ["r", "b", [1]]]
    assert do(client, "txn", steps, key=None) == ("ok", done, None)
    tree.before["multi"] = lambda: tree.put("/faultline/a", b"[7]", -1)
    again = do(client, "txn", [["r", "a", None], ["append", "b", 2]], key=None)
    assert again == ("ok", [["r", "a", [7]], ["append", "b", 2]], None)
    assert do(client, "read", key="b") == ("ok", [1, 2], None)


def test_a_transaction_that_always_meets_others_certainly_did_not_happen(client: ZooKeeperClient, tree: Tree) -> None:
    def disturb() -> None:
        tree.put("/faultline/a", b"[7]", -1)
        tree.before["multi"] = disturb

    tree.before["multi"] = disturb
    assert do(client, "txn", [["append", "a", 1]], key=None) == ("fail", None, BAD_VERSION)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (ConnectionLoss(), "connection-loss"),
        (SessionExpiredError(), "session-expired-error"),
        (KazooTimeoutError(), "timeout"),
        (ConnectionResetError(), "connection-lost"),
    ],
)
def test_a_change_that_was_sent_is_unknown_and_a_read_that_failed_is_nothing(
    client: ZooKeeperClient, tree: Tree, failure: Exception, error: str
) -> None:
    do(client, "write", 1)
    tree.failure, tree.fails_on = failure, "set"
    assert do(client, "write", 2) == ("info", None, error)
    assert do(client, "cas", [1, 2]) == ("info", None, error)
    tree.fails_on = "multi"
    assert do(client, "txn", [["append", "a", 1]], key=None) == ("info", None, error)
    assert do(client, "balances", {"accounts": ["x"]}, key=None) == ("fail", None, error)
    tree.fails_on = "get"
    assert do(client, "read") == ("fail", None, error)


def test_what_could_not_be_sent_did_not_happen(monkeypatch: pytest.MonkeyPatch, client: ZooKeeperClient) -> None:
    with socket.create_server((HOST, 0)) as listener:
        monkeypatch.setattr(client_module, "CLIENT_PORT", listener.getsockname()[1])
    assert do(client, "write", 1) == ("fail", None, "not-connected")


def test_a_session_that_is_known_to_be_broken_is_replaced_before_anything_is_said(
    client: ZooKeeperClient, sessions: list[Session]
) -> None:
    do(client, "write", 1)
    sessions[0].connected = False
    sessions[0].last_zxid = 99
    assert do(client, "write", 2) == ("ok", 2, None)
    assert sessions[0].stopped.wait(PATIENT_S) and len(sessions) == 2
    assert sessions[1].last_zxid == 99, "the next member must not be behind what this client has seen"


PLACE = StorePlace(
    node="cyrene",
    addresses={"athens": "10.0.0.1", "cyrene": "10.0.0.2"},
    folder="/cyrene",
    options={name: option.default for name, option in ZooKeeper.options.items()},
)


def test_zookeeper_fulfils_the_protocol_and_its_configuration_names_all_members() -> None:
    store = ZooKeeper()
    assert isinstance(store, HostedStore) and set(store.functions) == {*FUNCTIONS, *LOCK_FUNCTIONS}
    files = store.files(PLACE)
    assert files["data/myid"] == "2\n" and "tickTime=200\n" in files["zoo.cfg"]
    assert "server.1=10.0.0.1:2888:3888\nserver.2=10.0.0.2:2888:3888\n" in files["zoo.cfg"]
    assert store.command(PLACE)[0] == "java" and store.command(PLACE)[-1] == "/cyrene/zoo.cfg"


@pytest.mark.parametrize(
    ("jars", "class_path"),
    [
        ("", "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"),
        ("/opt/zookeeper/lib/*", "/opt/zookeeper/lib/*"),
        ("pyspark", str(Path(pyspark.__file__).parent / "jars" / "*")),
    ],
)
def test_members_run_the_zookeeper_whose_class_path_is_named(jars: str, class_path: str) -> None:
    place = msgspec.structs.replace(PLACE, options={**PLACE.options, "jars": jars})
    command = ZooKeeper().command(place)
    assert command[command.index("-cp") + 1] == class_path


def test_jars_of_a_pyspark_that_is_not_there_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_module, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="needs PySpark"):
        ZooKeeper().command(msgspec.structs.replace(PLACE, options={**PLACE.options, "jars": "pyspark"}))


@pytest.mark.parametrize(
    ("said", "role", "epoch"),
    [
        (b"Latency min/avg/max: 0/0.0/0\nZxid: 0x300000007\nMode: leader\nNode count: 5\n", "leader", 3),
        (b"This ZooKeeper instance is not currently serving requests\n", "electing", 0),
    ],
)
def test_a_member_is_what_it_says_when_asked(
    monkeypatch: pytest.MonkeyPatch, said: bytes, role: str, epoch: int
) -> None:
    theirs, ours = socket.socketpair()
    monkeypatch.setattr(socket, "create_connection", lambda address, timeout: ours)
    theirs.sendall(said)
    theirs.shutdown(socket.SHUT_WR)
    status = ZooKeeper().status("10.0.0.1", 1.0)
    assert (status.role, status.generation) == (role, epoch)
    assert theirs.recv(10) == b"srvr"
    theirs.close()


def test_a_missing_library_is_refused_by_name_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("faultline.harness.world.hosts.store_cluster.find_spec", lambda name: None)
    plan: Any = SimpleNamespace(nodes=("athens",))
    with pytest.raises(UsageError, match="zookeeper need the Python library kazoo") as refused:
        StoreCluster(plan, ZooKeeper(), SimpleNamespace(), tmp_path)  # type: ignore[arg-type]  # a stand-in
    assert "faultline[zookeeper]" in refused.value.next_step
