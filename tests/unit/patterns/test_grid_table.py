"""The table of the data grid: which copies a coordinator takes for good, and how it spreads partitions."""

from __future__ import annotations

from collections import Counter

import pytest

from faultline.systems_under_test.reference.data_grid.table import (
    AWAY,
    NO_TABLE_YET,
    CopyReport,
    Entry,
    GridTable,
    Holder,
    MemberReport,
    next_table,
)

ATHENS, BYZANTIUM, CYRENE, DELPHI, EPHESUS = (
    Holder(name, 1) for name in ("athens", "byzantium", "cyrene", "delphi", "ephesus")
)
ALL = (ATHENS, BYZANTIUM, CYRENE, DELPHI, EPHESUS)
GENERATION = 5


def table_of(*holders: Holder, basis: int = 0, after_silence: bool = False) -> GridTable:
    entry = Entry(GENERATION, holders, basis, after_silence)
    return GridTable(GENERATION, tuple(holder.address for holder in ALL), (entry,))


def report(holder: Holder, table: GridTable, generation: int = 0, number: int = 0, **more: bool) -> MemberReport:
    copies = (CopyReport(0, generation, number, **more),) if generation else ()
    return MemberReport(holder, table, copies)


def made(table: GridTable, *reports: MemberReport, copies: int = 2, waits: bool = True) -> Entry:
    return next_table(table, 9, reports, 1, copies, waits=waits).entries[0]


def test_the_first_table_spreads_owners_and_copies_evenly() -> None:
    reports = [MemberReport(holder, NO_TABLE_YET, ()) for holder in ALL]
    table = next_table(NO_TABLE_YET, 3, reports, 20, 3, waits=True)
    assert set(Counter(entry.owner for entry in table.entries).values()) == {4}
    assert set(Counter(holder.address for entry in table.entries for holder in entry.holders).values()) == {12}
    assert all(len(set(entry.holders)) == 3 for entry in table.entries)


def test_an_entry_whose_holders_stay_is_kept_with_its_generation() -> None:
    table = table_of(ATHENS, BYZANTIUM)
    reports = [report(holder, table, GENERATION if holder in (ATHENS, BYZANTIUM) else 0) for holder in ALL]
    assert made(table, *reports) == table.entries[0]


@pytest.mark.rows("EL-R34", "EL-R36")
def test_a_backup_with_the_data_takes_over_from_a_silent_owner_and_waits_for_its_lease() -> None:
    table = table_of(ATHENS, BYZANTIUM)
    entry = made(table, report(BYZANTIUM, table, GENERATION, 7), report(CYRENE, table))
    assert entry == Entry(9, (BYZANTIUM, CYRENE), GENERATION, after_silence=True)


@pytest.mark.rows("EL-R36")
def test_a_backup_need_not_wait_for_an_owner_that_has_restarted() -> None:
    table = table_of(ATHENS, BYZANTIUM)
    restarted = Holder("athens", 2)
    entry = made(table, report(restarted, table), report(BYZANTIUM, table, GENERATION, 7))
    assert entry == Entry(9, (BYZANTIUM, restarted), GENERATION)


@pytest.mark.rows("EL-R36")
def test_the_wait_for_a_silent_owner_is_not_forgotten_when_its_successor_fails_too() -> None:
    table = table_of(BYZANTIUM, CYRENE, after_silence=True)
    restarted = Holder("byzantium", 2)
    entry = made(table, report(restarted, table), report(CYRENE, table, GENERATION))
    assert entry.owner == "cyrene"
    assert entry.after_silence
    handed_on = made(
        table, report(BYZANTIUM, table, GENERATION, 1, is_waiting=True), report(CYRENE, table, GENERATION), copies=1
    )
    assert handed_on.after_silence


@pytest.mark.rows("EL-R34")
def test_an_old_copy_is_not_taken_for_good_and_the_partition_waits() -> None:
    table = table_of(ATHENS, BYZANTIUM)
    entry = made(table, report(CYRENE, table, GENERATION - 1, 40), report(DELPHI, table), report(EPHESUS, table))
    assert entry.owner == AWAY
    assert entry.holders == (ATHENS, BYZANTIUM)
    assert entry.generation == GENERATION


@pytest.mark.rows("EL-R34")
def test_copies_of_the_basis_are_good_as_long_as_the_generation_was_not_reached() -> None:
    table = table_of(ATHENS, BYZANTIUM, basis=3)
    behind = report(BYZANTIUM, table, 3, 4)
    entry = made(table, behind, report(CYRENE, table, 3, 6))
    assert entry.owner == "cyrene"
    assert entry.basis == 3
    # Byzantium has reached the generation: clients may have been answered in it.
    assert made(table, report(BYZANTIUM, table, GENERATION, 4), report(CYRENE, table, 3, 6)).owner == "byzantium"


def test_a_copy_older_than_the_basis_is_never_taken_while_better_ones_may_come_back() -> None:
    table = table_of(ATHENS, BYZANTIUM, basis=3)
    assert made(table, report(BYZANTIUM, table, 2, 9), report(CYRENE, table, 2, 9)).owner == AWAY


@pytest.mark.rows("EL-R34")
def test_a_partition_that_was_away_goes_on_with_the_copy_that_came_back() -> None:
    table = table_of(ATHENS, BYZANTIUM)
    away = next_table(table, 9, [report(CYRENE, table), report(DELPHI, table)], 1, 2, waits=True)
    back = next_table(away, 14, [report(CYRENE, away), report(BYZANTIUM, table, GENERATION, 3)], 1, 2, waits=True)
    assert back.entries[0] == Entry(14, (BYZANTIUM, CYRENE), GENERATION, after_silence=True)


def test_a_partition_begins_anew_only_when_all_its_holders_have_come_back_empty() -> None:
    table = table_of(ATHENS, BYZANTIUM)
    restarted = [Holder("athens", 2), Holder("byzantium", 2)]
    one = made(table, report(restarted[0], table), report(CYRENE, table))
    assert one.owner == AWAY
    both = made(table, *(report(holder, table) for holder in restarted))
    assert both.owner != AWAY
    assert both.basis == 0


def test_without_a_minimum_size_a_partition_does_not_wait() -> None:
    table = table_of(ATHENS, BYZANTIUM)
    assert made(table, report(CYRENE, table), report(DELPHI, table), waits=False).owner == "cyrene"


@pytest.mark.rows("EL-R35")
def test_a_member_that_comes_back_becomes_a_backup_before_it_owns() -> None:
    first = next_table(NO_TABLE_YET, 5, [MemberReport(each, NO_TABLE_YET, ()) for each in ALL[:2]], 4, 2, waits=True)
    held = {
        holder: tuple(
            CopyReport(partition, 5, 1) for partition, entry in enumerate(first.entries) if holder in entry.holders
        )
        for holder in ALL[:3]
    }
    second = next_table(first, 9, [MemberReport(each, first, held[each]) for each in ALL[:3]], 4, 2, waits=True)
    assert all(entry.owner != "cyrene" for entry in second.entries)
    assert any(CYRENE in entry.holders for entry in second.entries)
    filled = {
        holder: tuple(
            CopyReport(partition, entry.generation, 1)
            for partition, entry in enumerate(second.entries)
            if holder in entry.holders
        )
        for holder in ALL[:3]
    }
    third = next_table(second, 14, [MemberReport(each, second, filled[each]) for each in ALL[:3]], 4, 2, waits=True)
    assert Counter(entry.owner for entry in third.entries)["cyrene"] == 1
