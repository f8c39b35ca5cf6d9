"""The clock port: steps and drift as asked for, a monotonic clock that never goes back, settings that survive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faultline.harness.world.local.clock import ClockSetting, SkewedClock, machine_monotonic_us, machine_wall_us


class Machine:
    """A machine whose time is moved by hand."""

    def __init__(self) -> None:
        self.now_us = 5_000_000

    def monotonic_us(self) -> int:
        return self.now_us

    def wall_us(self) -> int:
        return self.now_us + 1_700_000_000_000_000

    def clock(self, setting: ClockSetting) -> SkewedClock:
        return SkewedClock(setting, self.monotonic_us, self.wall_us)


def test_without_a_setting_the_clocks_are_the_machines() -> None:
    machine = Machine()
    clock = machine.clock(ClockSetting())
    machine.now_us += 1_000
    assert (clock.monotonic_us(), clock.wall_us()) == (machine.now_us, machine.wall_us())


def test_a_step_moves_the_wall_clock_only() -> None:
    machine = Machine()
    clock = machine.clock(ClockSetting())
    clock.set(clock.setting.stepped(-250_000))
    assert clock.wall_us() == machine.wall_us() - 250_000
    assert clock.monotonic_us() == machine.now_us


def test_drift_lets_both_clocks_run_fast() -> None:
    machine = Machine()
    clock = machine.clock(ClockSetting())
    clock.set(clock.setting.drifting(100_000, machine.now_us))
    before_us = clock.monotonic_us()
    machine.now_us += 1_000_000
    assert clock.monotonic_us() - before_us == 1_100_000
    assert clock.wall_us() - machine.wall_us() == 100_000


def test_a_drift_that_ends_leaves_the_offset_it_made() -> None:
    machine = Machine()
    setting = ClockSetting().drifting(50_000, machine.now_us)
    machine.now_us += 2_000_000
    setting = setting.drifting(0, machine.now_us)
    machine.now_us += 9_000_000
    assert setting.skew_us(machine.now_us) == 100_000


def test_a_clock_built_anew_under_the_same_setting_shows_the_same_wall_time() -> None:
    machine = Machine()
    setting = ClockSetting().stepped(70_000).drifting(-20_000, machine.now_us)
    before = machine.clock(setting)
    machine.now_us += 3_000_000
    assert machine.clock(setting).wall_us() == before.wall_us() == machine.wall_us() + 70_000 - 60_000


def test_a_delay_on_a_fast_clock_is_shorter_for_the_machine() -> None:
    clock = Machine().clock(ClockSetting(rate_ppm=250_000))
    assert clock.machine_delay_us(1_000_000) == 800_000


@given(st.lists(st.tuples(st.integers(-500_000, 500_000), st.integers(0, 1_000_000)), max_size=10))
def test_the_monotonic_clock_never_goes_back(changes: list[tuple[int, int]]) -> None:
    machine = Machine()
    clock = machine.clock(ClockSetting())
    readings = [clock.monotonic_us()]
    for rate_ppm, elapsed_us in changes:
        clock.set(clock.setting.stepped(-rate_ppm).drifting(rate_ppm, machine.now_us))
        readings.append(clock.monotonic_us())
        machine.now_us += elapsed_us
        readings.append(clock.monotonic_us())
    assert readings == sorted(readings)


def test_the_machines_clocks_count_microseconds() -> None:
    assert machine_monotonic_us() <= machine_monotonic_us()
    assert machine_wall_us() > 1_600_000_000_000_000
