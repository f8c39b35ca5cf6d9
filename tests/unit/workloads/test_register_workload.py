"""The workload `register`: what it plans."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from faultline.harness.generator import planned_operations
from faultline.harness.plan import PlannedOperation
from faultline.workloads.register import Register, RegisterShape

SEEDS = range(40)


def rows(seed: int, *, workers: int = 5, operations: int = 200) -> tuple[PlannedOperation, ...]:
    generator = Register().generator(workers=workers, operations=operations, seed=seed)
    return planned_operations(generator, workers=workers, seed=seed, latency_us=4_000, start_us=600_000)


def by_key(planned: tuple[PlannedOperation, ...]) -> dict[str | None, list[PlannedOperation]]:
    keys: dict[str | None, list[PlannedOperation]] = defaultdict(list)
    for row in planned:
        keys[row.key].append(row)
    return keys


def test_it_plans_as_many_operations_as_asked() -> None:
    assert {len(rows(seed)) for seed in SEEDS} == {200}


def test_a_plan_is_a_function_of_the_seed() -> None:
    assert rows(3) == rows(3) != rows(4)


def test_two_hundred_operations_fill_a_simulated_run_and_do_not_outlast_it() -> None:
    lengths = [rows(seed)[-1].at_us - 600_000 for seed in SEEDS]
    assert all(3_000_000 < length < 4_200_000 for length in lengths)


def test_a_longer_run_spreads_its_operations_when_asked_to() -> None:
    generator = Register().generator(workers=5, operations=200, seed=1, interval_us=100_000)
    planned = planned_operations(generator, workers=5, seed=1, latency_us=4_000)
    assert 17_000_000 < planned[-1].at_us < 23_000_000


def test_no_key_has_more_than_forty_operations() -> None:
    assert max(len(planned) for seed in SEEDS for planned in by_key(rows(seed)).values()) <= 40


def test_every_written_value_is_one_write() -> None:
    for seed in SEEDS:
        for planned in by_key(rows(seed)).values():
            written = [row.value if row.f == "write" else row.value[1] for row in planned if row.f != "read"]
            assert written == list(range(1, len(written) + 1))


def test_the_first_change_of_every_key_is_a_write() -> None:
    for seed in SEEDS:
        for planned in by_key(rows(seed)).values():
            assert next((row.f for row in planned if row.f != "read"), "write") == "write"


def test_a_reader_never_changes_anything() -> None:
    for seed in SEEDS:
        roles = RegisterShape.drawn(5, seed).roles_for(0)
        assert {row.f for row in rows(seed) if roles[row.worker] == "reader"} <= {"read"}


def test_a_compare_and_set_expects_a_value_planned_before() -> None:
    for seed in SEEDS:
        for planned in by_key(rows(seed)).values():
            assert all(1 <= row.value[0] < row.value[1] for row in planned if row.f == "cas")


def test_most_compare_and_sets_would_succeed_one_after_another() -> None:
    tried = succeeded = 0
    for seed in SEEDS:
        state: dict[str | None, int] = {}
        for row in rows(seed):
            if row.f == "write":
                state[row.key] = row.value
            if row.f == "cas":
                tried += 1
                if state.get(row.key) == row.value[0]:
                    succeeded += 1
                    state[row.key] = row.value[1]
    assert tried > 1_000
    assert 0.6 < succeeded / tried < 0.95


def test_all_three_functions_occur_in_every_run() -> None:
    for seed in SEEDS:
        counts = Counter(row.f for row in rows(seed))
        assert set(counts) == {"read", "write", "cas"}
        assert min(counts.values()) >= 10


def test_readers_mostly_read_and_writers_mostly_write() -> None:
    counts: dict[str, Counter[bool]] = defaultdict(Counter)
    for seed in SEEDS:
        roles = RegisterShape.drawn(5, seed).roles_for(0)
        for row in rows(seed):
            counts[roles[row.worker]][row.f == "read"] += 1
    share = {role: count[True] / count.total() for role, count in counts.items()}
    assert share["reader"] > 0.75 > share["mixed"] > share["writer"]


def test_seeds_draw_different_shapes() -> None:
    shapes = [RegisterShape.drawn(6, seed) for seed in range(60)]
    assert {shape.live_keys for shape in shapes} == {1, 2, 3}
    assert len({shape.roles_for(0) for shape in shapes}) == 5


def test_every_live_key_has_two_workers_to_disagree() -> None:
    assert all(
        RegisterShape.drawn(workers, seed).live_keys <= workers // 2 for workers in range(2, 12) for seed in SEEDS
    )


@pytest.mark.parametrize("workers", [1, 2, 3, 10])
def test_it_works_with_any_number_of_workers(workers: int) -> None:
    planned = rows(1, workers=workers, operations=60)
    assert len(planned) == 60
    assert {row.worker for row in planned} == set(range(workers))


def final_rows(seed: int, operations: int = 200) -> tuple[PlannedOperation, ...]:
    generator = Register().final_generator(workers=5, seed=seed, operations=operations)
    return planned_operations(generator, workers=5, seed=seed, latency_us=4_000, start_us=9_000_000)


def test_final_reads_reach_the_last_keys_from_every_worker() -> None:
    for seed in SEEDS:
        begun = list(by_key(rows(seed)))
        readers = {key: {row.worker for row in planned} for key, planned in by_key(final_rows(seed)).items()}
        assert all(readers[key] == {0, 1, 2, 3, 4} for key in begun[-3:])
        assert len(readers) <= 6
        assert {row.f for row in final_rows(seed)} == {"read"}


def test_final_reads_of_a_long_run_reach_its_last_keys() -> None:
    for seed in range(5):
        begun = list(by_key(rows(seed, operations=1_500)))
        assert set(begun[-3:]) <= set(by_key(final_rows(seed, operations=1_500)))


def test_final_reads_are_few_however_long_the_run() -> None:
    assert len(final_rows(1, operations=100_000)) == 30


def test_it_names_its_checkers_most_important_first() -> None:
    assert Register().checkers()[0].name == "linearizability"


def test_a_long_run_deals_the_roles_anew():
    shape = RegisterShape.drawn(5, 3)
    assert shape.roles_for(0) == shape.roles_for(15)
    assert len({shape.roles_for(number) for number in range(0, 80, 16)}) == 5
