"""The client of consistent-core: how it finds the leader, what it repeats, and what it calls certain."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, UNSUPPORTED, Outcome
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.reference.consistent_core.system import ConsistentCore
from faultline.systems_under_test.reference.raft.client import NO_SESSION
from faultline.systems_under_test.reference.raft.key_value_store import (
    REQUEST_DISCARDED,
    UNKNOWN_SESSION,
)
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    ClientResponse,
    CompareAndSet,
    GetValue,
    RedirectToLeader,
    RegisterClientRequest,
    RegisterClientResponse,
    SessionHeartbeat,
    SetValue,
)
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT
from faultline.testing.fake_ports import FakePorts

MEMBERS = tuple(map(NodeId, ("athens", "byzantium", "cyrene")))
READ = Operation(0, "read", "k0")
WRITE = Operation(0, "write", "k0", 7)


class Story:
    """A client at athens, what it sent and what it concluded."""

    def __init__(self, registered: bool = True, **options: str) -> None:
        self.ports = FakePorts("client-0")
        core: Any = ConsistentCore()
        self.client = core.client(self.ports, MEMBERS, NodeId("athens"), options, frozenset())
        self.outcomes: list[Outcome] = []
        self.client.start()
        if registered:
            self.hear("athens", RegisterClientResponse(0, 42))

    def invoke(self, operation: Operation) -> Story:
        self.client.invoke(operation, self.outcomes.append)
        return self

    def hear(self, source: str, message: msgspec.Struct) -> None:
        self.client.receive(NodeId(source), message)

    @property
    def last(self) -> tuple[str, Any]:
        return self.ports.sent[-1]


@pytest.mark.rows("IDR-R1")
def test_a_session_is_registered_before_the_first_request() -> None:
    story = Story(registered=False).invoke(READ)
    assert {type(message) for _, message in story.ports.sent} == {RegisterClientRequest}
    story.hear("athens", RegisterClientResponse(0, 42))
    assert story.last == ("athens", ClientRequest(42, 1, GetValue("k0")))


@pytest.mark.parametrize(
    ("operation", "command"),
    [
        (READ, GetValue("k0")),
        (WRITE, SetValue("k0", 7)),
        (Operation(0, "cas", "k0", [7, 8]), CompareAndSet("k0", 7, 8)),
    ],
)
def test_operations_become_commands(operation: Operation, command: msgspec.Struct) -> None:
    assert Story().invoke(operation).last == ("athens", ClientRequest(42, 1, command))


@pytest.mark.rows("IDR-R3")
def test_answers_become_outcomes_and_requests_are_numbered_one_by_one() -> None:
    story = Story().invoke(READ)
    story.hear("athens", ClientResponse(1, None, 5))
    story.invoke(WRITE)
    story.hear("athens", ClientResponse(2))
    assert [(outcome.kind, outcome.value) for outcome in story.outcomes] == [("ok", 5), ("ok", None)]


@pytest.mark.parametrize(
    ("error", "kind"), [(CAS_MISMATCH, "fail"), (UNKNOWN_SESSION, "info"), (REQUEST_DISCARDED, "info")]
)
def test_only_registered_errors_are_definite(error: str, kind: str) -> None:
    story = Story().invoke(WRITE)
    story.hear("athens", ClientResponse(1, error))
    assert [(outcome.kind, outcome.error) for outcome in story.outcomes] == [(kind, error)]


@pytest.mark.rows("IDR-R3", "IDR-R18")
def test_a_redirect_is_followed_with_the_same_request_number() -> None:
    story = Story().invoke(WRITE)
    story.hear("athens", RedirectToLeader(1, "cyrene"))
    assert story.last == ("cyrene", ClientRequest(42, 1, SetValue("k0", 7)))
    story.hear("cyrene", ClientResponse(1))
    assert story.invoke(READ).last == ("cyrene", ClientRequest(42, 2, GetValue("k0")))


@pytest.mark.rows("CC-R11", "CC-R15", "CC-R16", "CC-S3")
@pytest.mark.rows("IDR-R18")
def test_while_no_server_leads_the_client_pauses_and_goes_round() -> None:
    story = Story().invoke(WRITE)
    story.hear("athens", RedirectToLeader(1, None))
    before = len(story.ports.sent)
    story.ports.pass_time(79_999)
    assert len(story.ports.sent) == before
    story.ports.pass_time(1)
    assert story.last == ("byzantium", ClientRequest(42, 1, SetValue("k0", 7)))


def test_servers_that_send_the_client_in_a_circle_do_not_keep_it_busy() -> None:
    story = Story().invoke(WRITE)
    for _ in range(10):
        target = story.last[0]
        other = "athens" if target == "byzantium" else "byzantium"
        story.hear(target, RedirectToLeader(1, other))
    assert len(story.ports.sent) <= 2 + len(MEMBERS)


@pytest.mark.rows("CC-R12", "CC-R13", "CC-R14", "CC-S4")
@pytest.mark.rows("IDR-R3", "IDR-R18")
def test_silence_makes_the_client_ask_the_next_member_under_the_same_number() -> None:
    story = Story().invoke(WRITE)
    story.ports.pass_time(300_000)
    assert story.last == ("byzantium", ClientRequest(42, 1, SetValue("k0", 7)))
    story.ports.pass_time(300_000)
    assert story.last == ("cyrene", ClientRequest(42, 1, SetValue("k0", 7)))
    assert story.outcomes == []


@pytest.mark.rows("CC-R26")
@pytest.mark.rows("IDR-R18", "RWL-R15")
@pytest.mark.parametrize("operation", [READ, WRITE])
def test_a_request_without_an_answer_is_indefinite_when_time_is_up(operation: Operation) -> None:
    story = Story().invoke(operation)
    story.ports.pass_time(999_999)
    assert story.outcomes == []
    story.ports.pass_time(1)
    assert [(outcome.kind, outcome.error) for outcome in story.outcomes] == [("info", TIMEOUT)]


def test_a_request_that_was_never_sent_has_certainly_failed() -> None:
    story = Story(registered=False).invoke(WRITE)
    story.ports.pass_time(1_000_000)
    assert [(outcome.kind, outcome.error) for outcome in story.outcomes] == [("fail", NO_SESSION)]
    assert {type(message) for _, message in story.ports.sent} == {RegisterClientRequest}


def test_a_redirect_is_no_definite_answer() -> None:
    """A copy of the request may still be on its way to a server that leads by then."""
    story = Story().invoke(WRITE)
    for _ in range(30):
        story.hear(story.last[0], RedirectToLeader(1, None))
        story.ports.pass_time(80_000)
    assert [outcome.kind for outcome in story.outcomes] == ["info"]


def test_an_operation_the_store_does_not_have_fails_at_once() -> None:
    story = Story().invoke(Operation(0, "frobnicate", "k0", 1))
    assert [(outcome.kind, outcome.error) for outcome in story.outcomes] == [("fail", UNSUPPORTED)]


def test_late_and_repeated_answers_complete_nothing_twice() -> None:
    story = Story().invoke(WRITE)
    story.hear("athens", ClientResponse(1))
    story.hear("athens", ClientResponse(1))
    story.invoke(READ)
    story.hear("byzantium", ClientResponse(1, None, "old"))
    story.hear("athens", RegisterClientResponse(0, 99))
    assert [outcome.kind for outcome in story.outcomes] == ["ok"]
    assert story.last == ("athens", ClientRequest(42, 2, GetValue("k0")))


def test_a_late_redirect_of_another_server_is_ignored() -> None:
    story = Story().invoke(WRITE)
    before = len(story.ports.sent)
    story.hear("cyrene", RedirectToLeader(1, "byzantium"))
    story.hear("athens", RedirectToLeader(0, "byzantium"))
    assert len(story.ports.sent) == before


def test_in_mode_stale_reads_go_to_the_clients_own_server() -> None:
    story = Story(read_mode="stale").invoke(WRITE)
    story.hear("athens", RedirectToLeader(1, "cyrene"))
    story.hear("cyrene", ClientResponse(1))
    assert story.invoke(READ).last[0] == "athens"


@pytest.mark.rows("IDR-R16")
def test_a_client_whose_session_expired_says_that_it_does_not_know_and_registers_anew() -> None:
    """Numbers go on, so that a late answer to a request of the old session belongs to nothing."""
    story = Story().invoke(WRITE)
    story.hear("athens", ClientResponse(1, UNKNOWN_SESSION))
    assert [(outcome.kind, outcome.error) for outcome in story.outcomes] == [("info", UNKNOWN_SESSION)]
    assert story.last == ("athens", RegisterClientRequest(0))
    story.hear("athens", RegisterClientResponse(0, 99))
    story.invoke(WRITE)
    assert story.last == ("athens", ClientRequest(99, 2, SetValue("k0", 7)))


@pytest.mark.rows("IDR-R10")
def test_under_the_policy_acknowledged_a_request_names_the_last_one_that_was_answered() -> None:
    story = Story(discard_policy="acknowledged").invoke(WRITE)
    assert story.last[1].acknowledged == 0
    story.hear("athens", ClientResponse(1))
    assert story.invoke(WRITE).last == ("athens", ClientRequest(42, 2, SetValue("k0", 7), 1))


@pytest.mark.rows("IDR-R13")
def test_a_client_without_requests_shows_every_ten_seconds_that_it_lives() -> None:
    story = Story()
    sent = len(story.ports.sent)
    story.ports.pass_time(30_000_000)
    assert story.ports.sent[sent:] == [("athens", SessionHeartbeat(42))] * 3
