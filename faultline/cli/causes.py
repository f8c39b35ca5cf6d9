"""`faultline causes`: the messages, timers, flushes, faults and operations that a violation needs."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faultline.cli.output import say
from faultline.cli.sealed_outcome import Sealed
from faultline.harness.errors import UsageError

if TYPE_CHECKING:
    from faultline.harness.store import StoredRun

__all__ = ["command"]


@click.command("causes")
@click.argument("run", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--runs", "runs_max", type=click.IntRange(1), default=4_000, show_default=True, help="The most runs that are made."
)
@click.option("--json", "as_json", is_flag=True, help="Print what came out as JSON.")
def command(run: Path, runs_max: int, as_json: bool) -> Sealed:
    """Explain the violation of RUN: which parts of its minimal run does it need?

    Each message, timer, flush, fault and operation before the violation is undone alone, and the run repeated with
    nothing else changed. Where the violation is gone then, the part is needed; it is needed in time where 30 ms later
    is too late. Ends with 1, the exit code of a violation.
    """
    from faultline.harness.causes import find_causes
    from faultline.harness.stored_plan import fit_plan
    from faultline.registry import resolve
    from faultline.reports.causes import causes_lines

    stored, signature = _minimal_of(run)
    parts = resolve(stored.file.plan)
    plan = fit_plan(stored.file.plan, parts, str(Path(stored.folder) / "run.json"))
    causes, record, judgement = find_causes(plan, parts, signature, runs_max=runs_max, tell=_progress())
    if as_json:
        import msgspec

        say(msgspec.json.encode(causes))
    else:
        say("\n".join(causes_lines(causes, record)))
    return Sealed(verdict=judgement.verdict.value, folder=stored.folder)


def _minimal_of(run: Path) -> tuple[StoredRun, str]:
    """Return the minimal run of RUN, or RUN itself where it is one, and the kind of violation that it keeps."""
    from faultline.harness.store import read_violation

    stored, judgement = read_violation(run, ": other runs cannot be repeated with one thing changed")
    if "minimal_of" not in judgement.detail:
        if not (run / "minimal").is_dir():
            raise UsageError(
                f"{run} has no minimal run, and in a large run hardly any single part is needed.",
                f"Shrink it first: {shlex.join(['faultline', 'shrink', str(run)])}",
            )
        return _minimal_of(run / "minimal")
    kept = judgement.detail["minimal_of"]
    signature = kept.get("signature") if isinstance(kept, dict) else None
    return stored, signature if isinstance(signature, str) and signature else judgement.signature


def _progress() -> Callable[[int, int], None]:
    from faultline.cli.progress import line_now_and_then

    show = line_now_and_then("parts tried")
    return lambda tried, _all: show(tried)
