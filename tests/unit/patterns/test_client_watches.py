"""The client's side of one watch: what it takes of what servers say late, or twice."""

from __future__ import annotations

import pytest

from faultline.systems_under_test.patterns.cluster_management.state_watch import WatchEvent
from faultline.systems_under_test.reference.leases_and_watches.messages import WatchBatch, WatchState
from faultline.systems_under_test.reference.leases_and_watches.watching_client import ClientWatch

PATH = "config"


def state(index: int, error: str | None = None) -> WatchState:
    return WatchState(PATH, 1, (index, 9), (), error)


def batch(after: int, upto: int) -> WatchBatch:
    return WatchBatch(PATH, 1, (after, 9), (upto, 9), (WatchEvent(upto, 0, PATH, f"v{upto}", False),))


def watching(*, since: int, events_upto: int) -> ClientWatch:
    """A watch that has been told the state and one batch of events."""
    watch = ClientWatch(PATH, 1, 100)
    watch.take_state(state(since))
    assert watch.take_batch(batch(since, events_upto))
    return watch


def told(watch: ClientWatch) -> list[tuple[str, int]]:
    return [(item[0], item[1][0] if item[0] == "state" else item[1]) for item in watch.items]


@pytest.mark.rows("WA-R16")
def test_a_watch_that_begins_anew_does_not_take_an_answer_to_an_earlier_question() -> None:
    watch = watching(since=3, events_upto=5)
    watch.lose("re-armed")
    watch.take_state(state(3))
    assert told(watch) == [("state", 3), ("event", 5)]
    watch.take_state(state(6))
    assert told(watch) == [("state", 3), ("event", 5), ("state", 6)]


def test_a_watch_that_begins_anew_twice_still_knows_how_far_it_had_got() -> None:
    watch = watching(since=3, events_upto=5)
    watch.lose("slow-watcher")
    watch.lose("slow-watcher")
    watch.take_state(state(4))
    assert told(watch) == [("state", 3), ("event", 5)]


def test_a_state_in_the_place_of_lost_events_is_not_older_than_what_was_taken() -> None:
    watch = watching(since=3, events_upto=5)
    watch.take_state(state(4, error="events-compacted"))
    assert told(watch) == [("state", 3), ("event", 5)]
    watch.take_state(state(8, error="events-compacted"))
    assert told(watch)[-1] == ("state", 8)


def test_a_watch_that_begins_anew_takes_the_state_it_had_reached() -> None:
    watch = watching(since=3, events_upto=5)
    watch.lose("re-armed")
    watch.take_state(state(5))
    assert told(watch)[-1] == ("state", 5)
