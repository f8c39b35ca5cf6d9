"""`faultline replay`: repeat a stored run.

A simulated run must come out the same to the byte; if it does not, the code has changed since, and the
command says so. A run of real processes cannot be repeated exactly: it is run `--times` times, and the command reports
how many came to the stored verdict. Its plan aims faults at roles; with `--as-happened` they hit the nodes and links
that they hit then, and operations are invoked at the recorded times (`faultline.harness.decisions`).

Run folders are sent around. So the folder never says where the harness logs in: a run on hosts is repeated on the hosts
that the command line names, and on no others.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faultline.cli.options import on_hosts
from faultline.cli.output import say
from faultline.cli.sealed_outcome import Sealed
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Verdict, merge

if TYPE_CHECKING:
    from faultline.harness.store import StoredRun

__all__ = ["command"]


@click.command("replay")
@click.argument("run", type=click.Path(path_type=Path, file_okay=False))
@click.option("--times", type=click.IntRange(1), default=1, show_default=True, help="How often to repeat a real run.")
@click.option(
    "--as-happened", is_flag=True, help="Repeat the recorded decisions: faults on the same nodes, at the same times."
)
@click.option("--keep", is_flag=True, help="Keep every repetition of a real run, with a report, below RUN/replays.")
@click.option(
    "--hosts",
    metavar="HOSTS",
    callback=on_hosts,
    help="Where to repeat a run on hosts: namespaces:N or ssh:FILE. RUN itself never decides this.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what came out as JSON.")
def command(run: Path, times: int, as_happened: bool, keep: bool, hosts: str | None, as_json: bool) -> Sealed:
    """Repeat the stored RUN and compare it with the record.

    RUN is the folder of a run, as printed in every replay line. Ends with the exit code of the verdict; 4 when a
    simulated run did not come out the same to the byte, and did not violate anything either.
    """
    from faultline.cli.repeat import Repeated, repeat
    from faultline.harness.store import read_run

    stored = read_run(run)
    where = _hosts_for(stored, hosts)
    repeated: Repeated = repeat(stored, times, as_happened=as_happened, keep=keep, hosts=where)
    if as_json:
        import msgspec

        say(msgspec.json.encode(repeated))
    else:
        say("\n".join(repeated.lines))
    verdict = merge([repeated.verdict, *([] if repeated.as_recorded else [Verdict.HARNESS_ERROR])])
    return Sealed(
        verdict=verdict.value, checks_due=repeated.checks_due, checks_ran=repeated.checks_ran, folder=str(run)
    )


def _hosts_for(stored: StoredRun, hosts: str | None) -> str:
    """Return the hosts for the stored run: the `hosts` of the command line, never those that the run names."""
    if stored.file.world != "hosts":
        if hosts is not None:
            raise UsageError(f"{stored.folder} is not a run on hosts, so --hosts has no effect.", "Leave it out.")
        return ""
    if hosts is None:
        again = shlex.join(["faultline", "replay", stored.folder, "--hosts"])
        kind = stored.file.hosts.partition(":")[0]
        raise UsageError(
            f"{stored.folder} is a run on {_KINDS.get(kind, 'hosts')}; a run folder does not decide where to log in.",
            f"Name the hosts yourself: {again} namespaces:{len(stored.file.plan.nodes)}, or ssh:FILE.toml of yours.",
        )
    return hosts


_KINDS = {"namespaces": "hosts made for it (namespaces)", "ssh": "machines over SSH (ssh)"}
