"""The answers that are kept, the requests refused when theirs are gone, and a snapshot that holds all of it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from faultline.harness.errors import UsageError
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import (
    Acknowledged,
    ClientSessions,
    DiscardPolicy,
    LastResponses,
    OneAtATime,
    RequestDiscarded,
)
from faultline.systems_under_test.patterns.data_replication.session_expiry import SessionExpiry
from faultline.systems_under_test.reference.raft.key_value_store import KeyValueStore, encode_command
from faultline.systems_under_test.reference.raft.parts import discard_policy
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.client_messages import ClientCommand
from faultline.systems_under_test.reference.shared.key_commands import Increment
from faultline.testing.fake_ports import FakePorts

ALICE = 7


class Executed:
    """Sessions with one client, and the numbers of the requests that were executed."""

    def __init__(self, policy: DiscardPolicy) -> None:
        self.sessions: ClientSessions[str] = ClientSessions(policy)
        self.sessions.register(ALICE)
        self.numbers: list[int] = []

    def ask(self, number: int, acknowledged: int = 0) -> str:
        def action() -> str:
            self.numbers.append(number)
            return f"answer {number}"

        return self.sessions.execute(ALICE, number, action, acknowledged)[0]

    def ask_all(self, numbers: Iterable[int]) -> Executed:
        for number in numbers:
            self.ask(number)
        return self

    @property
    def kept(self) -> list[int]:
        session = self.sessions.session(ALICE)
        assert session is not None
        return sorted(session.responses)


@pytest.mark.rows("IDR-S12", "IDR-R10", "IDR-R12")
def test_what_the_client_acknowledges_goes_except_the_acknowledged_number_itself() -> None:
    """The client acknowledges up to 7 in request 10: answers 1 to 6 go, and a late copy of 5 is refused."""
    story = Executed(Acknowledged()).ask_all(range(1, 10))
    story.ask(10, acknowledged=7)
    assert story.kept == [7, 8, 9, 10]
    with pytest.raises(RequestDiscarded):
        story.ask(5)
    assert story.ask(7) == "answer 7"
    assert story.numbers == list(range(1, 11))


@pytest.mark.rows("IDR-R10", "IDR-R12")
def test_a_client_that_asks_one_thing_at_a_time_leaves_one_answer() -> None:
    story = Executed(OneAtATime()).ask_all([1, 2, 3])
    assert story.kept == [3]
    assert story.ask(3) == "answer 3"
    for late in (1, 2):
        with pytest.raises(RequestDiscarded):
            story.ask(late)
    assert story.numbers == [1, 2, 3]


@pytest.mark.rows("IDR-R10", "IDR-R12", "IDR-S6", "IDR-I4")
def test_the_last_five_answers_are_kept_and_the_sixth_pushes_out_the_first() -> None:
    story = Executed(LastResponses()).ask_all(range(1, 6))
    assert [story.ask(number) for number in range(1, 6)] == [f"answer {number}" for number in range(1, 6)]
    story.ask(6)
    assert story.kept == [2, 3, 4, 5, 6]
    with pytest.raises(RequestDiscarded):
        story.ask(1)


@pytest.mark.rows("IDR-R12")
def test_a_request_that_was_overtaken_and_never_executed_is_refused_too() -> None:
    story = Executed(OneAtATime())
    story.ask(2)
    with pytest.raises(RequestDiscarded):
        story.ask(1)
    assert story.numbers == [2]


@pytest.mark.rows("IDR-R11")
def test_policies_refuse_clients_whose_answers_they_would_lose() -> None:
    with pytest.raises(UsageError, match="one-at-a-time cannot serve"):
        OneAtATime().refuse_in_flight(2)
    with pytest.raises(UsageError, match="6 requests in flight and 5 saved"):
        LastResponses().refuse_in_flight(6)
    OneAtATime().refuse_in_flight(1)
    LastResponses().refuse_in_flight(5)
    Acknowledged().refuse_in_flight(1_000)


@pytest.mark.parametrize(
    ("option", "policy"),
    [("last-responses", LastResponses), ("one-at-a-time", OneAtATime), ("acknowledged", Acknowledged)],
)
def test_each_policy_is_an_option_of_consistent_core(option: str, policy: type[DiscardPolicy]) -> None:
    assert type(discard_policy(RaftSettings.read({"discard_policy": option}))) is policy


@pytest.mark.rows("IDR-R20")
def test_a_store_restored_from_a_snapshot_knows_the_answers_and_what_was_discarded() -> None:
    store = KeyValueStore(ClientSessions())
    store.sessions.register(ALICE)
    commands = [encode_command(ClientCommand(ALICE, number, Increment("x", 1))) for number in range(1, 8)]
    for index, command in enumerate(commands, 10):
        store.apply(index, command)
    restored = KeyValueStore(ClientSessions())
    restored.restore(store.snapshot())
    assert restored.snapshot() == store.snapshot()
    assert [restored.apply(20, commands[-1]).executed, restored.apply(21, commands[0]).executed] == [False, False]
    assert restored.values == {"x": 7}


@pytest.mark.rows("IDR-R13", "IDR-R14", "IDR-R15")
def test_a_session_is_idle_when_nothing_was_heard_for_longer_than_five_minutes_of_this_leadership() -> None:
    clock = FakePorts()
    expiry = SessionExpiry(clock)
    expiry.start_leading()
    clock.now_us += 299_000_000
    expiry.refresh(7)
    clock.now_us += 1_000_000
    assert expiry.idle([7, 8]) == ()
    clock.now_us += 1
    assert expiry.idle([7, 8]) == (8,)
    expiry.start_leading()
    assert expiry.idle([7, 8]) == ()


def test_a_leader_looks_for_idle_sessions_every_ten_seconds() -> None:
    clock = FakePorts()
    expiry = SessionExpiry(clock)
    expiry.start_leading()
    clock.now_us += 9_999_999
    assert not expiry.is_due()
    clock.now_us += 1
    assert expiry.is_due()
    expiry.idle([])
    assert not expiry.is_due()
