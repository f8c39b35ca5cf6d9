"""`faultline campaign`: many runs on Spark; and `faultline campaign conclude`, which summarises the folder of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from faultline.campaign.spark import DEFAULT_MASTER
from faultline.cli.options import (
    as_floors,
    as_options,
    comma_separated,
    floor_option,
    on_hosts,
    output_option,
    stop_option,
    universe_option,
    weather_option,
)
from faultline.cli.output import say
from faultline.cli.sealed_outcome import INTERRUPTED, Sealed, announce, working_in
from faultline.harness.errors import UsageError
from faultline.harness.run_record import WorldName
from faultline.harness.verdict import Verdict

if TYPE_CHECKING:
    from faultline.campaign.pipeline import CampaignResult

__all__ = ["command", "finish", "tell_supervisor"]


def _many(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [comma_separated(context, parameter, value) for value in values]


@click.group("campaign", invoke_without_command=True)
@click.option(
    "--plan",
    help="A shipped campaign by name (faultline list plans), or a TOML file; flags replace its values "
    "[default: `default`].",
)
@click.option("--system", "systems", multiple=True, help="System under test; may be repeated [default: the plan's].")
@click.option("--workload", "workloads", multiple=True, help="Workload; may be repeated [default: the plan's].")
@click.option(
    "--faults",
    "fault_sets",
    multiple=True,
    callback=_many,
    help="A fault set `a,b`; may be repeated [default: the plan's].",
)
@click.option(
    "--planted-bug",
    "--mutant",
    "planted_bugs",
    multiple=True,
    callback=_many,
    help="Planted bugs `a,b`; may be repeated [default: the plan's, else none].",
)
@click.option("--option", "option_pairs", multiple=True, metavar="NAME=VALUE", help="Option of the systems.")
@click.option("--seeds", help="Seeds of every cell, `A..B`, both included [default: the plan's, else 0..199].")
@click.option(
    "--guided",
    is_flag=True,
    help="Decide each wave of runs by what the runs before it reached; simulated world only "
    "[default: the plan's, else off].",
)
@click.option("--runs", type=click.IntRange(1), help="Runs of a guided campaign, in all cells [default: 400].")
@click.option("--wave", type=click.IntRange(1), help="Runs of a guided campaign decided at once [default: 50].")
@click.option("--seed", type=click.IntRange(0), help="First seed of a guided campaign [default: the plan's, else 0].")
@click.option("--nodes", type=int, help="Nodes in the cluster [default: the plan's, else 3].")
@click.option(
    "--racks",
    type=int,
    help="Racks to which the nodes are dealt in turn [default: the plan's, else those of the host file, else 3 where "
    "faults strike racks].",
)
@click.option("--workers", type=int, help="Concurrent clients [default: the plan's, else 5].")
@click.option("--operations", type=int, help="Operations before the final reads [default: the plan's, else 200].")
@click.option(
    "--duration",
    "duration_s",
    type=float,
    help="Length of the fault phase in seconds [default: the plan's, else by the operations; 30 if real].",
)
@click.option(
    "--world",
    type=click.Choice(["simulated", "local"]),
    help="Where the runs happen [default: the plan's, else simulated].",
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
@click.option("--master", default=DEFAULT_MASTER, show_default=True, help="Spark master URL.")
@click.option(
    "--name",
    help="Name of the campaign and its folder; it must be new in the results folder [default: the plan's].",
)
@universe_option
@weather_option
@floor_option
@output_option
@stop_option
@click.option("--json", "as_json", is_flag=True, help="Print campaign.json instead of sentences.")
@click.pass_context
def command(
    context: click.Context,
    /,
    plan: str | None,
    systems: tuple[str, ...],
    workloads: tuple[str, ...],
    fault_sets: list[tuple[str, ...]],
    planted_bugs: list[tuple[str, ...]],
    option_pairs: tuple[str, ...],
    seeds: str | None,
    nodes: int | None,
    racks: int | None,
    workers: int | None,
    operations: int | None,
    duration_s: float | None,
    world: Literal["simulated", "local"] | None,
    hosts: str | None,
    host_option_pairs: tuple[str, ...],
    master: str,
    name: str | None,
    universe: Literal["calm", "drawn"] | None,
    weather_pairs: tuple[str, ...],
    floor_pairs: tuple[str, ...],
    output: Path,
    stop_at_violation: bool,
    as_json: bool,
    **guidance: int | None,
) -> Sealed | None:
    """Run a campaign: a matrix of systems, workloads, fault sets and planted bugs, each cell with every seed. A guided
    one shares --runs out among the cells.

    The campaign's folder keeps every verdict, the whole run of each kind of violation, tables as Parquet, JUnit XML and
    one HTML report.
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return None
    from faultline.campaign.pipeline import run_campaign
    from faultline.campaign.planfile import plan_from_flags
    from faultline.cli.progress import campaign_progress

    campaign_plan = plan_from_flags(
        plan=plan,
        name=name,
        systems=systems,
        workloads=workloads,
        fault_sets=fault_sets,
        planted_bugs=planted_bugs,
        options=as_options(option_pairs),
        floors=as_floors(floor_pairs),
        seeds=seeds,
        nodes=_nodes_on(hosts) if nodes is None and hosts is not None else nodes,
        racks=racks,
        workers=workers,
        operations=operations,
        duration_s=duration_s,
        world=_world(world, hosts),
        hosts=hosts,
        host_options=as_options(host_option_pairs, "--host-option"),
        weather=as_options(weather_pairs, "--weather"),
        stop_at_violation=stop_at_violation or None,
        universe=universe,
        **guidance,
    )
    with campaign_progress() as progress:
        result = run_campaign(
            campaign_plan, store=output, master=master, name=name, progress=progress, begun=tell_supervisor
        )
    return finish(result, as_json, interrupted=result.interrupted)


@command.command("conclude")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print campaign.json instead of sentences.")
def _conclude(folder: Path, as_json: bool) -> Sealed:
    """Summarise the campaign in FOLDER from its files, whether it ended, was killed, or still runs.

    No run is repeated, and neither Spark nor Java is needed. Summary, tables, JUnit XML and report are written anew.
    """
    from faultline.campaign.conclude import conclude_folder

    return finish(conclude_folder(folder), as_json, interrupted=False)


def _refuse_options(context: click.Context) -> None:
    """Refuse options before `conclude`: `campaign --seeds 0..9 conclude FOLDER` looks as if the seeds mattered."""
    for parameter in context.command.params:
        if context.get_parameter_source(str(parameter.name)) is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[0]} has no effect before {context.invoked_subcommand}.", "Leave it out.")


def tell_supervisor(folder: Path) -> None:
    """Tell the supervisor where the campaign's journal is, in case this process dies."""
    working_in(str(folder))


def _world(world: Literal["simulated", "local"] | None, hosts: str | None) -> WorldName | None:
    if world is not None and hosts is not None:
        raise UsageError("--hosts is a world of its own and cannot go with --world.", "Leave one of them out.")
    return world if hosts is None else "hosts"


def _nodes_on(hosts: str) -> int:
    from faultline.harness.world.hosts.machines.host_sets import parse_hosts

    return parse_hosts(hosts).count


def finish(result: CampaignResult, as_json: bool, *, interrupted: bool) -> Sealed:
    """Print the result of a campaign and return its outcome; `interrupted` says that this command was interrupted."""
    from faultline.campaign.sentences import in_short

    outcome = Sealed(
        verdict="" if interrupted and result.verdict is not Verdict.VIOLATION else result.verdict.value,
        code=INTERRUPTED,
        checks_due=tuple(cell.cell for cell in result.cells),
        checks_ran=tuple(cell.cell for cell in result.cells if sum(cell.counts.values())),
        folder=str(result.folder),
    )
    announce(outcome)
    if as_json:
        say((Path(result.folder) / "campaign.json").read_text("utf-8"))
    else:
        told = [*result.sentences, *(f"Warning: {warning}" for warning in result.warnings)]
        say("\n".join([*in_short(told, (cell.fault_set for cell in result.cells)), f"Report: {result.report}"]))
    return outcome
