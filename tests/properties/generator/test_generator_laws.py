"""Laws that hold for every generator, whatever it is made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faultline.harness.generator import (
    EMPTY,
    Context,
    Draft,
    Event,
    Generator,
    SimulatedEvent,
    any_of,
    cycle,
    each_thread,
    emit,
    flip_flop,
    function,
    independent,
    limit,
    map_operations,
    mix,
    mixed,
    on_workers,
    phases,
    planned_operations,
    reserve,
    scheduled,
    sequence,
    simulate,
    sleep,
    stagger,
    synchronize,
    time_limit,
    unfold,
    until_ok,
)
from faultline.harness.plan import PlannedOperation

WORKERS = 4

leaves = st.one_of(
    st.sampled_from("abc").map(emit),
    st.sampled_from("abc").map(lambda f: limit(5, function(lambda _: Draft(f)))),
    st.integers(0, 3).map(lambda n: unfold(lambda _, left: (Draft("u", None, left), left - 1) if left else None, n)),
    st.integers(0, 500).map(sleep),
)


def combined(children: st.SearchStrategy[Generator]) -> st.SearchStrategy[Generator]:
    several = st.lists(children, min_size=1, max_size=3)
    return st.one_of(
        several.map(lambda parts: sequence(*parts)),
        several.map(lambda parts: phases(*parts)),
        several.map(lambda parts: mix(*parts)),
        several.map(lambda parts: flip_flop(*parts)),
        several.map(lambda parts: any_of(*parts)),
        children.map(lambda child: cycle(child, 2)),
        children.map(synchronize),
        children.map(until_ok),
        children.map(each_thread),
        children.map(lambda child: on_workers((1, 2), child)),
        children.map(lambda child: limit(6, child)),
        children.map(lambda child: time_limit(900, child)),
        children.map(lambda child: stagger(70, child)),
        children.map(lambda child: independent(lambda _: child, groups=2, keys=3)),
        st.tuples(children, children).map(lambda pair: reserve((1, pair[0]), default=pair[1])),
    )


generators = st.recursive(leaves, combined, max_leaves=8)
seeds = st.integers(0, 2**32)


@given(generators, seeds, st.sets(st.integers(0, WORKERS - 1)), st.integers(0, 5_000))
def test_asking_twice_gives_the_same_answer(generator: Generator, seed: int, busy: set[int], time_us: int) -> None:
    context = Context.of(workers=WORKERS, busy=sorted(busy), seed=seed, time_us=time_us)
    assert generator.op(context) == generator.op(context)


@given(generators, seeds, st.integers(0, WORKERS - 1))
def test_telling_twice_gives_the_same_generator(generator: Generator, seed: int, worker: int) -> None:
    context = Context.of(workers=WORKERS, seed=seed)
    offer, following = generator.op(context)
    event = Event("ok", worker, "a", None, None, None, 10)
    told = following.update(context, event)
    assert told == following.update(context, event)
    assert generator.op(context) == (offer, following)


@given(generators, seeds)
def test_every_generator_comes_to_an_end_and_completes_what_it_began(generator: Generator, seed: int) -> None:
    events = simulate(limit(80, generator), workers=WORKERS, seed=seed, complete=mixed, latency_us=100, end_us=50_000)
    assert sum(event.kind == "invoke" for event in events) * 2 == len(events)


@given(generators, seeds)
def test_no_draft_is_for_a_busy_worker_or_lies_in_the_past(generator: Generator, seed: int) -> None:
    busy: set[int] = set()
    last_us = 0
    for event in simulate(
        limit(60, generator), workers=WORKERS, seed=seed, complete=mixed, latency_us=100, end_us=50_000
    ):
        assert event.time_us >= last_us
        last_us = event.time_us
        if event.kind == "invoke":
            assert event.worker not in busy
            busy.add(event.worker)
        else:
            busy.remove(event.worker)


@given(generators, seeds, st.integers(0, 30))
def test_a_limit_is_never_exceeded(generator: Generator, seed: int, most: int) -> None:
    events = simulate(limit(most, generator), workers=WORKERS, seed=seed, latency_us=100, end_us=50_000)
    assert sum(event.kind == "invoke" for event in events) <= most


@given(generators, seeds)
def test_what_adds_nothing_changes_nothing(generator: Generator, seed: int) -> None:
    def performed(candidate: Generator) -> list[SimulatedEvent]:
        return simulate(limit(40, candidate), workers=WORKERS, seed=seed, complete=mixed, latency_us=100, end_us=50_000)

    alone = performed(generator)
    assert performed(sequence(generator)) == alone
    assert performed(sequence(EMPTY, generator)) == alone
    assert performed(cycle(generator, 1)) == alone
    assert performed(flip_flop(generator)) == alone
    assert performed(limit(1_000_000, generator)) == alone
    assert performed(map_operations(lambda draft: draft, generator)) == alone
    assert performed(on_workers(tuple(range(WORKERS)), generator)) == alone


rows = st.lists(
    st.builds(
        PlannedOperation, st.integers(0, WORKERS - 1), st.integers(0, 10_000), st.sampled_from(["read", "write"])
    ),
    max_size=40,
)


@given(rows, seeds, st.integers(1, 3_000))
def test_a_schedule_performs_every_row_once_by_its_worker_and_never_early(
    planned: list[PlannedOperation], seed: int, latency_us: int
) -> None:
    performed = planned_operations(scheduled(planned), workers=WORKERS, seed=seed, latency_us=latency_us)
    assert len(performed) == len(planned)
    for worker in range(WORKERS):
        mine = sorted((row for row in planned if row.worker == worker), key=lambda row: row.at_us)
        done = [row for row in performed if row.worker == worker]
        assert [row.f for row in done] == [row.f for row in mine]
        free_us = 0
        for asked, row in zip(mine, done, strict=True):
            assert row.at_us == max(asked.at_us, free_us)
            free_us = row.at_us + latency_us
