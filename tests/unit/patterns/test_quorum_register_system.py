"""quorum-register in its parts: options, the client's certainties, copies by stamp, quorums of answers."""

from __future__ import annotations

import pytest
from client_story import ClientStory

from faultline.harness.errors import UsageError
from faultline.harness.outcome import UNSUPPORTED
from faultline.harness.system import NodeSystem
from faultline.systems_under_test.reference.quorum_register.coordinator import (
    NO_QUORUM_TO_ASK,
    NO_QUORUM_TO_STORE,
)
from faultline.systems_under_test.reference.quorum_register.messages import (
    NEVER_WRITTEN,
    ReadValue,
    Stamp,
    ValueResponse,
    WriteValue,
)
from faultline.systems_under_test.reference.quorum_register.options import RegisterSettings
from faultline.systems_under_test.reference.quorum_register.planted_bugs import BUGS
from faultline.systems_under_test.reference.quorum_register.stamped_copies import Copy, StampedCopies
from faultline.systems_under_test.reference.quorum_register.system import QuorumRegister
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT
from faultline.systems_under_test.reference.shared.replica_requests import QuorumAnswers
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import MemoryStorage, keep_nothing


def test_the_register_fulfils_the_protocol_of_systems() -> None:
    system: NodeSystem = QuorumRegister()
    assert system.name == "quorum-register"
    for name in system.planted_bugs:
        assert BUGS.parts([name]) is not None


@pytest.mark.parametrize(("replicas", "quorum"), [(1, 1), (3, 2), (4, 3), (5, 3)])
def test_quorums_are_majorities_unless_told_otherwise(replicas: int, quorum: int) -> None:
    settings = RegisterSettings.of_cluster({}, replicas)
    assert (settings.write_quorum, settings.read_quorum) == (quorum, quorum)
    assert RegisterSettings.of_cluster({"read_quorum": "1"}, replicas).read_quorum == 1


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"write_quorum": "4"}, "only 3 replicas"),
        ({"write_back": "sometimes"}, "cannot be 'sometimes'"),
        ({"expiration_ms": "0"}, "whole number from 1"),
        ({"read_quorum": "-1"}, "whole number from 0"),
        ({"leader": "athens"}, "no option 'leader'"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        RegisterSettings.of_cluster(options, 3)


def test_an_unknown_planted_bug_of_the_register_is_refused() -> None:
    with pytest.raises(UsageError, match="no planted bug 'typo'"):
        BUGS.parts(["typo"])


# -- the client -------------------------------------------------------------------------------------------------------


def test_a_read_goes_to_the_next_node_after_silence_and_after_an_error() -> None:
    story = ClientStory(QuorumRegister())
    assert story.invoke("read") == ReadValue(1, "x")
    story.pass_time(300_000)
    assert story.ports.sent[-1] == ("byzantium", ReadValue(2, "x"))
    story.hear("byzantium", ValueResponse(2, NO_QUORUM_TO_STORE))
    story.pass_time(50_000)
    assert story.ports.sent[-1] == ("cyrene", ReadValue(3, "x"))
    story.hear("athens", ValueResponse(1, None, "late"))
    story.hear("cyrene", ValueResponse(3, None, 7))
    assert story.ended == [("ok", 7, None)]


def test_a_write_without_an_answer_is_sent_once_and_stays_unknown() -> None:
    story = ClientStory(QuorumRegister())
    assert story.invoke("write", 7) == WriteValue(1, "x", 7)
    story.pass_time(1_000_000)
    assert len(story.ports.sent) == 1
    assert story.ended == [("info", None, TIMEOUT)]


def test_a_write_that_certainly_did_nothing_is_sent_to_the_next_node() -> None:
    story = ClientStory(QuorumRegister())
    story.invoke("write", 7)
    story.hear("athens", ValueResponse(1, NO_QUORUM_TO_ASK))
    story.pass_time(50_000)
    assert story.ports.sent[-1] == ("byzantium", WriteValue(2, "x", 7))
    story.hear("byzantium", ValueResponse(2))
    assert story.ended == [("ok", None, None)]


def test_a_write_refused_everywhere_has_certainly_failed() -> None:
    story = ClientStory(QuorumRegister())
    story.invoke("write", 7)
    story.pass_time(960_000)
    story.hear("athens", ValueResponse(1, NO_QUORUM_TO_ASK))
    story.pass_time(40_000)
    assert story.ended == [("fail", None, NO_QUORUM_TO_ASK)]


@pytest.mark.parametrize(("planted_bugs", "kind"), [((), "info"), (("timeout-as-failure",), "fail")])
def test_a_write_on_a_minority_is_unknown_and_only_the_planted_bug_calls_it_failed(
    planted_bugs: tuple[str, ...], kind: str
) -> None:
    story = ClientStory(QuorumRegister(), planted_bugs)
    story.invoke("write", 7)
    story.hear("athens", ValueResponse(1, NO_QUORUM_TO_STORE))
    assert story.ended == [(kind, None, NO_QUORUM_TO_STORE)]


def test_a_compare_and_set_is_more_than_quorums_can_do() -> None:
    story = ClientStory(QuorumRegister())
    story.invoke("cas", [1, 2])
    assert story.ports.sent == []
    assert story.ended == [("fail", None, UNSUPPORTED)]


# -- replicas ---------------------------------------------------------------------------------------------------------


def copies_on(storage: MemoryStorage) -> StampedCopies:
    copies = StampedCopies(FakePorts("athens", storage))
    copies.recover()
    return copies


def test_the_newest_stamp_wins_in_whatever_order_copies_arrive() -> None:
    old, new = Copy("x", Stamp(1, "cyrene", 9), "old"), Copy("x", Stamp(2, "athens", 1), "new")
    copies = copies_on(MemoryStorage())
    assert copies.get("x").stamp == NEVER_WRITTEN
    assert copies.store(new)
    assert not copies.store(old)
    assert not copies.store(new)
    assert copies.get("x") == new


def test_copies_survive_a_crash() -> None:
    storage = MemoryStorage()
    copies_on(storage).store(Copy("x", Stamp(2, "athens", 1), "new"))
    storage.crash(keep_nothing)
    assert copies_on(storage).get("x").value == "new"


def test_two_writers_of_one_counter_are_told_apart_by_node_and_number() -> None:
    assert Stamp(3, "athens", 9) < Stamp(3, "byzantium", 1) < Stamp(3, "byzantium", 2) < Stamp(4, "athens", 1)


# -- answers ----------------------------------------------------------------------------------------------------------


def test_the_first_answers_of_a_quorum_decide_and_later_ones_are_late() -> None:
    enough: list[list[int]] = []
    late: list[int] = []
    answers: QuorumAnswers[int] = QuorumAnswers(3, 2, lambda got: enough.append(list(got)), lambda: None, late.append)
    for answer in (7, 8, 9):
        answers.on_response(answer)
    answers.on_error(TimeoutError())
    assert (enough, late) == ([[7, 8]], [9])


def test_a_question_fails_once_as_soon_as_too_few_can_answer() -> None:
    failed: list[None] = []
    answers: QuorumAnswers[int] = QuorumAnswers(4, 3, lambda _: None, lambda: failed.append(None))
    answers.on_response(1)
    answers.on_error(TimeoutError())
    assert failed == []
    answers.on_error(TimeoutError())
    answers.on_error(TimeoutError())
    assert failed == [None]
