"""The checkers for transactions, as runs and importers call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.transactions.closed_predicate import UniverseTooLargeError, infer_closed_predicates
from faultline.checkers.transactions.inference import Inference
from faultline.checkers.transactions.judgement import DEFAULT_STEPS, judge, refutes
from faultline.checkers.transactions.list_append import infer_list_append
from faultline.checkers.transactions.models import FORBID_EVERY_CYCLE, canonical, forbidden_by, orders_for
from faultline.checkers.transactions.register_order import VersionSources
from faultline.checkers.transactions.rw_register import infer_rw_register
from faultline.checkers.transactions.txn_counter import infer_counters
from faultline.checkers.transactions.txn_set import infer_sets
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult, Reason, Verdict

if TYPE_CHECKING:
    from faultline.checkers.incremental.lists import IncrementalLists

__all__ = [
    "ClosedPredicateChecker",
    "CounterTransactionsChecker",
    "ListAppendChecker",
    "RwRegisterChecker",
    "SetTransactionsChecker",
    "check_transactions",
    "inference_of",
]


class _InferringChecker:
    """The common part of the checkers whose inference needs only the history."""

    name: str
    infer: Callable[[History], Inference]

    def __init__(
        self, model: str = "strict-serializable", steps: int = DEFAULT_STEPS, *, timeout_s: float | None = None
    ) -> None:
        self.model = canonical(model)
        self.steps = steps
        self.timeout_s = timeout_s

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on all transactions of `history`; UsageError for one that is malformed."""
        limit = Budget.of(timeout_s=self.timeout_s)
        return judge(history, type(self).infer(history), self.name, self.model, self.steps, limit)

    def refutes(self, history: History, run: RunRecord | None = None) -> bool:
        """Return whether `check` finds a violation, without naming it."""
        refuted = refutes(type(self).infer(history), self.model)
        return self.check(history, run).verdict is Verdict.VIOLATION if refuted is None else refuted


class ListAppendChecker(_InferringChecker):
    """A checker of transactions of appends to lists and reads of them against `model`.

    `steps` bounds the search for cycles in one strongly connected component, in visited edges; `timeout_s`, for
    interactive use, ends it that many seconds after the beginning of the check. All checkers here have these options.
    """

    name = "list-append"
    infer = staticmethod(infer_list_append)

    def incremental(self) -> IncrementalLists | None:
        """Return the twin that judges while a run goes on; none for models that allow some cycles."""
        from faultline.checkers.incremental.lists import IncrementalLists

        if self.model not in FORBID_EVERY_CYCLE:
            return None
        process, realtime = orders_for(self.model)
        return IncrementalLists(process=process, realtime=realtime)


class RwRegisterChecker:
    """A checker of transactions of writes to registers and reads of them against `model`.

    The module `register_order` describes the sources of the order of versions. `sequential_keys` and
    `linearizable_keys` are on where the model implies them, unless they are given. `version_orders` has, by key, the
    values in the order in which the store reports to have installed them."""

    name = "rw-register"

    def __init__(
        self,
        model: str = "strict-serializable",
        steps: int = DEFAULT_STEPS,
        *,
        writes_follow_reads: bool | None = None,
        sequential_keys: bool | None = None,
        linearizable_keys: bool | None = None,
        version_orders: Mapping[Any, Sequence[Any]] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.model = canonical(model)
        self.steps = steps
        self.timeout_s = timeout_s
        forbidden = forbidden_by(self.model)
        self.sources = VersionSources(
            writes_follow_reads="G1" in forbidden if writes_follow_reads is None else writes_follow_reads,
            sequential_keys=_orders_keys(forbidden, "process") if sequential_keys is None else sequential_keys,
            linearizable_keys=_orders_keys(forbidden, "realtime") if linearizable_keys is None else linearizable_keys,
            store=version_orders,
        )

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on all transactions of `history`; UsageError for one that is malformed."""
        limit = Budget.of(timeout_s=self.timeout_s)
        return judge(history, infer_rw_register(history, self.sources), self.name, self.model, self.steps, limit)

    def refutes(self, history: History, run: RunRecord | None = None) -> bool:
        """Return whether `check` finds a violation, without naming it."""
        refuted = refutes(infer_rw_register(history, self.sources), self.model)
        return self.check(history, run).verdict is Verdict.VIOLATION if refuted is None else refuted


def _orders_keys(forbidden: set[str], order: str) -> bool:
    """Return whether a model that forbids these anomalies puts the versions of each key in `order` too.

    Snapshots do as well: a transaction that begins after another has completed sees no older version than that did.
    """
    return not forbidden.isdisjoint((f"G2-{order}", f"G-nonadjacent-{order}"))


class SetTransactionsChecker(_InferringChecker):
    """A checker of transactions of adds to grow-only sets and reads of them against `model`."""

    name = "txn-set"
    infer = staticmethod(infer_sets)


class CounterTransactionsChecker(_InferringChecker):
    """A checker of transactions of increments of counters and reads of them against `model`."""

    name = "txn-counter"
    infer = staticmethod(infer_counters)


class ClosedPredicateChecker:
    """A checker of transactions that write objects and select those that meet a condition against `model`.

    A run whose plan names an isolation is judged by that. `initial` has the objects that exist at first, by key; all
    others do not.
    """

    name = "closed-predicate"

    def __init__(
        self,
        model: str = "strict-serializable",
        steps: int = DEFAULT_STEPS,
        *,
        initial: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.model = canonical(model)
        self.steps = steps
        self.timeout_s = timeout_s
        self.initial = dict(initial or {})

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on all transactions of `history`; UsageError for one that is malformed.

        It is unknown without any search if the universe of versions is too large to be compared with every read.
        """
        limit = Budget.of(timeout_s=self.timeout_s)
        model = self._promised(run)
        try:
            inference = infer_closed_predicates(history, self.initial)
        except UniverseTooLargeError as error:
            return CheckResult(
                checker=self.name,
                verdict=Verdict.UNKNOWN,
                sentence=f"Whether these transactions are {model} was not examined: {error} are too many.",
                detail={"model": model},
                reason=Reason(cause=Cause.SIZE),
            )
        return judge(history, inference, self.name, model, self.steps, limit)

    def refutes(self, history: History, run: RunRecord | None = None) -> bool:
        """Return whether `check` finds a violation, without naming it."""
        try:
            refuted = refutes(infer_closed_predicates(history, self.initial), self._promised(run))
        except UniverseTooLargeError:
            return False
        return self.check(history, run).verdict is Verdict.VIOLATION if refuted is None else refuted

    def _promised(self, run: RunRecord | None) -> str:
        promised = run.plan.isolation if run is not None else None
        return canonical(promised) if isinstance(promised, str) else self.model


_CHECKERS: Mapping[str, Any] = {
    checker.name: checker
    for checker in (
        ListAppendChecker,
        RwRegisterChecker,
        SetTransactionsChecker,
        CounterTransactionsChecker,
        ClosedPredicateChecker,
    )
}


def inference_of(workload: str, model: str, history: History) -> Inference:
    """Return what the checker of `workload`, "list-append" or "rw-register", infers from `history` under `model`."""
    if workload == RwRegisterChecker.name:
        return infer_rw_register(history, RwRegisterChecker(model).sources)
    return infer_list_append(history)


def check_transactions(
    history: History, workload: str = "list-append", model: str = "strict-serializable", **options: Any
) -> CheckResult:
    """Check a history whose rows with `f == "txn"` are transactions of `workload`, against `model`.

    `options` are those of the checker's class.
    """
    if workload not in _CHECKERS:
        raise UsageError(f"There is no kind of transactions `{workload}`.", f"Choose one of {', '.join(_CHECKERS)}.")
    result: CheckResult = _CHECKERS[workload](model, **options).check(history)
    return result
