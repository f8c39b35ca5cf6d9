"""The workers that perform each operation of a generator."""

from __future__ import annotations

from collections import Counter, defaultdict

from faultline.harness.generator import (
    Context,
    Draft,
    Generator,
    clients,
    each_thread,
    emit,
    function,
    independent,
    limit,
    nemesis,
    on_workers,
    phases,
    reserve,
    sequence,
    simulate,
    split,
    stagger,
    until_ok,
)
from faultline.harness.generator.core import members, worker_mask
from faultline.harness.generator.simulate import SimulatedEvent
from faultline.harness.operation import NEMESIS


def endless(f: str) -> Generator:
    return function(lambda _: Draft(f))


def workers_by_f(events: list[SimulatedEvent]) -> dict[str, set[int]]:
    by_f: dict[str, set[int]] = defaultdict(set)
    for event in events:
        by_f[event.f].add(event.worker)
    return by_f


def test_masks_name_workers_and_the_nemesis() -> None:
    assert members(worker_mask([3, NEMESIS, 0])) == (NEMESIS, 0, 3)
    assert members(0) == ()


def test_only_the_named_workers_perform() -> None:
    events = simulate(on_workers((1, 3), limit(30, endless("a"))), workers=5)
    assert workers_by_f(events) == {"a": {1, 3}}


def test_a_generator_without_a_thread_is_exhausted() -> None:
    assert nemesis(emit("fault")).op(Context.of(workers=2))[0] is None


def test_clients_and_nemesis_run_side_by_side() -> None:
    events = simulate(
        split(limit(20, endless("read")), stagger(2_000, limit(3, endless("fault")))), workers=2, nemesis=True
    )
    assert workers_by_f(events) == {"read": {0, 1}, "fault": {NEMESIS}}


def test_a_nemesis_process_never_moves_on() -> None:
    events = simulate(nemesis(limit(3, endless("fault"))), workers=2, nemesis=True, complete=lambda *_: "info")
    assert {event.process for event in events} == {NEMESIS}


def test_reserve_gives_each_share_its_own_workers() -> None:
    shares = reserve((2, endless("write")), (1, endless("cas")), default=endless("read"))
    by_f = workers_by_f(simulate(limit(200, shares), workers=5))
    assert by_f == {"write": {0, 1}, "cas": {2}, "read": {3, 4}}


def test_reserve_counts_among_the_workers_it_was_left() -> None:
    shares = on_workers((2, 3, 4), reserve((1, endless("write")), default=endless("read")))
    assert workers_by_f(simulate(limit(100, shares), workers=5)) == {"write": {2}, "read": {3, 4}}


def test_reserve_nests_in_reserve() -> None:
    inner = reserve((1, endless("b")), default=endless("c"))
    by_f = workers_by_f(simulate(limit(300, reserve((2, endless("a")), default=inner)), workers=5))
    assert by_f == {"a": {0, 1}, "b": {2}, "c": {3, 4}}


def test_reserve_tells_each_share_about_its_own_workers_only() -> None:
    shares = reserve((1, until_ok(endless("a"))), default=limit(9, endless("b")))
    counts = Counter(event.f for event in simulate(shares, workers=2) if event.kind == "invoke")
    assert counts == {"a": 1, "b": 9}


def test_each_thread_gives_every_worker_a_copy() -> None:
    events = simulate(each_thread(sequence(emit("a"), emit("b"))), workers=3)
    performed = [(event.worker, event.f) for event in events if event.kind == "invoke"]
    assert sorted(performed) == [(worker, f) for worker in range(3) for f in "ab"]


def test_each_thread_tells_every_copy_about_its_own_worker() -> None:
    events = simulate(
        each_thread(until_ok(endless("a"))), workers=3, complete=lambda _, count: "ok" if count > 5 else "fail"
    )
    successes = Counter(event.worker for event in events if event.kind == "ok")
    assert successes == {0: 1, 1: 1, 2: 1}


def test_each_thread_within_phases_waits_for_all_threads() -> None:
    events = simulate(phases(each_thread(emit("a")), each_thread(emit("b"))), workers=4, latency_us=50)
    order = [(event.kind, event.f) for event in events]
    assert order.index(("invoke", "b")) > max(i for i, entry in enumerate(order) if entry == ("ok", "a"))


def keyed(number: int) -> Generator:
    return limit(10, function(lambda _: Draft("read", f"k{number}")))


def test_each_key_gets_its_limit_and_then_the_next_key_comes() -> None:
    events = simulate(limit(95, independent(keyed, groups=2)), workers=4)
    counts = Counter(event.key for event in events if event.kind == "invoke")
    assert sum(counts.values()) == 95
    assert sorted(counts.values())[-8:] == [10] * 8


def test_a_key_belongs_to_one_group_of_workers() -> None:
    events = simulate(limit(200, independent(keyed, groups=2)), workers=5)
    by_key = defaultdict(set)
    for event in events:
        by_key[event.key].add(event.worker)
    assert all(workers <= {0, 2, 4} or workers <= {1, 3} for workers in by_key.values())


def test_at_most_as_many_keys_live_as_there_are_groups() -> None:
    events = simulate(limit(300, independent(keyed, groups=3)), workers=6)
    keys = [event.key for event in events if event.kind == "invoke"]
    spans = {key: (keys.index(key), len(keys) - 1 - keys[::-1].index(key)) for key in keys}
    for moment in range(len(keys)):
        assert sum(first <= moment <= last for first, last in spans.values()) <= 3


def test_independent_ends_when_its_keys_do() -> None:
    events = simulate(independent(keyed, groups=3, keys=5), workers=6)
    counts = Counter(event.key for event in events if event.kind == "invoke")
    assert counts == {f"k{number}": 10 for number in range(5)}


def test_independent_passes_over_a_group_that_waits() -> None:
    def paced(number: int) -> Generator:
        return stagger(100_000, keyed(number)) if number == 0 else keyed(number)

    events = simulate(independent(paced, groups=2, keys=2), workers=2, latency_us=10)
    last_of_k1 = max(event.time_us for event in events if event.key == "k1")
    assert last_of_k1 < 2_000


def test_independent_tells_a_key_what_its_workers_completed() -> None:
    events = simulate(
        independent(lambda number: until_ok(function(lambda _: Draft("try", f"k{number}"))), groups=2, keys=4),
        workers=2,
        complete=lambda _, count: "ok" if count % 3 == 2 else "fail",
    )
    assert Counter(event.key for event in events if event.kind == "ok") == {f"k{number}": 1 for number in range(4)}


def test_clients_restrict_whatever_is_inside() -> None:
    events = simulate(clients(each_thread(emit("a"))), workers=3, nemesis=True)
    assert sorted(event.worker for event in events if event.kind == "invoke") == [0, 1, 2]
