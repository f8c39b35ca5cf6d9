"""Each invariant of the replicated log says no to what it is about, and accepts its twin."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.invariant import Breach, FinalInvariant
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import BecameLeader, SteppedDown
from faultline.systems_under_test.patterns.data_replication.leader_reads import IndexReadServed
from faultline.systems_under_test.patterns.data_replication.replication_messages import (
    EntriesTruncated,
    HighWaterMarkAdvanced,
)
from faultline.systems_under_test.reference.raft.invariants.agreement import LeaderIsComplete
from faultline.systems_under_test.reference.raft.invariants.replicated_log import (
    AppliedInOrderUpToTheMark,
    CommittedEntriesAreOnAQuorumOfDisks,
    FollowersConverge,
    FollowersTrailTheLeader,
    LeadersOnlyAppend,
    ReadsWaitForTheNoOp,
)
from faultline.systems_under_test.reference.shared.trace_events import (
    EntryApplied,
    NodeStarted,
    StateRestored,
)

Story = list[tuple[str, Any]]


def mark(value: int, *, generation: int = 1, leading: bool = False) -> HighWaterMarkAdvanced:
    return HighWaterMarkAdvanced(generation, value, generation, leading)


def applied(index: int, generation: int = 1) -> EntryApplied:
    return EntryApplied(index, generation, 0, 0, 0, False)


def breaches(invariant: Any, story: Story, lasts_us: int = 2_000_000) -> list[str]:
    found: list[Breach] = []
    for time_us, (node, event) in enumerate(story):
        assert isinstance(event, invariant.events)
        invariant.observe(time_us, node, event, found.append)
    if isinstance(invariant, FinalInvariant):
        invariant.finish(len(story) - 2, len(story) + lasts_us, found.append)
    return [breach.sentence for breach in found]


STARTS: Story = [(name, NodeStarted(0, 0)) for name in ("athens", "byzantium", "cyrene")]
FIVE_START: Story = [*STARTS, ("delphi", NodeStarted(0, 0)), ("ephesus", NodeStarted(0, 0))]
LEADER = BecameLeader(1, 0, 0)
CUT = EntriesTruncated(3, 4, 2)
SNAPSHOT = StateRestored(7, 1, 0, 0, 9, False)
CASES: list[tuple[type[Any], Story, str | None]] = [
    (LeadersOnlyAppend, [("athens", LEADER), ("athens", CUT)], "athens cut its log at 3 while it led generation 1."),
    (LeadersOnlyAppend, [("athens", LEADER), ("byzantium", CUT)], None),
    (LeadersOnlyAppend, [("athens", LEADER), ("athens", SteppedDown(1)), ("athens", CUT)], None),
    (LeadersOnlyAppend, [("athens", LEADER), ("athens", NodeStarted(1, 4)), ("athens", CUT)], None),
    (AppliedInOrderUpToTheMark, [("a", mark(2)), ("a", applied(1)), ("a", applied(2))], None),
    (
        AppliedInOrderUpToTheMark,
        [("a", mark(2)), ("a", applied(2)), ("a", applied(1))],
        "a applied entry 1 after entry 2.",
    ),
    (
        AppliedInOrderUpToTheMark,
        [("a", mark(2)), ("a", applied(1)), ("a", applied(1))],
        "a applied entry 1 after entry 1.",
    ),
    (AppliedInOrderUpToTheMark, [("a", mark(1)), ("a", applied(2))], "a applied entry 2 above its mark 1."),
    (
        AppliedInOrderUpToTheMark,
        [("a", mark(1)), ("a", applied(1)), ("a", NodeStarted(1, 1)), ("a", mark(1)), ("a", applied(1))],
        None,
    ),
    (
        AppliedInOrderUpToTheMark,
        [("a", NodeStarted(1, 9)), ("a", SNAPSHOT), ("a", mark(8)), ("a", applied(8))],
        None,
    ),
    (
        AppliedInOrderUpToTheMark,
        [("a", NodeStarted(1, 9)), ("a", SNAPSHOT), ("a", mark(8)), ("a", applied(7))],
        "a applied entry 7 after entry 7.",
    ),
    (FollowersTrailTheLeader, [("a", LEADER), ("a", mark(2, leading=True)), ("b", mark(2))], None),
    (
        FollowersTrailTheLeader,
        [("a", LEADER), ("a", mark(2, leading=True)), ("b", mark(3))],
        "b moved its mark to 3 in generation 1, whose leader had reached 2.",
    ),
    (FollowersTrailTheLeader, [("a", SNAPSHOT), ("a", LEADER), ("b", mark(7))], None),
    (FollowersTrailTheLeader, [("a", mark(5, generation=0)), ("a", LEADER), ("b", mark(5))], None),
    (
        CommittedEntriesAreOnAQuorumOfDisks,
        [*STARTS, ("athens", mark(4, leading=True)), ("byzantium", NodeStarted(1, 3))],
        None,
    ),
    (
        CommittedEntriesAreOnAQuorumOfDisks,
        [*STARTS, ("athens", mark(4)), ("byzantium", NodeStarted(1, 3)), ("cyrene", NodeStarted(1, 2))],
        "Entry 4 was committed, and of 3 servers byzantium, cyrene started without it.",
    ),
    (
        CommittedEntriesAreOnAQuorumOfDisks,
        [*STARTS, ("athens", mark(4)), ("byzantium", NodeStarted(1, 3)), ("byzantium", NodeStarted(1, 3))],
        None,
    ),
    (
        CommittedEntriesAreOnAQuorumOfDisks,
        [
            *STARTS,
            ("athens", mark(4)),
            ("byzantium", NodeStarted(1, 3)),
            ("athens", mark(6)),
            ("cyrene", NodeStarted(1, 5)),
        ],
        None,
    ),
    (
        CommittedEntriesAreOnAQuorumOfDisks,
        [
            *FIVE_START,
            ("athens", mark(72)),
            ("byzantium", NodeStarted(1, 65)),
            ("athens", mark(77)),
            ("delphi", NodeStarted(1, 75)),
            ("cyrene", NodeStarted(1, 65)),
        ],
        None,
    ),
    (
        CommittedEntriesAreOnAQuorumOfDisks,
        [
            *FIVE_START,
            ("athens", mark(72)),
            ("byzantium", NodeStarted(1, 65)),
            ("delphi", NodeStarted(1, 70)),
            ("athens", mark(77)),
            ("cyrene", NodeStarted(1, 65)),
        ],
        "Entry 72 was committed, and of 5 servers byzantium, cyrene, delphi started without it.",
    ),
    (ReadsWaitForTheNoOp, [("a", applied(1, 1)), ("a", IndexReadServed(1))], None),
    (
        ReadsWaitForTheNoOp,
        [("a", applied(1, 1)), ("a", IndexReadServed(2))],
        "a answered a read in generation 2 before it had applied an entry of it.",
    ),
    (
        ReadsWaitForTheNoOp,
        [("a", applied(1, 1)), ("a", NodeStarted(1, 1)), ("a", IndexReadServed(1))],
        "a answered a read in generation 1 before it had applied an entry of it.",
    ),
    (FollowersConverge, [("a", mark(1)), ("a", applied(1)), ("b", applied(1)), ("a", mark(2))], None),
    (FollowersConverge, [("a", mark(7)), ("b", SNAPSHOT), ("a", mark(8))], None),
    (
        FollowersConverge,
        [*STARTS[:2], ("athens", mark(1)), ("athens", applied(1))],
        "byzantium had applied entries up to 0 at the end; 1 was committed before the heal.",
    ),
    (
        FollowersConverge,
        [("a", mark(1)), ("a", applied(1)), ("a", NodeStarted(1, 1))],
        "a had applied entries up to 0 at the end; 1 was committed before the heal.",
    ),
]


@pytest.mark.rows("HWM-I2", "LOG-I9")
@pytest.mark.parametrize(("kind", "story", "sentence"), CASES)
def test_an_invariant_of_the_log_refuses_what_it_is_about_and_accepts_its_twin(
    kind: type[Any], story: Story, sentence: str | None
) -> None:
    assert breaches(kind(), story) == ([] if sentence is None else [sentence])


def test_a_server_that_started_just_before_the_end_need_not_have_applied_its_log_yet() -> None:
    story: Story = [("a", mark(1)), ("a", applied(1)), ("a", NodeStarted(1, 1))]
    assert breaches(FollowersConverge(), story, lasts_us=1_000_000) == []
    assert len(breaches(FollowersConverge(), story)) == 1


@pytest.mark.parametrize("moved", [("byzantium", applied(1)), ("athens", LEADER)])
def test_a_server_that_is_behind_is_not_stuck_while_it_applies_entries_or_has_a_new_leader(
    moved: tuple[str, Any],
) -> None:
    invariant = FollowersConverge()
    found: list[Breach] = []
    for time_us, (node, event) in enumerate([*STARTS[:2], ("athens", mark(2)), ("athens", applied(2))]):
        invariant.observe(time_us, node, event, found.append)
    invariant.observe(2_000_000, *moved, found.append)
    invariant.finish(1_000_000, 2_100_000, found.append)
    assert found == []
    invariant.finish(1_000_000, 2_600_000, found.append)
    assert [breach.node for breach in found] == ["byzantium"]


@pytest.mark.rows("LOG-I4")
def test_a_leader_whose_log_ends_before_a_committed_entry_is_found_whichever_is_reported_first() -> None:
    commit, leader = ("athens", mark(4, leading=True)), ("byzantium", BecameLeader(2, 3, 1))
    assert len(breaches(LeaderIsComplete(), [commit, leader])) == 1
    assert len(breaches(LeaderIsComplete(), [leader, commit])) == 1
    assert breaches(LeaderIsComplete(), [commit, ("byzantium", BecameLeader(2, 4, 1))]) == []
