"""`faultline replay`: do a stored run again.

A simulated run must come out the same to the byte; if it does not, the code has changed since, and that is said. A run
of real processes cannot be repeated exactly: it is done `--times` times, and how many of them came to the stored
verdict is reported. Its plan aims faults at roles; with `--as-happened` they hit the nodes and links they hit then, and
operations are invoked when they were (`faultline.harness.decisions`).
"""

from __future__ import annotations

from pathlib import Path

import click

from faultline.harness.verdict import Verdict, exit_code

__all__ = ["command"]


@click.command("replay")
@click.argument("run", type=click.Path(path_type=Path, file_okay=False))
@click.option("--times", type=click.IntRange(1), default=1, show_default=True, help="How often to repeat a real run.")
@click.option(
    "--as-happened", is_flag=True, help="Repeat what was decided: faults on the same nodes, at the same times."
)
@click.option("--keep", is_flag=True, help="Keep every repetition of a real run, with a report, below RUN/replays.")
@click.option("--json", "as_json", is_flag=True, help="Print what came out as JSON.")
def command(run: Path, times: int, as_happened: bool, keep: bool, as_json: bool) -> int:
    """Do the stored RUN again and compare it with what was recorded.

    RUN is the folder of a run, as printed in every replay line. Ends with the exit code of the verdict; 4 when a
    simulated run did not come out the same to the byte.
    """
    from faultline.cli.repeat import Repeated, repeat
    from faultline.harness.store import read_run
    from faultline.hosts.namespaces.rootless import enter_user_namespace

    stored = read_run(run)
    if stored.file.hosts.startswith("namespaces:"):
        enter_user_namespace()
    repeated: Repeated = repeat(stored, times, as_happened=as_happened, keep=keep)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(repeated))
    else:
        click.echo("\n".join(repeated.lines))
    if not repeated.as_recorded:
        return exit_code(Verdict.HARNESS_ERROR)
    return exit_code(repeated.verdict)
