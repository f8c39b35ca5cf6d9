"""The generators that make operations."""

from __future__ import annotations

from faultline.harness.generator import (
    EMPTY,
    PENDING,
    Context,
    Draft,
    Pending,
    emit,
    function,
    limit,
    sequence,
    simulate,
    sleep,
    unfold,
)
from faultline.harness.generator.simulate import SimulatedEvent

READ = Draft("read", "k0")


def invocations(events: list[SimulatedEvent]) -> list[str]:
    return [event.f for event in events if event.kind == "invoke"]


def test_emit_is_one_operation_and_then_nothing() -> None:
    offer, following = emit("write", "k0", 7).op(Context.of(workers=1, time_us=30))
    assert offer == Draft("write", "k0", 7, 0, 30)
    assert following.op(Context.of(workers=1)) == (None, EMPTY)


def test_an_operation_waits_for_a_free_worker() -> None:
    generator = emit("read")
    assert generator.op(Context.of(workers=2, busy=(0, 1))) == (PENDING, generator)


def test_the_worker_of_an_operation_is_free() -> None:
    for count in range(50):
        offer, _ = emit("read").op(Context.of(workers=5, busy=(0, 3), count=count))
        assert isinstance(offer, Draft)
        assert offer.worker in (1, 2, 4)


def test_every_free_worker_gets_its_turn() -> None:
    drawn = {emit("read").op(Context.of(workers=5, seed=9, count=count))[0] for count in range(60)}
    assert {offer.worker for offer in drawn if isinstance(offer, Draft)} == {0, 1, 2, 3, 4}


def test_a_function_is_called_for_every_operation() -> None:
    events = simulate(
        limit(4, function(lambda context: Draft("read", "k0", context.time_us))), workers=1, latency_us=10
    )
    assert [event.value for event in events if event.kind == "invoke"] == [0, 10, 20, 30]


def test_a_function_that_returns_a_generator_is_called_again_when_that_is_exhausted() -> None:
    pair = function(lambda _: sequence(emit("a"), emit("b")))
    assert invocations(simulate(limit(5, pair), workers=1)) == ["a", "b", "a", "b", "a"]


def test_a_function_ends_with_none() -> None:
    ends = function(lambda context: READ if context.time_us < 25 else None)
    assert len(invocations(simulate(ends, workers=1, latency_us=10))) == 3


def test_a_function_that_makes_an_empty_generator_ends_rather_than_spins() -> None:
    assert function(lambda _: EMPTY).op(Context.of(workers=1))[0] is None


def test_unfold_carries_its_state_from_operation_to_operation() -> None:
    counting = unfold(lambda _, number: (Draft("write", None, number), number + 1) if number < 4 else None, 1)
    events = simulate(counting, workers=2)
    assert [event.value for event in events if event.kind == "invoke"] == [1, 2, 3]


def test_sleep_counts_from_the_moment_it_is_first_asked() -> None:
    offer, begun = sleep(100).op(Context.of(workers=1, time_us=50))
    assert offer == Pending(150)
    assert begun.op(Context.of(workers=1, time_us=149))[0] == Pending(150)
    assert begun.op(Context.of(workers=1, time_us=150))[0] is None


def test_sleep_keeps_operations_apart() -> None:
    events = simulate(sequence(emit("a"), sleep(5_000), emit("b")), workers=2, latency_us=10)
    assert [event.time_us for event in events if event.kind == "invoke"] == [0, 5_000]
