"""Siblings: whether a store that shows conflicts to its clients ever loses an acknowledged write in silence.

Shape: `write` with a value that no other write of the key has; `read`, whose result is the list of concurrent values.
A write is made in knowledge of what its process had last read of the key, and replaces exactly that. So the history
alone tells who replaced whom:

- *replaces*: what the process's last successful read of the key returned, and what those values replaced in turn;
- *may replace*: beside that the process's own earlier acknowledged writes, which a store may count as known.

| anomaly                 | a read                                                                                 |
|-------------------------|----------------------------------------------------------------------------------------|
| lost-write              | lacks a value acknowledged before it began, has nothing that may have replaced it, and  |
|                         | no later read has that value                                                           |
| stale-read              | lacks such a value, and a later read has it                                             |
| resurrected-write       | has a value together with one that replaced it, or after such a one was acknowledged    |
| duplicated-sibling      | has one value twice: copies of one write that the store takes for conflicting ones      |
| garbage-read, aborted-read, future-read | has a value that cannot have been there (`misreads`)                     |
| not-converged           | after the heal and the last write, a process's second read differs from another's, and  |
|                         | no write that was neither acknowledged nor read before explains it                      |

`lost-write`, `stale-read` and the second half of `resurrected-write` presume quorums that overlap (R + W > N). For
`not-converged` the workload has every process read every key twice after the heal: the first reads may repair, the
second ones must agree.

Quadratic in the operations of one key; keys are short-lived. A value written twice makes the verdict *unknown*.

Sources: Patterns of Distributed Systems ch. 18; Preguiça et al. (2010) on lost updates under version vectors; Jepsen's
analyses of Riak (2013), where last-write-wins lost up to 92 % of acknowledged writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from faultline.checkers.classic.misreads import MISREADS, misread
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import elements, ended, expect_functions
from faultline.checkers.common.words import client, token, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult

__all__ = ["SiblingsChecker"]

_EXPECTED = "`write` of a value, and `read` that answers the list of all concurrent values."
_EMPTY: frozenset[Any] = frozenset()
_Read = tuple[int, frozenset[Any]]
"""The row of a read, and what it returned."""

_SENTENCES = {
    "lost-write": "{client} read {seen}, although {what} had been acknowledged and nothing there can have replaced it",
    "stale-read": "{client} read {seen}, although {what} had been acknowledged, and a later read has it",
    "resurrected-write": "{client} read {what}, which had been replaced by a write made in knowledge of it",
    "duplicated-sibling": "{client} read {what} more than once, as its own sibling",
    **{anomaly: f"{{client}} read {{what}}, {why}" for anomaly, why in MISREADS.items()},
    "not-converged": "{client} read {seen} after the heal, and another second read found {what}",
}


class SiblingsChecker:
    """No acknowledged write is lost, nothing replaced comes back, and after the heal all reads agree."""

    name = "siblings"

    def check(self, history: History, run: RunRecord) -> CheckResult:
        """Return the verdict on every key of `history`; of `run` the time of the heal is needed."""
        expect_functions(self.name, history, ("read", "write"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        for key, rows in history.rows_by_key().items():
            _Key(conclusion, key, rows).judge(run.healed_us)
        counts = conclusion.counts
        conclusion.doubt_unread(("read",))
        return conclusion.result(
            f"None of {counts['acknowledged']} acknowledged writes was lost; "
            f"{counts['reads']} reads, {counts['conflicts']} of them with several values."
        )


class _Key:
    """One key: its writes by value, who replaced whom, and what each read returned."""

    def __init__(self, conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
        self.conclusion, self.key, self.history = conclusion, key, conclusion.history
        self.writes: dict[Any, int] = {}
        self.written_twice = False
        self.reads: list[tuple[int, list[Any]]] = []
        self.seen_until: dict[Any, int] = {}
        self.replaces: dict[Any, frozenset[Any]] = {}
        self.may_replace: dict[Any, frozenset[Any]] = {}
        self.cases: dict[str, list[Case]] = {anomaly: [] for anomaly in _SENTENCES}
        self._learn(rows)

    def judge(self, heal_us: int) -> None:
        """Judge every read on its own, then the reads after the heal among themselves.

        A key with a value that was written twice is not judged: it is open which of the writes a read shows.
        """
        if self.written_twice:
            return
        for row, seen in self.reads:
            self._judge_values(row, seen)
            self._judge_absences(row, frozenset(seen))
            self._judge_presences(row, frozenset(seen))
        self._judge_convergence(heal_us)
        for anomaly, cases in self.cases.items():
            self.conclusion.accuse(anomaly, cases, self._sentence(anomaly), noun="such case", key=self.key)

    # -- learning -----------------------------------------------------------------------------------------------------

    def _learn(self, rows: Sequence[int]) -> None:
        history, counts = self.history, self.conclusion.counts
        read: dict[int, frozenset[Any]] = {}
        own: dict[int, frozenset[Any]] = {}
        for row in rows:
            process, is_ok = history.process[row], history.outcome[row] == "ok"
            if history.f[row] == "read" and is_ok:
                seen = [token(value) for value in elements(self.conclusion.checker, history, row, _EXPECTED)]
                self.reads.append((row, seen))
                for value in seen:
                    self.seen_until[value] = max(self.seen_until.get(value, -1), history.complete_index[row])
                read[process] = frozenset(seen)
                counts["reads"] += 1
                counts["conflicts"] += len(seen) > 1
            elif history.f[row] == "write":
                value = token(history.value[row])
                if value in self.writes:
                    self.written_twice = True
                    self.conclusion.doubt(
                        f"{told(value)} was written to {self.key} twice; it tells nothing.", Cause.REPEATED_VALUES
                    )
                self.writes[value] = row
                counts["acknowledged"] += is_ok
                known = read.get(process, _EMPTY)
                self.replaces[value] = known
                self.may_replace[value] = known | own.get(process, _EMPTY)
                if is_ok:
                    own[process] = own.get(process, _EMPTY) | {value}
        self.replaces = _closed(self.replaces)
        self.may_replace = _closed(self.may_replace)

    def _acknowledged_before(self, row: int) -> Iterator[Any]:
        history = self.history
        begin = history.invoke_index[row]
        for value, write in self.writes.items():
            if history.outcome[write] == "ok" and history.complete_index[write] < begin:
                yield value

    # -- judging ------------------------------------------------------------------------------------------------------

    def _judge_values(self, row: int, seen: list[Any]) -> None:
        for value in dict.fromkeys(seen):
            write = self.writes.get(value)
            anomaly = misread(self.history, row, write)
            if anomaly is not None:
                self._note(anomaly, value, *(() if write is None else (write,)), row)
            if seen.count(value) > 1:
                self._note("duplicated-sibling", value, row)

    def _judge_absences(self, row: int, seen: frozenset[Any]) -> None:
        known = seen.union(*(self.may_replace.get(value, _EMPTY) for value in seen))
        for value in self._acknowledged_before(row):
            if value not in known:
                is_seen_again = self.history.invoke_index[row] < self.seen_until.get(value, -1)
                self._note("stale-read" if is_seen_again else "lost-write", value, self.writes[value], row)

    def _judge_presences(self, row: int, seen: frozenset[Any]) -> None:
        for newer in (*seen, *self._acknowledged_before(row)):
            for value in self.replaces.get(newer, _EMPTY) & seen:
                self._note("resurrected-write", value, self.writes.get(newer, row), row)

    def _judge_convergence(self, heal_us: int) -> None:
        history = self.history
        settled = max((ended(history, write) for write in self.writes.values()), default=-1)
        before: set[int] = set()
        second: list[tuple[int, frozenset[Any]]] = []
        for row, values in self.reads:
            if history.invoke_us[row] < heal_us or history.invoke_index[row] < settled:
                continue
            if history.process[row] in before:
                second.append((row, frozenset(values)))
            before.add(history.process[row])
        for place, read in enumerate(second):
            contrary = (other for other in second[:place] if not self._agree(read, other))
            if other := next(contrary, None):
                self._note("not-converged", tuple(sorted(other[1], key=str)), other[0], read[0])

    def _agree(self, one: _Read, other: _Read) -> bool:
        return one[1] == other[1] or (self._explained(one, other) and self._explained(other, one))

    def _explained(self, one: _Read, other: _Read) -> bool:
        """Return whether all that `one` has beyond `other` is open: unacknowledged, or replaced by such a value.

        A write that stopped halfway is on some replicas only, and a quorum of readers need not ask one of these. But
        once a read has shown it, it was repaired, and no later read may lack it.
        """
        newer = [value for value in other[1] - one[1] if self._is_open_before(value, one[0])]
        return all(
            self._is_open_before(value, other[0]) or any(value in self.may_replace.get(new, _EMPTY) for new in newer)
            for value in one[1] - other[1]
        )

    def _is_open_before(self, value: Any, row: int) -> bool:
        """Return whether `value` was neither acknowledged nor shown by a read when `row` began."""
        history, write = self.history, self.writes.get(value)
        if write is None or history.outcome[write] != "info":
            return False
        begin = history.invoke_index[row]
        return not any(history.complete_index[read] < begin and value in seen for read, seen in self.reads)

    # -- telling ------------------------------------------------------------------------------------------------------

    def _note(self, anomaly: str, value: Any, *rows: int) -> None:
        self.cases[anomaly].append(Case(value, tuple(rows)))

    def _sentence(self, anomaly: str) -> Any:
        def sentence(case: Case) -> str:
            row = case.rows[-1]
            return _SENTENCES[anomaly].format(
                client=client(self.history, row), what=told(case.what), seen=told(self.history.result[row] or None)
            )

        return sentence


def _closed(replaced: dict[Any, frozenset[Any]]) -> dict[Any, frozenset[Any]]:
    """Add the values that the replaced ones replaced in turn.

    A value is known before it is replaced, so there are no circles."""
    closed: dict[Any, frozenset[Any]] = {}
    for value, direct in replaced.items():
        closed[value] = direct.union(*(closed.get(older, _EMPTY) for older in direct))
    return closed
