"""Generation clock: durable before anyone hears of it, and one vote per generation (GEN-S3)."""

from __future__ import annotations

import pytest

from faultline.systems_under_test.patterns.data_replication.generation_clock import (
    COMPACT_BYTES,
    CorruptLog,
    GenerationClock,
    LogUnusable,
)
from faultline.testing.memory_storage import Crash, MemoryStorage, keep_all, keep_names_only, keep_nothing


def _clock(storage: MemoryStorage) -> GenerationClock:
    clock = GenerationClock(storage)
    clock.recover()
    return clock


def _promise(clock: GenerationClock) -> tuple[int, str | None]:
    return clock.generation, clock.voted_for


def test_a_new_node_has_seen_no_generation_and_has_not_voted() -> None:
    assert _promise(_clock(MemoryStorage())) == (0, None)


@pytest.mark.rows("LDR-R8", "GEN-R2", "LDR-S5")
def test_a_vote_survives_a_crash_right_after_it_and_is_not_given_twice() -> None:
    storage = MemoryStorage()
    assert _clock(storage).vote(7, "athens")
    storage.crash(keep_nothing)
    clock = _clock(storage)
    assert _promise(clock) == (7, "athens")
    assert not clock.vote(7, "byzantium")
    assert not clock.vote(6, "byzantium")
    assert clock.vote(7, "athens")
    assert _promise(clock) == (7, "athens")


@pytest.mark.rows("GEN-R2", "LDR-I4")
def test_an_adopted_generation_survives_a_crash_right_after_it() -> None:
    storage = MemoryStorage()
    assert _clock(storage).adopt(7)
    storage.crash(keep_nothing)
    assert _promise(_clock(storage)) == (7, None)


def test_adopting_a_higher_generation_clears_the_vote() -> None:
    clock = _clock(MemoryStorage())
    clock.vote(1, "athens")
    assert clock.adopt(2)
    assert _promise(clock) == (2, None)
    assert clock.vote(2, "byzantium")


@pytest.mark.parametrize("generation", [0, 4, 5])
def test_a_generation_that_is_not_higher_changes_nothing(generation: int) -> None:
    storage = MemoryStorage()
    clock = _clock(storage)
    clock.vote(5, "athens")
    effects = storage.effects
    assert not clock.adopt(generation)
    assert _promise(clock) == (5, "athens")
    assert storage.effects == effects


def test_repeating_a_vote_for_the_same_candidate_writes_nothing() -> None:
    storage = MemoryStorage()
    clock = _clock(storage)
    clock.vote(1, "athens")
    effects = storage.effects
    assert clock.vote(1, "athens")
    assert storage.effects == effects


@pytest.mark.rows("GEN-R1")
def test_an_election_takes_the_next_generation_and_the_own_vote() -> None:
    clock = _clock(MemoryStorage())
    clock.adopt(3)
    assert clock.begin_election("athens") == 4
    assert _promise(clock) == (4, "athens")


@pytest.mark.rows("GEN-R2")
def test_the_clock_is_never_behind_the_newest_entry_of_the_log() -> None:
    storage = MemoryStorage()
    clock = GenerationClock(storage)
    clock.recover(generation_min=9)
    assert _promise(clock) == (9, None)
    behind = GenerationClock(storage)
    behind.recover(generation_min=4)
    assert behind.generation == 9


def test_a_torn_promise_is_dropped_at_every_byte_and_the_next_one_is_kept() -> None:
    whole = MemoryStorage()
    clock = _clock(whole)
    clock.adopt(1)
    first = len(whole.read("generation.log"))
    clock.vote(2, "athens")
    data = whole.read("generation.log")
    for size in range(first, len(data)):
        storage = MemoryStorage()
        storage.put("generation.log", data[:size])
        _clock(storage)
        storage.crash(keep_nothing)
        assert storage.read("generation.log") == data[:first]
        clock = _clock(storage)
        assert _promise(clock) == (1, None)
        clock.vote(3, "cyrene")
        storage.crash(keep_nothing)
        assert _promise(_clock(storage)) == (3, "cyrene")


def test_a_changed_promise_before_others_is_noticed() -> None:
    storage = MemoryStorage()
    clock = _clock(storage)
    clock.adopt(1)
    clock.adopt(2)
    storage.damage("generation.log", 0)
    with pytest.raises(CorruptLog, match=r"generation\.log"):
        _clock(storage)


@pytest.mark.parametrize("operation", ["append", "fsync"])
def test_a_promise_that_could_not_be_written_is_not_made_and_no_other_is(operation: str) -> None:
    storage = MemoryStorage()
    clock = _clock(storage)
    clock.vote(1, "athens")
    storage.failing = operation
    with pytest.raises(OSError, match="failed"):
        clock.vote(2, "byzantium")
    assert _promise(clock) == (1, "athens")
    storage.failing = ""
    with pytest.raises(LogUnusable, match="earlier write failed"):
        clock.vote(2, "byzantium")
    assert _clock(storage).generation in (1, 2)


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("keep", ["nothing", "all", "names only"])
def test_the_file_stays_small_over_restarts_and_a_crash_while_it_is_replaced_does_no_harm(
    steps: int, keep: str
) -> None:
    storage = MemoryStorage()
    clock = _clock(storage)
    while len(storage.read("generation.log")) <= COMPACT_BYTES:
        clock.begin_election("athens")
    expected = _promise(clock)
    storage.effects_max = storage.effects + steps
    try:
        assert _promise(_clock(storage)) == expected
    except Crash:
        assert steps < 5
    storage.crash({"nothing": keep_nothing, "all": keep_all, "names only": keep_names_only()}[keep])
    recovered = _clock(storage)
    assert _promise(recovered) == expected
    assert len(storage.read("generation.log")) < 100
    recovered.begin_election("athens")
    storage.crash(keep_nothing)
    assert _clock(storage).generation == expected[0] + 1


def test_a_promise_that_a_killed_process_left_unflushed_is_flushed_before_it_counts() -> None:
    storage = MemoryStorage()
    clock = _clock(storage)
    storage.effects_max = storage.effects + 1
    with pytest.raises(Crash):
        clock.vote(3, "athens")
    storage.effects_max = None
    assert _promise(_clock(storage)) == (3, "athens")
    storage.crash(keep_nothing)
    assert _promise(_clock(storage)) == (3, "athens")


@pytest.mark.rows("GEN-R9")
def test_clocks_of_other_names_are_independent() -> None:
    storage = MemoryStorage()
    _clock(storage).adopt(5)
    incarnation = GenerationClock(storage, "incarnation")
    incarnation.recover()
    assert incarnation.generation == 0
