"""The invariants of the leaderless systems: each says no to the story it is about, and yes to the twin."""

from __future__ import annotations

import msgspec
import pytest

from faultline.harness.invariant import Breach, Invariant
from faultline.systems_under_test.patterns.data_replication.version_vector import (
    DottedVersion,
    VersionedValue,
    VersionVector,
)
from faultline.systems_under_test.reference.quorum_kv.invariants import (
    CountersAreDurable,
    NewerValuesReplaceOlder,
    RefusedWritesAreTakenNowhere,
    SiblingsAreConcurrent,
    VersionsNameOneValue,
    quorum_kv_invariants,
)
from faultline.systems_under_test.reference.quorum_kv.messages import (
    CountersRecovered,
    SiblingsReceived,
    SiblingsStored,
    WriteRefused,
    WriteTaken,
)
from faultline.systems_under_test.reference.quorum_register.invariants import (
    CompletedStoresAreOnAQuorum,
    NothingIsDecidedByTooFew,
    QuorumsShareAMember,
    StampsNameOneValue,
    quorum_register_invariants,
)
from faultline.systems_under_test.reference.quorum_register.messages import (
    AnswersCompleted,
    CopyStored,
    Stamp,
    StoreCompleted,
)
from faultline.systems_under_test.reference.shared.leaderless_node import (
    NodeStarted,
    NothingWaitsForLong,
    OneAnswerPerRequest,
    RequestAnswered,
    RequestTaken,
    WaitingSwept,
)

Story = list[tuple[str, msgspec.Struct]]

OLD, NEW = Stamp(1, "athens", 1), Stamp(2, "athens", 2)


def breaches(invariant: Invariant, story: Story) -> list[str]:
    """The nodes that were accused."""
    found: list[Breach] = []
    for node, event in story:
        assert isinstance(event, invariant.events)
        invariant.observe(0, node, event, found.append)
    assert all(breach.invariant == invariant.id and breach.sentence.endswith(".") for breach in found)
    return [breach.node for breach in found]


@pytest.mark.parametrize("invariants", [quorum_register_invariants, quorum_kv_invariants])
def test_invariants_of_leaderless_systems_are_fresh_for_each_run_and_have_ids_of_their_own(invariants) -> None:
    first, second = invariants(), invariants()
    assert len({invariant.id for invariant in first}) == len(first)
    assert all(one is not other for one, other in zip(first, second, strict=True))


# -- the register -----------------------------------------------------------------------------------------------------


def stored(*replicas: str, needed: int = 2) -> StoreCompleted:
    return StoreCompleted("x", NEW, needed, replicas)


def asked(*replicas: str, needed: int = 2) -> AnswersCompleted:
    return AnswersCompleted("x", needed, replicas)


@pytest.mark.parametrize("asked_first", [False, True])
def test_those_who_are_asked_must_meet_those_who_stored(asked_first: bool) -> None:
    apart: Story = [("athens", stored("athens", "byzantium")), ("cyrene", asked("cyrene", "delphi"))]
    if asked_first:
        apart.reverse()
    assert breaches(QuorumsShareAMember(), apart) == [apart[1][0]]
    together: Story = [("athens", stored("athens", "byzantium")), ("cyrene", asked("byzantium", "cyrene"))]
    assert breaches(QuorumsShareAMember(), together) == []
    of_other_keys: Story = [*apart[:1], ("cyrene", AnswersCompleted("y", 2, ("cyrene", "delphi")))]
    assert breaches(QuorumsShareAMember(), of_other_keys[:1] if asked_first else of_other_keys) == []


def test_two_stores_of_one_replica_each_are_fine_when_all_replicas_are_asked() -> None:
    story: Story = [("athens", stored("athens", needed=1)), ("byzantium", stored("byzantium", needed=1))]
    all_asked = asked("athens", "byzantium", "cyrene", needed=3)
    assert breaches(QuorumsShareAMember(), [*story, ("cyrene", all_asked)]) == []


@pytest.mark.parametrize("completed", [stored, asked])
def test_fewer_than_a_quorum_of_distinct_replicas_decide_nothing(completed) -> None:
    assert breaches(NothingIsDecidedByTooFew(), [("athens", completed("athens", "byzantium"))]) == []
    assert breaches(NothingIsDecidedByTooFew(), [("athens", completed("athens"))]) == ["athens"]
    assert breaches(NothingIsDecidedByTooFew(), [("athens", completed("athens", "athens"))]) == ["athens"]


def test_what_is_called_stored_is_on_a_quorum_or_newer_there() -> None:
    story: Story = [("athens", CopyStored("x", NEW, 5)), ("athens", stored("athens", "byzantium"))]
    assert breaches(CompletedStoresAreOnAQuorum(), story) == ["athens"]
    for stamp, accused in ((NEW, []), (Stamp(3, "cyrene", 1), []), (OLD, ["athens"])):
        with_another: Story = [story[0], ("byzantium", CopyStored("x", stamp, 5)), story[1]]
        assert breaches(CompletedStoresAreOnAQuorum(), with_another) == accused


def test_a_stamp_stands_for_one_value() -> None:
    story: Story = [("athens", CopyStored("x", NEW, 5)), ("byzantium", CopyStored("x", NEW, 5))]
    assert breaches(StampsNameOneValue(), story) == []
    assert breaches(StampsNameOneValue(), [*story, ("cyrene", CopyStored("x", NEW, 6))]) == ["cyrene"]


# -- waiting ----------------------------------------------------------------------------------------------------------


def test_a_request_is_answered_once_by_each_incarnation() -> None:
    request, answer = ("athens", RequestTaken("client-1", 3, 800_000)), ("athens", RequestAnswered("client-1", 3))
    started: Story = [("athens", NodeStarted(2))]
    elsewhere: Story = [("byzantium", RequestTaken("client-1", 3, 800_000)), ("byzantium", answer[1])]
    assert breaches(OneAnswerPerRequest(), [request, answer, *elsewhere, *started, request, answer]) == []
    assert breaches(OneAnswerPerRequest(), [request, answer, answer]) == ["athens"]


@pytest.mark.parametrize(("healed_us", "end_us", "accused"), [(0, 2_000_000, True), (1_500_000, 2_000_000, False)])
def test_a_node_that_lives_answers_in_time_after_the_heal(healed_us: int, end_us: int, accused: bool) -> None:
    request: Story = [("athens", RequestTaken("client-1", 3, 800_000))]
    for story, expected in (
        (request, accused),
        ([*request, ("athens", RequestAnswered("client-1", 3))], False),
        ([*request, ("athens", NodeStarted(2))], False),
    ):
        invariant = OneAnswerPerRequest()
        assert breaches(invariant, story) == []
        found: list[Breach] = []
        invariant.finish(healed_us, end_us, found.append)
        assert [breach.invariant for breach in found] == (["RWL-I1"] if expected else [])


def test_a_wait_older_than_the_expiration_is_a_leak() -> None:
    assert breaches(NothingWaitsForLong(), [("athens", WaitingSwept(3, 200_000, 200_000))]) == []
    assert breaches(NothingWaitsForLong(), [("athens", WaitingSwept(3, 200_001, 200_000))]) == ["athens"]


# -- siblings ---------------------------------------------------------------------------------------------------------


def dotted(value: str, node: str, number: int, **past: int) -> VersionedValue:
    return VersionedValue(value, DottedVersion(node, number, VersionVector(past)))


FIRST, SECOND = dotted("first", "blue", 1), dotted("second", "blue", 2, blue=1)


def holds(*siblings: VersionedValue) -> tuple[str, SiblingsStored]:
    return "blue", SiblingsStored("x", siblings)


def test_siblings_must_be_concurrent() -> None:
    assert breaches(SiblingsAreConcurrent(), [holds(FIRST, dotted("other", "green", 1))]) == []
    assert breaches(SiblingsAreConcurrent(), [holds(FIRST, SECOND)]) == ["blue"]


def test_a_version_names_one_value() -> None:
    story: Story = [("green", SiblingsReceived("x", (FIRST,))), ("red", SiblingsReceived("x", (FIRST,)))]
    assert breaches(VersionsNameOneValue(), story) == []
    other = SiblingsReceived("x", (dotted("another", "blue", 1),))
    assert breaches(VersionsNameOneValue(), [*story, ("red", other)]) == ["red"]


def test_a_value_leaves_a_replica_only_for_a_descendant() -> None:
    assert breaches(NewerValuesReplaceOlder(), [holds(FIRST), holds(SECOND)]) == []
    assert breaches(NewerValuesReplaceOlder(), [holds(SECOND), holds(FIRST)]) == ["blue"]
    assert breaches(NewerValuesReplaceOlder(), [holds(FIRST), holds(dotted("other", "green", 1))]) == ["blue"]


def test_what_a_crash_took_was_not_replaced() -> None:
    restart = ("blue", CountersRecovered({}))
    assert breaches(NewerValuesReplaceOlder(), [holds(SECOND), restart, holds(FIRST)]) == []


def test_a_number_that_others_hold_must_be_recovered() -> None:
    abroad: Story = [("green", SiblingsReceived("x", (SECOND,)))]
    assert breaches(CountersAreDurable(), [*abroad, ("blue", CountersRecovered({"x": 2}))]) == []
    assert breaches(CountersAreDurable(), [*abroad, ("blue", CountersRecovered({"x": 1}))]) == ["blue"]
    assert breaches(CountersAreDurable(), [*abroad, ("green", CountersRecovered({}))]) == []


@pytest.mark.parametrize("refused_first", [False, True])
def test_an_update_that_was_refused_is_taken_nowhere(refused_first: bool) -> None:
    story: Story = [("green", WriteTaken("x", "alice", 1)), ("blue", WriteRefused("x", "alice", 1))]
    if refused_first:
        story.reverse()
    assert breaches(RefusedWritesAreTakenNowhere(), story) == [story[1][0]]
    again: Story = [("blue", WriteRefused("x", "alice", 1)), ("blue", WriteTaken("x", "alice", 2))]
    assert breaches(RefusedWritesAreTakenNowhere(), again) == []
