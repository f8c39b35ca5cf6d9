"""paxos-kv as the harness sees it: options, planted bugs, registers, the client, invariants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from faultline.harness.errors import UsageError
from faultline.harness.invariant import Breach, Invariant
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, Outcome
from faultline.harness.system import NodeSystem
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.paxos import MonotonicId, PaxosQuorums, Proposal
from faultline.systems_under_test.patterns.data_replication.paxos_proposer import (
    AcceptanceCounted,
    PromiseCounted,
    ValueChosen,
    ValueProposed,
)
from faultline.systems_under_test.patterns.data_replication.paxos_store import (
    Accepted,
    Commit,
    Learned,
    PrepareResponse,
    Promised,
    StoreStarted,
)
from faultline.systems_under_test.reference.paxos_kv.client import PaxosKvClient
from faultline.systems_under_test.reference.paxos_kv.invariants import (
    ChosenValuesWereProposed,
    CommitsMoveForward,
    LaterProposalsAgree,
    OneProposalPerGeneration,
    OneValuePerVersion,
    PromisesAreKept,
    ProposalsStandOnPromises,
    RoundsAreLearned,
    paxos_kv_invariants,
)
from faultline.systems_under_test.reference.paxos_kv.messages import (
    PAXOS_KV_MESSAGES,
    OutcomeUnknown,
    PaxosClientRequest,
)
from faultline.systems_under_test.reference.paxos_kv.node import PaxosKvNode, PaxosKvParts
from faultline.systems_under_test.reference.paxos_kv.options import PaxosKvSettings
from faultline.systems_under_test.reference.paxos_kv.planted_bugs import BUGS
from faultline.systems_under_test.reference.paxos_kv.register import EMPTY, Answer, register_in
from faultline.systems_under_test.reference.paxos_kv.system import PaxosKv
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientResponse,
    CompareAndSet,
    GetValue,
    SetValue,
)
from faultline.testing.fake_ports import FakePorts

MEMBERS = (NodeId("athens"), NodeId("byzantium"), NodeId("cyrene"))
ONE_A, ONE_B, TWO_A = MonotonicId(1, "athens"), MonotonicId(1, "byzantium"), MonotonicId(2, "athens")


# -- system and options -----------------------------------------------------------------------------------------------


def test_paxos_kv_fulfils_the_protocol() -> None:
    system: NodeSystem = PaxosKv()
    assert system.name == "paxos-kv"
    assert set(system.planted_bugs) == set(BUGS.planted_bugs)


@pytest.mark.rows("PAX-R14")
def test_by_default_both_quorums_are_majorities() -> None:
    settings = PaxosKvSettings.read({})
    assert settings.quorums(3) == PaxosQuorums(2, 2)
    assert settings.quorums(5) == PaxosQuorums(3, 3)
    assert settings.timing.phase_us == 50_000


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"colour": "red"}, "no option"),
        ({"read_mode": "hopeful"}, "cannot be"),
        ({"phase_timeout_ms": "0"}, "whole number from 1"),
        ({"accept_quorum": "two"}, "whole number from 0"),
        ({"request_timeout_ms": "2000"}, "give up before"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        PaxosKvSettings.read(options)


def test_a_quorum_larger_than_the_cluster_is_refused() -> None:
    with pytest.raises(UsageError, match="larger than"):
        PaxosKvSettings.read({"prepare_quorum": "4"}).quorums(3)


def test_one_node_is_no_cluster_to_agree_in() -> None:
    ports: Any = None
    with pytest.raises(UsageError, match="at least 2 nodes"):
        PaxosKvNode(ports, (NodeId("athens"),), PaxosKvSettings.read({}), PaxosKvParts())


def test_without_planted_bugs_all_parts_are_the_correct_ones() -> None:
    assert BUGS.parts(()) == PaxosKvParts()


@pytest.mark.parametrize("name", sorted(BUGS.planted_bugs))
def test_each_planted_bug_changes_the_parts_or_the_node_and_other_nodes_stay_correct(name: str) -> None:
    planted = BUGS.parts((name,)), BUGS.node(PaxosKvNode, (name,))
    assert planted != (PaxosKvParts(), PaxosKvNode)
    assert BUGS.parts(()) == PaxosKvParts()


def test_bugs_of_one_part_can_be_planted_together() -> None:
    parts = BUGS.parts(("naive-reset", "promise-not-durable"))
    assert [base.__name__ for base in parts.store.__mro__[:5]].count("PaxosStore") == 1
    assert len(parts.store.__mro__) > len(BUGS.parts(("naive-reset",)).store.__mro__)


def test_an_unknown_planted_bug_is_refused() -> None:
    with pytest.raises(UsageError, match="no planted bug"):
        BUGS.parts(("gremlin",))


def test_every_message_survives_the_wire() -> None:
    decoder = msgspec.msgpack.Decoder(PrepareResponse)
    message = PrepareResponse("name", 3, TWO_A, True, TWO_A, Proposal(ONE_B, b"x"), Commit(2, ONE_A, b"y"))
    assert decoder.decode(msgspec.msgpack.encode(message)) == message
    assert len({str(msgspec.inspect.type_info(kind)) for kind in PAXOS_KV_MESSAGES}) == len(PAXOS_KV_MESSAGES)


# -- registers --------------------------------------------------------------------------------------------------------


def test_a_register_remembers_the_answers_it_owes() -> None:
    register = EMPTY.after("client-1", 1, SetValue("k", 5)).after("client-2", 7, CompareAndSet("k", 4, 6))
    assert register.value == 5
    assert register.answers == {"client-1": Answer(1), "client-2": Answer(7, CAS_MISMATCH)}
    assert register.last_request("client-2") == 7
    assert register.last_request("client-3") == 0


def test_a_compare_and_set_that_matches_changes_the_value() -> None:
    assert EMPTY.after("client-1", 1, CompareAndSet("k", None, 6)).value == 6


@pytest.mark.rows("PAX-R20")
def test_a_read_is_a_no_op() -> None:
    register = EMPTY.after("client-1", 1, SetValue("k", 5))
    assert register.after("client-2", 1, GetValue("k")) is register


def test_a_register_is_the_same_after_a_round_trip_to_bytes() -> None:
    register = EMPTY.after("client-1", 1, SetValue("k", [1, "two"]))
    assert register_in(Commit(1, ONE_A, register.encoded())) == register
    assert register_in(None) == EMPTY


# -- the client -------------------------------------------------------------------------------------------------------


class Talk:
    """A client in conversation."""

    def __init__(self) -> None:
        self.ports = FakePorts("client-9")
        ports: Any = self.ports
        self.client = PaxosKvClient(ports, MEMBERS, MEMBERS[0], PaxosKvSettings.read({}))
        self.client.start()
        self.outcomes: list[Outcome] = []

    def invoke(self, f: str, value: Any = None) -> None:
        self.client.invoke(Operation(process=9, f=f, key="k", value=value), self.outcomes.append)


def test_a_client_asks_its_node_and_reports_the_answer_and_who_gave_it() -> None:
    talk = Talk()
    talk.invoke("read")
    assert talk.ports.sent == [("athens", PaxosClientRequest("client-9", 1, GetValue("k")))]
    talk.client.receive(MEMBERS[0], ClientResponse(1, None, 7))
    assert talk.outcomes == [Outcome("ok", 7, None, "athens")]


def test_a_silent_node_makes_the_client_ask_the_next_under_the_same_number() -> None:
    talk = Talk()
    talk.invoke("write", 3)
    talk.ports.ring()
    request = PaxosClientRequest("client-9", 1, SetValue("k", 3))
    assert talk.ports.sent == [("athens", request), ("byzantium", request)]


def test_a_node_that_gave_up_makes_the_client_ask_the_next_after_a_pause() -> None:
    talk = Talk()
    talk.invoke("write", 3)
    talk.client.receive(MEMBERS[0], OutcomeUnknown(1))
    assert len(talk.ports.sent) == 1
    talk.ports.ring()
    assert [to for to, _ in talk.ports.sent] == ["athens", "byzantium"]


def test_when_its_time_is_over_the_outcome_is_unknown_and_never_a_failure() -> None:
    talk = Talk()
    began_us = talk.ports.now_us
    talk.invoke("cas", [1, 2])
    while not talk.outcomes:
        talk.ports.ring()
    assert talk.ports.now_us == began_us + 1_000_000
    assert talk.outcomes == [Outcome("info", None, "timeout")]


def test_a_mismatch_is_definite_and_an_unknown_operation_is_never_sent() -> None:
    talk = Talk()
    talk.invoke("cas", [1, 2])
    talk.client.receive(MEMBERS[0], ClientResponse(1, CAS_MISMATCH))
    talk.invoke("dequeue")
    assert [(outcome.kind, outcome.error) for outcome in talk.outcomes] == [
        ("fail", CAS_MISMATCH),
        ("fail", "unsupported-operation"),
    ]
    assert len(talk.ports.sent) == 1


def test_late_answers_to_earlier_requests_are_ignored() -> None:
    talk = Talk()
    talk.invoke("read")
    talk.client.receive(MEMBERS[0], ClientResponse(1, None, 1))
    talk.invoke("read")
    talk.client.receive(MEMBERS[1], ClientResponse(1, None, 1))
    talk.client.receive(MEMBERS[1], OutcomeUnknown(1))
    assert len(talk.outcomes) == 1


# -- invariants -------------------------------------------------------------------------------------------------------


def breaches(invariant: Invariant, *events: tuple[str, msgspec.Struct]) -> list[str]:
    found: list[Breach] = []
    for node, event in events:
        assert isinstance(event, invariant.events)
        invariant.observe(0, node, event, found.append)
    assert all(breach.invariant == invariant.id and breach.sentence.endswith(".") for breach in found)
    return [breach.node for breach in found]


def proposed(generation: MonotonicId, checksum: int, *, own: bool = True) -> ValueProposed:
    return ValueProposed("k", 1, generation, checksum, own)


def chosen(generation: MonotonicId, checksum: int, version: int = 1) -> ValueChosen:
    return ValueChosen("k", version, generation, checksum)


def test_invariants_are_fresh_for_each_run_and_have_names_of_their_own() -> None:
    first, second = paxos_kv_invariants(), paxos_kv_invariants()
    assert len({invariant.id for invariant in first}) == len(first)
    assert all(one is not other for one, other in zip(first, second, strict=True))


def test_two_values_for_one_version_break_an_invariant_and_two_versions_do_not() -> None:
    same = (("athens", chosen(ONE_A, 5)), ("byzantium", Learned("k", 1, TWO_A, 5)), ("cyrene", chosen(TWO_A, 6, 2)))
    assert breaches(OneValuePerVersion(), *same) == []
    assert breaches(OneValuePerVersion(), *same, ("cyrene", Learned("k", 1, TWO_A, 6))) == ["cyrene"]


def test_a_chosen_value_must_have_been_the_own_value_of_a_proposer() -> None:
    assert breaches(ChosenValuesWereProposed(), ("athens", proposed(ONE_A, 5)), ("athens", chosen(ONE_A, 5))) == []
    adopted = (("athens", proposed(ONE_A, 5, own=False)), ("athens", chosen(ONE_A, 5)))
    assert breaches(ChosenValuesWereProposed(), *adopted) == ["athens"]


@pytest.mark.parametrize("late", [False, True])
def test_a_higher_generation_must_propose_what_was_chosen_in_whatever_order_it_is_reported(late: bool) -> None:
    events = [("athens", chosen(ONE_B, 5)), ("byzantium", proposed(TWO_A, 6))]
    assert breaches(LaterProposalsAgree(), *(reversed(events) if late else events)) != []
    fine = [("athens", chosen(ONE_B, 5)), ("byzantium", proposed(TWO_A, 5)), ("cyrene", proposed(ONE_A, 6))]
    assert breaches(LaterProposalsAgree(), *(reversed(fine) if late else fine)) == []


def test_an_acceptor_must_not_go_below_its_promise_while_it_lives() -> None:
    accepted = Accepted("k", 1, Proposal(ONE_A, b""))
    assert breaches(PromisesAreKept(), ("cyrene", Promised("k", 1, ONE_A)), ("cyrene", accepted)) == []
    assert breaches(PromisesAreKept(), ("cyrene", Promised("k", 1, TWO_A)), ("cyrene", accepted)) == ["cyrene"]
    other_version = Accepted("k", 2, Proposal(ONE_A, b""))
    assert breaches(PromisesAreKept(), ("cyrene", Promised("k", 1, TWO_A)), ("cyrene", other_version)) == []


@pytest.mark.parametrize("count", [PromiseCounted, AcceptanceCounted])
def test_a_promise_that_was_counted_binds_over_a_restart_and_one_that_was_not_does_not(count: Any) -> None:
    story = [("cyrene", Promised("k", 1, TWO_A)), ("cyrene", StoreStarted(1)), ("cyrene", Promised("k", 1, ONE_A))]
    assert breaches(PromisesAreKept(), *story) == []
    story.insert(1, ("athens", count("k", 1, TWO_A, "cyrene")))
    assert breaches(PromisesAreKept(), *story) == ["cyrene"]


def test_a_proposers_own_promise_binds_over_a_restart_once_a_peer_has_answered() -> None:
    own = ("athens", PromiseCounted("k", 1, TWO_A, "athens"))
    restart = [("athens", StoreStarted(1)), ("athens", Promised("k", 1, ONE_B))]
    assert breaches(PromisesAreKept(), own, *restart) == []
    peer = ("athens", PromiseCounted("k", 1, TWO_A, "byzantium"))
    assert breaches(PromisesAreKept(), own, peer, *restart) == ["athens"]


def test_one_generation_must_not_propose_two_values() -> None:
    assert breaches(OneProposalPerGeneration(), ("athens", proposed(ONE_A, 5)), ("byzantium", proposed(ONE_B, 6))) == []
    twice = (("athens", proposed(ONE_A, 5)), ("athens", proposed(ONE_A, 6)))
    assert breaches(OneProposalPerGeneration(), *twice) == ["athens"]


@pytest.mark.parametrize("invariant", [OneValuePerVersion, LaterProposalsAgree, OneProposalPerGeneration])
def test_what_a_proposer_alone_knew_dies_with_its_process_and_what_a_peer_knows_does_not(
    invariant: Callable[[], Invariant],
) -> None:
    alone = [("athens", proposed(ONE_A, 5)), ("athens", chosen(ONE_A, 5))]
    peer = [("byzantium", Accepted("k", 1, Proposal(ONE_A, b""))), ("byzantium", Learned("k", 1, ONE_A, 5))]
    anew = [("athens", proposed(ONE_A, 6)), ("athens", proposed(TWO_A, 6)), ("athens", chosen(TWO_A, 6))]

    def found(*story: tuple[str, msgspec.Struct]) -> bool:
        return breaches(invariant(), *(each for each in story if isinstance(each[1], invariant().events))) != []

    assert found(*alone, *anew)
    assert not found(*alone, ("athens", StoreStarted(0)), *anew)
    assert found(*alone, ("byzantium", StoreStarted(0)), *anew)
    assert found(*alone, *peer, ("athens", StoreStarted(0)), *anew)


def test_a_commit_must_not_be_replaced_by_an_older_one_in_the_same_process() -> None:
    back = [("athens", Learned("k", 2, ONE_A, 5)), ("athens", Learned("k", 1, ONE_A, 4))]
    assert breaches(CommitsMoveForward(), *back) == ["athens"]
    assert breaches(CommitsMoveForward(), back[0], ("athens", StoreStarted(1)), back[1]) == []


@pytest.mark.parametrize(
    "heard", [Promised("k", 1, TWO_A), Accepted("k", 1, Proposal(TWO_A, b"")), Learned("k", 1, TWO_A, 5)]
)
def test_an_own_attempt_must_be_above_every_round_the_process_has_heard_of(heard: Any) -> None:
    own = ("byzantium", Promised("other", 1, ONE_B))
    assert breaches(RoundsAreLearned(), ("byzantium", heard), own) == ["byzantium"]
    assert breaches(RoundsAreLearned(), own, ("byzantium", heard)) == []
    assert breaches(RoundsAreLearned(), ("byzantium", heard), ("byzantium", StoreStarted(0)), own) == []
    assert breaches(RoundsAreLearned(), ("cyrene", heard), own) == []


def test_a_proposal_must_stand_on_promises_of_its_own_generation() -> None:
    counted = ("athens", PromiseCounted("k", 1, TWO_A, "byzantium"))
    assert breaches(ProposalsStandOnPromises(), counted, ("athens", proposed(TWO_A, 5))) == []
    assert breaches(ProposalsStandOnPromises(), counted, ("athens", proposed(ONE_B, 5, own=False))) == ["athens"]
    assert breaches(ProposalsStandOnPromises(), ("athens", proposed(TWO_A, 5))) == ["athens"]
