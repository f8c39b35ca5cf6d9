"""`faultline demo`: the first minute with Faultline.

Runs the shipped campaign `demo`: the correct reference system and some of its planted bugs, in the simulated world. It
ends with 0 when every planted bug was found and the correct system is clean.
"""

from __future__ import annotations

from pathlib import Path

import click

from faultline.campaign.spark import DEFAULT_MASTER
from faultline.cli.campaign import finish, tell_supervisor
from faultline.cli.options import output_option
from faultline.cli.output import say
from faultline.cli.sealed_outcome import Sealed

__all__ = ["command"]


@click.command("demo")
@click.option("--master", default=DEFAULT_MASTER, show_default=True, help="Spark master URL.")
@output_option
@click.option("--json", "as_json", is_flag=True, help="Print campaign.json instead of sentences.")
def command(master: str, output: Path, as_json: bool) -> Sealed:
    """Find planted bugs, and show the correct system clean, in one command."""
    from faultline.campaign.layout import numbered_folders
    from faultline.campaign.pipeline import run_campaign
    from faultline.campaign.planfile import load_plan
    from faultline.cli.progress import campaign_progress

    plan = load_plan("demo")
    say(f"{plan.summary} Seeds {plan.seeds}, {len(plan.cells())} cells.", err=True)
    name = next(folder.name for folder in numbered_folders(output, "demo") if not folder.exists())
    if name != "demo":
        say(f"{output / 'campaigns' / 'demo'} holds an earlier demo; this one is kept in {name} beside it.", err=True)
    with campaign_progress() as progress:
        result = run_campaign(plan, store=output, master=master, name=name, progress=progress, begun=tell_supervisor)
    return finish(result, as_json, interrupted=result.interrupted)
