"""Failure detectors: fixed timeout, aware of pauses, phi accrual; and the monitor that watches many servers."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import log10
from statistics import NormalDist

import pytest

from faultline.harness.errors import UsageError
from faultline.systems_under_test.patterns.data_replication.heartbeat import (
    FailureDetector,
    HeartBeatMonitor,
    LocalPause,
    PauseAwareFailureDetector,
    TimeoutBasedFailureDetector,
)
from faultline.systems_under_test.patterns.data_replication.phi_accrual import (
    Arrivals,
    PhiAccrualFailureDetector,
    PhiParameters,
    phi,
)
from faultline.testing.fake_ports import FakePorts

INTERVAL_US = 100_000
TIMEOUT_US = 1_000_000
PAUSE_US = 5_000_000


def phi_detector(clock: FakePorts) -> PhiAccrualFailureDetector:
    return PhiAccrualFailureDetector(clock, TIMEOUT_US, PhiParameters.of(INTERVAL_US))


def fixed(clock: FakePorts) -> TimeoutBasedFailureDetector:
    return TimeoutBasedFailureDetector(clock, TIMEOUT_US)


def pause_aware(clock: FakePorts) -> PauseAwareFailureDetector:
    detector = PauseAwareFailureDetector(fixed(clock), clock, PAUSE_US)
    detector.restart(TIMEOUT_US)
    return detector


DETECTORS: tuple[Callable[[FakePorts], FailureDetector], ...] = (fixed, pause_aware, phi_detector)


def beat(clock: FakePorts, detector: FailureDetector, intervals_us: list[int]) -> int:
    """Let heartbeats come after these intervals, with a check before each; how often the server was suspected."""
    suspicions = 0
    for interval_us in intervals_us:
        clock.now_us += interval_us
        suspicions += not detector.check()
        detector.heartbeat_received()
    return suspicions


# -- every detector ---------------------------------------------------------------------------------------------------


@pytest.mark.rows("HB-R5", "HB-S8")
@pytest.mark.parametrize("make", DETECTORS)
def test_steps_of_the_wall_clock_change_no_verdict(make: Callable[[FakePorts], FailureDetector]) -> None:
    clock = FakePorts()
    detector = make(clock)
    assert beat(clock, detector, [INTERVAL_US] * 20) == 0
    for offset_us in (3_600_000_000, -3_600_000_000):
        clock.wall_offset_us = offset_us
        assert beat(clock, detector, [INTERVAL_US] * 20) == 0
    clock.now_us += 3 * TIMEOUT_US
    assert detector.check() == 0


@pytest.mark.rows("HB-R6", "HB-S10")
@pytest.mark.parametrize("make", DETECTORS)
def test_a_server_that_is_never_heard_is_suspected(make: Callable[[FakePorts], FailureDetector]) -> None:
    clock = FakePorts()
    detector = make(clock)
    assert detector.check() > 0
    clock.now_us += 3 * TIMEOUT_US
    assert detector.check() == 0


@pytest.mark.parametrize("make", DETECTORS)
def test_a_check_says_how_long_to_wait_and_then_the_silence_is_long_enough(
    make: Callable[[FakePorts], FailureDetector],
) -> None:
    clock = FakePorts()
    detector = make(clock)
    beat(clock, detector, [INTERVAL_US] * 5)
    clock.now_us += detector.check() - 1
    assert detector.check() == 1
    clock.now_us += 1
    assert detector.check() == 0
    assert detector.silence_us() > INTERVAL_US


# -- fixed timeout ----------------------------------------------------------------------------------------------------


@pytest.mark.rows("HB-S1", "HB-S2", "HB-I3")
def test_nine_of_ten_heartbeats_may_be_lost_at_the_figures_of_the_book_and_the_tenth_may_not() -> None:
    clock = FakePorts()
    detector = fixed(clock)
    assert beat(clock, detector, [9 * INTERVAL_US] * 3) == 0
    assert beat(clock, detector, [10 * INTERVAL_US]) == 1


@pytest.mark.rows("HB-R13")
def test_a_shorter_timeout_finds_a_crash_sooner_and_accuses_more_often() -> None:
    weather = random.Random(7)
    intervals_us = [INTERVAL_US + (weather.random() < 0.1) * 250_000 for _ in range(300)]
    found = []
    for timeout_us in (200_000, 1_000_000):
        clock = FakePorts()
        detector = TimeoutBasedFailureDetector(clock, timeout_us)
        suspicions = beat(clock, detector, intervals_us)
        found.append((suspicions > 0, detector.check()))
    assert found == [(True, 200_000), (False, 1_000_000)]


# -- pauses -----------------------------------------------------------------------------------------------------------


@pytest.mark.rows("HB-R12")
def test_a_check_that_comes_a_pause_late_judges_nothing_and_the_next_one_does() -> None:
    clock = FakePorts()
    detector = pause_aware(clock)
    clock.now_us += TIMEOUT_US + PAUSE_US
    assert detector.check() == TIMEOUT_US
    clock.now_us += TIMEOUT_US
    assert detector.check() == 0


def test_a_check_that_comes_less_than_a_pause_late_does_judge() -> None:
    clock = FakePorts()
    detector = pause_aware(clock)
    clock.now_us += TIMEOUT_US + PAUSE_US - 1
    assert detector.check() == 0


def test_a_fixed_timeout_alone_accuses_after_its_own_sleep() -> None:
    clock = FakePorts()
    detector = fixed(clock)
    clock.now_us += 10 * TIMEOUT_US
    assert detector.check() == 0


def test_phi_accrual_is_wrapped_against_pauses_like_any_other() -> None:
    clock = FakePorts()
    detector = PauseAwareFailureDetector(phi_detector(clock), clock, PAUSE_US)
    detector.restart(TIMEOUT_US)
    beat(clock, detector, [INTERVAL_US] * 10)
    clock.now_us += 10_000_000
    assert detector.check() > 0
    clock.now_us += 10 * INTERVAL_US
    assert detector.check() == 0


# -- phi accrual ------------------------------------------------------------------------------------------------------


@pytest.mark.rows("HB-R16", "HB-R15")
@pytest.mark.parametrize("silence", [0.5, 1.0, 2.0, 4.0, 6.0])
def test_phi_is_the_order_of_magnitude_of_the_chance_that_a_heartbeat_still_comes(silence: float) -> None:
    """The paper's definition, against the distribution of the standard library."""
    chance = NormalDist(100.0, 20.0).cdf(2 * 100.0 - (100.0 + 20.0 * silence))
    assert phi(100.0 + 20.0 * silence, 100.0, 20.0) == pytest.approx(-log10(chance), rel=1e-6)


def test_phi_grows_with_the_silence_and_stays_a_number() -> None:
    suspicions = [phi(silence, 100.0, 10.0) for silence in range(0, 5_000, 50)]
    assert suspicions == sorted(suspicions)
    assert suspicions[0] == pytest.approx(0.0, abs=1e-9)
    assert suspicions[-1] == 300.0


@pytest.mark.parametrize("threshold", [1.0, 3.0, 8.0, 12.0])
def test_the_time_of_suspicion_is_where_phi_reaches_the_threshold(threshold: float) -> None:
    clock = FakePorts()
    detector = PhiAccrualFailureDetector(clock, TIMEOUT_US, PhiParameters.of(INTERVAL_US, threshold))
    weather = random.Random(3)
    beat(clock, detector, [INTERVAL_US + weather.randrange(-20_000, 20_000) for _ in range(60)])
    clock.now_us += detector.acceptable_us()
    assert detector.phi() == pytest.approx(threshold, rel=1e-3)
    assert detector.check() == 0


@pytest.mark.rows("HB-R16")
def test_irregular_heartbeats_are_given_more_time_than_regular_ones() -> None:
    weather = random.Random(5)
    acceptable = []
    for jitter_us in (0, 50_000, 250_000):
        clock = FakePorts()
        detector = phi_detector(clock)
        beat(clock, detector, [INTERVAL_US + weather.randrange(jitter_us + 1) for _ in range(100)])
        acceptable.append(detector.acceptable_us())
    assert acceptable == sorted(acceptable)
    assert acceptable[2] > acceptable[0] + 150_000


def test_the_window_forgets_how_heartbeats_came_long_ago() -> None:
    arrivals = Arrivals(10, 100)
    for _ in range(10):
        arrivals.add(500)
    assert (arrivals.mean_us, arrivals.deviation_us) == (500, 0)


def test_a_silence_in_which_the_server_was_suspected_is_no_sample() -> None:
    clock = FakePorts()
    detector = phi_detector(clock)
    beat(clock, detector, [INTERVAL_US] * 20)
    before_us = detector.acceptable_us()
    assert beat(clock, detector, [60_000_000]) == 1
    assert detector.acceptable_us() == before_us


def test_to_restart_is_no_heartbeat_and_spreads_the_timeouts_of_elections() -> None:
    clock = FakePorts()
    detector = phi_detector(clock)
    beat(clock, detector, [INTERVAL_US] * 20)
    shortest_us = detector.restart(TIMEOUT_US)
    clock.now_us += 1
    assert detector.restart(TIMEOUT_US + 77_000) == shortest_us + 77_000


@pytest.mark.parametrize("threshold", [0.5, 16.0])
def test_a_threshold_that_says_nothing_is_refused(threshold: float) -> None:
    with pytest.raises(UsageError, match="threshold is from 1 to 15"):
        PhiParameters.of(INTERVAL_US, threshold)


@pytest.mark.rows("HB-S11")
def test_where_half_the_heartbeats_are_lost_phi_accuses_less_often_than_a_timeout_of_the_same_length() -> None:
    """A timeout as long as phi's patience was on a quiet network: phi's grows with what it sees, the other does not."""
    weather = random.Random(11)
    quiet = [INTERVAL_US] * 50
    rough = [INTERVAL_US * (1 + int(weather.expovariate(0.7))) + weather.randrange(40_000) for _ in range(400)]
    clock = FakePorts()
    accrual = phi_detector(clock)
    beat(clock, accrual, quiet)
    timeout_us = accrual.acceptable_us()
    accused_by_phi = beat(clock, accrual, rough)
    clock = FakePorts()
    accused_by_timeout = beat(clock, TimeoutBasedFailureDetector(clock, timeout_us), quiet + rough)
    assert accused_by_timeout > 0
    assert accused_by_phi <= accused_by_timeout // 2


@pytest.mark.rows("HB-S11")
@pytest.mark.parametrize("make", DETECTORS)
def test_delays_longer_than_the_interval_but_below_the_timeout_accuse_no_server(
    make: Callable[[FakePorts], FailureDetector],
) -> None:
    clock = FakePorts()
    assert beat(clock, make(clock), [250_000, 20_000, 30_000, 100_000, 10_000, 190_000] * 20) == 0


# -- many servers -----------------------------------------------------------------------------------------------------


class Watch:
    """A monitor of three servers by the figures of the book, and what it said."""

    def __init__(self, kind: type[HeartBeatMonitor] = HeartBeatMonitor, pause: type[LocalPause] = LocalPause) -> None:
        self.clock = FakePorts()
        self.said: list[tuple[str, bool]] = []
        self.monitor = kind(
            ("athens", "byzantium", "cyrene"),
            lambda: fixed(self.clock),
            pause(self.clock, PAUSE_US),
            INTERVAL_US,
            lambda server, up: self.said.append((server, up)),
        )

    def pass_time(self, duration_us: int, *heard: str) -> None:
        """Interval by interval, hear of `heard` and check."""
        for _ in range(duration_us // INTERVAL_US):
            self.clock.now_us += INTERVAL_US
            for server in heard:
                self.monitor.heartbeat_received(server)
            self.monitor.heartbeat_check()


@pytest.mark.rows("HB-R4", "HB-R5", "HB-I1", "HB-S1")
def test_who_falls_silent_is_marked_down_once_and_the_others_are_not() -> None:
    watch = Watch()
    watch.pass_time(2 * TIMEOUT_US, "athens", "byzantium", "cyrene")
    watch.pass_time(TIMEOUT_US - INTERVAL_US, "athens", "byzantium")
    assert watch.said == []
    watch.pass_time(2 * TIMEOUT_US, "athens", "byzantium")
    assert watch.said == [("cyrene", False)]


@pytest.mark.rows("HB-R6", "HB-S10")
def test_a_server_that_never_starts_is_marked_down() -> None:
    watch = Watch()
    watch.pass_time(2 * TIMEOUT_US, "athens", "byzantium")
    assert watch.monitor.down() == ("cyrene",)


@pytest.mark.rows("HB-R7", "HB-S4", "HB-I2")
def test_a_server_that_was_marked_down_is_marked_up_by_its_next_heartbeat() -> None:
    watch = Watch()
    watch.pass_time(2 * TIMEOUT_US, "athens", "byzantium")
    watch.pass_time(INTERVAL_US, "athens", "byzantium", "cyrene")
    assert watch.said == [("cyrene", False), ("cyrene", True)]
    assert watch.monitor.down() == ()


@pytest.mark.rows("HB-R12", "HB-S3")
def test_after_ten_seconds_of_sleep_no_server_is_marked_down_until_a_later_cycle_finds_the_dead_one() -> None:
    watch = Watch()
    watch.pass_time(TIMEOUT_US, "athens", "byzantium", "cyrene")
    watch.clock.now_us += 10_000_000
    watch.monitor.heartbeat_check()
    assert watch.said == []
    watch.monitor.heartbeat_received("athens")
    watch.monitor.heartbeat_received("byzantium")
    watch.pass_time(INTERVAL_US, "athens", "byzantium")
    assert watch.said == [("cyrene", False)]


@pytest.mark.rows("HB-R4")
def test_strangers_are_not_watched() -> None:
    watch = Watch()
    watch.monitor.heartbeat_received("sparta")
    watch.pass_time(2 * TIMEOUT_US, "athens", "byzantium", "cyrene")
    assert watch.said == []


# -- planted bugs of the monitor: no system watches many servers yet, so they are shown on the component --------------


class NeverSlept(LocalPause):
    """HB-M2: no detection of one's own pause."""

    def slept(self) -> bool:
        return False


class OnlyThoseHeard(HeartBeatMonitor):
    """HB-M5: the check goes over the servers that were heard of, as in the printed sample."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self._unheard = dict(self._detectors)
        self._detectors.clear()

    def heartbeat_received(self, server: str) -> None:
        if server in self._unheard:
            self._detectors[server] = self._unheard.pop(server)
        super().heartbeat_received(server)


class DownForEver(HeartBeatMonitor):
    """HB-M6: who was marked down stays so."""

    def _mark_up(self, server: str) -> None:
        pass


@pytest.mark.rows("HB-M2")
def test_the_bug_of_no_pause_detection_marks_all_servers_down_after_a_sleep() -> None:
    watch = Watch(pause=NeverSlept)
    watch.pass_time(TIMEOUT_US, "athens", "byzantium", "cyrene")
    watch.clock.now_us += 10_000_000
    watch.monitor.heartbeat_check()
    assert watch.said == [("athens", False), ("byzantium", False), ("cyrene", False)]


@pytest.mark.rows("HB-M5")
def test_the_bug_of_watching_only_those_that_were_heard_waits_for_a_dead_server_for_ever() -> None:
    watch = Watch(OnlyThoseHeard)
    watch.pass_time(20 * TIMEOUT_US, "athens", "byzantium")
    assert watch.monitor.down() == ()


@pytest.mark.rows("HB-M6")
def test_the_bug_of_a_mark_that_sticks_ignores_a_server_that_is_back() -> None:
    watch = Watch(DownForEver)
    watch.pass_time(2 * TIMEOUT_US, "athens", "byzantium")
    watch.pass_time(TIMEOUT_US, "athens", "byzantium", "cyrene")
    assert watch.monitor.down() == ("cyrene",)
