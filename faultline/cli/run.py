"""`faultline run`: one run, judged, with its folder and report."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click
import msgspec
from click.core import ParameterSource

from faultline.cli.options import (
    as_floors,
    as_options,
    floor_option,
    on_hosts,
    output_option,
    request_options,
    stop_option,
    universe_option,
    weather_option,
)
from faultline.cli.output import say
from faultline.cli.sealed_outcome import INTERRUPTED, Sealed
from faultline.harness.errors import UsageError
from faultline.harness.judgement import Judgement
from faultline.harness.run_record import WorldName

__all__ = ["command"]


@click.command("run", context_settings={"show_default": True})
@click.option("--system", default="consistent-core", show_default=True, help="System under test, by name.")
@request_options
@click.option("--seed", type=int, default=0, show_default=True, help="Decides everything in the simulated world.")
@click.option(
    "--duration",
    "duration_s",
    type=float,
    help="Length of the fault phase in seconds [default: by the operations; 30 if real].",
)
@click.option(
    "--world",
    type=click.Choice(["simulated", "local"]),
    default="simulated",
    show_default=True,
    help="Where the run happens.",
)
@click.option(
    "--hosts",
    metavar="HOSTS",
    callback=on_hosts,
    help="Run on hosts: namespaces:N makes N of them, ssh:FILE names machines.",
)
@click.option(
    "--host-option",
    "host_option_pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Setting of the hosts, such as fsync=lies.",
)
@universe_option
@weather_option
@floor_option
@output_option
@click.option("--shrink/--no-shrink", "shrinks", default=True, help="Shrink a violation of the simulated world.")
@click.option(
    "--beyond-promise", is_flag=True, help="Allow a run that the system does not promise to pass [default: refuse it]."
)
@stop_option
@click.option("--json", "as_json", is_flag=True, help="Print verdict.json instead of sentences.")
def command(
    system: str,
    workload: str,
    faults: tuple[str, ...],
    planted_bugs: tuple[str, ...],
    option_pairs: tuple[str, ...],
    nodes: int,
    racks: int | None,
    workers: int,
    operations: int,
    seed: int,
    duration_s: float | None,
    world: WorldName,
    hosts: str | None,
    host_option_pairs: tuple[str, ...],
    universe: Literal["calm", "drawn"] | None,
    weather_pairs: tuple[str, ...],
    floor_pairs: tuple[str, ...],
    output: Path,
    shrinks: bool,
    beyond_promise: bool,
    stop_at_violation: bool,
    as_json: bool,
) -> Sealed:
    """Run once: drive a system with a workload and faults, and judge the answers to clients.

    The run's folder keeps the plan, the history as it happened, the verdict and an HTML report. A violation in the
    simulated world is shrunk to the fewest operations and faults that still show it, kept as a run of its own.
    """
    from faultline.cli.single_run import carry_out, sealed
    from faultline.harness.planning import RunRequest

    workload, nodes = _usual(system, workload, nodes)
    if hosts is not None:
        world, nodes = "hosts", _nodes_on(hosts, nodes)
    request = RunRequest(
        system=system,
        workload=workload,
        faults=faults,
        seed=seed,
        planted_bugs=planted_bugs,
        options=as_options(option_pairs),
        host_options=_host_options(host_option_pairs, hosts),
        nodes=nodes,
        workers=workers,
        operations=operations,
        duration_s=duration_s,
        floors=as_floors(floor_pairs),
        world=world,
        beyond_promise=beyond_promise,
        stop_at_violation=stop_at_violation or msgspec.UNSET,
        universe="drawn" if universe == "drawn" else msgspec.UNSET,
        held=_held() if universe == "drawn" else msgspec.UNSET,
        weather={**as_options(weather_pairs, "--weather")} or msgspec.UNSET,
        racks=_racks(racks, hosts),
    )
    finished = carry_out(request, output, shrinks=shrinks, hosts=hosts or "", announces=True)
    _print(finished.judgement, finished.lines, as_json)
    ending = sealed(finished.judgement, finished.folder)
    return ending.replaced(verdict="", code=INTERRUPTED) if finished.interrupted else ending


def _usual(system: str, workload: str, nodes: int) -> tuple[str, int]:
    """Return the request with the system's usual workload and nodes as defaults: the user's own choice stays."""
    from faultline.harness.system import HasUsualTest
    from faultline.registry import load_system

    loaded, source = load_system(system), click.get_current_context().get_parameter_source
    if not isinstance(loaded, HasUsualTest):
        return workload, nodes
    return (
        workload if source("workload") is ParameterSource.COMMANDLINE else loaded.usual_workload,
        nodes if source("nodes") is ParameterSource.COMMANDLINE else loaded.usual_nodes,
    )


def _held() -> tuple[str, ...]:
    """Return the numbers that the user gave, which no universe draws."""
    from faultline.harness.request import DRAWN_NUMBERS

    source = click.get_current_context().get_parameter_source
    return tuple(name for name in DRAWN_NUMBERS if source(name) is ParameterSource.COMMANDLINE)


def _nodes_on(hosts: str, nodes: int) -> int:
    """Return how many nodes run on `hosts`: one on each, unless the user asked for fewer."""
    from faultline.harness.world.hosts.machines.host_sets import parse_hosts

    context = click.get_current_context()
    if context.get_parameter_source("world") is ParameterSource.COMMANDLINE:
        raise UsageError("--hosts is a world of its own and cannot go with --world.", "Leave one of them out.")
    count = parse_hosts(hosts).count
    asked = context.get_parameter_source("nodes") is ParameterSource.COMMANDLINE
    if asked and nodes > count:
        raise UsageError(f"{nodes} nodes need as many hosts, but {hosts} has {count}.", "Leave --nodes out.")
    return nodes if asked else count


def _racks(racks: int | None, hosts: str | None) -> int | tuple[str, ...] | msgspec.UnsetType:
    """Return the racks that the user or the host file gives, if any."""
    if hosts is None:
        return msgspec.UNSET if racks is None else racks
    from faultline.harness.world.hosts.machines.host_sets import parse_hosts

    return parse_hosts(hosts).racks_instead_of(racks)


def _host_options(pairs: tuple[str, ...], hosts: str | None) -> dict[str, str]:
    """Return the settings of the hosts. Raise UsageError for settings that these hosts cannot have."""
    if not pairs:
        return {}
    if hosts is None:
        raise UsageError("--host-option needs hosts, but there are none.", "Add --hosts namespaces:3.")
    from faultline.harness.world.hosts.machines.host_options import checked_host_options

    return checked_host_options(as_options(pairs, "--host-option"))


def _print(judgement: Judgement, lines: list[str], as_json: bool) -> None:
    if as_json:
        say(msgspec.json.encode(judgement))
    else:
        say("\n".join(lines))
