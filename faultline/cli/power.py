"""`faultline power`: the share of generated bugs that the default campaign of a system finds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faultline.cli.output import json_line, say
from faultline.cli.sealed_outcome import INTERRUPTED, Sealed, announce

if TYPE_CHECKING:
    from faultline.power.measure import Candidate
    from faultline.power.result import Power

__all__ = ["command"]


@click.command("power", context_settings={"show_default": True})
@click.option("--system", required=True, help="System under test, by name.")
@click.option("--mutants", type=click.IntRange(1), default=20, help="Mutants to draw, each at most once.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Decides the mutants; the first seed of the campaign.")
@click.option("--runs", type=click.IntRange(1), default=100, help="The most runs of each mutant.")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=120.0, help="The most processor time of each."
)
@click.option("--workload", "workloads", multiple=True, help="Workload; may be repeated [default: the campaign's].")
@click.option("--mutant", "mutant_ids", metavar="ID", multiple=True, help="Measure this mutant; may be repeated.")
@click.option("--list", "lists", is_flag=True, help="Print all mutants, and run none.")
@click.option("--processes", type=click.IntRange(1), default=1, help="Mutants that run at a time.")
@click.option(
    "--markdown", type=click.Path(path_type=Path, dir_okay=False), help="Write the result as a page to this file."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    system: str,
    mutants: int,
    seed: int,
    runs: int,
    seconds: float,
    workloads: tuple[str, ...],
    mutant_ids: tuple[str, ...],
    lists: bool,
    processes: int,
    markdown: Path | None,
    as_json: bool,
) -> Sealed | None:
    """Measure the share of generated bugs that the default campaign of a system finds.

    Each mutant is one small change of the system's own code. It runs in the campaign that `faultline campaign --system`
    has with no other word, until clients see it or its runs are over. Ends with 0 when it has measured, and with 1 when
    a run accuses the unchanged program.
    """
    from faultline.cli.progress import words_now_and_then
    from faultline.power.measure import Asked, candidates_of, measure
    from faultline.power.worker import Limits

    asked = Asked(
        system=system,
        workloads=workloads,
        seed=seed,
        mutants=mutants,
        runs=runs,
        limits=Limits(processor_s=seconds),
        processes=processes,
        mutant_ids=mutant_ids,
    )
    candidates = candidates_of(system)
    if lists:
        _list(candidates, as_json)
        return None
    power = measure(asked, candidates, words_now_and_then())
    ending = Sealed(verdict="violation") if power.alarms else Sealed(code=INTERRUPTED if power.interrupted else 0)
    announce(ending)
    _print(power, markdown, as_json)
    return ending


def _list(candidates: Sequence[Candidate], as_json: bool) -> None:
    if as_json:
        say(json_line([one.mutant for one in candidates]))
    else:
        say("\n".join(f"{one.mutant.id}\n    line {one.mutant.line}: {one.mutant.diff}" for one in candidates))


def _print(power: Power, markdown: Path | None, as_json: bool) -> None:
    from faultline.power.sentences import lines_of, markdown_of

    if markdown is not None:
        from faultline.harness.results import writable, write_whole

        with writable(markdown.parent):
            write_whole(markdown, markdown_of(power).encode())
    if as_json:
        say(json_line(power))
    else:
        say("\n".join(lines_of(power)))
