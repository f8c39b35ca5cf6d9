"""The workloads of transactions: what they ask for, that writes are unique, and that they end by reading."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.generator import planned_operations
from faultline.registry import load_system, load_workload

NAMES = ["bank", "booking", "txn-append", "txn-register", "lost-update", "write-skew", "long-fork"]


def planned(name: str, seed: int = 1, operations: int = 200) -> list[Any]:
    generator = load_workload(name).generator(workers=5, operations=operations, seed=seed)
    return list(planned_operations(generator, workers=5, seed=seed, latency_us=4_000))


@pytest.mark.parametrize("name", NAMES)
def test_they_plan_what_they_are_asked_for_with_functions_that_the_system_offers(name: str) -> None:
    workload = load_workload(name)
    rows = planned(name)
    assert len(rows) == 200
    assert {row.f for row in rows} == set(workload.functions)
    assert set(workload.functions) <= set(load_system("transactional-kv").functions)
    assert [(row.f, row.value) for row in rows] == [(row.f, row.value) for row in planned(name)]


@pytest.mark.parametrize("name", ["txn-append", "txn-register", "lost-update", "write-skew"])
def test_no_two_writes_are_alike_and_keys_do_not_live_for_ever(name: str) -> None:
    steps = [step for row in planned(name) for step in row.value]
    written = [value for kind, _, value in steps if kind != "r"]
    assert len(written) == len(set(written)) > 50
    assert len({key for _, key, _ in steps}) >= 12
    assert all(value is None for kind, _, value in steps if kind == "r")


def test_transfers_go_from_one_account_to_another_and_guests_are_unique() -> None:
    transfers = [row.value for row in planned("bank") if row.f == "transfer"]
    assert all(transfer["from"] != transfer["to"] and transfer["amount"] > 0 for transfer in transfers)
    guests = [row.value for row in planned("booking") if row.f == "book"]
    assert len(guests) == len(set(guests))


@pytest.mark.parametrize("name", NAMES)
def test_at_the_end_every_worker_reads_the_keys_that_were_used_last(name: str) -> None:
    used = {key for row in planned(name)[-10:] for key in keys_of(row)}
    final = load_workload(name).final_generator(workers=5, seed=1, operations=200)
    rows = planned_operations(final, workers=5, seed=1, latency_us=4_000)
    assert {row.f for row in rows} <= {"balances", "bookings", "txn"}
    for worker in range(5):
        assert used <= {key for row in rows if row.worker == worker for key in keys_of(row)}


def test_a_pair_is_written_once_on_either_side_by_transactions_that_begin_while_others_read_it() -> None:
    rows = planned("long-fork")
    writes = [(row.value[0][1], row.at_us) for row in rows if row.value[0][0] == "w"]
    assert len({key for key, _ in writes}) == len(writes) > 40
    first_pair = [row.at_us for row in rows if row.value[0][1].startswith("p0-")]
    assert len(first_pair) == 9
    assert max(first_pair) - min(first_pair) < 40_000
    assert {len(row.value) for row in rows} == {1, 2}


def keys_of(row: Any) -> list[str]:
    if row.f == "txn":
        return [key for _, key, _ in row.value]
    return [row.key] if row.key else []
