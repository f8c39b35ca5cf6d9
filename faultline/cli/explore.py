"""`faultline explore`: one small run under every order of its events within bounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faultline.cli.options import as_options, comma_separated, output_option
from faultline.cli.output import say
from faultline.cli.sealed_outcome import Sealed, announce, limit

if TYPE_CHECKING:
    from faultline.harness.explore import Exploration
    from faultline.harness.parts import Parts
    from faultline.harness.plan import Plan

__all__ = ["command"]

_A_RUN_AT_LONGEST_S = 3_000


@click.command("explore", context_settings={"show_default": True})
@click.option("--system", default="quorum-register", help="System under test, by name.")
@click.option("--workload", help="Workload by name [default: the system's usual one, else register].")
@click.option(
    "--planted-bug",
    "--mutant",
    "planted_bugs",
    callback=comma_separated,
    help="Planted bugs to switch on, by name [default: none].",
)
@click.option("--option", "option_pairs", multiple=True, metavar="NAME=VALUE", help="Option of the system.")
@click.option("--nodes", type=int, default=3, help="Nodes in the cluster.")
@click.option("--workers", type=int, default=2, help="Concurrent clients.")
@click.option("--operations", type=int, default=3, help="Operations before the final reads.")
@click.option("--duration", "duration_s", type=float, help="Seconds for the operations [default: 0.02 for each].")
@click.option("--seed", type=int, default=0, help="Decides the operations and the order to depart from.")
@click.option("--delays", type=click.IntRange(0), default=1, help="The most late messages.")
@click.option("--behind", type=click.IntRange(1), default=3, help="The most later events that one message waits for.")
@click.option("--crashes", type=click.IntRange(0), default=0, help="The most crashes.")
@click.option("--down-ms", type=click.IntRange(0, 60_000), default=0, help="How long a crashed node is down.")
@click.option("--from-ms", type=click.IntRange(0), default=0, help="Time from which events come out of turn.")
@click.option("--schedules", "runs_max", type=click.IntRange(1), help="The most runs [default: no limit].")
@click.option("--seconds", type=click.FloatRange(0), help="The most time [default: no limit].")
@output_option
@click.option("--json", "as_json", is_flag=True, help="Print what came out as JSON.")
def command(
    system: str,
    workload: str | None,
    planted_bugs: tuple[str, ...],
    option_pairs: tuple[str, ...],
    nodes: int,
    workers: int,
    operations: int,
    duration_s: float | None,
    seed: int,
    delays: int,
    behind: int,
    crashes: int,
    down_ms: int,
    from_ms: int,
    runs_max: int | None,
    seconds: float | None,
    output: Path,
    as_json: bool,
) -> Sealed:
    """Run every schedule of a small run within bounds, and judge each.

    The seed gives one order of events. From it, at most --delays messages come late, each behind at most --behind later
    events of its node, and at most --crashes nodes lose power. Ends with 0 when all schedules were run and none
    violates, with 1 and a stored run at the first violation, and with 3 when a limit comes before the end.
    """
    from faultline.harness.explore import Bounds, explore
    from faultline.harness.planning import RunRequest, make_plan
    from faultline.harness.system import HasUsualTest
    from faultline.registry import load_system, resolve

    loaded = load_system(system)
    request = RunRequest(
        system=system,
        workload=workload or (loaded.usual_workload if isinstance(loaded, HasUsualTest) else "register"),
        faults=(),
        seed=seed,
        planted_bugs=planted_bugs,
        options=as_options(option_pairs),
        nodes=nodes,
        workers=workers,
        operations=operations,
        duration_s=duration_s,
        # A crash between two operations is one of the schedules, and no shortcoming of the test.
        floors={"faults-struck": 0.0},
    )
    parts = resolve(request)
    plan = make_plan(request, parts)
    bounds = Bounds(delays=delays, behind=behind, crashes=crashes, down_us=down_ms * 1_000, from_us=from_ms * 1_000)
    _refuse_empty_window(bounds.from_us, plan.heal_us)
    found = explore(plan, parts, bounds, goes_on=_limits(runs_max, seconds), tell=_progress())
    ending = _sealed(found, parts)
    announce(ending)
    return ending.replaced(folder=_print(found, plan, output, as_json))


def _sealed(found: Exploration, parts: Parts) -> Sealed:
    """Return the outcome for the supervisor: each check is due on all schedules."""
    from faultline.harness.checks import name_of

    due = tuple(name_of(checker) for checker in parts.checkers)
    return Sealed(verdict=found.verdict.value, checks_due=due, checks_ran=due if found.complete else ())


def _refuse_empty_window(from_us: int, heal_us: int) -> None:
    from faultline.harness.errors import UsageError

    if from_us >= heal_us:
        raise UsageError(
            f"--from-ms {from_us // 1_000} is not before the end of the operations, at {heal_us // 1_000} ms.",
            "Give an earlier time, or more --operations.",
        )


def _limits(runs_max: int | None, seconds: float | None) -> Callable[[int], bool]:
    """Return the function that says whether the exploration may go on after so many runs."""
    begun_s = time.monotonic()

    def goes_on(runs: int) -> bool:
        # Each run is told anew, so that the supervisor ends only one that never returns.
        limit(_A_RUN_AT_LONGEST_S, f"run {runs + 1} of the exploration")
        in_time = seconds is None or time.monotonic() - begun_s < seconds
        return in_time and (runs_max is None or runs < runs_max)

    return goes_on


def _progress() -> Callable[[int, int], None]:
    from faultline.cli.progress import line_now_and_then

    show = line_now_and_then("runs made")
    return lambda runs, _waiting: show(runs)


def _print(found: Exploration, plan: Plan, output: Path, as_json: bool) -> str:
    """Keep the violating run, if any, print the result, and return the folder of that run."""
    from faultline.cli.single_run import carry_out_plan
    from faultline.reports.exploration import exploration_lines

    kept = carry_out_plan(found.violation, output) if found.violation is not None else None
    if as_json:
        import msgspec

        told = msgspec.to_builtins(found) | {"verdict": found.verdict.value, "folder": str(kept.folder) if kept else ""}
        say(msgspec.json.encode(told))
    else:
        say("\n".join([*exploration_lines(found, plan), *(kept.lines if kept else ())]))
    return str(kept.folder) if kept else ""
