"""Versioned values: floors, ranges, snapshots, deletions, compaction and counters, in every layout alike."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from faultline.systems_under_test.patterns.data_replication.versioned_value import (
    DELETED,
    CountedVersions,
    IndexedVersions,
    OrderedVersions,
    VersionCompacted,
    VersionedStore,
    VersionedValue,
    VersionExists,
)
from faultline.systems_under_test.patterns.data_replication.versioned_value_on_disk import (
    OnDiskVersions,
    UnusableVersions,
    encode_versioned_key,
)


@pytest.fixture(params=["ordered", "indexed", "on-disk"])
def store(request: pytest.FixtureRequest) -> VersionedStore[int]:
    kinds = {"ordered": OrderedVersions[int], "indexed": IndexedVersions[int], "on-disk": OnDiskVersions}
    made: VersionedStore[int] = kinds[request.param]()
    return made


def with_titles(store: VersionedStore[int], *versions: int) -> VersionedStore[int]:
    for version in versions:
        store.put("title", version, f"v{version}")
    return store


def value_of(seen: VersionedValue[Any] | None) -> Any:
    return None if seen is None else seen.value


@pytest.mark.rows("VVL-R6", "VVL-R11", "VVL-S1")
@pytest.mark.parametrize(
    ("at", "expected"),
    [(0, None), (1, "v1"), (2, "v2"), (3, "v3"), (4, "v3"), (5, "v5"), (6, "v5"), (1_000, "v5")],
)
def test_a_read_finds_the_greatest_version_up_to_the_one_asked_for(
    store: VersionedStore[int], at: int, expected: str | None
) -> None:
    assert value_of(with_titles(store, 1, 2, 3, 5).get("title", at)) == expected


@pytest.mark.rows("VVL-R7", "VVL-R11", "VVL-S3")
def test_a_floor_that_belongs_to_a_neighbour_is_nothing(store: VersionedStore[int]) -> None:
    store.put("a", 1, "of a")
    store.put("b", 5, "of b")
    assert store.get("b", 3) is None
    assert store.get("aa", 9) is None
    assert store.latest("aa") is None
    assert store.get("", 9) is None
    assert value_of(store.get("a", 9)) == "of a"


@pytest.mark.rows("VVL-R7")
def test_an_empty_store_has_nothing_to_read(store: VersionedStore[int]) -> None:
    assert store.get("title", 1) is None
    assert store.latest("title") is None
    assert store.range("title", 1, 9) == []
    assert list(store.entries()) == []


@pytest.mark.rows("VVL-R4")
def test_an_entry_is_never_changed(store: VersionedStore[int]) -> None:
    store.put("title", 1, "Nitroservices")
    with pytest.raises(VersionExists):
        store.put("title", 1, "Microservices")
    assert value_of(store.get("title", 1)) == "Nitroservices"


@pytest.mark.rows("VVL-R5")
def test_entries_are_ordered_by_key_then_version(store: VersionedStore[int]) -> None:
    for key, version in (("b", 1), ("a", 10), ("a", 9), ("a", 255), ("a", 256), ("ab", 2), ("a\0", 3)):
        store.put(key, version, None)
    found = [(key, version) for key, version, _ in store.entries()]
    assert found == [("a", 9), ("a", 10), ("a", 255), ("a", 256), ("a\0", 3), ("ab", 2), ("b", 1)]


@pytest.mark.rows("VVL-R8", "VVL-R9", "VVL-R11")
@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (1, 5, [1, 2, 3, 5]),
        (2, 3, [2, 3]),
        (3, 3, [3]),
        (4, 4, []),
        (2, 1_000, [2, 3, 5]),
        (6, 9, []),
        (5, 2, []),
        (0, 0, []),
    ],
)
def test_a_range_includes_both_of_its_ends(
    store: VersionedStore[int], first: int, last: int, expected: list[int]
) -> None:
    with_titles(store, 1, 2, 3, 5).put("titles", 4, "a neighbour")
    assert [entry.version for entry in store.range("title", first, last)] == expected
    assert store.range("unknown", first, last) == []


@pytest.mark.rows("VVL-R12", "VVL-S2", "VVL-I1", "VVL-I4")
def test_a_pinned_reader_sees_one_snapshot_while_others_write(store: VersionedStore[int]) -> None:
    store.put("title", 1, "Nitroservices")
    store.put("author", 2, "unknown")
    reader = store.pinned(2)
    assert reader.get("title") == "Nitroservices"
    for version, key in ((3, "title"), (4, "author"), (5, "publisher")):
        store.put(key, version, "new")
        assert [reader.get(name) for name in ("title", "author", "publisher")] == ["Nitroservices", "unknown", None]
    assert [store.pinned(5).get(name) for name in ("title", "author", "publisher")] == ["new", "new", "new"]


@pytest.mark.rows("VVL-S6")
def test_ranges_between_puts_are_sorted_and_without_gaps(store: VersionedStore[int]) -> None:
    for version in range(1, 40):
        store.put("title" if version % 3 else "other", version, version)
        seen = [entry.version for entry in store.range("title", 1, 1_000)]
        assert seen == [earlier for earlier in range(1, version + 1) if earlier % 3]


@pytest.mark.rows("VVL-S7", "VVL-R8")
def test_a_watcher_is_told_every_later_version_once_and_in_order(store: VersionedStore[int]) -> None:
    told: list[int] = []
    next_version = 4
    for version in range(1, 21):
        store.put("title", 2 * version, f"v{version}")
        if version % 4 == 0:
            events = store.since("title", next_version)
            told += [entry.version for entry in events]
            next_version = events[-1].version + 1 if events else next_version
    assert told == list(range(4, 41, 2))


@pytest.mark.rows("VVL-R16")
def test_a_deletion_is_a_version_and_the_past_stays(store: VersionedStore[int]) -> None:
    with_titles(store, 1).delete("title", 2)
    assert store.latest("title") is None
    assert store.get("title", 7) is None
    assert value_of(store.get("title", 1)) == "v1"
    assert store.range("title", 1, 9) == [(1, "v1"), (2, DELETED)]


@pytest.mark.rows("VVL-R16")
def test_compaction_keeps_what_can_still_be_read_and_refuses_the_rest(store: VersionedStore[int]) -> None:
    with_titles(store, 1, 2, 3, 5)
    store.put("gone", 1, "x")
    store.delete("gone", 3)
    store.put("late", 6, "y")
    before = {(key, at): store.get(key, at) for key in ("title", "gone", "late") for at in range(4, 8)}
    store.compact(4)
    assert {(key, at): store.get(key, at) for key in ("title", "gone", "late") for at in range(4, 8)} == before
    assert [(key, version) for key, version, _ in store.entries()] == [("late", 6), ("title", 3), ("title", 5)]
    for refused in (lambda: store.get("title", 3), lambda: store.range("title", 2, 9), lambda: store.since("title", 3)):
        with pytest.raises(VersionCompacted):
            refused()
    store.compact(2)
    assert store.compacted == 4


@pytest.mark.rows("VVL-R1", "VVL-R3")
def test_one_counter_for_all_keys_gives_the_first_update_version_1(store: VersionedStore[int]) -> None:
    counted = CountedVersions(store)
    assert counted.version == 0
    assert [counted.apply(key, key) for key in ("title", "author", "title")] == [1, 2, 3]
    assert store.versions("title") == [1, 3]


@pytest.mark.rows("VVL-R2", "VVL-R17", "VVL-S4")
def test_replicas_that_apply_one_log_agree_on_versions_and_a_new_leader_goes_on_counting() -> None:
    log = [("title", "Nitroservices"), ("author", "unknown"), ("title", "Microservices")]
    old_leader, follower = CountedVersions(OrderedVersions()), CountedVersions(IndexedVersions())
    assert [old_leader.apply(*entry) for entry in log] == [follower.apply(*entry) for entry in log] == [1, 2, 3]
    assert list(old_leader.store.entries()) == list(follower.store.entries())
    assert follower.apply("title", "after the crash") == 4


@pytest.mark.rows("VVL-R17", "VVL-S5")
def test_a_store_that_is_read_from_its_table_resumes_its_counter() -> None:
    first = OnDiskVersions()
    counted = CountedVersions(first)
    for key, value in (("title", "Nitroservices"), ("title", "Microservices"), ("tags", ["a", {"b": None}])):
        counted.apply(key, value)
    first.delete("tags", 4)
    second = OnDiskVersions()
    second.read(first.table())
    assert list(second.entries()) == list(first.entries())
    assert second.table() == first.table()
    assert CountedVersions(second).apply("title", "new") == 5


@pytest.mark.rows("VVL-S5")
def test_a_log_replayed_into_an_empty_store_gives_the_same_store() -> None:
    log = [(f"k{number % 3}", number) for number in range(20)]
    stores = [CountedVersions(OrderedVersions()) for _ in range(2)]
    for counted, (key, value) in itertools.product(stores, log):
        counted.apply(key, value)
    assert list(stores[0].store.entries()) == list(stores[1].store.entries())


def test_a_table_remembers_what_was_compacted() -> None:
    first, second = OnDiskVersions(), OnDiskVersions()
    with_titles(first, 1, 2, 3).compact(2)
    second.read(first.table())
    assert second.compacted == 2
    with pytest.raises(VersionCompacted):
        second.get("title", 1)


def test_a_table_that_is_something_else_or_out_of_order_is_refused_and_changes_nothing() -> None:
    store = OnDiskVersions()
    store.put("title", 1, "kept")
    with pytest.raises(UnusableVersions, match="no table"):
        store.read(b"not a table at all")
    backwards = [(encode_versioned_key("title", version), b"\x01") for version in (2, 1)]
    with pytest.raises(UnusableVersions, match="order"):
        store.read(msgspec.msgpack.encode((None, backwards)))
    assert store.versions("title") == [1]


@pytest.mark.rows("VVL-R13")
@pytest.mark.parametrize("layout", [OrderedVersions, IndexedVersions])
def test_versions_may_be_hybrid_timestamps(layout: Callable[[], VersionedStore[tuple[int, int]]]) -> None:
    store = layout()
    for version in ((1_000, 0), (1_000, 1), (2_000, 0)):
        store.put("title", version, version)
    assert value_of(store.get("title", (1_000, 9))) == (1_000, 1)
    assert value_of(store.get("title", (999, 9))) is None
    assert [entry.version for entry in store.range("title", (1_000, 1), (3_000, 0))] == [(1_000, 1), (2_000, 0)]


@pytest.mark.rows("VVL-R15")
def test_a_version_covers_the_whole_value(store: VersionedStore[int]) -> None:
    store.put("book", 1, {"title": "Nitroservices", "pages": 100})
    store.put("book", 2, {"title": "Microservices"})
    assert value_of(store.latest("book")) == {"title": "Microservices"}


@pytest.mark.rows("VVL-R10")
def test_a_reader_that_finds_a_version_in_the_index_finds_its_value() -> None:
    assert list(seen_between_the_updates(IndexedVersions)) == [[], [1]]


def seen_between_the_updates(layout: Callable[[], IndexedVersions[int]]) -> list[list[int]]:
    """The range that a reader sees who comes between the two updates of each of two puts."""
    store = layout()
    seen: list[list[int]] = []

    class Interrupted(dict[tuple[str, int], Any]):
        def __setitem__(self, place: tuple[str, int], value: Any) -> None:
            seen.append([entry.version for entry in store.range("title", 1, 9)])
            super().__setitem__(place, value)

    store._values = Interrupted()
    with_titles(store, 1, 2)
    return seen
