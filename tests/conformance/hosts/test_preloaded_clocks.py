"""Clocks by libfaketime: a program that asks the C library follows, PostgreSQL does in a run, and etcd is refused."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path

import msgspec
import pytest
from namespace_fixtures import on_namespaces

from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run_record import RunRecord
from faultline.harness.system import HostedStore
from faultline.harness.world.hosts.agent.clock_patch import PatchError
from faultline.harness.world.hosts.agent.freezing import state_of
from faultline.harness.world.hosts.agent.member import Member
from faultline.harness.world.hosts.agent.preload import Preload, find_library, has_read
from faultline.harness.world.hosts.agent.preloaded_clock import PreloadedClock
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.run import run_on_hosts
from faultline.registry import resolve

pytestmark = [pytest.mark.real, pytest.mark.slow]

MS = 1_000
DURATION_S = 7.0
"""Longer than the faults take, since a loaded machine injects them late, and none after the end."""
S_NS = 1_000_000_000
HOUR_NS = 3_600 * S_NS
TOLERANCE_NS = 60 * S_NS
SHELL = "while read -r _; do echo $EPOCHREALTIME; done"
DEAF = "while read -r _; do echo no; done"


def where_libfaketime_is(test: Callable[..., None]) -> Callable[..., None]:
    """Elsewhere the test shows that it is refused by the name of the package."""

    @wraps(test)
    def run(tmp_path: Path, **others: object) -> None:
        try:
            find_library()
        except PatchError:
            with pytest.raises(PatchError, match="the Debian package libfaketime is not installed"):
                Preload("faultline-unused", str(tmp_path / "clock"))
        else:
            test(tmp_path, **others)

    return run


class Shell:
    """A bash that is asked something by a line; its number stands in a file, as a member's does."""

    def __init__(self, folder: Path, command: list[str], script: str = SHELL) -> None:
        self.process = subprocess.Popen(
            [*command, "bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        (folder / "node.pid").write_text(str(self.process.pid))

    def ask(self) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        # It is at rest when it waits for the next line: until then it may still be taken off its processor once.
        while state_of(self.process.pid) in "RD":
            os.sched_yield()
        return answer

    def told_ns(self) -> float:
        return float(self.ask().replace(",", ".")) * S_NS

    def off_ns(self) -> float:
        return self.told_ns() - time.time_ns()


@contextmanager
def running(folder: Path, script: str = SHELL) -> Iterator[tuple[Shell, PreloadedClock]]:
    preload = Preload(f"faultline-{folder.parent.name}-{folder.name}", str(folder / "clock"))
    clock = PreloadedClock(Member(str(folder / "node.pid"), supervisor=False), preload)
    shell = Shell(folder, clock.launcher(), script)
    try:
        yield shell, clock
    finally:
        shell.process.communicate()
        clock.close()
        assert list(Path("/dev/shm").glob(f"*{folder.parent.name}-{folder.name}*")) == []


def near(first_ns: float, second_ns: float) -> bool:
    return abs(first_ns - second_ns) < TOLERANCE_NS


@where_libfaketime_is
def test_a_program_follows_steps_both_ways_and_is_put_right(tmp_path: Path) -> None:
    with running(tmp_path) as (shell, clock):
        assert near(shell.off_ns(), 0) and not clock.in_use
        for step_ns, off_ns in ((HOUR_NS, HOUR_NS), (-3 * HOUR_NS, -2 * HOUR_NS)):
            clock.step(step_ns)
            assert near(shell.off_ns(), off_ns)
            assert near(clock.view(has_answered=True).wall_off_ns, off_ns)
        clock.reset()
        assert near(shell.off_ns(), 0)
        assert near(clock.view(has_answered=True).wall_off_ns, 0)


@where_libfaketime_is
def test_a_drift_begins_where_the_clock_is_and_goes_on_from_there(tmp_path: Path) -> None:
    with running(tmp_path) as (shell, clock):
        clock.step(HOUR_NS)
        before_ns, last_ns = time.monotonic_ns(), shell.told_ns()
        # The clock has counted for a while when the drift begins, which must not count for that.
        clock.drift(9_000_000)
        first_ns = shell.told_ns()
        passed_ns = time.monotonic_ns() - before_ns
        assert 0 <= first_ns - last_ns < 10 * passed_ns + MS
        answered_ns, shown_ns = time.monotonic_ns(), 0.0
        while shown_ns < S_NS:
            asked_ns = time.monotonic_ns()
            shown_ns = shell.told_ns() - first_ns
            assert shown_ns > 9 * (asked_ns - answered_ns)
        assert clock.view(has_answered=True).setting.wall.rate_ppm == 9_000_000


@where_libfaketime_is
def test_an_agent_that_is_started_anew_goes_on_where_programs_count_from(tmp_path: Path) -> None:
    with running(tmp_path) as (shell, first):
        first.step(HOUR_NS)
        assert near(shell.off_ns(), HOUR_NS)
        member = Member(str(tmp_path / "node.pid"), supervisor=False)
        second = PreloadedClock(member, Preload(first._preload._name, str(tmp_path / "clock")))
        # What the first one did ended with it.
        assert near(shell.off_ns(), 0) and not second.in_use
        assert second._preload._start_ns == first._preload._start_ns
        second.step(-HOUR_NS)
        assert near(shell.off_ns(), -HOUR_NS)
        assert near(second.view(has_answered=True).wall_off_ns, -HOUR_NS)


@where_libfaketime_is
def test_a_program_that_has_not_asked_since_is_no_proof_and_no_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("faultline.harness.world.hosts.agent.preloaded_clock._PATIENCE_S", 0.05)
    with running(tmp_path, DEAF) as (shell, clock):
        shell.ask()
        clock.step(HOUR_NS)
        # It has not run, so nothing can be said against it.
        assert near(clock.view(has_answered=True).wall_off_ns, HOUR_NS)
        shell.ask()
        assert not has_read(shell.process.pid, clock._preload.line)
        with pytest.raises(PatchError, match="no process asked libfaketime for the time"):
            clock.view(has_answered=True)
        assert near(clock.view(has_answered=False).wall_off_ns, HOUR_NS)


@where_libfaketime_is
def test_a_program_without_the_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("faultline.harness.world.hosts.agent.preloaded_clock._PATIENCE_S", 0.05)
    with running(tmp_path) as (_, clock):
        bare = Shell(tmp_path, [])
        bare.ask()
        for look in (clock.refuse_unfit, lambda: clock.view(has_answered=False)):
            with pytest.raises(PatchError, match=rf"not loaded into process {bare.process.pid} \(bash\)"):
                look()
        bare.process.communicate()


@where_libfaketime_is
def test_settings_that_libfaketime_cannot_give_are_refused(tmp_path: Path) -> None:
    with running(tmp_path) as (shell, clock):
        with pytest.raises(PatchError, match="does not step the monotonic clock"):
            clock.step(0, HOUR_NS)
        with pytest.raises(PatchError, match="behind 1970"):
            clock.step(-100 * 365 * 24 * HOUR_NS)
        with pytest.raises(PatchError, match="by -900000 to 9000000 parts per million"):
            clock.drift(-1_000_000)
        assert near(shell.off_ns(), 0) and not clock.in_use


# -- in runs ----------------------------------------------------------------------------------------------------------

STEP_AND_DRIFT = (
    PlannedFault("clock-step", 500 * MS, 500 * MS, "all", {"delta_us": 5_000_000}),
    PlannedFault("clock-drift", 1_400 * MS, 500 * MS, "leader", {"rate_ppm": -100_000}),
    PlannedFault("clock-strobe", 2_300 * MS, 300 * MS, "follower", {"delta_us": 2_000_000}),
)


def carried_out(hosts: NamespaceHosts, folder: Path, system: str, faults: tuple[PlannedFault, ...]) -> RunRecord | None:
    """A run with clocks by libfaketime; None where hosts lack that or the store, after a look at the refusal."""
    request = RunRequest(
        system=system, world="hosts", seed=1, duration_s=DURATION_S, faults=(), host_options={"clock": "libfaketime"}
    )
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=faults)
    assert isinstance(parts.system, HostedStore)

    def run() -> RunRecord:
        return run_on_hosts(plan, parts, hosts, folder=folder)

    if why := hosts.abilities.clock_means("n1", "libfaketime").refusal:
        with pytest.raises(UsageError, match="cannot inject clock-") as refused:
            run()
        assert why in refused.value.message
        return None
    for program in parts.system.programs:
        if hosts.fleet["n1"].run(f"command -v {program}", check=False).exit_code:
            with pytest.raises(HarnessError, match=f"The host n1 has no {program}"):
                run()
            return None
    return run()


@on_namespaces
def test_postgresql_is_struck_by_libfaketime_and_healed(hosts: NamespaceHosts, tmp_path: Path) -> None:
    record = carried_out(hosts, tmp_path, "postgresql", STEP_AND_DRIFT)
    if record is not None:
        assert record.errors == [] and record.breaches == []
        assert [(fault.kind, fault.applied) for fault in record.faults] == [
            (fault.kind, None) for fault in STEP_AND_DRIFT
        ]


@on_namespaces
def test_etcd_does_not_ask_the_c_library_and_is_refused(hosts: NamespaceHosts, tmp_path: Path) -> None:
    if hosts.abilities.clock_means("n1", "libfaketime").refusal:
        assert carried_out(hosts, tmp_path, "etcd", STEP_AND_DRIFT) is None
    elif hosts.fleet["n1"].run("command -v etcd", check=False).exit_code == 0:
        with pytest.raises(HarnessError, match="The clocks of etcd cannot be struck by libfaketime") as refused:
            carried_out(hosts, tmp_path, "etcd", STEP_AND_DRIFT[:1])
        assert "no process asked libfaketime for the time" in refused.value.message
        assert "--host-option clock=vdso" in refused.value.next_step
