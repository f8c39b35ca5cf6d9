"""`faultline shrink`: the fewest operations and faults that still show a stored violation."""

from __future__ import annotations

from pathlib import Path

import click

from faultline.cli.output import say
from faultline.cli.sealed_outcome import Sealed

__all__ = ["command"]


@click.command("shrink")
@click.argument("run", type=click.Path(path_type=Path, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print what came out as JSON.")
def command(run: Path, as_json: bool) -> Sealed:
    """Shrink the violation of the stored RUN to the parts that matter.

    The minimal run is kept in RUN/minimal, with a report and a replay line of its own. Ends with 1, the exit code of a
    violation.
    """
    from faultline.cli.single_run import shrink_and_report
    from faultline.harness.store import read_violation, write_judgement
    from faultline.harness.stored_plan import fit_plan
    from faultline.registry import resolve
    from faultline.reports.terminal import minimal_lines

    stored, judgement = read_violation(run, ", so there is nothing to shrink")
    parts = resolve(stored.file.plan)
    plan = fit_plan(stored.file.plan, parts, str(run / "run.json"))
    shrink_and_report(run, plan, judgement, parts)
    write_judgement(run, judgement)
    if as_json:
        import msgspec

        say(msgspec.json.encode(judgement.detail["minimal"]))
    else:
        say("\n".join([judgement.detail["minimal"]["sentence"], *minimal_lines(judgement)]))
        say(f"Report: {run / 'minimal' / 'report.html'}")
    return Sealed(verdict=judgement.verdict.value, folder=str(run))
