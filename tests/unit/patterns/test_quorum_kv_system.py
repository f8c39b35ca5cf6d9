"""quorum-kv in its parts: options, planted bugs, and what the client sends with what it has read."""

from __future__ import annotations

import pytest
from client_story import ClientStory

from faultline.harness.errors import UsageError
from faultline.harness.outcome import UNSUPPORTED
from faultline.harness.system import NodeSystem
from faultline.systems_under_test.patterns.data_replication.version_vector import EMPTY_VECTOR, VersionVector
from faultline.systems_under_test.reference.quorum_kv.client import NOT_ENOUGH_NODES
from faultline.systems_under_test.reference.quorum_kv.messages import (
    GetSiblings,
    LocateRequest,
    LocateResponse,
    PutValue,
    SiblingsResponse,
)
from faultline.systems_under_test.reference.quorum_kv.node import NO_QUORUM, OBSOLETE_VERSION
from faultline.systems_under_test.reference.quorum_kv.options import KeyValueSettings
from faultline.systems_under_test.reference.quorum_kv.planted_bugs import BUGS
from faultline.systems_under_test.reference.quorum_kv.system import QuorumKeyValueStore
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT

CONTEXT = VersionVector({"athens": 2})


def test_the_store_fulfils_the_protocol_of_systems() -> None:
    system: NodeSystem = QuorumKeyValueStore()
    assert system.name == "quorum-kv"
    for name in system.planted_bugs:
        assert BUGS.parts([name]) is not None


def test_the_default_is_three_replicas_and_quorums_of_two_that_overlap() -> None:
    settings = KeyValueSettings.of_cluster({}, 5)
    assert (settings.replicas, settings.write_quorum, settings.read_quorum) == (3, 2, 2)
    assert settings.versions == "dotted"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"replicas": "4"}, "only 3 nodes"),
        ({"write_quorum": "4"}, "only 3 replicas"),
        ({"versions": "lamport"}, "cannot be 'lamport'"),
        ({"read_quorum": "0"}, "whole number from 1"),
    ],
)
def test_options_of_the_store_that_cannot_be_used_are_refused(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        KeyValueSettings.of_cluster(options, 3)


def test_an_unknown_planted_bug_of_the_store_is_refused() -> None:
    with pytest.raises(UsageError, match="no planted bug 'typo'"):
        BUGS.parts(["typo"])


def test_a_write_goes_with_the_context_of_the_last_read_and_leaves_it_as_it_is() -> None:
    story = ClientStory(QuorumKeyValueStore())
    assert story.invoke("read") == GetSiblings(1, "x")
    story.hear("athens", SiblingsResponse(1, None, (3, 4), CONTEXT))
    for number, update in ((2, 1), (4, 2)):
        assert story.invoke("write", 7) == LocateRequest(number)
        story.hear("athens", LocateResponse(number))
        assert story.ports.sent[-1] == ("athens", PutValue(number + 1, "x", 7, CONTEXT, update))
        story.hear("athens", SiblingsResponse(number + 1, None, (), VersionVector({"athens": 9})))
    assert story.ended == [("ok", [3, 4], None), ("ok", None, None), ("ok", None, None)]


@pytest.mark.rows("VVC-R7")
def test_the_next_replica_is_the_first_writer_when_one_does_not_answer() -> None:
    story = ClientStory(QuorumKeyValueStore())
    story.invoke("write", 7)
    story.pass_time(200_000)
    assert story.ports.sent[-1] == ("byzantium", LocateRequest(2))
    story.hear("byzantium", LocateResponse(2))
    assert story.ports.sent[-1] == ("byzantium", PutValue(3, "x", 7, EMPTY_VECTOR, 1))


def test_a_write_that_was_sent_is_not_sent_again() -> None:
    story = ClientStory(QuorumKeyValueStore())
    story.invoke("write", 7)
    story.hear("athens", LocateResponse(1))
    story.pass_time(1_000_000)
    assert [type(message) for _, message in story.ports.sent] == [LocateRequest, PutValue]
    assert story.ended == [("info", None, TIMEOUT)]


@pytest.mark.rows("VVC-S12", "VVC-R7")
def test_with_no_replica_there_a_write_has_certainly_failed() -> None:
    story = ClientStory(QuorumKeyValueStore())
    story.invoke("write", 7)
    story.pass_time(1_000_000)
    assert story.ended == [("fail", None, NOT_ENOUGH_NODES)]
    assert {target for target, _ in story.ports.sent} == {"athens", "byzantium", "cyrene"}


@pytest.mark.rows("VVC-S13")
def test_an_obsolete_write_is_refused_to_the_caller_and_tried_nowhere_else() -> None:
    story = ClientStory(QuorumKeyValueStore(), versions="server-id")
    story.invoke("write", 7)
    story.hear("athens", LocateResponse(1))
    story.hear("athens", SiblingsResponse(2, OBSOLETE_VERSION))
    story.pass_time(1_000_000)
    assert story.ended == [("fail", None, OBSOLETE_VERSION)]
    assert len(story.ports.sent) == 2


def test_a_read_goes_on_to_the_next_replica_after_an_error() -> None:
    story = ClientStory(QuorumKeyValueStore())
    story.invoke("read")
    story.hear("athens", SiblingsResponse(1, NO_QUORUM))
    assert story.ports.sent[-1] == ("byzantium", GetSiblings(2, "x"))
    story.hear("athens", SiblingsResponse(1, None, ("late",), CONTEXT))
    story.hear("byzantium", SiblingsResponse(2, None, (3,), CONTEXT))
    assert story.ended == [("ok", [3], None)]


def test_with_a_primary_all_clients_turn_to_the_same_replica_first() -> None:
    story = ClientStory(QuorumKeyValueStore(), coordinator="primary")
    story.invoke("read")
    first = story.ports.sent[0][0]
    other = ClientStory(QuorumKeyValueStore(), coordinator="primary")
    other.client._home = "cyrene"
    other.invoke("read")
    assert other.ports.sent[0][0] == first


@pytest.mark.rows("VVC-R16", "VVC-R17")
@pytest.mark.parametrize(("conflicts", "written"), [("union", [1, 2, 3, 9]), ("largest", [1, 3, 9])])
def test_an_add_reads_resolves_and_writes_with_the_context_of_all_it_has_read(
    conflicts: str, written: list[int]
) -> None:
    story = ClientStory(QuorumKeyValueStore(), conflicts=conflicts)
    assert story.invoke("add", 9) == GetSiblings(1, "x")
    story.hear("athens", SiblingsResponse(1, None, ([1, 2], [1, 3]), CONTEXT))
    assert story.ports.sent[-1] == ("athens", PutValue(2, "x", written, CONTEXT, 1))
    story.hear("athens", SiblingsResponse(2))
    assert story.ended == [("ok", None, None)]


def test_a_reader_that_resolves_gets_one_set_and_an_empty_one_for_nothing() -> None:
    story = ClientStory(QuorumKeyValueStore(), conflicts="union")
    for number, (values, answer) in enumerate(((([2], [1, 3]), [1, 2, 3]), ((), [])), start=1):
        story.invoke("read")
        story.hear("athens", SiblingsResponse(number, None, values, CONTEXT))
        assert story.ended[-1] == ("ok", answer, None)


@pytest.mark.rows("VVC-R21")
def test_an_add_that_was_refused_as_obsolete_reads_again_and_adds_to_what_is_there_now() -> None:
    story = ClientStory(QuorumKeyValueStore(), conflicts="union", versions="server-id")
    story.invoke("add", 9)
    story.hear("athens", SiblingsResponse(1, None, ([1],), CONTEXT))
    story.hear("athens", SiblingsResponse(2, OBSOLETE_VERSION))
    assert story.ports.sent[-1] == ("athens", GetSiblings(3, "x"))
    newer = VersionVector({"athens": 3})
    story.hear("athens", SiblingsResponse(3, None, ([1, 2],), newer))
    assert story.ports.sent[-1] == ("athens", PutValue(4, "x", [1, 2, 9], newer, 2))


def test_an_add_that_was_never_written_has_certainly_failed_and_one_that_was_is_unknown() -> None:
    story = ClientStory(QuorumKeyValueStore(), conflicts="union")
    story.invoke("add", 9)
    story.pass_time(1_000_000)
    story.invoke("add", 9)
    story.hear(story.ports.sent[-1][0], SiblingsResponse(story.client._number, None, (), EMPTY_VECTOR))
    story.pass_time(1_000_000)
    assert story.ended == [("fail", None, NOT_ENOUGH_NODES), ("info", None, TIMEOUT)]


def test_without_a_resolver_nothing_can_be_added() -> None:
    story = ClientStory(QuorumKeyValueStore())
    story.invoke("add", 9)
    assert story.ended == [("fail", None, UNSUPPORTED)]


def test_the_store_has_no_compare_and_set() -> None:
    story = ClientStory(QuorumKeyValueStore())
    story.invoke("cas", [1, 2])
    assert story.ended == [("fail", None, UNSUPPORTED)]
