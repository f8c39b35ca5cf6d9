"""Values that never go back: counters, offsets, epochs, timestamps, high-water marks.

Shape: `read`, whose result is a number, or a list of numbers compared from the left, such as `[generation, offset]`;
null comes before all values. `write`, `add` and `increment` are ignored, but the answer of an `increment` counts as an
observation when it is a number. One value for each key.

`scope` says for whom the value must never go back: for each `process` (monotonic reads), each `worker`, whose session
outlives crashed operations, or all clients (`global`): a read that begins after another one has ended must not see
less. Each is one sweep over the history; a read is compared with the greatest value that was seen before it *began*. A
value that goes back for a process or worker is `monotonic-reads-violated`, as for values with versions; for all clients
it is `not-monotonic`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from faultline.checkers.classic.sessions import MONOTONIC_READS
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, is_number, wrong_shape
from faultline.checkers.common.words import client, counted, told
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.answers import IncrementalMonotonic

__all__ = ["NOT_MONOTONIC", "MonotonicChecker", "Scope"]

NOT_MONOTONIC = "not-monotonic"

Scope = Literal["process", "worker", "global"]

_EXPECTED = "`read` that answers a number, a list of numbers or null; `write`, `add` and `increment` besides."
_SCOPES = ("process", "worker", "global")
_FUNCTIONS = frozenset(("read", "write", "add", "increment"))


class MonotonicChecker:
    """A checker that no value goes back for a process, for a worker's session, or for all clients."""

    name = "monotonic"

    def __init__(self, *, scope: Scope = "process") -> None:
        if scope not in _SCOPES:
            raise UsageError(
                f"There is no scope `{scope}` of the checker `monotonic`.", f"One of {', '.join(_SCOPES)}."
            )
        self.scope = scope

    def incremental(self) -> IncrementalMonotonic | None:
        """Return the twin that judges while a run goes on; none for workers, which it does not see."""
        from faultline.checkers.incremental.answers import IncrementalMonotonic

        return None if self.scope == "worker" else IncrementalMonotonic(self.scope)

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every key of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, _FUNCTIONS, _EXPECTED)
        conclusion = Conclusion(self.name, history)
        for key, rows in history.rows_by_key().items():
            self._judge(conclusion, key, rows)
        if not conclusion.counts["observations"]:
            conclusion.doubt(f"Nothing was read by {counted(len(history), 'operation')}, so nothing is known.")
        elif not conclusion.counts["compared"]:
            conclusion.doubt(
                f"No value was read after another one (scope: {self.scope}), so there was nothing to compare."
            )
        return conclusion.result(
            f"None of {counted(conclusion.counts['observations'], 'observation')} goes back (scope: {self.scope})."
        )

    def _judge(self, conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
        history = conclusion.history
        observed = {row: order for row in rows if (order := self._order(history, row)) is not None}
        wrong = self._sweep(conclusion, observed)
        conclusion.counts["observations"] += len(observed)
        conclusion.accuse(
            NOT_MONOTONIC if self.scope == "global" else MONOTONIC_READS,
            [Case(history.result[row], (before, row)) for before, row in wrong],
            lambda case: (
                f"{client(history, case.rows[1])} saw {told(case.what)} after "
                f"{client(history, case.rows[0])} had seen {told(history.result[case.rows[0]])}"
            ),
            noun="step back",
            key=key,
        )

    def _order(self, history: History, row: int) -> tuple[Any, ...] | None:
        """Return the value that the operation saw, in a comparable form; None for an operation that saw none."""
        f, result = history.f[row], history.result[row]
        if history.outcome[row] != "ok" or f not in ("read", "increment") or (f == "increment" and result is None):
            return None
        parts = () if result is None else tuple(result) if isinstance(result, list | tuple) else (result,)
        if not all(map(is_number, parts)):
            raise wrong_shape(self.name, history, row, f"answered {told(result)}", _EXPECTED)
        return parts

    def _sweep(self, conclusion: Conclusion, observed: dict[int, tuple[Any, ...]]) -> list[tuple[int, int]]:
        """Return each observation that went back, behind the one that it is compared with; count the comparisons."""
        history = conclusion.history
        events = [(history.invoke_index[row], row, False) for row in observed]
        events += [(history.complete_index[row], row, True) for row in observed]
        greatest: dict[int, int] = {}
        floors: dict[int, int | None] = {}
        wrong = []
        for _, row, is_end in sorted(events):
            who = self._session(history, row)
            if not is_end:
                floors[row] = greatest.get(who)
                continue
            before = floors[row]
            conclusion.counts["compared"] += before is not None
            if before is not None and observed[row] < observed[before]:
                wrong.append((before, row))
            if who not in greatest or observed[row] > observed[greatest[who]]:
                greatest[who] = row
        return wrong

    def _session(self, history: History, row: int) -> int:
        if self.scope == "global":
            return 0
        return history.process[row] if self.scope == "process" else history.worker[row]
