"""Clocks of processes that know nothing of us: CPython is told another time, and its children too."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from faultline.harness.world.hosts.agent.clock_code import Setting, Skew
from faultline.harness.world.hosts.agent.clock_patch import PatchError, patched
from faultline.harness.world.hosts.agent.freezing import state_of
from faultline.harness.world.hosts.agent.member import Member
from faultline.harness.world.hosts.agent.member_clock import MemberClock
from faultline.harness.world.hosts.agent.ptrace import PtraceError, PtraceStop
from faultline.harness.world.hosts.agent.self_test import clock_refusal

pytestmark = pytest.mark.real

HOUR_NS = 3_600_000_000_000
TOLERANCE_NS = 60_000_000_000
"""A loaded machine may take its time between two readings, but not a minute."""

# Tells its own time by three ways, lets a child by fork tell its own, or becomes another program.
WITNESS = """
import datetime, json, os, sys, time
def told():
    return {"pid": os.getpid(), "wall": time.time_ns(), "monotonic": time.monotonic_ns(),
            "date": datetime.datetime.now().timestamp(), "work": time.process_time_ns()}
def say(): print(json.dumps(told()), flush=True)
say()
for line in sys.stdin:
    if line == "fork\\n":
        if os.fork() == 0:
            time.sleep(600)
    if line == "exec\\n":
        os.execv(sys.executable, [sys.executable, "-S", "-c", SOURCE])
    say()
"""


class Witness:
    """A process that tells the time it sees; its number stands in a file, as a member's does."""

    def __init__(self, folder: Path) -> None:
        source = f"SOURCE = {WITNESS!r}\nSOURCE = 'SOURCE = ' + repr(SOURCE) + SOURCE\n{WITNESS}"
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid_file = folder / "node.pid"
        self.pid_file.write_text(f"{self.process.pid}\n")
        self.told()

    def ask(self, question: str = "time") -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{question}\n")
        self.process.stdin.flush()
        return self.told()

    def told(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def wall_off_ns(self) -> int:
        return int(self.ask()["wall"]) - time.time_ns()


@contextmanager
def running(folder: Path) -> Iterator[tuple[Witness, MemberClock]]:
    witness = Witness(folder)
    member = Member(str(witness.pid_file), supervisor=False)
    try:
        yield witness, MemberClock(member)
    finally:
        for pid in reversed(member.processes()):
            subprocess.run(["kill", "-KILL", str(pid)], check=False)
        witness.process.communicate()


def where_clocks_can_be_changed(test: Callable[..., None]) -> Callable[..., None]:
    """Elsewhere the test shows that there is a reason, and that it is told."""

    @wraps(test)
    def run(tmp_path: Path) -> None:
        refusal = clock_refusal()
        if refusal:
            with running(tmp_path) as (witness, _), pytest.raises(PatchError):
                patched(witness.process.pid, Setting())
        else:
            test(tmp_path)

    return run


def near(first_ns: float, second_ns: float) -> bool:
    return abs(first_ns - second_ns) < TOLERANCE_NS


@where_clocks_can_be_changed
def test_a_step_is_seen_by_every_way_of_asking_and_by_no_other_process(tmp_path: Path) -> None:
    with running(tmp_path) as (witness, clock):
        before = witness.ask()
        for step_ns in (HOUR_NS, -3 * HOUR_NS):
            clock.step(step_ns)
        told = witness.ask()
        assert near(told["wall"] - time.time_ns(), -2 * HOUR_NS)
        assert near(told["date"] * 1e9, told["wall"])
        assert near(told["monotonic"], before["monotonic"]) and near(told["work"], before["work"])
        assert near(clock.view().wall_off_ns, -2 * HOUR_NS)
        clock.reset()
        assert near(witness.wall_off_ns(), 0) and near(clock.view().wall_off_ns, 0)


@where_clocks_can_be_changed
def test_the_monotonic_clock_is_stepped_apart_and_never_goes_back(tmp_path: Path) -> None:
    with running(tmp_path) as (witness, clock):
        before = witness.ask()
        clock.step(0, HOUR_NS)
        told = witness.ask()
        assert near(told["monotonic"] - before["monotonic"], HOUR_NS) and near(told["wall"], before["wall"])
        with pytest.raises(PatchError, match="does not go back"):
            clock.step(0, -1)
        clock.drift(500_000)
        drifted = witness.ask()["monotonic"]
        clock.reset()
        assert witness.ask()["monotonic"] > drifted > told["monotonic"]


@where_clocks_can_be_changed
def test_a_monotonic_clock_is_put_right_by_slowing_it_down_or_by_a_jump_forward(tmp_path: Path) -> None:
    with running(tmp_path) as (witness, clock):
        for rate_ppm in (500_000, -500_000):
            clock.drift(rate_ppm)
            last = witness.ask()["monotonic"]
            while abs(clock.view().monotonic_off_ns) < 20_000_000:
                last = witness.ask()["monotonic"]
            clock.reset()
            while clock.view().setting != Setting():
                now = witness.ask()["monotonic"]
                assert now > last
                last = now
            assert last < witness.ask()["monotonic"] < time.monotonic_ns()


@where_clocks_can_be_changed
def test_a_drift_makes_both_clocks_run_fast_or_slow(tmp_path: Path) -> None:
    with running(tmp_path) as (witness, clock):
        for rate_ppm in (500_000, -500_000):
            clock.drift(rate_ppm)
            shown, shortest_ns, longest_ns = measured(witness)
            for clock_name in ("wall", "monotonic"):
                if rate_ppm > 0:
                    assert shown[clock_name] > 1.49 * shortest_ns
                else:
                    assert shown[clock_name] < 0.51 * longest_ns
            assert clock.view().setting.wall.rate_ppm == rate_ppm


def measured(witness: Witness) -> tuple[dict[str, int], int, int]:
    """Return the advance of the witness's clocks, and bounds of the time that passed, with a ratio below 1.3."""
    before_ns, first, after_ns = time.monotonic_ns(), witness.ask(), time.monotonic_ns()
    while True:
        asked_ns, last, told_ns = time.monotonic_ns(), witness.ask(), time.monotonic_ns()
        shortest_ns, longest_ns = asked_ns - after_ns, told_ns - before_ns
        if longest_ns < 1.3 * shortest_ns:
            return {name: last[name] - first[name] for name in ("wall", "monotonic")}, shortest_ns, longest_ns


@where_clocks_can_be_changed
def test_children_by_fork_and_programs_by_exec_get_the_setting_in_force(tmp_path: Path) -> None:
    with running(tmp_path) as (witness, clock):
        clock.step(HOUR_NS)
        member = Member(str(witness.pid_file), supervisor=False)
        witness.ask("fork")
        # The child has a copy of the setting of that moment, so that the next step must reach it apart.
        clock.step(HOUR_NS)
        views = [patched(pid, Setting(Skew(2 * HOUR_NS))).view() for pid in member.processes()]
        assert len(views) == 2 and all(near(view.wall_off_ns, 2 * HOUR_NS) for view in views)
        fresh = witness.ask("exec")
        assert near(fresh["wall"] - time.time_ns(), 0)
        clock.adopt()
        assert near(witness.wall_off_ns(), 2 * HOUR_NS)


@where_clocks_can_be_changed
def test_a_member_that_starts_anew_goes_on_with_the_setting(tmp_path: Path) -> None:
    with running(tmp_path) as (first, clock):
        clock.step(-HOUR_NS)
        first.process.kill()
        first.process.wait()
        # While no process runs, the setting itself is the answer.
        assert near(clock.view().wall_off_ns, -HOUR_NS)
        with running(tmp_path) as (second, _):
            clock.adopt()
            assert near(second.wall_off_ns(), -HOUR_NS)


@where_clocks_can_be_changed
def test_a_member_that_begets_processes_without_end_is_followed(tmp_path: Path) -> None:
    # Forks, programs by exec and processes that end, all the time, as in a store with a process for each connection.
    restless = "while :; do /bin/true; (:); done"
    with subprocess.Popen(["sh", "-c", restless]) as parent:
        (tmp_path / "node.pid").write_text(str(parent.pid))
        clock = MemberClock(Member(str(tmp_path / "node.pid"), supervisor=False))
        try:
            for count in range(1, 40):
                clock.step(HOUR_NS)
                assert near(clock.view().wall_off_ns, count * HOUR_NS)
            clock.reset()
            assert near(clock.view().wall_off_ns, 0) and parent.poll() is None
        finally:
            parent.kill()


@where_clocks_can_be_changed
def test_a_stopped_process_is_reached_and_stays_stopped(tmp_path: Path) -> None:
    with running(tmp_path) as (witness, clock):
        witness.process.send_signal(signal.SIGSTOP)
        os.waitpid(witness.process.pid, os.WUNTRACED)
        clock.step(HOUR_NS)
        assert near(clock.view().wall_off_ns, HOUR_NS)
        # It goes back to its stop by way of the scheduler, without running a line of its own.
        while state_of(witness.process.pid) != "T":
            os.sched_yield()
        witness.process.send_signal(signal.SIGCONT)
        assert near(witness.wall_off_ns(), HOUR_NS)


@where_clocks_can_be_changed
def test_a_probe_notices_that_the_code_was_taken_out(tmp_path: Path) -> None:
    with running(tmp_path) as (witness, _):
        patch = patched(witness.process.pid, Setting(Skew(HOUR_NS)))
        with open(f"/proc/{witness.process.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(patch._functions["__vdso_time"])
            memory.write(b"\xc3")
        assert not patch.is_in_force()
        with pytest.raises(PatchError, match="not in force"):
            patch.view()


@where_clocks_can_be_changed
def test_settings_without_sense_are_refused(tmp_path: Path) -> None:
    with running(tmp_path) as (witness, clock):
        with pytest.raises(PatchError, match="behind 1970"):
            clock.step(-100 * 365 * 24 * HOUR_NS)
        with pytest.raises(PatchError, match="by -900000 to 9000000 parts per million, not by -1000000"):
            clock.drift(-1_000_000)
        assert near(witness.wall_off_ns(), 0) and not clock.in_use


BASH = "while read -r _; do echo $EPOCHREALTIME; done"
REDIS = ("redis-server", "--port", "0", "--save", "", "--unixsocket")


@where_clocks_can_be_changed
def test_a_shell_sees_the_step_as_python_does(tmp_path: Path) -> None:
    with subprocess.Popen(["bash", "-c", BASH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdin is not None and shell.stdout is not None

        def told_ns() -> float:
            shell.stdin.write("\n")
            shell.stdin.flush()
            return float(shell.stdout.readline().replace(",", ".")) * 1e9

        assert near(told_ns() - time.time_ns(), 0)
        patched(shell.pid, Setting(Skew(-HOUR_NS)))
        assert near(told_ns() - time.time_ns(), -HOUR_NS)
        shell.stdin.close()


@where_clocks_can_be_changed
def test_redis_says_itself_that_its_time_is_another(tmp_path: Path) -> None:
    if shutil.which("redis-server") is None:
        return
    path = tmp_path / "redis.sock"
    with subprocess.Popen([*REDIS, str(path)], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        try:
            assert server.stdout is not None
            while "ready to accept connections" not in server.stdout.readline():
                assert server.poll() is None
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                answers = connection.makefile()

                def told_ns() -> int:
                    connection.sendall(b"TIME\r\n")
                    return int([answers.readline() for _ in range(5)][2]) * 1_000_000_000

                assert near(told_ns() - time.time_ns(), 0)
                patched(server.pid, Setting(Skew(HOUR_NS)))
                assert near(told_ns() - time.time_ns(), HOUR_NS)
                answers.close()
        finally:
            server.kill()


def test_a_process_that_is_gone_is_named() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    with pytest.raises(PtraceError, match="has ended"), PtraceStop(gone.pid):
        pass
    with pytest.raises(PatchError, match="No such"):
        patched(gone.pid, Setting())


def test_another_machine_is_refused_by_name() -> None:
    assert clock_refusal("aarch64") == "the clock code is for x86-64, this is aarch64"
