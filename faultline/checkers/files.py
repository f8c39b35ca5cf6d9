"""Checking histories that lie in files: what `faultline check` does.

A file holds one history, a campaign's folder many, any other folder files that are histories among files that are not.
The format is found by content and the model by the functions of the history, unless they are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultline.checkers.importers import AUTO, FORMATS, FormatDescription, format_of
from faultline.checkers.judges import STEPS_MAX, Budget, is_per_key, judge, models
from faultline.harness.errors import UsageError
from faultline.harness.untrusted import DamagedInput
from faultline.harness.verdict import CheckResult, Finding, Verdict

if TYPE_CHECKING:
    from faultline.checkers.importers.imported import ImportedHistory
    from faultline.checkers.linearizability.proof import Proof
    from faultline.checkers.transactions.proof import TransactionProof

__all__ = [
    "AUTO",
    "FORMATS",
    "LARGE_BYTES",
    "STEPS_MAX",
    "CheckedHistory",
    "check_by_key",
    "check_file",
    "check_histories",
    "check_history",
    "files_in",
    "models",
]


LARGE_BYTES = 128 << 20
"""A file of more than this is split by key on disk, if its model allows: it takes four or five times the memory."""

_SAMPLE_EVENTS = 20_000


@dataclass(frozen=True, slots=True)
class CheckedHistory:
    """A history, the model it was checked against, and what came of it. `label` is its path, with the part if any.

    Of a history that was split, `imported` holds the part with the first finding, and `numbers` says which of all
    `operations` its rows are.
    """

    label: str
    format_name: str
    model: str
    imported: ImportedHistory
    result: CheckResult
    operations: int
    numbers: Sequence[int] | None = None
    workload: str = ""
    checks: tuple[CheckResult, ...] = ()
    notes: tuple[str, ...] = ()

    def rows(self, finding: Finding) -> list[int]:
        """Return the rows of a finding in this history; none when the finding is of another part."""
        named = list(dict.fromkeys(finding.operations))
        if self.numbers is None:
            return [row for row in named if row < len(self.imported.history)]
        place = {number: row for row, number in enumerate(self.numbers)}
        return [place[number] for number in named if number in place]

    def proof(self, limits: Budget) -> Proof | TransactionProof:
        """Return the proof of the verdict on linearizability or on transactions, each key within `limits`; raise
        UsageError for no such.

        The history is decided again, so that a check whose proof is not asked for need not keep what proves it.
        """
        from faultline.checkers.linearizability.descriptions import MODELS
        from faultline.checkers.linearizability.proof import proof_of
        from faultline.checkers.porcupine import budget
        from faultline.checkers.transactions.proof import proof_of_transactions
        from faultline.checkers.transactions.proved import WRITES

        judged = [each for each in (self.result, *self.checks) if each.checker in ("linearizability", *WRITES)]
        if not judged:
            raise UsageError(
                f"{self.label} was checked neither for linearizability nor as transactions on lists or registers, so "
                "there is nothing to prove.",
                f"Name a model of an object, one of {', '.join(MODELS)}, or one of such transactions: see --model.",
            )
        if self.numbers is not None:
            raise UsageError(f"{self.label} is too large for a proof.", "Check a file of one of its keys.")
        if judged[0].checker in WRITES:
            within = budget.Budget.of(timeout_s=limits.timeout_s)
            return proof_of_transactions(self.imported.history, judged[0].checker, judged[0], self.label, within)
        detail, within = judged[0].detail, budget.Budget.of(limits.steps_max, limits.timeout_s)
        return proof_of(self.imported.history, detail["model"], self.label, detail["failed_cas"], within)


def check_file(path: Path | str, format_name: str = AUTO, model: str | None = None, **settings: Any) -> CheckResult:
    """Check the one history in `path` under `model` (default: the one that its functions suggest).

    `settings` are those of `check_histories`. A file without operations is VACUOUS. Raises UsageError for unknown
    names, and for what cannot be read or does not fit the model.
    """
    return next(check_histories(Path(path), format_name, model, **settings)).result


def check_histories(
    path: Path,
    format_name: str = AUTO,
    model: str | None = None,
    *,
    steps_max: int = STEPS_MAX,
    timeout_s: float | None = None,
    options: Mapping[str, Any] | None = None,
    large_bytes: int = LARGE_BYTES,
) -> Iterator[CheckedHistory]:
    """Check the histories in one file, or in the folder of a run or campaign, one after another.

    The budget of linearizability is `steps_max` steps for each key, and `timeout_s` seconds for a history if given;
    `options` go to the checker. A file of more than `large_bytes` is split by key where the model allows.
    """
    description = format_of(path, format_name)
    check = _Check(description, model, Budget(steps_max, timeout_s), options or {})
    large = check.in_parts(path, large_bytes) if isfile(path) and path.stat().st_size > large_bytes else None
    if large is not None:
        yield large
        return
    for imported in description.read_all(path):
        label = f"{path}#{imported.part}" if imported.part else str(path)
        yield check.one(label, imported)


def check_history(
    imported: ImportedHistory,
    model: str | None,
    budget: Budget,
    options: Mapping[str, Any],
    label: str = "The history",
    format_name: str = "",
) -> CheckedHistory:
    """Check one history that is in memory, under `model` or else the one that its functions suggest."""
    operations = len(imported.history)
    if operations == 0:
        sentence = "It holds no operation, so there is nothing to check."
        result = CheckResult(checker="import", verdict=Verdict.VACUOUS, sentence=sentence)
        return CheckedHistory(label, format_name, model or "", imported, result, 0)
    name = model or imported.model
    if name is None:
        raise _no_model(label, imported)
    checker = judge(name, imported.history, budget, clock=imported.clock, options=options)
    try:
        result = checker.check(imported.history)
    except UsageError as error:
        raise UsageError(f"{label}: {error.message}", error.next_step) from error
    return CheckedHistory(label, format_name, name, imported, result, operations)


def check_by_key(
    path: Path, *, timeout_s: float | None = None, options: Mapping[str, Any] | None = None
) -> CheckedHistory | None:
    """Check the one large history in the file `path` in parts; None when it, or its model, cannot be split by key."""
    check = _Check(format_of(path), None, Budget(STEPS_MAX, timeout_s), options or {})
    return check.in_parts(path, LARGE_BYTES)


@dataclass(frozen=True, slots=True)
class _Check:
    """The way histories are checked: everything but the history."""

    description: FormatDescription
    model: str | None
    budget: Budget
    options: Mapping[str, Any]

    def one(self, label: str, imported: ImportedHistory) -> CheckedHistory:
        """Check one history."""
        return check_history(imported, self.model, self.budget, self.options, label, self.description.name)

    def in_parts(self, path: Path, large_bytes: int) -> CheckedHistory | None:
        """Check a large history key by key; None when it has no keys, or its model looks at all of them at once."""
        from faultline.checkers.importers.partition import PART_BYTES, partitioned
        from faultline.checkers.importers.recording import imported as recorded
        from faultline.checkers.merging import merged, renumbered

        source = self.description.events(path)
        if source is None:
            return None
        sample = recorded(source, model=self.model, with_tuples=True, events_max=_SAMPLE_EVENTS)
        if sample.model is None or not is_per_key(sample.model) or set(sample.history.key) <= {None}:
            return None
        shown: CheckedHistory | None = None
        results, operations = [], 0
        for part in partitioned(source, sample, min(PART_BYTES, large_bytes)):
            checked = replace(self.one(str(path), part.imported), numbers=part.numbers)
            results.append(renumbered(checked.result, part.numbers))
            operations += len(part.numbers)
            if shown is None or (checked.result.findings and not shown.result.findings):
                shown = checked
        assert shown is not None, "a large file has operations"
        return replace(shown, result=merged(results, operations), operations=operations)


def files_in(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield each path in `folder` that can be checked on its own, in order of name, and whether it is a history.

    Folders of runs and campaigns stand for themselves; hidden files are left out.
    """
    from faultline.checkers.importers.detect import detect_format

    if detect_format(folder) is not None:
        yield folder, True
        return
    try:
        content = sorted(folder.iterdir())
    except OSError:
        yield folder, True  # the attempt to read it tells what is wrong
        return
    for path in content:
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from files_in(path)
        elif path.is_file():
            yield path, _may_be_a_history(path)


def _may_be_a_history(path: Path) -> bool:
    """Return whether to check a file among others: also one that cannot be read, so that this is told."""
    from faultline.checkers.importers.detect import detect_format

    try:
        return detect_format(path) is not None
    except DamagedInput:
        return True


def _no_model(label: str, imported: ImportedHistory) -> UsageError:
    functions = ", ".join(sorted(set(imported.history.f))[:10])
    judged = Path(label) / "verdict.json"
    return UsageError(
        f"{label}: no model is known for a history of {functions}.",
        (f"It was judged when it was run: see {judged}, or do it again with faultline replay. " * judged.exists())
        + f"Name a model with --model: one of {', '.join(models())}.",
    )
