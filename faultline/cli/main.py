"""The `faultline` command: a thin entry to the packages. Each verb is a module of its own, imported only when it is
used.

Results go to standard output, progress and errors to standard error. A verb returns the outcome that determines its
exit code (`sealed_outcome`): 0 as expected, 1 violation, 2 usage, 3 inconclusive or vacuous, 4 harness error; 129, 130
and 143 interrupted."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Sequence
from typing import Any

import click

import faultline
from faultline.cli import sealed_outcome
from faultline.cli.output import OutputLost, complain
from faultline.cli.sealed_outcome import Sealed
from faultline.harness.errors import FaultlineError, Interrupted

__all__ = ["carry_out", "cli", "main", "perform"]

_PLUG_IN = "This is an error of Faultline or of a plug-in, and says nothing about the system under test."
_VERBS = {
    "run": "Run once: drive a system with a workload and faults, and judge the answers.",
    "campaign": "Run many times on Spark: a matrix of systems, workloads, fault sets and seeds.",
    "explore": "Run every order of a small run's events within bounds, and judge each.",
    "check": "Check recorded histories.",
    "verify": "Verify the proof of a verdict.",
    "replay": "Repeat a stored run and compare.",
    "shrink": "Find the fewest operations and faults that still show a stored violation.",
    "causes": "Tell which messages, timers, flushes and faults a violation needs.",
    "list": "List systems, workloads, faults, checkers, anomalies, planted bugs, patterns or plans.",
    "show": "Show a pattern: its promise, a diagram of it at work, a planted bug's counterexample.",
    "story": "Tell chapters 1 and 2 of the book on real nodes, and what breaks when one thing is changed.",
    "init": "Write the skeleton of a store that plugs in, with tests that report what is missing.",
    "doctor": "Tell what this machine can do, and what is missing.",
    "power": "Measure which share of generated bugs the default campaign finds.",
    "evidence": "Reproduce the known behaviour of real stores under faults.",
    "demo": "Find planted bugs, and show the correct system clean, in one command.",
}

_EXAMPLES = """
\b
Examples:
  faultline demo
  faultline run --system consistent-core --planted-bug stale-read --seed 7
  faultline campaign --system consistent-core --seeds 0..199
  faultline check history.jsonl --format faultline --model cas-register
  faultline replay faultline-results/runs/RUN
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


def carry_out(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command, report errors in one sentence with a next step, and return its exit code.

    No exception of a command, or of a plug-in in it, passes this function. The ending is announced to the supervisor
    (`sealed_outcome`), which derives the same exit code.
    """
    sealed_outcome.begin()
    try:
        ending = _ending(_performed(arguments))
    except OutputLost as error:
        ending = _without_output(error)
    except click.ClickException as error:
        ending = Sealed(ended=True, code=2)
        with contextlib.suppress(OSError):
            error.show()
    except FaultlineError as error:
        ending = _failed(error.exit_code, error.message, error.next_step)
    except (KeyboardInterrupt, click.exceptions.Abort):
        ending = _failed(130, "Interrupted; everything recorded so far is kept.")
    except SystemExit as error:
        ending = _failed(4, f"A plug-in called sys.exit({error.code!r}) in the midst of the work.", _PLUG_IN)
    except BaseException as error:
        ending = _failed(4, _crash(error), _PLUG_IN)
    sealed_outcome.announce(ending)
    return sealed_outcome.exit_code_of(sealed_outcome.announced())


def perform(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command and return its exit code. Raise FaultlineError or click's ClickException."""
    sealed_outcome.begin()
    try:
        sealed_outcome.announce(_ending(_performed(arguments)))
    except click.exceptions.Abort as error:
        raise Interrupted("Interrupted; everything recorded so far is kept.") from error
    return sealed_outcome.exit_code_of(sealed_outcome.announced())


def main(arguments: Sequence[str] | None = None) -> None:
    """Carry out a command in this process, and exit."""
    sys.exit(carry_out(arguments))


def _performed(arguments: Sequence[str] | None) -> Any:
    """Return the result of the verb. Click's own `main` is not used: it ends a closed pipe with the code of a
    violation."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with cli.make_context("faultline", words) as context:
            return cli.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (EOFError, KeyboardInterrupt) as error:
        raise click.exceptions.Abort from error
    except BrokenPipeError as error:
        raise OutputLost(error) from error


def _ending(returned: Any) -> Sealed:
    """Return the ending that a verb returned: a sealed outcome, or the exit code of a verb that judges nothing."""
    if isinstance(returned, Sealed):
        return returned.replaced(ended=True)
    return Sealed(ended=True, code=returned if isinstance(returned, int) else 0)


def _without_output(error: OutputLost) -> Sealed:
    """Return the ending of a command whose standard output failed: its verdict, unless a reader still waits for
    more."""
    if error.wanted:
        return _failed(
            4, f"Standard output cannot be written: {error}.", "Make room on its disk, or redirect it elsewhere."
        )
    told = sealed_outcome.announced()
    return told[-1].replaced(ended=True) if told else Sealed(ended=True)


def _failed(code: int, message: str, next_step: str = "") -> Sealed:
    complain(f"faultline: {message}")
    if next_step:
        complain(f"  {next_step}")
    return Sealed(ended=True, code=code)


def _crash(error: BaseException) -> str:
    """Return one sentence about an unexpected exception; write its traceback to a file."""
    import tempfile
    import traceback

    said = f"{type(error).__name__}: {str(error) or 'no message'}".splitlines()[0][:300]
    try:
        with tempfile.NamedTemporaryFile("w", prefix="faultline-crash-", suffix=".txt", delete=False) as file:
            traceback.print_exception(error, file=file)
        return f"The command failed, with {said}. The traceback is in {file.name}."
    except Exception:
        return f"The command failed, with {said}."
