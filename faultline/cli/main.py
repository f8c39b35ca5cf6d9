"""The `faultline` command: a thin door to the rooms. Each verb is a module of its own, imported only when it is used.

Results go to standard output, progress and errors to standard error. Exit codes: 0 as expected, 1 violation, 2 usage,
3 inconclusive or vacuous, 4 harness error, 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

import faultline
from faultline.harness.errors import FaultlineError, Interrupted

__all__ = ["cli", "main", "perform"]

_VERBS = {
    "run": "One run: drive a system with a workload and faults, and judge it.",
    "campaign": "Many runs on Spark: a matrix of systems, workloads, fault sets and seeds.",
    "check": "Check recorded histories.",
    "replay": "Do a stored run again and compare.",
    "shrink": "The fewest operations and faults that still show a stored violation.",
    "list": "List systems, workloads, faults, checkers, mutants, patterns or plans.",
    "show": "One pattern: its promise, a diagram of it at work, a planted bug's counterexample.",
    "init": "Write the skeleton of a store that plugs in, with tests that say what is missing.",
    "doctor": "Say what this machine can do, and what is missing.",
    "evidence": "What real stores are known to do under faults, reproduced.",
    "demo": "Find planted bugs, and show the correct system clean, in one command.",
}

_EXAMPLES = """
\b
Examples:
  faultline demo
  faultline run --system consistent-core --mutant stale-read --seed 7
  faultline campaign --system consistent-core --seeds 0..199
  faultline check history.jsonl --format faultline --model cas-register
  faultline replay store/runs/RUN
"""


class _Verbs(click.Group):
    """A group whose verbs are known by name and summary, and imported when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _VERBS:
            return None
        module = importlib.import_module(f"faultline.cli.{'listing' if name == 'list' else name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_VERBS.items()))


@click.group(cls=_Verbs, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(faultline.__version__, prog_name="faultline")
def cli() -> None:
    """Test distributed stores: random workloads, injected faults, and proof from the recorded history."""


def perform(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command and return its exit code. Raises FaultlineError or click's ClickException."""
    try:
        status = cli.main(args=arguments, prog_name="faultline", standalone_mode=False)
    except click.exceptions.Abort as error:
        raise Interrupted("Interrupted; what was recorded so far is kept.") from error
    return status if isinstance(status, int) else 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit. Deliberate errors end in one sentence and a next step, never in a traceback."""
    try:
        sys.exit(perform(arguments))
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except FaultlineError as error:
        click.echo(f"faultline: {error.message}", err=True)
        if error.next_step:
            click.echo(f"  {error.next_step}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
