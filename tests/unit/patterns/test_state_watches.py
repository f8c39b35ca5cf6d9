"""Watches: which keys a path stands for, what is kept of the past, and who is to be told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faultline.systems_under_test.patterns.cluster_management.state_watch import (
    START,
    BoundedHistory,
    EventsCompacted,
    EventSource,
    StoredState,
    VersionedHistory,
    Watch,
    WatchEvent,
    WatchRegistry,
    is_below,
    levels,
)

A, B = Watch("client-1", "servers", 1), Watch("client-2", "servers", 1)
KEPT = 100
SOURCES: list[Callable[[int], EventSource]] = [BoundedHistory, VersionedHistory]
both = pytest.mark.parametrize("new_source", SOURCES, ids=["history", "versions"])


def event(index: int, key: str = "servers/1", ordinal: int = 0) -> WatchEvent:
    return WatchEvent(index, ordinal, key, f"value {index}")


@pytest.mark.rows("WA-R12", "CC-R7", "CC-R5", "WA-S10")
def test_a_path_stands_for_itself_and_what_is_below_it_by_whole_segments() -> None:
    assert list(levels("a/b/c")) == ["a", "a/b", "a/b/c"]
    assert list(levels("/servers/1")) == ["/servers", "/servers/1"]
    assert is_below("servers", "servers/1") and is_below("servers", "servers")
    assert not is_below("servers", "servers2") and not is_below("servers/1", "servers/10")


@both
@pytest.mark.rows("WA-R17", "WA-R18", "WA-R15")
def test_replay_has_what_came_after_the_position_below_the_path_in_order(
    new_source: Callable[[int], EventSource],
) -> None:
    source = new_source(KEPT)
    for each in (event(1), event(2, "servers2/1"), event(3, "servers/2"), event(4)):
        source.record(each)
    assert [each.index for each in source.since("servers", (1, 0))] == [3, 4]
    assert [each.index for each in source.since("servers", START)] == [1, 3, 4]


@both
@pytest.mark.rows("WA-R25", "WA-S14")
def test_events_of_one_entry_are_told_apart_by_their_ordinal(new_source: Callable[[int], EventSource]) -> None:
    source = new_source(KEPT)
    for ordinal in range(3):
        source.record(WatchEvent(50, ordinal, f"servers/{ordinal}", None, True))
    missed = source.since("servers", (50, 0))
    assert [each.position for each in missed] == [(50, 1), (50, 2)]
    assert all(each.is_deleted for each in missed)


@both
@pytest.mark.rows("WA-R26", "WA-S4")
def test_who_needs_more_than_is_kept_is_told_so(new_source: Callable[[int], EventSource]) -> None:
    source = new_source(KEPT)
    for index in range(1, 3 * KEPT):
        source.record(event(index))
    with pytest.raises(EventsCompacted, match="not kept"):
        source.since("servers", (1, 0))
    newest = source.since("servers", (3 * KEPT - KEPT, 0))
    assert [each.index for each in newest] == list(range(2 * KEPT + 1, 3 * KEPT))


@both
@pytest.mark.rows("WA-S4")
def test_exactly_as_many_events_as_are_kept_can_be_missed_without_a_gap(
    new_source: Callable[[int], EventSource],
) -> None:
    source = new_source(KEPT)
    for index in range(1, KEPT + 2):
        source.record(event(index))
    assert len(source.since("servers", (1, 0))) == KEPT


@both
@pytest.mark.rows("WA-R27")
def test_what_is_kept_and_where_it_begins_survive_a_snapshot(new_source: Callable[[int], EventSource]) -> None:
    source, other = new_source(KEPT), new_source(KEPT)
    for index in range(1, 2 * KEPT):
        source.record(event(index, f"servers/{index % 7}"))
    other.restore(*source.content())
    assert other.content() == source.content()
    with pytest.raises(EventsCompacted):
        other.since("servers", START)
    assert other.since("servers", (KEPT + 50, 0)) == source.since("servers", (KEPT + 50, 0))


@pytest.mark.rows("WA-R16")
def test_the_state_alone_cannot_tell_what_happened_in_between() -> None:
    source = StoredState()
    source.record(event(1))
    with pytest.raises(EventsCompacted, match="no events are kept"):
        source.since("servers", START)


@pytest.mark.rows("WA-R7", "WA-S7", "WA-R8")
def test_all_watchers_of_a_path_are_told_and_one_that_leaves_takes_no_other_with_it() -> None:
    registry = WatchRegistry(10)
    registry.add(A, (5, 0), ())
    registry.add(B, (5, 0), ())
    assert registry.of_key("servers/1") == [A, B]
    registry.remove_client(A.client)
    assert registry.of_key("servers/1") == [B]
    assert registry.is_consistent()


@pytest.mark.rows("WA-S7", "WA-R6", "WA-I6", "WA-S9")
def test_nothing_is_left_over_of_a_client_that_watched_twice() -> None:
    registry = WatchRegistry(10)
    for _ in range(2):
        registry.add(A, (5, 0), ())
    registry.add(A._replace(path="servers/1"), (5, 0), ())
    registry.remove_client(A.client)
    assert len(registry) == 0 and registry.is_consistent() and registry.content() == {}


@pytest.mark.rows("WA-R13", "WA-S10")
def test_nested_watches_are_each_told_once() -> None:
    registry = WatchRegistry(10)
    watches = [A._replace(path=path) for path in ("a", "a/b", "a/b/c")]
    for watch in watches:
        registry.add(watch, START, ())
    assert registry.of_key("a/b/c") == watches
    assert registry.of_key("a/x") == watches[:1]


@pytest.mark.rows("WA-R22")
def test_a_watcher_with_too_much_unconfirmed_is_cancelled_and_others_are_not() -> None:
    registry = WatchRegistry(3)
    registry.add(A, START, ())
    registry.add(B, START, ())
    for index in range(1, 4):
        assert registry.send(A, [event(index)]) == (index - 1, 0)
    assert registry.send(A, [event(4)]) is None
    assert registry.of_key("servers/1") == [B] and registry.is_consistent()


@pytest.mark.rows("WA-R22")
def test_a_confirmation_makes_room() -> None:
    registry = WatchRegistry(3)
    registry.add(A, START, ())
    for index in range(1, 4):
        registry.send(A, [event(index)])
    registry.add(A, (3, 0), [event(3)])
    assert registry.send(A, [event(4)]) == (3, 0)


# -- planted bugs that the confirmations of the system heal before a client notices ----------------


class OneWatcherPerPath(WatchRegistry):
    """WA-M1: the last watcher of a path takes the place of the one before."""

    def add(self, watch: Watch, sent: tuple[int, int], unconfirmed: object) -> None:
        for other in self.of_key(watch.path):
            if other.path == watch.path:
                self.remove(other)
        super().add(watch, sent, ())


class NearestOnly(WatchRegistry):
    """WA-M12: only the watch that is nearest to the key is told."""

    def of_key(self, key: str) -> list[Watch]:
        return super().of_key(key)[-1:]


@pytest.mark.rows("WA-M1")
@pytest.mark.parametrize(("registry_type", "is_right"), [(WatchRegistry, True), (OneWatcherPerPath, False)])
def test_a_registry_with_one_watcher_per_path_forgets_the_first(
    registry_type: type[WatchRegistry], is_right: bool
) -> None:
    registry = registry_type(10)
    registry.add(A, START, ())
    registry.add(B, START, ())
    assert (registry.of_key("servers/1") == [A, B]) is is_right


@pytest.mark.rows("WA-M12")
@pytest.mark.parametrize(("registry_type", "is_right"), [(WatchRegistry, True), (NearestOnly, False)])
def test_a_registry_that_tells_the_nearest_watch_only_leaves_the_outer_ones_out(
    registry_type: type[WatchRegistry], is_right: bool
) -> None:
    registry = registry_type(10)
    registry.add(A, START, ())
    registry.add(A._replace(path="servers/1"), START, ())
    assert (len(registry.of_key("servers/1")) == 2) is is_right
