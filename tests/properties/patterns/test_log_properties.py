"""Logs under any sequence of appends, flushes, truncations, restarts and crashes (WAL-I5, SEG-I1, SEG-I5)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.segmented_log import SegmentedLog
from faultline.testing.memory_storage import MemoryStorage

Step = tuple[str, int]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 40)),
        st.tuples(st.just("flush"), st.just(0)),
        st.tuples(st.just("truncate"), st.integers(1, 12)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=40,
)


def _log(storage: MemoryStorage, size_max: int) -> SegmentedLog:
    log = SegmentedLog(storage, "wal", size_max)
    log.recover()
    return log


class _History:
    """A log driven step by step, with every content it has had and the effect after which it had it."""

    def __init__(self, size_max: int) -> None:
        self.storage = MemoryStorage()
        self.size_max = size_max
        self.log = _log(self.storage, size_max)
        self.content: list[bytes] = []
        self.states: list[tuple[int, list[bytes]]] = [(0, [])]
        self.flushed = 0

    def run(self, steps: Sequence[Step]) -> None:
        for number, (kind, argument) in enumerate(steps):
            if kind == "append":
                self.content.append(bytes([number]) * argument)
                self.log.append(self.content[-1])
            elif kind == "flush":
                self.log.flush()
                self.flushed = len(self.states)
            elif kind == "truncate":
                self.log.truncate_from(argument)
                del self.content[argument - 1 :]
            else:
                self.log = _log(self.storage, self.size_max)
            self.states.append((self.storage.effects, list(self.content)))

    def must_survive(self, finished: int) -> list[bytes]:
        """The entries that were in the log at the last finished effect and have been there ever since."""
        states = [content for effect, content in self.states if effect >= finished]
        before = [content for effect, content in self.states if effect <= finished]
        return _common_prefix([before[-1], *states]) if finished else []


def _common_prefix(contents: list[list[bytes]]) -> list[bytes]:
    shortest = min(contents, key=len)
    for length in range(len(shortest), -1, -1):
        if all(content[:length] == shortest[:length] for content in contents):
            return shortest[:length]
    raise AssertionError("the empty list is a prefix of all")


@pytest.mark.rows("SEG-I5", "SEG-I1")
@given(STEPS, st.integers(1, 120), st.integers(1, 120))
def test_what_is_read_does_not_depend_on_the_segment_size(steps: list[Step], size: int, other_size: int) -> None:
    one, other = _History(size), _History(other_size)
    one.run(steps)
    other.run(steps)
    for start in range(one.log.last_index + 2):
        assert one.log.read_from(start) == other.log.read_from(start) == one.content[max(0, start - 1) :]


@pytest.mark.rows("WAL-I5", "SEG-I1")
@given(STEPS, st.integers(1, 120), st.booleans(), st.data())
def test_after_a_crash_the_log_is_a_prefix_that_holds_what_was_flushed(
    steps: list[Step], size_max: int, lagging: bool, data: st.DataObject
) -> None:
    history = _History(size_max)
    history.run(steps)
    finished = history.storage.crash(lambda n: data.draw(st.integers(0, n)), lagging=lagging)
    log = _log(history.storage, size_max)
    recovered = log.read_from(1)
    assert any(recovered == content[: len(recovered)] for _, content in history.states)
    survivors = history.must_survive(finished)
    assert recovered[: len(survivors)] == survivors
    log.append(b"next")
    log.flush()
    history.storage.crash()
    assert _log(history.storage, size_max).read_from(1) == [*recovered, b"next"]


@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["", "athens", "byzantium"])), max_size=12),
    st.booleans(),
    st.data(),
)
def test_a_generation_clock_never_goes_back_and_never_forgets_a_vote(
    steps: list[tuple[int, str]], lagging: bool, data: st.DataObject
) -> None:
    storage = MemoryStorage()
    clock = GenerationClock(storage)
    clock.recover()
    promises = [(0, 0, "")]
    for generation, candidate in steps:
        if candidate:
            clock.vote(generation, candidate)
        else:
            clock.adopt(generation)
        promises.append((storage.effects, clock.generation, clock.voted_for or ""))
    finished = storage.crash(lambda n: data.draw(st.integers(0, n)), lagging=lagging)
    recovered = GenerationClock(storage)
    recovered.recover()
    durable = [promise[1:] for promise in promises if promise[0] <= finished]
    later = [promise[1:] for promise in promises if promise[0] > finished]
    assert (recovered.generation, recovered.voted_for or "") in [durable[-1], *later]
