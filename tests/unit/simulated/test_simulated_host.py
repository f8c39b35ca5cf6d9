"""Hosts carry nodes through starts, crashes and pauses, and release effects in order."""

from collections.abc import Callable

import msgspec

from faultline.harness.plan import Weather
from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.ports import NodeStatus, Ports
from faultline.harness.world.simulated.host import SimulatedHost
from faultline.harness.world.simulated.network import SimulatedNetwork
from faultline.harness.world.simulated.scheduler import Scheduler
from faultline.harness.world.simulated.trace import SimulatedTrace

CALM = Weather(latency_us_min=1_000, latency_us_max=1_000, drift_ppm_max=0)


class Note(msgspec.Struct, frozen=True):
    number: int


class Recorder:
    """A node that notes what reaches it and when."""

    def __init__(self, ports: Ports, on_start: Callable[[Ports], None] = lambda ports: None) -> None:
        self.ports = ports
        self.on_start = on_start
        self.seen: list[tuple[int, int]] = []

    def start(self) -> None:
        self.on_start(self.ports)

    def receive(self, source, message) -> None:
        self.seen.append((message.number, self.ports.clock.monotonic_us()))

    def status(self) -> NodeStatus:
        return NodeStatus(role="follower")


class Pair:
    """Two hosts, `athens` and `byzantium`, on one network with a fixed latency of a millisecond."""

    def __init__(self, fsync_us: int = 500, drift_ppm: int = 0) -> None:
        self.scheduler = Scheduler()
        self.network = SimulatedNetwork(self.scheduler, CALM, 1, ("athens", "byzantium"), record=True)
        trace = SimulatedTrace(self.scheduler, ())
        self.athens, self.byzantium = (
            SimulatedHost(
                name,
                scheduler=self.scheduler,
                network=self.network,
                trace=trace,
                seed=1,
                drift_ppm=drift_ppm,
                fsync_us=(fsync_us, fsync_us),
            )
            for name in ("athens", "byzantium")
        )
        self.athens.start(Recorder)
        self.byzantium.start(Recorder)

    def run(self, until_us: int = 1_000_000) -> list[tuple[int, int]]:
        self.scheduler.run(until_us)
        self.scheduler.now_us = until_us
        return self.byzantium.node.seen if self.byzantium.node else []


def test_a_message_sent_after_an_fsync_leaves_when_the_fsync_is_done():
    pair = Pair(fsync_us=500)
    pair.athens.storage.append("log", b"x")
    pair.athens.storage.fsync("log")
    pair.athens.network.send("byzantium", Note(1))
    pair.athens.network.send_ahead("byzantium", Note(2))
    assert pair.run() == [(2, 1_000), (1, 1_500)]


def test_fsyncs_asked_for_during_an_fsync_share_the_next_one():
    pair = Pair(fsync_us=500)
    for number in range(4):
        pair.athens.storage.append("log", b"x")
        pair.athens.storage.fsync("log")
        pair.athens.network.send("byzantium", Note(number))
    assert pair.run() == [(0, 1_500), (1, 2_000), (2, 2_000), (3, 2_000)]


def test_a_crash_during_an_fsync_drops_waiting_messages_unless_the_fsync_had_just_ended():
    outcomes = set()
    for delay_us in range(1, 400):
        pair = Pair(fsync_us=500)
        pair.athens.storage.append("log", b"x")
        pair.athens.storage.fsync("log")
        pair.athens.network.send("byzantium", Note(1))
        pair.athens.network.send("byzantium", Note(2))
        pair.scheduler.at(delay_us, pair.athens.kill)
        delivered = [number for number, _ in pair.run()]
        durable = pair.athens.disk.read("log") == b"x"
        assert durable or not delivered, "no message is ahead of what it promises"
        outcomes.add(tuple(delivered))
    assert outcomes == {(), (1,), (1, 2)}


def test_a_restart_sees_the_durable_prefix_with_an_empty_memory():
    pair = Pair()
    pair.athens.storage.append("log", b"kept")
    pair.athens.storage.fsync("log")
    pair.run(1_000)
    before = pair.athens.node
    pair.athens.kill()
    pair.athens.start(Recorder)
    assert pair.athens.node is not before
    assert pair.athens.storage.read("log") == b"kept"


def test_timers_of_a_dead_incarnation_never_fire():
    pair = Pair()
    fired: list[str] = []
    pair.athens.timers.after(100, lambda: fired.append("old"))
    pair.athens.kill()
    pair.athens.start(Recorder)
    pair.athens.timers.after(200, lambda: fired.append("new"))
    pair.run()
    assert fired == ["new"]


def test_a_cancelled_timer_does_not_fire_and_a_repeated_one_goes_on_until_cancelled():
    pair = Pair()
    fired: list[int] = []
    pair.athens.timers.after(100, lambda: fired.append(-1)).cancel()
    repeated = pair.athens.timers.every(100, lambda: fired.append(pair.scheduler.now_us))
    pair.scheduler.at(350, repeated.cancel)
    pair.run()
    assert fired == [100, 200, 300]


def test_a_paused_node_gets_everything_at_its_resumption_in_the_original_order():
    pair = Pair()
    pair.byzantium.pause()
    for number in range(3):
        pair.athens.network.send("byzantium", Note(number))
    pair.scheduler.at(50_000, pair.byzantium.resume)
    assert pair.run() == [(0, 50_000), (1, 50_000), (2, 50_000)]


def test_a_killed_paused_node_forgets_what_was_waiting():
    pair = Pair()
    pair.byzantium.pause()
    pair.athens.network.send("byzantium", Note(1))
    pair.scheduler.at(5_000, pair.byzantium.kill)
    pair.scheduler.at(6_000, pair.byzantium.start, Recorder)
    assert pair.run() == []


def test_a_cut_loses_what_would_arrive_while_it_lasts_and_only_in_its_direction():
    pair = Pair()
    pair.network.set_cut("athens", "byzantium", True)
    pair.athens.network.send("byzantium", Note(1))
    pair.byzantium.network.send("athens", Note(2))
    pair.run(2_000)
    pair.network.set_cut("athens", "byzantium", False)
    pair.athens.network.send("byzantium", Note(3))
    assert [number for number, _ in pair.run()] == [3]
    assert [number for number, _ in pair.athens.node.seen] == [2]
    assert [(record.source, record.receive_us) for record in pair.network.records if record.receive_us < 0] == [
        ("athens", -1)
    ]


def test_a_lossy_duplicating_slow_link_keeps_the_order_of_first_arrivals():
    pair = Pair()
    quality = LinkQuality(delay_us=5_000, jitter_us=20_000, loss=0.3, duplicate=0.3)
    pair.network.set_quality("athens", "byzantium", quality)
    for number in range(200):
        pair.scheduler.at(number * 100, pair.athens.network.send, "byzantium", Note(number))
    arrivals = [number for number, _ in pair.run()]
    firsts = list(dict.fromkeys(arrivals))
    assert firsts == sorted(firsts)
    assert 100 < len(firsts) < 180 and len(arrivals) > len(firsts)


def test_an_exception_in_a_node_is_a_crash_of_that_node_and_is_reported():
    pair = Pair()
    crashed: list[str] = []
    pair.byzantium.on_crash = lambda node, error: crashed.append(f"{node}: {error}")

    def explode(source, message):
        raise ValueError("no such entry")

    pair.byzantium.node.receive = explode
    pair.athens.network.send("byzantium", Note(1))
    pair.run()
    assert crashed == ["byzantium: no such entry"]
    assert pair.byzantium.node is None


def test_a_fast_clock_reads_ahead_and_fires_timers_early():
    pair = Pair()
    pair.athens.clock.drift(100_000)
    fired: list[int] = []
    pair.athens.timers.after(11_000, lambda: fired.append(pair.scheduler.now_us))
    pair.run(20_000)
    assert fired == [10_000]
    assert pair.athens.clock.monotonic_us() == 22_000


def test_a_stepped_wall_clock_leaves_the_monotonic_one_alone_and_reset_puts_it_right():
    pair = Pair()
    pair.run(5_000)
    clock = pair.athens.clock
    before_us = clock.monotonic_us()
    clock.step(-3_600_000_000)
    assert clock.monotonic_us() == before_us
    assert clock.offset_us() == -3_600_000_000
    clock.drift(50_000)
    pair.run(105_000)
    assert clock.monotonic_us() == 110_000
    clock.reset()
    assert (clock.offset_us(), clock.rate_ppm()) == (0, 0)
    assert clock.monotonic_us() == 110_000


def test_a_message_behind_an_fsync_of_a_stalled_disk_leaves_when_the_disk_is_mended():
    pair = Pair(fsync_us=500)
    pair.athens.disk.strike("stalled")
    pair.athens.storage.append("log", b"x")
    pair.athens.storage.fsync("log")
    pair.athens.network.send("byzantium", Note(1))
    assert pair.run(50_000) == []
    pair.athens.mend_disk()
    assert pair.run() == [(1, 51_000)]


def test_the_fsync_that_hung_when_a_node_was_killed_ends_nothing_of_the_next_process():
    pair = Pair(fsync_us=500)
    pair.athens.disk.strike("stalled")
    pair.athens.storage.fsync("log")
    pair.run(5_000)
    pair.athens.kill()
    pair.athens.start(Recorder)
    pair.athens.storage.fsync("log")
    pair.athens.network.send("byzantium", Note(2))
    pair.athens.mend_disk()
    assert pair.run() == [(2, 6_500)]
