"""The ends of generators, their pace, and the generators that change operations on the way."""

from __future__ import annotations

import itertools

import msgspec

from faultline.harness.generator import (
    Context,
    Draft,
    Event,
    all_info,
    any_of,
    emit,
    function,
    limit,
    map_operations,
    mixed,
    once,
    sequence,
    simulate,
    sleep,
    stagger,
    time_limit,
    until_ok,
)

READS = function(lambda _: Draft("read"))


def starts(events: list) -> list[int]:
    return [event.time_us for event in events if event.kind == "invoke"]


def test_a_limit_counts_operations_not_questions() -> None:
    generator = limit(3, READS)
    for _ in range(10):
        assert generator.op(Context.of(workers=1))[0] is not None
    assert len(starts(simulate(generator, workers=2))) == 3


def test_once_is_one_operation() -> None:
    assert len(starts(simulate(once(READS), workers=4))) == 1


def test_a_time_limit_counts_from_the_first_operation() -> None:
    events = simulate(sequence(sleep(1_000), time_limit(100, READS)), workers=1, latency_us=30)
    assert starts(events) == [1_000, 1_030, 1_060, 1_090]


def test_a_time_limit_ends_a_generator_that_waits() -> None:
    waits = time_limit(100, sequence(emit("a"), sleep(10_000), emit("never")))
    events = simulate(sequence(waits, emit("after")), workers=1, latency_us=10)
    assert [(event.f, event.time_us) for event in events if event.kind == "invoke"] == [("a", 0), ("after", 100)]


def test_a_time_limit_refuses_an_operation_that_would_start_too_late() -> None:
    events = simulate(time_limit(1_000, stagger(400, READS)), workers=5, latency_us=10)
    assert 1 < len(starts(events)) < 8
    assert max(starts(events)) < 1_000


def test_until_ok_tries_until_one_of_its_own_succeeds() -> None:
    events = simulate(until_ok(READS), workers=1, complete=mixed)
    assert [event.kind for event in events] == ["invoke", "fail", "invoke", "info", "invoke", "ok"]


def test_until_ok_is_not_satisfied_by_the_success_of_another_operation() -> None:
    asked, following = until_ok(READS).op(Context.of(workers=3, busy=(1, 2)))
    assert isinstance(asked, Draft)
    assert asked.worker == 0
    context = Context.of(workers=3, busy=(0,))
    told = following.update(context, Event("ok", 1, "read", None, None, None, 5))
    assert told.op(context)[0] is not None
    told = told.update(context, Event("ok", 0, "read", None, None, None, 6))
    assert told.op(context)[0] is None


def test_until_ok_gives_up_with_its_generator() -> None:
    assert len(starts(simulate(until_ok(limit(4, READS)), workers=1, complete=all_info))) == 4


def test_stagger_keeps_the_mean_distance_over_all_workers_together() -> None:
    times = starts(simulate(stagger(1_000, limit(2_000, READS)), workers=8, latency_us=500))
    assert times[0] == 0
    assert 950 < times[-1] / 1_999 < 1_050
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert max(gaps) <= 2_000
    assert min(gaps) < 100


def test_stagger_does_not_make_up_for_slots_it_missed() -> None:
    times = starts(simulate(stagger(100, limit(10, READS)), workers=1, latency_us=1_000))
    assert all(later - earlier >= 1_000 for earlier, later in itertools.pairwise(times))


def test_stagger_asked_again_gives_the_same_slot() -> None:
    _, generator = stagger(1_000, READS).op(Context.of(workers=2))
    first = generator.op(Context.of(workers=2, count=1, time_us=10))
    assert generator.op(Context.of(workers=2, count=1, time_us=10)) == first


def test_two_staggered_generators_side_by_side_do_not_follow_each_other() -> None:
    pair = any_of(stagger(1_000, limit(200, READS)), stagger(1_000, limit(200, function(lambda _: Draft("write")))))
    events = simulate(pair, workers=50, latency_us=10)
    reads = {event.time_us for event in events if event.kind == "invoke" and event.f == "read"}
    writes = {event.time_us for event in events if event.kind == "invoke" and event.f == "write"}
    assert len(reads & writes) < 20


def test_operations_are_changed_on_the_way() -> None:
    doubled = map_operations(
        lambda draft: msgspec.structs.replace(draft, value=draft.value * 2), emit("write", "k", 21)
    )
    offer, following = doubled.op(Context.of(workers=1))
    assert isinstance(offer, Draft)
    assert offer.value == 42
    assert following.op(Context.of(workers=1))[0] is None
