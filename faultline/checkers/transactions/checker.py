"""The checkers for transactions, as runs and importers call them."""

from __future__ import annotations

from faultline.checkers.transactions.judgement import DEFAULT_STEPS, judge
from faultline.checkers.transactions.list_append import infer_list_append
from faultline.checkers.transactions.models import canonical
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

__all__ = ["ListAppendChecker", "check_transactions"]


class ListAppendChecker:
    """Transactions of appends to lists and reads of them are what `model` promises."""

    name = "list-append"

    def __init__(self, model: str = "strict-serializable", steps: int = DEFAULT_STEPS) -> None:
        self.model = canonical(model)
        self.steps = steps

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """The verdict on all transactions of `history`; UsageError for one that is malformed."""
        return judge(history, infer_list_append(history), self.name, self.model, self.steps)


def check_transactions(
    history: History, workload: str = "list-append", model: str = "strict-serializable", steps: int = DEFAULT_STEPS
) -> CheckResult:
    """Check a history whose rows with `f == "txn"` are transactions of `workload`, against `model`."""
    if workload not in _CHECKERS:
        raise UsageError(f"There are no transactions of kind `{workload}`.", f"Choose one of {', '.join(_CHECKERS)}.")
    return _CHECKERS[workload](model, steps).check(history)


_CHECKERS = {"list-append": ListAppendChecker}
