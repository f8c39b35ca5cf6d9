"""The commands that repeat a run, quoted so that a shell takes them unchanged."""

from __future__ import annotations

import shlex
from pathlib import Path

from faultline.harness.request import RunRequest

__all__ = ["replay_command", "run_command"]


def replay_command(folder: Path, hosts: str = "") -> str:
    """Return the command that replays the run kept in `folder`, on the same `hosts` if any."""
    return shlex.join(["faultline", "replay", str(folder), *(["--hosts", hosts] if hosts else [])])


def run_command(request: RunRequest, hosts: str = "") -> str:
    """Return the command that runs one seed anew, on `hosts` if any, with all values that are not defaults.

    The nodes are named, as the default of the command is each system's own, or the number of hosts.
    """
    defaults = RunRequest(system=request.system)
    words = ["faultline", "run", "--system", request.system, "--workload", request.workload]
    words += ["--faults", ",".join(request.faults) or "none"]
    if request.planted_bugs:
        words += ["--planted-bug", ",".join(request.planted_bugs)]
    for name, value in request.options.items():
        words += ["--option", f"{name}={value}"]
    for name, value in request.host_options.items():
        words += ["--host-option", f"{name}={value}"]
    for name, share in request.floors.items():
        words += ["--floor", f"{name}={share:g}"]
    words += [word for name, value in (request.weather or {}).items() for word in ("--weather", f"{name}={value}")]
    if hosts:
        words += ["--hosts", hosts]
    held = request.held or ()
    # In a drawn universe the seed says how many nodes there are, unless the user held the number.
    if not request.universe or "nodes" in held:
        words += ["--nodes", str(request.nodes)]
    if isinstance(request.racks, int):
        words += ["--racks", str(request.racks)]
    for name in ("workers", "operations", *(() if hosts else ("world",))):
        if getattr(request, name) != getattr(defaults, name) or name in held:
            words += [f"--{name}", str(getattr(request, name))]
    if request.universe:
        words += ["--universe", request.universe]
    if request.duration_s is not None:
        words += ["--duration", str(request.duration_s)]
    flags = {"--beyond-promise": request.beyond_promise, "--stop-at-violation": request.stop_at_violation}
    words += [flag for flag, is_set in flags.items() if is_set]
    return shlex.join([*words, "--seed", str(request.seed)])
