"""Checking histories that lie in files: what `faultline check` does.

A file holds one history, a campaign's folder many, any other folder files that are histories among files that are not.
The format is found by content and the model by the functions of the history, unless they are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultline.checkers.importers import AUTO, FORMATS, format_of
from faultline.checkers.judges import STEPS_MAX, judge, models
from faultline.harness.errors import UsageError
from faultline.harness.verdict import CheckResult, Verdict

if TYPE_CHECKING:
    from faultline.checkers.importers.imported import ImportedHistory

__all__ = ["AUTO", "FORMATS", "STEPS_MAX", "CheckedHistory", "check_file", "check_histories", "files_in", "models"]


@dataclass(frozen=True, slots=True)
class CheckedHistory:
    """A history, the model it was checked against, and what came of it. `label` is its path, with the part if any."""

    label: str
    format_name: str
    model: str
    imported: ImportedHistory
    result: CheckResult


def check_file(path: Path | str, format_name: str = AUTO, model: str | None = None, **options: Any) -> CheckResult:
    """Check the one history in `path` under `model` (default: the one that its functions suggest).

    `options` are those of `check_histories`. A file without operations is VACUOUS. Raises UsageError for unknown names,
    and for what cannot be read or does not fit the model.
    """
    return next(check_histories(Path(path), format_name, model, **options)).result


def check_histories(
    path: Path,
    format_name: str = AUTO,
    model: str | None = None,
    *,
    steps_max: int = STEPS_MAX,
    timeout_s: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Iterator[CheckedHistory]:
    """Check the histories in one file, or in the folder of a run or campaign, one after another.

    The budget of linearizability is `steps_max` steps for each key, and `timeout_s` seconds for a history if given;
    `options` go to the checker.
    """
    description = format_of(path, format_name)
    for imported in description.read_all(path):
        label = f"{path}#{imported.part}" if imported.part else str(path)
        chosen = model or imported.model
        if not len(imported.history):
            yield CheckedHistory(label, description.name, chosen or "", imported, _nothing_to_check(label))
            continue
        if chosen is None:
            raise _no_model(label, imported)
        checker = judge(chosen, steps_max=steps_max, timeout_s=timeout_s, clock=imported.clock, options=options)
        try:
            result = checker.check(imported.history)
        except UsageError as error:
            raise UsageError(f"{label}: {error.message}", error.next_step) from error
        yield CheckedHistory(label, description.name, chosen, imported, result)


def files_in(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Everything in `folder` that can be checked on its own, in order of name, and whether it is a history.

    Folders of runs and campaigns stand for themselves; hidden files are left out.
    """
    from faultline.checkers.importers.detect import detect_format

    if detect_format(folder) is not None:
        yield folder, True
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from files_in(path)
        elif path.is_file():
            yield path, detect_format(path) is not None


def _nothing_to_check(label: str) -> CheckResult:
    sentence = f"{label} holds no operation, so there is nothing to check."
    return CheckResult(checker="import", verdict=Verdict.VACUOUS, sentence=sentence)


def _no_model(label: str, imported: ImportedHistory) -> UsageError:
    functions = ", ".join(sorted(set(imported.history.f))[:10])
    return UsageError(
        f"{label}: no model is known for a history of {functions}.",
        f"Name it with --model: one of {', '.join(models())}.",
    )
