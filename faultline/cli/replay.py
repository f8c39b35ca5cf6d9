"""`faultline replay`: do a stored run again.

A simulated run must come out the same to the byte; if it does not, the code has changed since, and that is said. A run
of real processes cannot be repeated exactly: it is done `--times` times, and how many of them came to the stored
verdict is reported. Its plan aims faults at roles; with `--as-happened` they hit the nodes and links they hit then, and
operations are invoked when they were (`faultline.harness.decisions`).
"""

from __future__ import annotations

from pathlib import Path

import click

from faultline.cli.output import say
from faultline.cli.sealed_outcome import Sealed, handed_over
from faultline.harness.verdict import Verdict, merge

__all__ = ["command"]


@click.command("replay")
@click.argument("run", type=click.Path(path_type=Path, file_okay=False))
@click.option("--times", type=click.IntRange(1), default=1, show_default=True, help="How often to repeat a real run.")
@click.option(
    "--as-happened", is_flag=True, help="Repeat what was decided: faults on the same nodes, at the same times."
)
@click.option("--keep", is_flag=True, help="Keep every repetition of a real run, with a report, below RUN/replays.")
@click.option("--json", "as_json", is_flag=True, help="Print what came out as JSON.")
def command(run: Path, times: int, as_happened: bool, keep: bool, as_json: bool) -> Sealed:
    """Do the stored RUN again and compare it with what was recorded.

    RUN is the folder of a run, as printed in every replay line. Ends with the exit code of the verdict; 4 when a
    simulated run did not come out the same to the byte, and did not violate anything either.
    """
    from faultline.cli.repeat import Repeated, repeat
    from faultline.harness.store import read_run
    from faultline.hosts.namespaces.rootless import enter_user_namespace

    stored = read_run(run)
    if stored.file.hosts.startswith("namespaces:"):
        enter_user_namespace(environment=handed_over)
    repeated: Repeated = repeat(stored, times, as_happened=as_happened, keep=keep)
    if as_json:
        import msgspec

        say(msgspec.json.encode(repeated))
    else:
        say("\n".join(repeated.lines))
    verdict = merge([repeated.verdict, *([] if repeated.as_recorded else [Verdict.HARNESS_ERROR])])
    return Sealed(
        verdict=verdict.value, checks_due=repeated.checks_due, checks_ran=repeated.checks_ran, folder=str(run)
    )
