"""Several generators at once: choosing, passing over, passing on."""

from __future__ import annotations

from collections import Counter

from faultline.harness.generator import (
    Context,
    Draft,
    Generator,
    any_of,
    emit,
    flip_flop,
    function,
    limit,
    mix,
    once,
    phases,
    sequence,
    simulate,
    sleep,
    stagger,
    synchronize,
    until_ok,
)


def endless(f: str) -> Generator:
    return function(lambda _: Draft(f))


def invoked(generator: Generator, *, workers: int = 1, seed: int = 0, latency_us: int = 10) -> list[str]:
    events = simulate(generator, workers=workers, seed=seed, latency_us=latency_us)
    return [event.f for event in events if event.kind == "invoke"]


def test_a_mix_draws_its_children_about_equally() -> None:
    counts = Counter(invoked(limit(3_000, mix(endless("a"), endless("b"), endless("c")))))
    assert all(900 < counts[f] < 1_100 for f in "abc")


def test_a_child_named_twice_is_drawn_twice_as_often() -> None:
    counts = Counter(invoked(limit(3_000, mix(endless("a"), endless("a"), endless("b")))))
    assert 1_850 < counts["a"] < 2_150


def test_nested_mixes_reach_every_child() -> None:
    counts = Counter(invoked(limit(4_000, mix(endless("a"), mix(endless("b"), endless("c"))))))
    assert 1_850 < counts["a"] < 2_150
    assert 850 < counts["b"] < 1_150
    assert 850 < counts["c"] < 1_150


def test_a_mix_goes_on_without_the_children_that_are_exhausted() -> None:
    assert sorted(invoked(mix(limit(2, endless("a")), limit(5, endless("b"))))) == ["a"] * 2 + ["b"] * 5


def test_a_mix_is_not_held_up_by_a_child_that_waits() -> None:
    waiting = sequence(sleep(1_000_000), emit("late"))
    events = simulate(mix(waiting, limit(20, endless("soon"))), workers=1, latency_us=10)
    soon = [event.time_us for event in events if event.f == "soon"]
    assert len(soon) == 40
    assert max(soon) < 1_000
    assert events[-1].f == "late"


def test_a_mix_is_not_held_up_by_a_child_behind_a_barrier() -> None:
    trial = mix(synchronize(once(endless("alone"))), limit(10, endless("any")))
    assert sorted(invoked(trial, workers=3)) == ["alone"] + ["any"] * 10


def test_a_mix_tells_all_children_what_completed() -> None:
    for seed in range(10):
        trial = mix(until_ok(endless("a")), until_ok(endless("b")))
        counts = Counter(invoked(trial, workers=1, seed=seed))
        assert counts == {"a": 1, "b": 1}


def test_a_flip_flop_takes_turns() -> None:
    assert "".join(invoked(limit(7, flip_flop(endless("a"), endless("b"), endless("c"))))) == "abcabca"


def test_a_flip_flop_ends_with_the_child_whose_turn_it_is() -> None:
    assert "".join(invoked(flip_flop(endless("a"), limit(2, endless("b"))))) == "ababa"


def test_a_flip_flop_tells_all_children_what_completed() -> None:
    assert "".join(invoked(flip_flop(until_ok(endless("a")), endless("b")))) == "ab"


def test_a_flip_flop_is_not_held_up_by_a_child_that_waits() -> None:
    events = simulate(
        limit(6, flip_flop(sequence(sleep(500), endless("late")), endless("soon"))), workers=1, latency_us=100
    )
    order = [event.f for event in events if event.kind == "invoke"]
    assert order[:5] == ["soon"] * 5
    assert order[5] == "late"


def test_any_of_emits_whichever_is_due_first() -> None:
    trial = any_of(sequence(sleep(50), emit("b")), emit("a"), sequence(sleep(90), emit("c")))
    assert invoked(trial) == ["a", "b", "c"]


def test_a_sleep_beside_a_busy_generator_does_not_start_again_with_each_question() -> None:
    busy = stagger(100, limit(50, endless("busy")))
    events = simulate(any_of(busy, sequence(sleep(1_000), emit("woken"))), workers=3, latency_us=30)
    woken = next(event.time_us for event in events if event.f == "woken")
    assert 1_000 <= woken < 1_300


def test_any_of_serves_equal_children_alike() -> None:
    counts = Counter(invoked(limit(2_000, any_of(endless("a"), endless("b")))))
    assert 900 < counts["a"] < 1_100


def test_choosing_among_nothing_is_exhausted() -> None:
    context = Context.of(workers=1)
    assert [generator.op(context)[0] for generator in (mix(), flip_flop(), any_of())] == [None, None, None]


def test_phases_inside_a_choice_keep_their_order() -> None:
    order = invoked(any_of(phases(emit("a"), emit("b")), limit(3, endless("x"))), workers=2)
    assert order.index("a") < order.index("b")
