"""`faultline check`: judge recorded histories, Faultline's own or another tool's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faultline.cli.check_again import Asked, next_step_for
from faultline.cli.output import OutputLost, json_line, say
from faultline.cli.sealed_outcome import Sealed, announce
from faultline.harness.errors import FaultlineError, HarnessError, UsageError
from faultline.harness.verdict import Verdict, merge

if TYPE_CHECKING:
    from faultline.checkers.files import CheckedHistory

__all__ = ["command"]

_UNUSABLE = 2
_FORMATS_OF_RUNS = ("auto", "faultline")


@click.command("check")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--format", "format_name", default="auto", show_default=True, help="Format of the files.")
@click.option(
    "--model",
    help="Model to check against [default: the checkers of a run's workload, else as the functions suggest].",
)
@click.option(
    "--option", "pairs", multiple=True, metavar="NAME=VALUE", help="Option of the checker, such as total=100."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=float,
    help="Seconds to spend on each history before answering unknown [default: no limit].",
)
@click.option(
    "--proof",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the certificates of the one history, of its keys or transactions, for `faultline verify` "
    "[default: none].",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per history.")
@click.option(
    "--explain/--no-explain", default=None, help="Show the operations behind a violation [default: of one path]."
)
def command(
    paths: tuple[Path, ...],
    format_name: str,
    model: str | None,
    pairs: tuple[str, ...],
    timeout_s: float | None,
    proof: Path | None,
    as_json: bool,
    explain: bool | None,
) -> Sealed:
    """Check the histories in PATHS, which are files and folders.

    A run that Faultline recorded is judged by the checkers of its workload, as it was then, unless you name a model.
    So is each run of a campaign. The stored verdict counts too.

    Ends with 1 when any history is a violation, else with 2 when one could not be read, 4 when one is a run whose
    harness failed, 3 when one could not be decided or is empty, 0 when all conform to the model.
    """
    verdicts: list[Verdict] = []
    unusable = False
    files = list(_files(paths))
    asked = Asked(format_name, model, pairs, timeout_s)
    if proof is not None and len(files) != 1:
        raise UsageError(f"--proof is of one history, and {len(files)} are to be checked.", "Name one file.")
    for path in files:
        try:
            for checked in _checked(path, asked):
                if proof is not None and verdicts:
                    raise UsageError(f"--proof is of one history, and {path} holds several.", "Split the file.")
                verdicts.append(checked.result.verdict)
                announce(_sealed(verdicts, files, path))
                next_step = next_step_for(path, checked.result, asked)
                _show(checked, next_step, as_json, _is_explained(checked, files) if explain is None else explain)
                if proof is not None:
                    _write_proof(proof, checked, timeout_s, as_json)
        except UsageError as error:
            unusable = True
            _show_error(path, error, as_json)
        except OutputLost:
            raise
        except Exception as error:
            verdicts.append(Verdict.HARNESS_ERROR)
            _show_error(path, error if isinstance(error, HarnessError) else _itself_failed(error), as_json)
    if unusable and merge(verdicts) is not Verdict.VIOLATION:
        return Sealed(code=_UNUSABLE)
    return _sealed(verdicts or [Verdict.VACUOUS], files, files[-1] if files else None)


def _is_explained(checked: CheckedHistory, files: list[Path]) -> bool:
    """Return whether to print more than a line: for a single history, and for faulty runs of a campaign."""
    return len(files) == 1 and ("#" not in checked.label or checked.result.verdict is not Verdict.PASS)


def _sealed(verdicts: list[Verdict], files: list[Path], last: Path | None) -> Sealed:
    """Return the outcome of a check of `files` after the file `last`."""
    names = tuple(map(str, files))
    return Sealed(
        verdict=merge(verdicts).value,
        checks_due=names,
        checks_ran=names[: files.index(last) + 1] if last is not None else (),
    )


def _checked(path: Path, asked: Asked) -> Iterator[CheckedHistory]:
    """Yield the judged histories in `path`: Faultline's own by the checkers of their workload, others by a model."""
    from faultline.checkers.files import check_histories

    options = _checker_options(asked.options)
    if asked.model is None and asked.format_name in _FORMATS_OF_RUNS:
        from faultline.cli.own_campaigns import campaign_of, check_own_campaign
        from faultline.cli.own_runs import Settings, check_own_run, folder_of_run

        settings = Settings(options, asked.timeout_s)
        folder = folder_of_run(path)
        if folder is not None:
            yield check_own_run(path, folder, settings)
            return
        campaign = campaign_of(path)
        if campaign is not None:
            yield from check_own_campaign(path, campaign, settings)
            return
    yield from check_histories(path, asked.format_name, asked.model, timeout_s=asked.timeout_s, options=options)


def _files(paths: tuple[Path, ...]) -> Iterator[Path]:
    """Yield the files to check: the named files, and the histories in the named folders."""
    from faultline.checkers.files import files_in

    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for file, is_history in files_in(path):
            if is_history:
                yield file
            else:
                say(f"faultline: {file} is not a history and is left out.", err=True)


def _checker_options(pairs: tuple[str, ...]) -> dict[str, object]:
    """Return `("total=100", …)` as keyword arguments: JSON values where they are JSON, else text."""
    if not pairs:
        return {}
    from faultline.cli.options import as_options
    from faultline.harness.untrusted import decoded

    options: dict[str, object] = {}
    for name, text in as_options(pairs).items():
        try:
            options[name.replace("-", "_")] = decoded(text)
        except ValueError:
            options[name.replace("-", "_")] = text
    return options


def _show(checked: CheckedHistory, next_step: str, as_json: bool, explain: bool) -> None:
    result = checked.result
    if as_json:
        import msgspec

        about = {
            "file": checked.label,
            "format": checked.format_name,
            "model": checked.model,
            "workload": checked.workload,
            "checks": checked.checks,
            "notes": checked.notes,
            "next_step": next_step,
            "operations": checked.operations,
            "nemesis_events": checked.imported.nemesis_events,
        }
        say(json_line(about | msgspec.to_builtins(result)))
        return
    say(f"{checked.label}: {result.verdict.value}: {result.sentence}")
    if next_step:
        say(f"  Next: {next_step}")
    if explain:
        _show_circumstances(checked)
    if explain and (result.findings or result.detail.get("undecided")):
        from faultline.reports.explanation import explanation

        for line in explanation(checked):
            say(line)


def _show_circumstances(checked: CheckedHistory) -> None:
    """Print the judges of a run, and the notes about its verdict."""
    if checked.checks:
        judges = ", ".join(dict.fromkeys(check.checker for check in checked.checks))
        whose = f"the checkers of its workload {checked.workload}" if checked.workload else "its stored verdict"
        say(f"  Judged by {whose}: {judges}.")
    for note in checked.notes:
        say(f"  {note}")


def _write_proof(file: Path, checked: CheckedHistory, timeout_s: float | None, as_json: bool) -> None:
    """Write the proof of the verdict into `file`, and say if it has no certificate; raise UsageError when there can be
    none."""
    from faultline.checkers.judges import STEPS_MAX, Budget

    proof = checked.proof(Budget(STEPS_MAX, timeout_s))
    proof.write(file)
    if proof.missing and not as_json:
        say(f"  {file}: {proof.missing}")


def _itself_failed(error: Exception) -> HarnessError:
    """Return the result for a check that failed itself, so that the other files are still checked."""
    said = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    return HarnessError(
        f"The check itself failed: {said}.", "Report this to the authors of the checker, with the file."
    )


def _show_error(path: Path, error: FaultlineError, as_json: bool) -> None:
    if as_json:
        say(json_line({"file": str(path), "error": error.message, "next_step": error.next_step}))
        return
    label = "" if str(path) in error.message else f"{path}: "
    say(f"faultline: {label}{error.message}", err=True)
    say(f"  {error.next_step}", err=True)
