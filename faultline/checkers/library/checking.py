"""`check`: any history, under any model.

Everything that judges is imported by the first call, so that a test module which imports the name starts at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from faultline.checkers.porcupine.model import AnyModel, Model, NondeterministicModel, Operation
from faultline.harness.errors import UsageError

if TYPE_CHECKING:
    from faultline.checkers.files import CheckedHistory
    from faultline.checkers.judges import Budget
    from faultline.checkers.library.result import Result
    from faultline.checkers.linearizability.generic_search import Hooks
    from faultline.harness.history import History

__all__ = ["check"]


def check(
    model: str | AnyModel[Any, Any, Any] | None,
    history: History | Sequence[Operation[Any, Any]] | str | os.PathLike[str],
    timeout_s: float | None = None,
    *,
    steps_max: int | None = None,
    format_name: str = "auto",
    hooks: Hooks[Any, Any, Any] | None = None,
    **options: Any,
) -> Result:
    """Return whether `history` is one of `model`, with the operations that show it if it is not.

    `model` is a name that `faultline check --model` knows (`register`, `linearizable-queue`, `serializable`, …), None
    for the one that the functions of the history suggest, or a `Model` or `NondeterministicModel` of your own.
    `history` is a list of operations, a `History`, or the path of a file that `faultline check` reads, in the format
    `format_name`.

    The search ends after `timeout_s` seconds (None and 0: no limit) or `steps_max` steps for each key or part (None: 5
    million) with the verdict *unknown*. `hooks` tell the search facts of a model of your own; `options` are those of
    the checker of a named model, such as `total=100` of a bank.

    Raise UsageError for an unknown name, for what cannot be read, and for operations that do not fit the model.
    """
    from faultline.checkers.judges import STEPS_MAX

    limits = (steps_max or STEPS_MAX, timeout_s or None)
    if isinstance(model, Model | NondeterministicModel):
        return _under_own_model(model, history, *limits, format_name, hooks, options)
    if hooks is not None:
        raise UsageError("Hooks tell facts of a model of your own, and this model has a name.", "Leave hooks out.")
    if isinstance(history, str | os.PathLike):
        return _of_file(model, history, *limits, format_name, options)
    return _of_operations(model, history, *limits, options)


def _of_file(
    model: str | None,
    path: str | os.PathLike[str],
    steps_max: int,
    timeout_s: float | None,
    format_name: str,
    options: dict[str, Any],
) -> Result:
    from pathlib import Path

    from faultline.checkers.files import check_histories
    from faultline.checkers.judges import Budget

    histories = check_histories(
        Path(path), format_name, model, steps_max=steps_max, timeout_s=timeout_s, options=options
    )
    checked = next(histories)
    if os.path.isdir(path) and next(histories, None) is not None:
        raise UsageError(f"{path} holds several histories.", "Name one of them, or run faultline check on the folder.")
    return _result(checked, Budget(steps_max, timeout_s))


def _of_operations(
    model: str | None,
    given: History | Sequence[Operation[Any, Any]],
    steps_max: int,
    timeout_s: float | None,
    options: dict[str, Any],
) -> Result:
    from faultline.checkers.files import check_history
    from faultline.checkers.importers.imported import ImportedHistory
    from faultline.checkers.importers.suggest import suggested_model
    from faultline.checkers.judges import Budget
    from faultline.checkers.library.operations import has_seconds, history_of, in_order
    from faultline.harness.history import History

    operations = None if isinstance(given, History) else in_order(given)
    history = given if isinstance(given, History) else history_of(operations or [])
    is_timed = operations is None or has_seconds(operations)
    imported = ImportedHistory(history, model or suggested_model(history), "seconds" if is_timed else "events")
    limits = Budget(steps_max, timeout_s)
    return _result(check_history(imported, model, limits, options), limits, operations)


def _result(checked: CheckedHistory, limits: Budget, operations: Sequence[Operation[Any, Any]] | None = None) -> Result:
    from faultline.checkers.library.named import NamedChecked
    from faultline.checkers.library.result import Result

    found = checked.result
    return Result(
        checker=found.checker,
        verdict=found.verdict,
        sentence=found.sentence,
        findings=found.findings,
        detail=found.detail,
        reason=found.reason,
        model=checked.model,
        checked=NamedChecked(checked, limits, operations),
    )


def _under_own_model(
    model: AnyModel[Any, Any, Any],
    given: History | Sequence[Operation[Any, Any]] | str | os.PathLike[str],
    steps_max: int,
    timeout_s: float | None,
    format_name: str,
    hooks: Hooks[Any, Any, Any] | None,
    options: dict[str, Any],
) -> Result:
    from pathlib import Path

    from faultline.checkers.importers import format_of
    from faultline.checkers.library.operations import in_order, operations_of
    from faultline.checkers.library.own_models import check_own_model
    from faultline.harness.history import History

    if options:
        raise UsageError(f"A model of your own has no option {', '.join(sorted(options))}.", "Leave the options out.")
    if isinstance(given, str | os.PathLike):
        given = format_of(Path(given), format_name).read(Path(given)).history
    operations = operations_of(given) if isinstance(given, History) else in_order(given)
    return check_own_model(model, operations, steps_max, timeout_s, hooks)
