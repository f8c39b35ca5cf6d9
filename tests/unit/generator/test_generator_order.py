"""One after another, and barriers."""

from __future__ import annotations

from faultline.harness.generator import (
    EMPTY,
    Context,
    Draft,
    clients,
    cycle,
    emit,
    function,
    limit,
    phases,
    sequence,
    simulate,
    split,
    stagger,
    synchronize,
    until_ok,
)

READS = function(lambda _: Draft("read"))


def test_a_sequence_goes_on_with_the_next_generator_when_one_is_exhausted() -> None:
    events = simulate(sequence(emit("a"), EMPTY, emit("b"), emit("c")), workers=3)
    assert [event.f for event in events if event.kind == "invoke"] == ["a", "b", "c"]


def test_a_sequence_has_no_barrier() -> None:
    events = simulate(sequence(emit("a"), emit("b")), workers=2, latency_us=100)
    assert [(event.f, event.time_us) for event in events if event.kind == "invoke"] == [("a", 0), ("b", 0)]


def test_a_sequence_tells_its_present_generator_what_completed() -> None:
    trial = sequence(until_ok(function(lambda _: Draft("try"))), emit("done"))
    kinds = iter(["fail", "fail", "ok", "ok"])
    events = simulate(trial, workers=1, complete=lambda _draft, _count: next(kinds))
    assert [event.f for event in events if event.kind == "invoke"] == ["try", "try", "try", "done"]


def test_an_empty_sequence_is_exhausted() -> None:
    assert sequence().op(Context.of(workers=1))[0] is None


def test_a_cycle_begins_again_with_fresh_state() -> None:
    events = simulate(cycle(limit(2, READS), times=3), workers=1)
    assert len([event for event in events if event.kind == "invoke"]) == 6


def test_a_cycle_without_end_is_limited_from_outside() -> None:
    events = simulate(limit(7, cycle(sequence(emit("a"), emit("b")))), workers=1)
    assert "".join(event.f for event in events if event.kind == "invoke") == "abababa"


def test_a_cycle_of_nothing_ends_rather_than_spins() -> None:
    assert cycle(EMPTY).op(Context.of(workers=1))[0] is None


def test_no_phase_begins_before_the_one_before_has_completed() -> None:
    events = simulate(phases(limit(6, READS), emit("check"), limit(3, READS)), workers=4, latency_us=100)
    order = [(event.kind, event.f) for event in events]
    assert order[:6].count(("invoke", "read")) == 4
    check = order.index(("invoke", "check"))
    assert order[:check].count(("ok", "read")) == 6
    assert order[check + 1] == ("ok", "check")


def test_a_barrier_waits_only_for_the_workers_that_can_hear_it() -> None:
    slow_nemesis = stagger(10_000, limit(3, function(lambda _: Draft("fault"))))
    events = simulate(split(synchronize(limit(2, READS)), slow_nemesis), workers=2, nemesis=True, latency_us=5_000)
    assert [event.time_us for event in events if event.kind == "invoke" and event.f == "read"] == [0, 0]


def test_clients_alone_never_use_the_nemesis() -> None:
    events = simulate(clients(limit(20, READS)), workers=3, nemesis=True)
    assert {event.worker for event in events} <= {0, 1, 2}
