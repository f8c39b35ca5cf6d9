"""The system `range-kv`: its options, its host's log at a crash, and what each of its invariants refuses."""

from __future__ import annotations

from typing import Any, cast

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.invariant import Breach
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.world.ports import Ports
from faultline.registry import resolve
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import (
    EVERYTHING,
    MAX_KEY,
    KeyRange,
    Partition,
)
from faultline.systems_under_test.patterns.data_partitioning.range_table import HostPartition, SplitPartition
from faultline.systems_under_test.reference.range_kv.invariants import (
    BigPartitionsAreSplit,
    GenerationsRule,
    KeysLieInTheirRange,
    SplitsAreDue,
)
from faultline.systems_under_test.reference.range_kv.messages import (
    KeysStored,
    RequestServed,
    SizesChecked,
    SplitProposed,
)
from faultline.systems_under_test.reference.range_kv.options import RangeSettings
from faultline.systems_under_test.reference.range_kv.planted_bugs import BUGS
from faultline.systems_under_test.reference.range_kv.store import PartitionStore, StoredKey
from faultline.systems_under_test.reference.ranges.invariants import RangesTile
from faultline.systems_under_test.reference.ranges.messages import ProposalReceived, TableChanged
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import MemoryStorage

A, B = "athens", "byzantium"


def breaches(invariant: Any, *events: tuple[str, Any]) -> list[Breach]:
    found: list[Breach] = []
    for time_us, (node, event) in enumerate(events):
        invariant.observe(time_us, node, event, found.append)
    return found


# -- options ---------------------------------------------------------------------------------------------------------


def test_without_options_sizes_and_times_are_those_of_the_pattern() -> None:
    settings = RangeSettings.read({})
    assert settings.splits == ()
    assert settings.partition_size_max == 1_000
    assert settings.split_check_us == 1_000_000
    assert settings.keeps_parent


@pytest.mark.rows("KRP-R2")
@pytest.mark.parametrize("splits", ["d,b", "b,b", "b,,d"])
def test_splits_that_make_no_ranges_are_refused_with_an_example(splits: str) -> None:
    with pytest.raises(UsageError, match="splits"):
        RangeSettings.read({"splits": splits})


@pytest.mark.parametrize(
    "options", [{"partition_size_max": "0"}, {"split_by": "taste"}, {"sizes": "guess"}, {"colour": "red"}]
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        RangeSettings.read(options)


def test_an_option_may_be_text_and_others_are_still_numbers() -> None:
    request = RunRequest(system="range-kv", workload="scans", options={"splits": "b,é"})
    assert make_plan(request, resolve(request)).options["splits"] == "b,é"
    wrong = RunRequest(system="range-kv", workload="scans", options={"partition_size_max": "many"})
    with pytest.raises(UsageError, match="whole number"):
        make_plan(wrong, resolve(wrong))


def test_an_unknown_bug_is_refused() -> None:
    with pytest.raises(UsageError, match="range-kv has no planted bug"):
        BUGS.parts(["no-such-bug"])


# -- the host's log --------------------------------------------------------------------------------------------------


def recovered(storage: MemoryStorage) -> PartitionStore:
    store = PartitionStore(cast("Ports", FakePorts("athens", storage)))
    store.recover()
    return store


@pytest.mark.rows("KRP-R17", "KRP-M5")
def test_a_crash_at_any_byte_of_a_split_leaves_it_undone_or_done_and_each_key_in_one_place() -> None:
    storage = MemoryStorage()
    store = recovered(storage)
    store.record(HostPartition(Partition(1, EVERYTHING, 1, A)))
    for key in ("alice", "bob", "carol"):
        store.record(StoredKey(1, key, key.upper()))
    (file,) = storage.files()
    before = len(storage.read(file))
    left, right = (Partition(number, each, 2, A) for number, each in enumerate(EVERYTHING.split("bob"), start=1))
    store.record(SplitPartition(1, left, right))
    whole = storage.read(file)
    held = []
    for size in range(before, len(whole) + 1):
        torn = MemoryStorage()
        torn.put(file, whole[:size])
        after = recovered(torn)
        held.append({number: partition.keys for number, partition in after.held.items()})
        # What was undone can be done now, as when the coordinator says it again.
        if not after.has_seen(right):
            after.record(SplitPartition(1, left, right))
        assert recovered(torn).held[2].entries() == [("bob", "BOB"), ("carol", "CAROL")]
    undone, done = {1: ["alice", "bob", "carol"]}, {1: ["alice"], 2: ["bob", "carol"]}
    assert held == [undone] * (len(whole) - before) + [done]


# -- what invariants refuse ------------------------------------------------------------------------------------------


@pytest.mark.rows("KRP-I1")
@pytest.mark.parametrize(
    ("ranges", "is_broken"),
    [
        ([KeyRange("", "b"), KeyRange("b", MAX_KEY)], False),
        ([KeyRange("b", MAX_KEY), KeyRange("", "b")], False),
        ([KeyRange("", "b"), KeyRange("c", MAX_KEY)], True),
        ([KeyRange("", "c"), KeyRange("b", MAX_KEY)], True),
        ([KeyRange("", "b"), KeyRange("b", "b"), KeyRange("b", MAX_KEY)], True),
        ([KeyRange("a", MAX_KEY)], True),
        ([KeyRange("", "b")], True),
    ],
)
def test_ranges_must_tile_the_key_space(ranges: list[KeyRange], is_broken: bool) -> None:
    partitions = tuple(Partition(number, each, 1, A) for number, each in enumerate(ranges))
    assert bool(breaches(RangesTile(), (A, TableChanged(1, partitions)))) is is_broken


@pytest.mark.rows("KRP-I2")
@pytest.mark.parametrize(("lowest", "highest", "is_broken"), [("b", "c", False), ("a", "c", True), ("b", "d", True)])
def test_keys_must_lie_in_the_range_they_are_stored_in(lowest: str, highest: str, is_broken: bool) -> None:
    event = KeysStored(Partition(1, KeyRange("b", "d"), 1, A), lowest, highest)
    assert bool(breaches(KeysLieInTheirRange(), (A, event))) is is_broken


@pytest.mark.rows("KRP-I4")
@pytest.mark.parametrize(
    ("served", "is_broken"),
    [
        ([(A, 1, 1), (A, 2, 2), (B, 3, 3), (B, 3, 3)], False),
        ([(A, 1, 2)], True),
        ([(A, 2, 2), (B, 3, 3), (A, 2, 2)], True),
        ([(A, 2, 2), (B, 2, 2)], True),
    ],
)
def test_what_is_served_goes_on_with_generations_and_under_each_at_one_host(
    served: list[tuple[str, int, int]], is_broken: bool
) -> None:
    events = [(node, RequestServed(7, asked, held)) for node, asked, held in served]
    assert bool(breaches(GenerationsRule(), *events)) is is_broken


DUE = (7, 1, 20)
"""Partition 7 in generation 1, which holds 20 bytes."""


@pytest.mark.rows("KRP-I5")
@pytest.mark.parametrize(
    ("checks", "every_us", "proposed", "arrive", "is_broken"),
    [
        ([(DUE,)] * 3, 600_000, (0,), True, True),
        ([(DUE,)] * 3, 600_000, (0,), False, False),
        ([(DUE,)] * 3, 500_000, (0,), True, False),
        ([(DUE,)] * 3, 600_000, (1,), True, False),
        ([(DUE,), (DUE,), ()], 2_000_000, (0,), True, False),
        ([(DUE,)], 2_000_000, (0,), True, False),
        ([(DUE, (8, 1, 20)), (DUE,)], 2_000_000, (0,), True, True),
        ([(DUE,), ((7, 2, 20),)], 2_000_000, (0, 1), True, False),
        ([(DUE,)] * 7, 200_000, (), True, True),
        ([(DUE,)] * 7, 100_000, (), True, False),
        ([(DUE,)] * 6, 2_000_000, (), True, False),
        ([(DUE,)] * 12, 200_000, (0, 5, 10), False, False),
        ([(DUE,)] * 12, 200_000, (0,), False, True),
        ([()], 2_000_000, (), True, False),
    ],
)
def test_a_big_partition_must_be_split_some_time_after_its_proposal_arrived_or_must_have_been_proposed(
    checks: list[tuple[tuple[int, int, int], ...]],
    every_us: int,
    proposed: tuple[int, ...],
    arrive: bool,
    is_broken: bool,
) -> None:
    invariant, found = BigPartitionsAreSplit(), []
    for number, due in enumerate(checks):
        time_us = number * every_us
        if number in proposed:
            invariant.observe(time_us, A, SplitProposed(7, "size", 20, 15), found.append)
        invariant.observe(time_us, A, SizesChecked(due), found.append)
        if number in proposed and arrive:
            invariant.observe(time_us, B, ProposalReceived(7, 1), found.append)
    invariant.finish(len(checks) * every_us, 99_000_000, found.append)
    assert found == [], "no check came after the heal"
    invariant.finish(0, 99_000_000, found.append)
    assert bool(found) is is_broken


@pytest.mark.rows("KRP-R10", "KRP-M4")
@pytest.mark.parametrize(("size", "is_broken"), [(12, False), (11, True)])
def test_half_of_the_maximum_is_no_reason_to_split(size: int, is_broken: bool) -> None:
    assert bool(breaches(SplitsAreDue(), (A, SplitProposed(1, "size", size, 12)))) is is_broken
