"""Paxos under any order of messages: lost, late, repeated ones, quorums of any sizes that meet (PAX-I1, PAX-I2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.systems_under_test.patterns.data_replication.paxos import (
    Acceptor,
    Attempt,
    MonotonicId,
    MonotonicIds,
    PaxosQuorums,
    Proposal,
)

NAMES = ("athens", "byzantium", "cyrene", "delphi", "ephesus")


@dataclass(frozen=True)
class Story:
    """The number of members, the sizes of quorums, and the steps: an action, its member and the other one."""

    size: int
    quorums: PaxosQuorums
    steps: tuple[tuple[str, int, int], ...]


def stories(*, safe: bool) -> st.SearchStrategy[Story]:
    """Stories whose quorums meet, or do not."""

    def of_size(size: int) -> st.SearchStrategy[Story]:
        number = st.integers(0, size - 1)
        sizes = [PaxosQuorums(q1, q2) for q1 in range(1, size + 1) for q2 in range(1, size + 1)]
        usable = [quorums for quorums in sizes if quorums.intersect(size) is safe]
        step = st.tuples(st.sampled_from(("begin", "prepare", "accept", "again")), number, number)
        return st.builds(
            Story, st.just(size), st.sampled_from(usable), st.lists(step, max_size=60).map(lambda steps: tuple(steps))
        )

    return st.integers(3, 5).flatmap(of_size)


class _Proposer:
    """One node's present attempt; a step towards an acceptor is the request and its answer."""

    def __init__(self, story: Story, name: str, attempt_class: Callable[..., Attempt]) -> None:
        self.story = story
        self.name = name
        self.own = name.encode()
        self.attempt_class = attempt_class
        self.ids = MonotonicIds(name)
        self.attempt: Attempt | None = None
        self.value: bytes | None = None
        self.sent: list[Proposal] = []

    def begin(self) -> None:
        self.attempt = self.attempt_class(self.ids.next(), NAMES[: self.story.size], self.story.quorums)
        self.value = None

    def prepare(self, member: str, acceptor: Acceptor) -> None:
        if self.attempt is None or self.value is not None:
            return
        self.ids.observe(acceptor.promised)
        if acceptor.prepare(self.attempt.generation) and self.attempt.promised(member, acceptor.accepted):
            adopted = self.attempt.adopted()
            self.value = self.own if adopted is None else adopted
            self.sent.append(Proposal(self.attempt.generation, self.value))

    def accept(self, member: str, acceptor: Acceptor) -> bytes | None:
        """The value that is chosen by this acceptance, if one is."""
        if self.attempt is None or self.value is None:
            return None
        proposal = Proposal(self.attempt.generation, self.value)
        return self.value if acceptor.accept(proposal) and self.attempt.accepted(member) else None

    def again(self, acceptor: Acceptor) -> None:
        """An accept request of an earlier attempt arrives late, or once more; its answer is lost."""
        if self.sent:
            acceptor.accept(self.sent[0])


def values_chosen(
    story: Story, attempt_class: Callable[..., Attempt] = Attempt, acceptor_class: Callable[[], Acceptor] = Acceptor
) -> set[bytes]:
    names = NAMES[: story.size]
    acceptors = {name: acceptor_class() for name in names}
    proposers = {name: _Proposer(story, name, attempt_class) for name in names}
    chosen = set()
    for kind, who, whom in story.steps:
        proposer, member = proposers[names[who]], names[whom]
        if kind == "begin":
            proposer.begin()
        elif kind == "prepare":
            proposer.prepare(member, acceptors[member])
        elif kind == "accept":
            value = proposer.accept(member, acceptors[member])
            chosen |= set() if value is None else {value}
        else:
            proposer.again(acceptors[member])
    return chosen


@pytest.mark.rows("PAX-I1", "PAX-I2", "PAX-R14")
@given(stories(safe=True))
def test_whatever_the_order_of_messages_at_most_one_value_is_chosen_and_it_was_proposed(story: Story) -> None:
    chosen = values_chosen(story)
    assert len(chosen) <= 1
    assert chosen <= {name.encode() for name in NAMES}


class _IgnoresAccepted(Attempt):
    def adopted(self) -> bytes | None:
        return None


class _AcceptsAnything(Acceptor):
    def _may_accept(self, generation: MonotonicId) -> bool:
        return True


def drawn_story(seed: int, *, safe: bool) -> Story:
    """A story drawn from `seed`, for searches that need thousands."""
    rng = Random(seed)
    size = rng.choice((3, 4, 5))
    sizes = [PaxosQuorums(q1, q2) for q1 in range(1, size + 1) for q2 in range(1, size + 1)]
    quorums = rng.choice([quorums for quorums in sizes if quorums.intersect(size) is safe])
    kinds = rng.choices(("begin", "prepare", "accept", "again"), (1, 5, 5, 1), k=80)
    return Story(size, quorums, tuple((kind, rng.randrange(size), rng.randrange(size)) for kind in kinds))


def broken_stories(run: Callable[[Story], set[bytes]], *, safe: bool = True) -> int:
    """Return the number of stories, of a thousand, in which more than one value is chosen."""
    return sum(len(run(drawn_story(seed, safe=safe))) > 1 for seed in range(1_000))


def test_in_a_thousand_drawn_stories_no_two_values_are_chosen() -> None:
    assert broken_stories(values_chosen) == 0
    assert sum(len(values_chosen(drawn_story(seed, safe=True))) == 1 for seed in range(100)) > 10


def test_two_values_are_chosen_when_quorums_do_not_meet() -> None:
    assert broken_stories(values_chosen, safe=False) > 0


def test_two_values_are_chosen_when_accepted_ones_are_ignored() -> None:
    assert broken_stories(lambda story: values_chosen(story, _IgnoresAccepted)) > 0


def test_two_values_are_chosen_when_promises_are_broken() -> None:
    assert broken_stories(lambda story: values_chosen(story, acceptor_class=_AcceptsAnything)) > 0
