"""Locks of ZooKeeper: a session for each that ends or crashes, tokens that are transactions, and a fence or none."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from lock_stories import NewOwner, do, owners_of, tell_of_a_late_write
from patience import PATIENT_S, HandSetClock, wait_until
from scripted_etcd import HOST

from faultline.systems_under_test.stores.zookeeper import client as client_module
from faultline.systems_under_test.stores.zookeeper import lock_session
from faultline.systems_under_test.stores.zookeeper.locks import ZooKeeperLocks
from faultline.systems_under_test.stores.zookeeper.tree import ROOT

SESSION_S = 1.0
TRUSTED_US = 600_000
"""The share of that for which an owner believes in its lock."""
LOCK, RESOURCE = "/faultline/lock0", "/faultline/lock0-resource"


class Ensemble:
    """Nodes with their numbers; `failure` is raised by what is asked over a session of a lock."""

    def __init__(self) -> None:
        self.zxid = 100
        self.nodes: dict[str, Any] = {}
        self.sessions: list[Session] = []
        self.failure: Exception | None = None
        self.failures = 0
        self.before_commit: Callable[[], object] = lambda: None

    def make(self, path: str, data: bytes, owner: int) -> Any:
        if path in self.nodes:
            raise NodeExistsError
        self.zxid += 1
        self.nodes[path] = SimpleNamespace(data=data, czxid=self.zxid, mzxid=self.zxid, version=0, owner=owner)
        return self.nodes[path]

    def put(self, path: str, data: bytes, version: int = -1) -> Any:
        node = self.find(path)
        if version not in (-1, node.version):
            raise BadVersionError
        self.zxid += 1
        node.data, node.mzxid, node.version = data, self.zxid, node.version + 1
        return SimpleNamespace(**vars(node))

    def find(self, path: str) -> Any:
        if path not in self.nodes:
            raise NoNodeError
        return self.nodes[path]

    def end_session(self, number: int) -> None:
        self.zxid += 1
        self.nodes = {path: node for path, node in self.nodes.items() if node.owner != number}

    def end_all_sessions(self) -> None:
        for session in self.sessions:
            self.end_session(session.number)


class Answer:
    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work

    def get(self, timeout: float) -> Any:
        assert 0 < timeout <= PATIENT_S
        return self._work()


class Session:
    """The part of a KazooClient that the locks use; one with a `handler` belongs to a lock and has a socket to lose."""

    def __init__(self, ensemble: Ensemble, handler: Any) -> None:
        self.ensemble = ensemble
        self.number = len(ensemble.sessions) + 1
        self.connected = True
        self.last_zxid = 0
        self.stopped = Event()
        self.is_of_a_lock = handler is not None
        if handler is not None:
            self.listener = socket.create_server((HOST, 0))
            self.address = self.listener.getsockname()
            self.socket = handler.create_connection(self.address, PATIENT_S)
            self.peer, _ = self.listener.accept()
            self.handler = handler
        ensemble.sessions.append(self)

    @property
    def client_id(self) -> tuple[int, bytes]:
        return self.number, b""

    def do(self, work: Callable[[], Any]) -> Answer:
        if self.is_of_a_lock and self.ensemble.failure is not None:
            raised = self.ensemble.failure
            self.ensemble.failures += 1

            def fail() -> Any:
                raise raised

            return Answer(fail)
        return Answer(work)

    def start_async(self) -> Event:
        started = Event()
        started.set()
        return started

    def stop(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        """Nothing is held."""

    def create_async(self, path: str, data: bytes = b"", ephemeral: bool = False, include_data: bool = False) -> Answer:
        def work() -> Any:
            made = self.ensemble.make(path, data, self.number if ephemeral else 0)
            return (path, made) if include_data else path

        return self.do(work)

    def exists_async(self, path: str) -> Answer:
        return self.do(lambda: self.ensemble.nodes.get(path))

    def delete_async(self, path: str) -> Answer:
        return self.do(lambda: self.ensemble.nodes.pop(path))

    def get_async(self, path: str) -> Answer:
        return self.do(lambda: (self.ensemble.find(path).data, self.ensemble.find(path)))

    def set_async(self, path: str, data: bytes) -> Answer:
        return self.do(lambda: self.ensemble.put(path, data))

    def transaction(self) -> Transaction:
        return Transaction(self)


class Transaction:
    """A check that a node is there, and a write to another: both or neither; or the check before a read alone."""

    def __init__(self, session: Session) -> None:
        self._ensemble = session.ensemble
        self._checked = ""
        self._put: tuple[str, bytes, int] | None = None

    def check(self, path: str, version: int) -> None:
        assert version == -1
        self._checked = path

    def set_data(self, path: str, data: bytes, version: int) -> None:
        self._put = (path, data, version)

    def commit_async(self) -> Answer:
        return Answer(self._commit)

    def _commit(self) -> list[Any]:
        if self._put is None:
            assert self._checked == ROOT
            return [True]
        self._ensemble.before_commit()
        if self._checked not in self._ensemble.nodes:
            return [NoNodeError(), RuntimeInconsistency()]
        try:
            return [True, self._ensemble.put(*self._put)]
        except BadVersionError as error:
            return [RolledBackError(), error]


@pytest.fixture
def ensemble() -> Ensemble:
    return Ensemble()


@pytest.fixture
def clock() -> HandSetClock:
    return HandSetClock()


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch, ensemble: Ensemble, clock: HandSetClock) -> Iterator[NewOwner]:
    def session(hosts: str, timeout: float, handler: Any = None) -> Session:
        return Session(ensemble, handler)

    def new_client(*, is_fenced: bool = True) -> ZooKeeperLocks:
        return ZooKeeperLocks(
            lambda node: HOST,
            ("athens", "byzantium"),
            "athens",
            read_mode="commit",
            timeout_s=PATIENT_S,
            session_s=SESSION_S,
            is_fenced=is_fenced,
        )

    with socket.create_server((HOST, 0)) as listener:
        monkeypatch.setattr(client_module, "CLIENT_PORT", listener.getsockname()[1])
        monkeypatch.setattr(client_module, "KazooClient", session)
        monkeypatch.setattr(lock_session, "KazooClient", session)
        with owners_of(new_client, clock) as new_owner:
            yield new_owner
    for each in ensemble.sessions:
        if each.is_of_a_lock:
            each.socket.close()
            each.peer.close()
            each.listener.close()


def session_of_lock(ensemble: Ensemble) -> Session:
    return [session for session in ensemble.sessions if session.is_of_a_lock][-1]


def has_hung_up(session: Session) -> bool:
    session.peer.settimeout(PATIENT_S)
    return session.peer.recv(1) == b""


def test_the_token_is_the_transaction_that_made_the_lock(owners: NewOwner, ensemble: Ensemble) -> None:
    first, second = owners(), owners()
    assert do(first, "acquire") == ("ok", {"token": 101}, None)
    assert do(first, "check") == ("ok", {"token": 101}, None)
    assert do(first, "guarded-write", 5) == ("ok", {"token": 101, "index": 103}, None)
    assert do(second, "acquire") == ("fail", None, "duplicate-lease")
    assert ensemble.nodes[RESOURCE].data == b"[101,5]"


def test_one_that_finds_a_lock_taken_opens_no_session(owners: NewOwner, ensemble: Ensemble) -> None:
    do(owners(), "acquire")
    opened = len([session for session in ensemble.sessions if session.is_of_a_lock])
    assert do(owners(), "acquire") == ("fail", None, "duplicate-lease")
    assert len([session for session in ensemble.sessions if session.is_of_a_lock]) == opened == 1


def test_a_lock_that_is_given_back_goes_at_once_and_its_session_is_ended(owners: NewOwner, ensemble: Ensemble) -> None:
    owner = owners()
    do(owner, "acquire")
    assert do(owner, "release") == ("ok", None, None)
    session = session_of_lock(ensemble)
    assert LOCK not in ensemble.nodes and session.stopped.wait(PATIENT_S)
    session.handler.create_connection(session.address, PATIENT_S).close()
    assert session.socket.send(b"Close") == len(b"Close"), "it may still say so"


@pytest.mark.parametrize("f", ["abandon", "late-write"])
def test_an_owner_that_crashes_breaks_its_connection_and_leaves_the_lock_to_zookeeper(
    owners: NewOwner, ensemble: Ensemble, f: str
) -> None:
    owner = owners()
    do(owner, "acquire")
    do(owner, f, 5)
    session = session_of_lock(ensemble)
    assert has_hung_up(session) and LOCK in ensemble.nodes
    with pytest.raises(ConnectionRefusedError, match="has crashed"):
        session.handler.create_connection((HOST, 1), PATIENT_S)
    assert do(owner, "check") == ("fail", None, "not-held")


def test_a_fenced_write_is_refused_while_there_is_no_lock(owners: NewOwner, ensemble: Ensemble) -> None:
    owner = owners(meanwhile=ensemble.end_all_sessions)
    do(owner, "acquire")
    assert do(owner, "late-write", 5) == ("fail", None, "stale-token")
    assert ensemble.nodes[RESOURCE].data == b"null"


@pytest.mark.parametrize("is_fenced", [True, False])
def test_a_former_owners_write_goes_in_behind_the_next_ones_unless_there_is_a_fence(
    owners: NewOwner, ensemble: Ensemble, is_fenced: bool
) -> None:
    tell_of_a_late_write(owners, ensemble.end_all_sessions, is_fenced=is_fenced)


def test_a_fenced_write_that_loses_a_race_looks_again_and_finds_the_newer_token(
    owners: NewOwner, ensemble: Ensemble
) -> None:
    def come_in_between() -> None:
        ensemble.before_commit = lambda: None
        ensemble.put(RESOURCE, b"[999,6]")

    owner = owners()
    do(owner, "acquire")
    ensemble.before_commit = come_in_between
    assert do(owner, "guarded-write", 5) == ("fail", None, "stale-token")
    assert ensemble.nodes[RESOURCE].data == b"[999,6]"


def test_an_owner_whose_session_is_disconnected_acts_no_more(owners: NewOwner, ensemble: Ensemble) -> None:
    owner = owners()
    do(owner, "acquire")
    session_of_lock(ensemble).connected = False
    assert do(owner, "guarded-write", 5) == ("fail", None, "not-held")


def test_another_session_in_the_place_of_an_expired_one_is_not_the_owners(owners: NewOwner, ensemble: Ensemble) -> None:
    owner = owners()
    do(owner, "acquire")
    session_of_lock(ensemble).number = 99
    assert do(owner, "check") == ("fail", None, "not-held")


def test_an_owner_whose_session_has_expired_acts_no_more_once_a_refresh_says_so(
    owners: NewOwner, ensemble: Ensemble
) -> None:
    owner = owners()
    do(owner, "acquire")
    ensemble.failure = SessionExpiredError()
    wait_until(lambda: do(owner, "check") == ("fail", None, "not-held"))
    assert LOCK in ensemble.nodes


def test_an_owner_that_is_not_refreshed_acts_no_more_when_its_time_is_over(
    owners: NewOwner, ensemble: Ensemble, clock: HandSetClock
) -> None:
    owner = owners()
    do(owner, "acquire")
    ensemble.failure = ConnectionLoss()
    clock.now_us = TRUSTED_US - 1
    seen = ensemble.failures
    wait_until(lambda: ensemble.failures >= seen + 2)
    assert do(owner, "check") == ("ok", {"token": 101}, None)
    clock.now_us += 1
    assert do(owner, "check") == ("fail", None, "not-held")
    assert LOCK in ensemble.nodes


def test_a_lock_that_may_have_been_made_is_unknown_and_its_session_crashes(
    owners: NewOwner, ensemble: Ensemble
) -> None:
    owner = owners()
    do(owner, "read")
    ensemble.failure = ConnectionLoss()
    assert do(owner, "acquire") == ("info", None, "connection-loss")
    assert has_hung_up(session_of_lock(ensemble))
