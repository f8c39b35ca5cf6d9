"""Read committed, read atomicity and causal consistency of transactions on registers, in near-linear time.

Each level is an axiom that forces an order between some transactions; a history keeps the level if and only if that
order, together with reads and sessions, has no cycle (Biswas & Enea, OOPSLA 2019; AWDIT, PLDI 2025). So the verdict is
exact for the answers that clients saw: no violation is missed, and none is false.

| anomaly                     | the cycle that shows it                                                              |
|-----------------------------|--------------------------------------------------------------------------------------|
| `circular-information-flow` | reads and sessions alone: each transaction knew of the next, in a circle (G1c)       |
| `non-monotonic-read`        | read committed: a transaction saw T2, and then a version that T2 had overwritten     |
| `non-repeatable-read`       | read atomicity: a transaction read one key from two transactions                     |
| `fractured-read`            | read atomicity: a transaction saw one write of T2, and not another one               |
| `causality-violation`       | causal consistency: a transaction read a version that a known write had overwritten  |
| `conflicting-write-order`   | several transactions whose reads are each possible, and together are not             |

besides `garbage-read`, `aborted-read`, `intermediate-read`, `future-read` and `internal`, which no level allows.

All three include that a session's transactions come one after the other, as in the papers. `session_order=False` leaves
that out of read committed and read atomicity, for stores that promise nothing to sessions; Adya's PL-2 is such a level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from faultline.checkers.common.words import counted
from faultline.checkers.isolation.committed import (
    INITIAL,
    NONE_COMMITTED,
    Committed,
    Sessions,
    read_committed_transactions,
)
from faultline.checkers.isolation.explain import edge_detail, rows_of, told_cycle, told_misread
from faultline.checkers.isolation.order import Edge, Order
from faultline.checkers.isolation.read_atomic import forced_by_read_atomicity
from faultline.checkers.isolation.read_committed import forced_by_read_committed
from faultline.harness.history import OPEN, History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult, Finding, Reason, Verdict

__all__ = ["CausalConsistencyChecker", "ReadAtomicChecker", "ReadCommittedChecker", "findings_of_misreads", "order_of"]

_CYCLES_MAX = 5
_MISREADS_MAX = 5


class ReadCommittedChecker:
    """A checker that no read sees an aborted or intermediate write, and reads within a transaction never go back."""

    name = "rw-read-committed"
    level = "read committed"
    pattern = "non-monotonic-read"

    def __init__(self, *, sessions: Sessions = "process", session_order: bool = True) -> None:
        self.sessions: Sessions = sessions
        self.session_order = session_order

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on the transactions of `history`; of `run` nothing is needed."""
        return self.judge(history, read_committed_transactions(self.name, history, self.sessions))

    def judge(self, history: History, committed: Committed) -> CheckResult:
        """Return the verdict on `committed`, the transactions of `history`."""
        forced = self._forced(committed)
        order = order_of(committed, forced or (), self.session_order)
        cycles = order.cycles(_CYCLES_MAX)
        findings = findings_of_misreads(self.name, history, committed)
        findings += [self.finding(history, committed, cycle, order) for cycle in cycles]
        return self._result(history, committed, findings, is_known=forced is not None)

    def _forced(self, committed: Committed) -> Iterable[Edge] | None:
        """Return the order that the level forces; None when it cannot be determined."""
        return forced_by_read_committed(committed)

    def _result(
        self, history: History, committed: Committed, findings: Sequence[Finding], *, is_known: bool
    ) -> CheckResult:
        count = len(committed.transactions) - 1
        if findings:
            verdict, sentence = Verdict.VIOLATION, findings[0].sentence
        elif not count:
            verdict, sentence = Verdict.VACUOUS, NONE_COMMITTED
        elif not is_known:
            verdict = Verdict.UNKNOWN
            sentence = f"{count} transactions have too many sessions for clocks; reads form no cycle."
        else:
            verdict, sentence = Verdict.PASS, f"All {counted(count, 'committed transaction')} keep {self.level}."
        detail = {"transactions": count, "sessions": len(committed.sessions), "misreads": len(committed.misreads)}
        return CheckResult(
            checker=self.name,
            verdict=verdict,
            sentence=sentence,
            findings=tuple(findings),
            detail=detail,
            reason=Reason(cause=Cause.SIZE) if verdict is Verdict.UNKNOWN else None,
        )

    def finding(self, history: History, committed: Committed, cycle: Sequence[Edge], order: Order) -> Finding:
        """Return a cycle of `order` as a finding of this checker."""
        chains = {edge: order.chain(edge.source, edge.reader) for edge in cycle if edge.kind == "forced"}
        rows = rows_of(committed, cycle, chains)
        return Finding(
            checker=self.name,
            anomaly=self._anomaly(committed, cycle),
            sentence=told_cycle(committed, cycle, chains),
            operations=rows,
            time_us=_end_us(history, rows),
            detail={
                "level": self.level,
                "cycle": [edge_detail(committed, edge, chains.get(edge, ())) for edge in cycle],
            },
        )

    def _anomaly(self, committed: Committed, cycle: Sequence[Edge]) -> str:
        forced = [edge for edge in cycle if edge.kind == "forced"]
        if not forced:
            return "circular-information-flow"
        if len({edge.reader for edge in forced}) > 1:
            return "conflicting-write-order"
        edge = forced[0]
        seen = [writer for key, writer in committed.transactions[edge.reader].reads if key == edge.key]
        is_twice = edge.source in seen and edge.target in seen
        return "non-repeatable-read" if is_twice and self.pattern == "fractured-read" else self.pattern


class ReadAtomicChecker(ReadCommittedChecker):
    """A checker that the writes of a transaction are seen altogether or not at all."""

    name = "rw-read-atomic"
    level = "read atomicity"
    pattern = "fractured-read"

    def _forced(self, committed: Committed) -> Iterable[Edge] | None:
        return forced_by_read_atomicity(committed, session_order=self.session_order)


class CausalConsistencyChecker(ReadCommittedChecker):
    """A checker that a transaction that knows of a write knows of all its causes, sessions included."""

    name = "rw-causal"
    level = "causal consistency"
    pattern = "causality-violation"

    def __init__(self, *, sessions: Sessions = "process") -> None:
        super().__init__(sessions=sessions)

    def _forced(self, committed: Committed) -> Iterable[Edge] | None:
        from faultline.checkers.isolation.causal import CELLS_MAX, forced_by_causality, happened_before

        if len(committed.transactions) * len(committed.sessions) > CELLS_MAX:
            return None
        clocks = happened_before(committed)
        return () if clocks is None else forced_by_causality(committed, clocks)


def findings_of_misreads(checker: str, history: History, committed: Committed) -> list[Finding]:
    """Return findings for reads that no level allows, the first of each kind, at most a few."""
    first = {misread.anomaly: misread for misread in reversed(committed.misreads)}
    findings = []
    for anomaly, misread in list(reversed(first.items()))[:_MISREADS_MAX]:
        rows = tuple(sorted({row for row in (misread.reader, misread.writer) if row is not None}))
        count = sum(other.anomaly == anomaly for other in committed.misreads)
        findings.append(
            Finding(
                checker=checker,
                anomaly=anomaly,
                sentence=told_misread(history, misread),
                operations=rows,
                time_us=_end_us(history, rows),
                detail={"count": count},
            )
        )
    return findings


def order_of(committed: Committed, forced: Iterable[Edge], session_order: bool) -> Order:
    """Return the order of reads, sessions and `forced` edges."""
    order = Order(len(committed.transactions))
    for number, (key, writer) in committed.reads_from():
        if writer != INITIAL:
            order.successors[writer].append(Edge(writer, number, "reads", key))
    if session_order:
        for session in committed.sessions:
            order.add(Edge(before, after, "session") for before, after in pairwise(session))
    for edge in forced:
        order.successors[edge.source].append(edge)
        if edge.target == INITIAL:
            order.successors[INITIAL].append(Edge(INITIAL, edge.source, "initial"))
    return order


def _end_us(history: History, rows: Sequence[int]) -> int:
    return max((max(history.complete_us[row], history.invoke_us[row]) for row in rows), default=OPEN)
