"""`faultline doctor`: the abilities of this machine, the parts that are missing, and how to get them."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from faultline.cli.options import on_hosts, output_option
from faultline.cli.output import say
from faultline.harness.errors import FaultlineError, UsageError

if TYPE_CHECKING:
    from faultline.harness.world.hosts.machines.leftovers import Leftover

__all__ = ["Examination", "command"]


class Examination(msgspec.Struct, frozen=True):
    """One examined part: `healthy` or not, the observation, and the next step when it is not."""

    name: str
    healthy: bool
    seen: str
    next_step: str = ""


@click.command("doctor")
@output_option
@click.option("--hosts", metavar="HOSTS", callback=on_hosts, help="Examine hosts instead: namespaces:N or ssh:FILE.")
@click.option(
    "--clean",
    is_flag=True,
    help="Remove the leftovers of aborted runs, here or on --hosts; only Faultline's own are touched.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of examinations.")
def command(output: Path, hosts: str | None, clean: bool, as_json: bool) -> int:
    """Tell what this machine can do, and what is missing.

    Ends with 0 when every world and the campaign engine can work here, else with 4. With --hosts, it tells what each
    host can do, and ends with 4 when one lacks something. With --clean, it removes the leftovers of runs that were
    killed together with the supervisor of their hosts, and ends with 4 when something could not be removed.
    """
    if clean:
        examinations = _cleaned(hosts)
    else:
        examinations = _hosts(hosts) if hosts is not None else [examine(output) for examine in _EXAMINATIONS]
    if as_json:
        say(msgspec.json.encode(examinations))
    else:
        for examination in examinations:
            say(_line(examination))
    return 0 if all(examination.healthy for examination in examinations) else 4


def _line(examination: Examination) -> str:
    mark = "ok     " if examination.healthy else "missing"
    hint = "" if examination.healthy else f"\n         {examination.next_step}"
    return f"{mark}  {examination.name}: {examination.seen}{hint}"


def _python(_output: Path) -> Examination:
    healthy = sys.version_info >= (3, 11)
    return Examination("Python", healthy, platform.python_version(), "Install Python 3.11 or newer.")


def _java(_output: Path) -> Examination:
    from faultline.campaign.java import find_java

    try:
        java = find_java()
    except FaultlineError as error:
        return Examination("Java for Spark campaigns", False, error.message, error.next_step)
    return Examination("Java for Spark campaigns", True, str(java))


def _packages(_output: Path) -> Examination:
    import importlib.metadata
    import importlib.util

    needed = ("pyspark", "pyarrow", "hypothesis", "jinja2", "paramiko")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        return Examination("Python packages", False, f"without {', '.join(missing)}", "Run `make test` or reinstall.")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in needed)
    return Examination("Python packages", True, versions)


def _engine(_output: Path) -> Examination:
    from faultline.checkers.linearizability.engine.native import engine_in_use

    engine = engine_in_use()
    seen = "native kernel" if engine.name == "native" else f"plain Python, as {engine.reason}"
    return Examination("Linearizability engine", True, seen)


def _simulated(_output: Path) -> Examination:
    from faultline.harness.world.faults import SIMULATED_CAPABILITIES

    return Examination("Simulated world", True, f"can inject {', '.join(SIMULATED_CAPABILITIES)}")


def _local(_output: Path) -> Examination:
    try:
        with socket.create_server(("127.0.0.1", 0)):
            pass
    except OSError as error:
        return Examination("Local world", False, f"no port on loopback: {error}", "Bring the interface lo up.")
    from faultline.harness.world.faults import LOCAL_CAPABILITIES

    return Examination("Local world", True, f"loopback ports; can inject {', '.join(LOCAL_CAPABILITIES)}")


def _results(output: Path) -> Examination:
    folder = next(parent for parent in [output.absolute(), *output.absolute().parents] if parent.exists())
    healthy = os.access(folder, os.W_OK)
    seen = f"{output} {'can' if healthy else 'cannot'} be written"
    return Examination("Results", healthy, seen, "Choose another folder with --output DIR.")


def _hosts(text: str) -> list[Examination]:
    import contextlib

    from faultline.harness.world.hosts.machines.examination import examine
    from faultline.harness.world.hosts.machines.host_sets import open_hosts, parse_hosts

    specification = parse_hosts(text)
    if specification.kind == "ssh":
        findings = examine(specification.hosts)
        found = [Examination(f"{f.host}: {f.name}", f.healthy, f.seen, f.next_step) for f in findings]
        # Healthy: the user cannot change it, and most tests do not need it.
        return [*found, Examination("disks", True, "power-off and disk faults are refused: only namespaces:N has them")]
    try:
        with contextlib.closing(open_hosts(specification)) as host_set:
            findings = examine(host_set.hosts, host_set.abilities.set_name, host_set)
            disks = host_set.disks.refusal()
    except FaultlineError as error:
        return [Examination(text, False, error.message, error.next_step)]
    found = [Examination(f"{f.host}: {f.name}", f.healthy, f.seen, f.next_step) for f in findings]
    return [_disks(disks), *found]


def _disks(refusal: str) -> Examination:
    seen = refusal or "a test disk lost power, and with it the data that was not synced"
    next_step = "Leave power, blackout and disk out. They need root, loop devices and ext4: apt-get install e2fsprogs"
    return Examination("disks: power-off, disk faults", not refusal, seen, next_step)


def _left(_output: Path) -> Examination:
    from faultline.harness.world.hosts.machines.leftovers import leftovers_here

    found = [leftover.what for leftover in leftovers_here()]
    # Healthy all the same: leftovers of an aborted run do not stop other runs, so nothing is missing on this machine.
    seen = f"{', '.join(found)}; `faultline doctor --clean` removes the leftovers of aborted runs" if found else "none"
    return Examination("Leftovers", True, seen)


def _cleaned(hosts: str | None) -> list[Examination]:
    """Remove leftovers, here or on the hosts over SSH, and yield the result for each."""
    from faultline.harness.world.hosts.machines.leftovers import leftovers_here

    left = leftovers_here() if hosts is None else _left_on(hosts)
    return [_removed(leftover) for leftover in left] or [Examination("Leftovers", True, "none")]


def _left_on(hosts: str) -> list[Leftover]:
    from faultline.harness.world.hosts.machines.fleet import Fleet
    from faultline.harness.world.hosts.machines.host_sets import parse_hosts
    from faultline.harness.world.hosts.machines.leftovers import leftovers_on

    specification = parse_hosts(hosts)
    if specification.kind != "ssh":
        raise UsageError(f"{hosts} are made anew for each run.", "Leave --hosts out: faultline doctor --clean")
    fleet = Fleet(specification.hosts)
    click.get_current_context().call_on_close(fleet.close)
    return [leftover for found in fleet.each(leftovers_on).values() for leftover in found]


def _removed(leftover: Leftover) -> Examination:
    try:
        leftover.remove()
    except (OSError, FaultlineError) as error:
        return Examination("Leftovers", False, f"{leftover.what} stays: {error}", "Remove it by hand.")
    return Examination("Leftovers", True, f"removed {leftover.what}")


_EXAMINATIONS: tuple[Callable[[Path], Examination], ...] = (
    _python,
    _packages,
    _java,
    _engine,
    _simulated,
    _local,
    _results,
    _left,
)
