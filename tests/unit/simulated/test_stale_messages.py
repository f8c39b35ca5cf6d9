"""Messages that come stale, and connections that break in the middle of one."""

import msgspec
import pytest
from message_recorder import Note, Recorder

from faultline.harness.plan import Weather
from faultline.harness.planning import make_plan
from faultline.harness.request import RunRequest
from faultline.harness.run import run_simulated
from faultline.harness.world.simulated.counterfactual import WorldEvent, delaying, observing, undoing
from faultline.harness.world.simulated.host import SimulatedHost
from faultline.harness.world.simulated.network import STALE_US, SimulatedNetwork
from faultline.harness.world.simulated.ordered import OrderedScheduler
from faultline.harness.world.simulated.scheduler import Scheduler
from faultline.harness.world.simulated.trace import SimulatedTrace
from faultline.registry import resolve

LATENCY_US = 1_000
END_US = 30_000_000
NOTES = 300
EVERY_US = 100


class Cluster:
    """`athens`, `byzantium` and `client-0`, each of which tells every other one the numbers from 0 on."""

    def __init__(self, scheduler: Scheduler | None = None, **weather: float) -> None:
        calm = Weather(latency_us_min=LATENCY_US, latency_us_max=LATENCY_US, drift_ppm_max=0)
        self.scheduler = scheduler or Scheduler()
        changed = msgspec.structs.replace(calm, **weather)
        self.network = SimulatedNetwork(self.scheduler, changed, 1, ("athens", "byzantium"), record=True)
        trace = SimulatedTrace(self.scheduler, ())
        self.hosts = {
            name: SimulatedHost(name, scheduler=self.scheduler, network=self.network, trace=trace, seed=1)
            for name in ("athens", "byzantium", "client-0")
        }
        for host in self.hosts.values():
            host.start(Recorder)

    def tell(self, source: str, target: str) -> None:
        for number in range(NOTES):
            self.scheduler.at(EVERY_US * number, self.hosts[source].send, target, Note(number))

    def seen(self, name: str = "byzantium", until_us: int = END_US) -> list[tuple[int, int]]:
        self.scheduler.run(until_us)
        node = self.hosts[name].node
        assert isinstance(node, Recorder)
        return node.seen


def on_time(number: int) -> tuple[int, int]:
    return number, EVERY_US * number + LATENCY_US


def test_about_as_many_messages_as_the_weather_says_are_stale_half_of_them_beside_their_original() -> None:
    cluster = Cluster(stale=0.1)
    cluster.tell("athens", "byzantium")
    seen = cluster.seen()
    stale = [(number, time_us) for number, time_us in seen if (number, time_us) != on_time(number)]
    assert 15 < len(stale) < 50
    assert all(STALE_US[0] <= time_us - EVERY_US * number < STALE_US[1] for number, time_us in stale)
    again = [number for number, _ in stale if on_time(number) in seen]
    assert 5 < len(again) < len(stale) - 5
    assert {number for number, _ in seen} == set(range(NOTES)), "no message is lost"


def test_the_record_tells_which_messages_are_stale() -> None:
    cluster = Cluster(stale=0.1)
    cluster.tell("athens", "byzantium")
    seen = cluster.seen()
    records = cluster.network.records or []
    assert [record.receive_us for record in records] == [time_us for _, time_us in seen]
    assert all(record.stale == (record.receive_us - record.send_us > LATENCY_US) for record in records)
    assert any(record.stale for record in records)


def test_stale_messages_move_no_other_one() -> None:
    plain, changed = Cluster(duplicate=0.1, loss=0.1), Cluster(duplicate=0.1, loss=0.1, stale=0.1)
    for cluster in (plain, changed):
        cluster.tell("athens", "byzantium")
    seen = changed.seen()
    others = [record for record in changed.network.records or [] if not record.stale and record.receive_us >= 0]
    assert len(others) < len(seen)
    assert {(int(record.send_us / EVERY_US), record.receive_us) for record in others} < set(plain.seen())


def test_a_stale_message_crosses_restarts_of_both_ends() -> None:
    cluster = Cluster(stale=0.1)
    cluster.tell("athens", "byzantium")
    for name in ("athens", "byzantium"):
        cluster.scheduler.at(EVERY_US * NOTES + LATENCY_US + 1, cluster.hosts[name].kill)
        cluster.scheduler.at(STALE_US[0] - 1, cluster.hosts[name].start, Recorder)
    seen = cluster.seen()
    assert seen and all(time_us >= STALE_US[0] for _, time_us in seen)


def test_a_stale_message_into_a_cut_is_lost_and_its_record_says_both() -> None:
    cluster = Cluster(stale=0.1)
    cluster.tell("athens", "byzantium")
    cluster.scheduler.at(STALE_US[0] - 1, cluster.network.set_cut, "athens", "byzantium", True)
    assert all(time_us < STALE_US[0] for _, time_us in cluster.seen())
    stale = [record for record in cluster.network.records or [] if record.stale]
    assert stale and all(record.receive_us == -1 for record in stale)


def test_a_reset_loses_the_message_it_falls_into_and_all_that_is_under_way_on_that_link_alone() -> None:
    cluster = Cluster(reset=0.02)
    cluster.tell("athens", "byzantium")
    cluster.tell("byzantium", "athens")
    cluster.scheduler.run(END_US)
    lost = {
        source: [
            record.send_us // EVERY_US
            for record in cluster.network.records or []
            if record.receive_us < 0 and record.source == source
        ]
        for source in ("athens", "byzantium")
    }
    assert lost["athens"] != lost["byzantium"]
    for numbers in lost.values():
        assert 10 < len(numbers) < NOTES // 2
        runs = sum(number - 1 not in numbers for number in numbers)
        assert runs < len(numbers) / 2, "what is lost was sent one after the other"
    seen = cluster.seen()
    assert seen == [on_time(number) for number in range(NOTES) if number not in lost["athens"]]


@pytest.mark.parametrize(("peer", "arrive"), [("client-0", [2]), ("byzantium", [1, 2])])
def test_a_reset_loses_the_answers_under_way_where_they_share_the_connection(peer: str, arrive: list[int]) -> None:
    cluster, moment_us = Cluster(), 5_000
    cluster.scheduler.at(moment_us, cluster.network.links_from(peer)["athens"].reset)
    for number, at_us in ((1, moment_us - 1), (2, moment_us + 1)):
        cluster.scheduler.at(at_us, cluster.hosts[peer].send, "athens", Note(number))
        cluster.scheduler.at(at_us, cluster.hosts["athens"].send, peer, Note(number))
    assert [number for number, _ in cluster.seen("athens")] == [2]
    assert [number for number, _ in cluster.seen(peer)] == arrive


def test_a_stale_message_does_not_care_for_a_reset() -> None:
    plain, broken = Cluster(stale=0.1), Cluster(stale=0.1)
    for cluster in (plain, broken):
        cluster.tell("athens", "byzantium")
    broken.scheduler.at(EVERY_US * NOTES + 2 * LATENCY_US, broken.network.links_from("athens")["byzantium"].reset)
    assert broken.seen() == plain.seen()


@pytest.mark.parametrize("weather", [{"stale": 0.1}, {"reset": 0.1}])
def test_an_event_of_this_weather_can_be_undone_and_delayed(weather: dict[str, float]) -> None:
    events: list[WorldEvent] = []

    def run(scheduler: Scheduler) -> list[tuple[int, int]]:
        cluster = Cluster(scheduler, **weather)
        cluster.tell("athens", "byzantium")
        return cluster.seen()

    plain = run(observing(events.append))
    event = next(event for event in events if event.stale or event.kind == "reset")
    assert (event.source, event.place) == ("athens", "byzantium")
    undone, delayed = run(undoing(event.number)), run(delaying(event.number, 2 * EVERY_US))
    if event.stale:
        arrival = next(each for each in plain if each[1] == event.time_us)
        assert undone == [each for each in plain if each != arrival]
        assert delayed == sorted([*undone, (arrival[0], arrival[1] + 2 * EVERY_US)], key=lambda each: each[1])
    else:
        assert set(plain) < set(undone)
        assert delayed != plain


def test_a_run_without_this_weather_is_the_same_to_the_byte_as_with_none_of_it() -> None:
    request = RunRequest(system="consistent-core", seed=3, operations=30, weather={"loss": "0.01"})
    parts = resolve(request)
    plan = make_plan(request, parts)
    calm = msgspec.structs.replace(plan, weather=msgspec.structs.replace(plan.weather, stale=0.0, reset=0.0))
    assert b'"stale"' not in msgspec.json.encode(plan) and b'"stale":0.0' in msgspec.json.encode(calm)
    assert run_simulated(plan, parts).history.digest() == run_simulated(calm, parts).history.digest()


def test_a_reset_is_no_event_of_an_explored_schedule() -> None:
    request = RunRequest(
        system="quorum-register",
        workload="read-write",
        faults=("pause",),
        seed=3,
        operations=30,
        weather={"reset": "0.05", "stale": "0.05"},
    )
    parts = resolve(request)
    plan = make_plan(request, parts)
    events: list[WorldEvent] = []
    plain = run_simulated(plan, parts, scheduler=observing(events.append))
    ordered = OrderedScheduler(plan)
    assert run_simulated(plan, parts, scheduler=ordered).history.digest() == plain.history.digest()
    events = [event for event in events if event.time_us < plan.heal_us and event.place in plan.nodes]
    crashes = sum(decision.kind == "crash" for decision in ordered.decisions)
    resets = sum(event.kind == "reset" for event in events)
    assert resets and crashes <= len(events) - resets
