"""The Paxos store: a chain of instances per key, durable before it answers, healed by what others committed."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.systems_under_test.patterns.data_replication.paxos import MonotonicId, MonotonicIds, Proposal
from faultline.systems_under_test.patterns.data_replication.paxos_store import (
    AcceptRequest,
    Commit,
    Learned,
    PaxosStore,
    PrepareRequest,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import MemoryStorage, keep_nothing

KEY = "name"
ONE, TWO, THREE = (MonotonicId(number, "athens") for number in (1, 2, 3))


def opened(storage: MemoryStorage, *, rejects: bool = True) -> PaxosStore:
    ports: Any = FakePorts("athens", storage)
    store = PaxosStore(ports, WriteAheadLog(storage, name="paxos"), MonotonicIds("athens"), rejects=rejects)
    store.recover()
    return store


def prepare(generation: MonotonicId, version: int = 1, committed: Commit | None = None) -> PrepareRequest:
    return PrepareRequest(KEY, version, generation, committed)


def accept(generation: MonotonicId, value: bytes, version: int = 1) -> AcceptRequest:
    return AcceptRequest(KEY, version, generation, value)


def state(store: PaxosStore) -> tuple[MonotonicId, Proposal | None, Commit | None]:
    acceptor = store.acceptor(KEY)
    return acceptor.promised, acceptor.accepted, store.committed(KEY)


@pytest.mark.rows("PAX-R15", "PAX-R5")
def test_promises_and_acceptances_survive_a_crash_right_after_the_answer() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    store.accept(accept(ONE, b"alice"))
    store.prepare(prepare(TWO))
    storage.crash(keep_nothing)
    again = opened(storage)
    assert state(again) == (TWO, Proposal(ONE, b"alice"), None)
    refusal = again.accept(accept(ONE, b"alice"))
    assert refusal is not None and not refusal.given and refusal.promised == TWO


@pytest.mark.rows("PAX-R3")
def test_a_restarted_node_makes_generations_above_all_in_its_log() -> None:
    storage = MemoryStorage()
    opened(storage).prepare(prepare(THREE))
    storage.crash(keep_nothing)
    ids = MonotonicIds("athens")
    ports: Any = FakePorts("athens", storage)
    PaxosStore(ports, WriteAheadLog(storage, name="paxos"), ids).recover()
    assert ids.next() == MonotonicId(4, "athens")


def test_a_commit_that_was_lost_in_a_crash_leaves_the_acceptance_behind() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    store.accept(accept(ONE, b"alice"))
    store.learn(KEY, Commit(1, ONE, b"alice"))
    storage.crash(keep_nothing)
    assert state(opened(storage)) == (ONE, Proposal(ONE, b"alice"), None)


@pytest.mark.rows("PAX-R5", "PAX-R21")
def test_a_commit_opens_the_next_version_with_nothing_promised() -> None:
    store = opened(MemoryStorage())
    store.accept(accept(TWO, b"alice"))
    assert store.learn(KEY, Commit(1, TWO, b"alice"))
    response = store.prepare(prepare(ONE, version=2))
    assert response is not None and response.given and response.accepted is None


@pytest.mark.rows("PAX-R21")
def test_requests_for_a_decided_version_are_answered_with_the_commit() -> None:
    store = opened(MemoryStorage())
    commit = Commit(1, ONE, b"alice")
    store.learn(KEY, commit)
    promise, acceptance = store.prepare(prepare(TWO)), store.accept(accept(TWO, b"bob"))
    assert promise is not None and not promise.given and promise.committed == commit
    assert acceptance is not None and not acceptance.given and acceptance.committed == commit


@pytest.mark.rows("PAX-R21")
def test_an_acceptor_that_lags_learns_from_the_prepare_request() -> None:
    store = opened(MemoryStorage())
    store.accept(accept(ONE, b"old"))
    commit = Commit(4, TWO, b"new")
    response = store.prepare(prepare(THREE, version=5, committed=commit))
    assert response is not None and response.given and response.accepted is None
    assert store.committed(KEY) == commit


def test_an_acceptor_that_lags_does_not_accept_for_a_version_it_has_not_opened() -> None:
    store = opened(MemoryStorage())
    response = store.accept(accept(TWO, b"new", version=3))
    assert response is not None and not response.given
    assert state(store)[1] is None


@pytest.mark.rows("PAX-R21")
@pytest.mark.parametrize("version", [1, 2])
def test_an_older_or_known_commit_changes_nothing(version: int) -> None:
    store = opened(MemoryStorage())
    newest = Commit(2, THREE, b"new")
    store.learn(KEY, newest)
    assert not store.learn(KEY, Commit(version, ONE, b"old"))
    assert store.committed(KEY) == newest


@pytest.mark.rows("PAX-R16")
def test_keys_have_nothing_to_do_with_each_other() -> None:
    store = opened(MemoryStorage())
    store.accept(accept(TWO, b"alice"))
    response = store.prepare(PrepareRequest("other", 1, ONE))
    assert response is not None and response.given and response.accepted is None


@pytest.mark.rows("PAX-R12")
def test_a_silent_acceptor_refuses_by_saying_nothing_but_still_tells_of_commits() -> None:
    store = opened(MemoryStorage(), rejects=False)
    store.prepare(prepare(TWO))
    assert store.prepare(prepare(ONE)) is None
    assert store.accept(accept(ONE, b"alice")) is None
    store.learn(KEY, Commit(1, TWO, b"bob"))
    response = store.prepare(prepare(THREE))
    assert response is not None and response.committed == Commit(1, TWO, b"bob")


def test_a_repeated_prepare_writes_nothing() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    store.prepare(prepare(ONE))
    effects = storage.effects
    store.prepare(prepare(ONE))
    assert storage.effects == effects


def test_each_commit_is_reported_once() -> None:
    storage = MemoryStorage()
    ports: Any = FakePorts("athens", storage)
    store = PaxosStore(ports, WriteAheadLog(storage, name="paxos"), MonotonicIds("athens"))
    store.recover()
    for _ in range(2):
        store.learn(KEY, Commit(1, ONE, b"alice"))
    assert [type(event) for event in ports.events].count(Learned) == 1
