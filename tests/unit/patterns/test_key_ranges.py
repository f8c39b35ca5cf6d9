"""Key-range partitions by themselves: ranges, the table and its commands, where to split, the data of a partition."""

from __future__ import annotations

from random import Random

import pytest

from faultline.systems_under_test.patterns.data_partitioning.kept_sizes import with_kept_sizes
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import (
    EVERYTHING,
    MAX_KEY,
    KeyRange,
    Partition,
    PartitionMap,
    UnsuitableSplit,
    arranged,
    least_loaded,
    ranges_between,
)
from faultline.systems_under_test.patterns.data_partitioning.range_partition import (
    RangePartition,
    middle_key,
    middle_of_requests,
    size_of,
)
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    ConfirmPartition,
    CreateTable,
    RangeTable,
    SplitPartition,
)

A, B, C = "athens", "byzantium", "cyrene"


def partition_of(**values: str) -> RangePartition:
    return RangePartition(Partition(1, EVERYTHING, 1, A), sorted(values.items()))


def table(*splits: str) -> RangeTable:
    """A table whose first partitions are confirmed."""
    made = RangeTable()
    assert made.apply(CreateTable(tuple(arranged(ranges_between(splits), (A, B, C)))))
    for number in list(made.tasks):
        assert made.apply(ConfirmPartition(number))
    return made


# -- ranges ----------------------------------------------------------------------------------------------------------


@pytest.mark.rows("KRP-R1", "KRP-R3", "KRP-S11")
@pytest.mark.parametrize(
    ("key", "inside"),
    [("b", True), ("bb", True), ("c\U0010ffff", True), ("d", False), ("", False), ("a", False), ("é", False)],
)
def test_a_range_has_its_start_and_all_keys_below_its_end(key: str, inside: bool) -> None:
    assert KeyRange("b", "d").contains(key) is inside


@pytest.mark.rows("KRP-R1", "KRP-R5", "KRP-S11")
def test_the_last_range_ends_above_all_keys_and_not_at_the_empty_one() -> None:
    first, last = ranges_between(["é"])
    assert first.contains("")
    assert last.end is MAX_KEY
    assert last.contains("é")
    assert last.contains("\U0010ffff\U0010ffff")
    assert not KeyRange("", "").contains("")


@pytest.mark.rows("KRP-R3")
@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        (KeyRange("a", "c"), KeyRange("b", "d"), True),
        (KeyRange("a", "c"), KeyRange("c", "d"), False),
        (KeyRange("c", MAX_KEY), KeyRange("", "d"), True),
        (KeyRange("c", MAX_KEY), KeyRange("", "c"), False),
        (EVERYTHING, KeyRange("x", "y"), True),
    ],
)
def test_ranges_overlap_when_one_has_the_start_of_the_other(one: KeyRange, other: KeyRange, overlap: bool) -> None:
    assert one.overlaps(other) is overlap
    assert other.overlaps(one) is overlap


@pytest.mark.rows("KRP-R2", "KRP-I1")
def test_predefined_splits_are_dealt_to_the_members_in_turn() -> None:
    partitions = arranged(ranges_between(["b", "d"]), (A, B, C))
    assert [(str(each.range), each.address) for each in partitions] == [
        ("['', 'b')", A),
        ("['b', 'd')", B),
        ("['d', MAX)", C),
    ]
    assert [each.range for each in arranged(ranges_between([]), (A, B, C))] == [EVERYTHING]


@pytest.mark.rows("KRP-R2")
@pytest.mark.parametrize("splits", [["d", "b"], ["b", "b"], ["", "b"]])
def test_splits_out_of_order_or_empty_are_refused(splits: list[str]) -> None:
    with pytest.raises(UnsuitableSplit, match="must ascend"):
        ranges_between(splits)


@pytest.mark.rows("KRP-R11", "KRP-R15", "KRP-M6")
@pytest.mark.parametrize("key", ["b", "d", "a", "z"])
def test_a_range_is_never_split_so_that_one_side_is_empty(key: str) -> None:
    with pytest.raises(UnsuitableSplit, match="empty"):
        KeyRange("b", "d").split(key)


@pytest.mark.rows("KRP-R4", "KRP-M8")
def test_the_partitions_of_a_query_come_in_the_order_of_their_keys() -> None:
    scrambled = PartitionMap(
        [
            Partition(1, KeyRange("d", MAX_KEY), 1, A),
            Partition(2, KeyRange("", "b"), 1, B),
            Partition(3, KeyRange("b", "d"), 1, C),
        ]
    )
    assert [each.id for each in scrambled.partitions_in(KeyRange("a", "d"))] == [2, 3]
    assert [each.id for each in scrambled.partitions_in(EVERYTHING)] == [2, 3, 1]
    found = scrambled.partition_for("d")
    assert found is not None
    assert found.id == 1
    assert PartitionMap().partition_for("d") is None


def test_the_member_with_the_fewest_partitions_is_taken_and_the_first_of_several() -> None:
    assert least_loaded([C, B], table("b", "d", "f").partitions) == B
    assert least_loaded([], {}) is None


# -- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.rows("KRP-R13", "KRP-R18", "KRP-I4")
def test_a_split_shrinks_the_parent_and_raises_the_generation_of_both_halves() -> None:
    ranges = table("b")
    split = ranges.split_of(2, 1, "k", "size")
    assert split is not None
    assert ranges.apply(split)
    assert ranges.partitions[2] == Partition(2, KeyRange("b", "k"), 2, B)
    assert ranges.partitions[3] == Partition(3, KeyRange("k", MAX_KEY), 2, B)
    assert not ranges.is_online(2)
    assert ranges.apply(ConfirmPartition(3))
    assert ranges.is_online(2)
    assert ranges.is_online(3)


@pytest.mark.rows("KRP-R20")
def test_with_two_new_ids_the_parent_is_retired() -> None:
    ranges = table("b")
    split = ranges.split_of(2, 1, "k", "size", keeps_parent=False)
    assert split is not None
    assert ranges.apply(split)
    assert sorted(ranges.partitions) == [1, 3, 4]
    assert ranges.split_of(2, 1, "m", "size") is None


@pytest.mark.rows("KRP-S4", "KRP-R14")
@pytest.mark.parametrize("keeps_parent", [True, False])
def test_of_two_splits_proposed_for_one_range_the_second_is_ignored(keeps_parent: bool) -> None:
    ranges = table()
    both = [ranges.split_of(1, 1, "k", "size", keeps_parent=keeps_parent) for _ in range(2)]
    assert [ranges.apply(split) for split in both if split is not None] == [True, False]
    assert len(ranges.partitions) == 2


@pytest.mark.rows("KRP-S4", "KRP-R15", "KRP-I1")
def test_a_trigger_that_comes_again_after_the_split_is_refused() -> None:
    ranges = table()
    split = ranges.split_of(1, 1, "k", "size")
    assert split is not None
    assert ranges.apply(split)
    assert ranges.split_of(1, 1, "k", "size") is None
    assert ranges.split_of(1, 2, "k", "size") is None, "busy"
    assert ranges.apply(ConfirmPartition(2))
    assert ranges.split_of(1, 2, "k", "size") is None, "the left side is ['', 'k')"
    assert ranges.split_of(2, 2, "k", "size") is None, "the left side would be empty"
    left, right = Partition(2, KeyRange("k", "k"), 3, A), Partition(3, KeyRange("k", MAX_KEY), 3, A)
    assert not ranges.apply(SplitPartition(2, left, right))


def test_a_move_gives_a_new_address_and_generation_and_is_made_once() -> None:
    ranges = table("b")
    move = ranges.move_of(1, C)
    assert move is not None
    assert ranges.apply(move)
    assert not ranges.apply(move)
    assert ranges.partitions[1] == Partition(1, KeyRange("", "b"), 2, C)
    assert ranges.move_of(1, A) is None, "busy"
    assert ranges.apply(ConfirmPartition(1))
    assert not ranges.apply(ConfirmPartition(1))
    assert ranges.move_of(1, C) is None, "it is there"


def test_a_second_first_table_is_ignored() -> None:
    ranges = table("b")
    assert not ranges.apply(CreateTable(tuple(arranged(ranges_between(["x"]), (A,)))))
    assert len(ranges.partitions) == 2


# -- where to split --------------------------------------------------------------------------------------------------


@pytest.mark.rows("KRP-R9", "KRP-R10")
@pytest.mark.parametrize(
    ("sizes", "key"),
    [
        ([("a", 5), ("b", 5)], "b"),
        ([("a", 1), ("b", 1), ("c", 1), ("d", 1)], "c"),
        ([("a", 9), ("b", 1), ("c", 1)], "b"),
        ([("a", 1), ("b", 1), ("c", 9)], "c"),
    ],
)
def test_the_middle_key_has_half_of_the_bytes_before_it(sizes: list[tuple[str, int]], key: str) -> None:
    assert middle_key(sizes) == key


@pytest.mark.rows("KRP-R11", "KRP-S9")
def test_fewer_than_two_keys_have_no_middle() -> None:
    assert middle_key([("a", 1_000_000)]) is None
    assert middle_key([]) is None
    assert not partition_of(a="x" * 1_000).is_divided_by("a")


@pytest.mark.rows("KRP-R21")
def test_the_key_that_halves_the_requests_follows_the_requests_and_not_the_keys() -> None:
    assert middle_of_requests({"a": 1, "x": 10, "y": 1, "z": 10}) == "y"
    assert middle_of_requests({"x": 1_000}) is None


# -- the data --------------------------------------------------------------------------------------------------------


@pytest.mark.rows("KRP-R5", "KRP-I3", "KRP-M7")
def test_a_scan_is_cut_to_the_partition_also_where_that_has_no_end() -> None:
    last = RangePartition(Partition(1, KeyRange("b", MAX_KEY), 1, A), [("b", 1), ("c", 2), ("d", 3)])
    assert last.scan(EVERYTHING) == [("b", 1), ("c", 2), ("d", 3)]
    assert last.scan(KeyRange("a", "c")) == [("b", 1)]
    assert last.scan(KeyRange("c", MAX_KEY)) == [("c", 2), ("d", 3)]
    assert last.scan(KeyRange("", "b")) == []


@pytest.mark.rows("KRP-M3", "KRP-I2", "KRP-S11")
def test_the_key_at_the_boundary_goes_to_the_upper_half_and_no_key_to_both() -> None:
    parent = partition_of(k="1", ka="2", kb="3", é="4")
    left, right = (Partition(each, bounds, 2, A) for each, bounds in enumerate(EVERYTHING.split("ka"), start=1))
    lower, upper = parent.split(left, right)
    assert lower.keys == ["k"]
    assert upper.keys == ["ka", "kb", "é"]


def test_a_deleted_key_is_gone_from_reads_scans_and_sizes() -> None:
    partition = partition_of(a="1", b="2")
    partition.delete("a")
    partition.delete("never there")
    assert partition.get("a") is None
    assert partition.entries() == [("b", "2")]
    assert partition.size() == 2
    partition.put("c", None)
    assert partition.has("c")
    assert not partition.has("a")


def test_sizes_are_bytes_and_not_letters() -> None:
    assert size_of("é", "ü") == 4
    assert size_of("k", [1, 2]) == 6


@pytest.mark.rows("KRP-R12")
@pytest.mark.parametrize("seed", range(8))
def test_kept_sizes_are_exact_and_their_middle_lies_within_a_block_of_the_true_one(seed: int) -> None:
    rng = Random(seed)
    info = Partition(1, EVERYTHING, 1, A)
    kept, scanned = with_kept_sizes(RangePartition, 1_600)(info), RangePartition(info)
    for _ in range(600):
        key, value = f"{rng.randrange(150):03}", "v" * rng.randrange(1, 30)
        for partition in (kept, scanned):
            partition.put(key, value) if value > "v" * 5 else partition.delete(key)
    assert kept.size() == scanned.size()
    middle = middle_key(kept.sizes())
    assert middle is not None
    below = sum(size for key, size in scanned.sizes() if key < middle)
    assert abs(below - scanned.size() / 2) < 2 * 100
    assert len(kept.sizes()) < len(scanned.sizes())


@pytest.mark.rows("KRP-R12")
def test_blocks_whose_keys_were_deleted_are_no_place_to_split_at() -> None:
    partition = with_kept_sizes(RangePartition, 16)(Partition(1, EVERYTHING, 1, A))
    for key, value in (("a", "1"), ("b", "2" * 9), ("c", "3"), ("d", "4")):
        partition.put(key, value)
    partition.delete("c")
    partition.delete("d")
    assert middle_key(partition.sizes()) == "b"


@pytest.mark.rows("KRP-R12")
def test_halves_of_a_partition_with_kept_sizes_keep_sizes_too() -> None:
    parent = with_kept_sizes(RangePartition, 16)(Partition(1, EVERYTHING, 1, A), [("a", "1"), ("b", "2"), ("c", "3")])
    halves = [Partition(each, bounds, 2, A) for each, bounds in enumerate(EVERYTHING.split("b"), start=1)]
    assert [half.size() for half in parent.split(*halves)] == [2, 4]
    assert [half.sizes()[0][1] for half in parent.split(*halves)] == [2, 2]
