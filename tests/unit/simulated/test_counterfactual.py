"""One event of a run is undone or delayed, and nothing else changes before it."""

from collections.abc import Callable

import msgspec
import pytest
from message_recorder import Note, Recorder

from faultline.harness.plan import Weather
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.world.simulated.counterfactual import WorldEvent, delaying, observing, undoing
from faultline.harness.world.simulated.host import SimulatedHost
from faultline.harness.world.simulated.network import SimulatedNetwork
from faultline.harness.world.simulated.scheduler import Scheduler
from faultline.harness.world.simulated.trace import SimulatedTrace
from faultline.registry import resolve

CALM = Weather(latency_us_min=1_000, latency_us_max=1_000, drift_ppm_max=0)
Script = Callable[[SimulatedHost], None]


def seen(script: Script, scheduler: Scheduler) -> list[tuple[int, int]]:
    """Return the messages that reach byzantium, with their times, when athens does what `script` says."""
    network = SimulatedNetwork(scheduler, CALM, 1, ("athens", "byzantium"))
    trace = SimulatedTrace(scheduler, ())
    athens, byzantium = (
        SimulatedHost(name, scheduler=scheduler, network=network, trace=trace, seed=1, fsync_us=(500, 500))
        for name in ("athens", "byzantium")
    )
    athens.start(Recorder)
    byzantium.start(Recorder)
    script(athens)
    scheduler.run(20_000)
    assert isinstance(byzantium.node, Recorder)
    return byzantium.node.seen


def events_of(script: Script) -> list[WorldEvent]:
    events: list[WorldEvent] = []
    seen(script, observing(events.append))
    return events


def three_notes(athens: SimulatedHost) -> None:
    for number in range(3):
        athens.scheduler.at(100 * number, athens.send, "byzantium", Note(number))


def ringing(athens: SimulatedHost) -> None:
    athens.timers.every(2_000, lambda: athens.send("byzantium", Note(athens.scheduler.now_us)))


def flushing(athens: SimulatedHost) -> None:
    for number in range(2):
        athens.scheduler.at(5_000 * number, write_and_tell, athens, number)


def write_and_tell(athens: SimulatedHost, number: int) -> None:
    athens.storage.append("log", b"x")
    athens.storage.fsync("log")
    athens.send("byzantium", Note(number))


def test_a_lost_message_is_the_only_one_that_is_missing():
    message = events_of(three_notes)[1]
    assert (message.kind, message.source, message.place, message.sent_us) == ("message", "athens", "byzantium", 100)
    assert seen(three_notes, Scheduler()) == [(0, 1_000), (1, 1_100), (2, 1_200)]
    assert seen(three_notes, undoing(message.number)) == [(0, 1_000), (2, 1_200)]


def test_a_late_message_is_overtaken_and_delays_no_other():
    message = events_of(three_notes)[1]
    assert seen(three_notes, delaying(message.number, 3_000)) == [(0, 1_000), (2, 1_200), (1, 4_100)]


def test_a_ring_that_is_not_heard_is_followed_by_the_next_one():
    rings = [event for event in events_of(ringing) if event.kind == "timer"]
    assert [ring.time_us for ring in rings[:3]] == [2_000, 4_000, 6_000]
    assert [number for number, _ in seen(ringing, undoing(rings[1].number))][:3] == [2_000, 6_000, 8_000]
    assert [number for number, _ in seen(ringing, delaying(rings[1].number, 300))][:3] == [2_000, 4_300, 6_300]


def test_a_flush_that_is_undone_holds_its_messages_back_until_the_next_one_ends():
    first = next(event for event in events_of(flushing) if event.kind == "flush")
    assert seen(flushing, Scheduler()) == [(0, 1_500), (1, 6_500)]
    assert seen(flushing, undoing(first.number)) == [(0, 6_500), (1, 6_500)]


def test_a_flush_that_is_undone_leaves_its_data_to_the_next_one():
    kept: list[bytes] = []

    def crash_after(time_us: int) -> Script:
        def script(athens: SimulatedHost) -> None:
            flushing(athens)
            athens.scheduler.at(time_us, athens.kill)
            athens.scheduler.at(time_us, lambda: kept.append(athens.disk.read("log")))

        return script

    first = next(event for event in events_of(crash_after(6_000)) if event.kind == "flush")
    kept.clear()
    seen(crash_after(4_000), Scheduler())
    seen(crash_after(6_000), undoing(first.number))
    assert kept == [b"x", b"xx"]


def test_a_crash_after_a_flush_that_was_undone_loses_its_messages_at_every_time():
    def crash_at(time_us: int) -> Script:
        def script(athens: SimulatedHost) -> None:
            athens.scheduler.at(0, write_and_tell, athens, 0)
            athens.scheduler.at(time_us, athens.kill)

        return script

    for time_us in range(600, 640):
        flush = next(event for event in events_of(crash_at(time_us)) if event.kind == "flush")
        assert seen(crash_at(time_us), undoing(flush.number)) == []


def test_a_timer_that_was_cancelled_and_a_message_into_a_cut_are_no_events():
    def script(athens: SimulatedHost) -> None:
        athens.timers.after(500, lambda: None).cancel()
        athens.links["byzantium"].cut = True
        athens.send("byzantium", Note(1))

    assert events_of(script) == []


def test_a_timer_is_named_after_its_callback():
    def script(athens: SimulatedHost) -> None:
        athens.timers.after(500, athens.pause)
        athens.timers.after(400, lambda: athens.resume())

    assert [event.name for event in events_of(script)] == [
        "test_a_timer_is_named_after_its_callback.resume",
        "SimulatedHost.pause",
    ]


@pytest.mark.parametrize("kind", ["message", "timer", "flush"])
def test_a_run_is_the_same_to_the_byte_until_the_event_that_it_lacks(kind):
    request = RunRequest(system="consistent-core", seed=3, operations=30)
    parts = resolve(request)
    plan = make_plan(request, parts)
    events: list[WorldEvent] = []
    plain: list[bytes] = []
    observed: list[bytes] = []
    run_simulated(plan, parts, sink=plain.append)
    run_simulated(plan, parts, sink=observed.append, scheduler=observing(events.append))
    assert observed == plain
    of_kind = [event for event in events if event.kind == kind]
    event = of_kind[len(of_kind) // 2]
    changed: list[bytes] = []
    run_simulated(plan, parts, sink=changed.append, scheduler=undoing(event.number))
    before = [line for line in plain if msgspec.json.decode(line)["time_us"] < event.time_us]
    assert len(before) > 10
    assert changed[: len(before)] == before
