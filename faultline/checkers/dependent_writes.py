"""Dependent writes: a client that has seen an effect must not miss its cause, nor go back.

Shape: `read`, and `write` of `[number, cause]`, with numbers that are never written twice to a key. Keys of one chain
are `chain/0`, `chain/1` …; the cause of a value of `chain/1` is the value of `chain/0` that was read before, or null.
`read-after` of `[null, answer]` is a read by a session that was handed the answer to a write, such as its version.

A write is *known* to a session when the session made it and it was acknowledged, when the session read its value, and
when it was known to the writer of a value that the session read or was handed, at the time of that write. With
`across_clients` a session that writes a value is told its cause, and all that was known to the writer of that, when any
client had been shown the cause before. One write is *older* than another of its key if it was acknowledged before the
other was invoked. A read is wrong when it answers a value older than a known one, or nothing although a value is known:

| anomaly                      | how the newer value is known                              |
|------------------------------|-----------------------------------------------------------|
| `read-your-writes-violated`  | the session had itself written it, or was handed it       |
| `monotonic-reads-violated`   | the session had itself read it                            |
| `causal-reverse`             | the session had read an effect of it, or was told of it   |
| `garbage-read`, `aborted-read`, `future-read` | the value cannot have been there (`misreads`) |

Of the known values of a key that one counts which was invoked last: whatever is older than any of them is older than
that. So a session keeps one write per key of a chain, and one pass over the events decides. With the write it keeps the
operations by which the knowledge came, so that the rows of a finding alone show it.

Limits: knowledge does not cross from chain to chain. The order of writes that overlap, or that were never acknowledged,
is open, so a read of them proves nothing. A session is a process. A store whose writes of one key need not take effect
in the order of their acknowledgements does not promise this. A number written twice makes the verdict *unknown*.

Sources: Terry et al. (1994); Bouajjani et al., "On verifying causal consistency" (POPL 2017).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from faultline.checkers.classic.misreads import accuse_misreads, misread, writers
from faultline.checkers.classic.sessions import MONOTONIC_READS, READ_YOUR_WRITES
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, wrong_shape
from faultline.checkers.common.words import client, token, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult

__all__ = ["CAUSAL_REVERSE", "DependentWritesChecker"]

CAUSAL_REVERSE = "causal-reverse"

_HANDED, _TOLD = "handed", "told"
_TAKEN_OVER = {_HANDED: READ_YOUR_WRITES, _TOLD: CAUSAL_REVERSE}
"""The anomaly of a read that misses what another client passed on beside the store."""

_FUNCTIONS = ("read", "read-after", "write")
_EXPECTED = "`write` of [number, cause], and `read` that answers such a pair, or null where nothing was written."
_SENTENCES = {
    READ_YOUR_WRITES: "{client} read {seen} after it had itself written {newer}",
    MONOTONIC_READS: "{client} read {seen} after it had read {newer}",
    _HANDED: "{client} read {seen} after it had been handed a session that knew {newer}",
    _TOLD: "{client} read {seen} after another client had told it of {newer}",
    CAUSAL_REVERSE: "{client} read {seen} after it had read {effect} on {place}, whose writer knew {newer}",
}


class _Known(NamedTuple):
    """A write that a session knows, and the rows that show it, the operation of the session by which it does last."""

    write: int
    how: str
    rows: tuple[int, ...]


_Knowledge = dict[str, _Known]


class DependentWritesChecker:
    """Judges every read by what its session knew, of its own and through the effects that it read."""

    name = "dependent-writes"

    def __init__(self, *, across_clients: bool = False) -> None:
        self._across_clients = across_clients

    def check(self, history: History, _run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every chain of `history`."""
        expect_functions(self.name, history, _FUNCTIONS, _EXPECTED)
        conclusion = Conclusion(self.name, history)
        chains: dict[str, list[int]] = {}
        for key, rows in history.rows_by_key().items():
            chains.setdefault(_chain(key), []).extend(rows)
        for rows in chains.values():
            _Chain(conclusion, rows, self._across_clients).judge()
        counts = conclusion.counts
        if not counts["telling"]:
            conclusion.doubt("No client read a cause after its effect, so nothing is known about causes.")
        return conclusion.result(
            f"{counts['telling']} of {counts['reads']} reads were of a value that the client knew from its effect, or "
            "from another client, and each showed it or a newer one."
        )


class _Chain:
    """The keys of one chain: their writes by value, and what each session knows, as events pass."""

    def __init__(self, conclusion: Conclusion, rows: Sequence[int], across_clients: bool) -> None:
        self.conclusion, self.history, self.rows = conclusion, conclusion.history, rows
        self._across_clients = across_clients
        self._writes: dict[str, dict[Any, int]] = {}
        self._doubtful: dict[str, set[Any]] = {}
        self._written_with: dict[Any, int] = {}
        self._find_writes()
        self._sessions: dict[int, _Knowledge] = defaultdict(dict)
        self._at_write: dict[int, _Knowledge] = {}
        self._shown_by: dict[int, int] = {}
        self._cases: dict[tuple[str, str], list[tuple[_Known, int]]] = defaultdict(list)

    def judge(self) -> None:
        """Go through the events in their order, and accuse."""
        history = self.history
        reads = [row for row in self.rows if history.f[row] != "write" and history.outcome[row] == "ok"]
        self.conclusion.counts["reads"] += len(reads)
        seen: dict[str | None, list[tuple[int, Any, int | None]]] = defaultdict(list)
        for row in reads:
            if history.result[row] is not None:
                self._expect_pair(row, history.result[row])
                seen[history.key[row]].append((row, history.result[row], self._write_of(row)))
        for of_key, shown in seen.items():
            accuse_misreads(self.conclusion, shown, key=of_key)
        for _, is_end, row in sorted(self._events()):
            if not is_end:
                self._begin(row)
            elif history.f[row] == "write":
                self._shown_by.setdefault(row, row)
                self._learn(row, READ_YOUR_WRITES, row)
            else:
                self._read(row)
        for (key, how), found in self._cases.items():
            self._accuse(key, _TAKEN_OVER.get(how, how), found)

    def _accuse(self, key: str, anomaly: str, found: Sequence[tuple[_Known, int]]) -> None:
        cases = [Case(self.history.result[read], self._rows(known, read)) for known, read in found]
        self.conclusion.accuse(anomaly, cases, lambda _: self._told(*found[0]), noun="such read", key=key)

    def _find_writes(self) -> None:
        """Find the write of each value and of each answer that one write alone had, and the values written twice."""
        history = self.history
        by_key: dict[str, list[int]] = defaultdict(list)
        by_answer: dict[Any, list[int]] = defaultdict(list)
        for row in self.rows:
            if history.f[row] == "write":
                self._expect_pair(row, history.value[row])
                by_key[history.key[row] or ""].append(row)
                if history.outcome[row] == "ok" and history.result[row] is not None:
                    by_answer[token(history.result[row])].append(row)
        self._written_with = {answer: rows[0] for answer, rows in by_answer.items() if len(rows) == 1}
        for key, rows in by_key.items():
            self._writes[key] = writers(history, rows)
            times = Counter(token(history.value[row]) for row in rows)
            self._doubtful[key] = {value for value, count in times.items() if count > 1}
            for value in self._doubtful[key]:
                sentence = (
                    f"{told(history.value[self._writes[key][value]])} was written to {key} twice; it tells nothing."
                )
                self.conclusion.doubt(sentence, Cause.REPEATED_VALUES)

    def _events(self) -> list[tuple[int, bool, int]]:
        """Return the invocations of all but reads, and the ends of operations that succeeded."""
        history = self.history
        begun = [(history.invoke_index[row], False, row) for row in self.rows if history.f[row] != "read"]
        ended = [(history.complete_index[row], True, row) for row in self.rows if history.outcome[row] == "ok"]
        return begun + ended

    def _begin(self, row: int) -> None:
        if self.history.f[row] == "write":
            self._begin_write(row)
            return
        # An answer counts when it was there before the read began: a repeated run may name one of the run before.
        handed, history = self.history.value[row], self.history
        write = self._written_with.get(token(handed[1])) if isinstance(handed, list | tuple) and handed[1:] else None
        if write is not None and history.complete_index[write] < history.invoke_index[row]:
            self._learn(write, _HANDED, row)

    def _begin_write(self, row: int) -> None:
        cause = self._cause(row) if self._across_clients else None
        if cause is not None:
            self._learn(cause, _TOLD, self._shown_by[cause], row)
        self._at_write[row] = dict(self._sessions[self.history.process[row]])

    def _cause(self, row: int) -> int | None:
        """Return the write of the value that is the cause of what `row` writes, if a client had been shown it."""
        chain, _, place = (self.history.key[row] or "").rpartition("/")
        if not place.isdigit():
            return None
        before, cause = f"{chain}/{int(place) - 1}", token(self.history.value[row][1])
        write = self._writes.get(before, {}).get(cause)
        return write if write in self._shown_by and cause not in self._doubtful[before] else None

    def _read(self, row: int) -> None:
        history, write = self.history, self._write_of(row)
        key, value = history.key[row] or "", history.result[row]
        # A value that cannot have been there, or that two writes may explain, says nothing about what the reader knows.
        if value is not None and (misread(history, row, write) or token(value) in self._doubtful[key]):
            return
        known = self._sessions[history.process[row]].get(key)
        if known is not None:
            self.conclusion.counts["telling"] += known.how in (CAUSAL_REVERSE, *_TAKEN_OVER)
            if write is None or self._is_older(write, known.write):
                self._cases[key, known.how].append((known, row))
        if write is not None:
            self._shown_by.setdefault(write, row)
            self._learn(write, MONOTONIC_READS, row)

    def _learn(self, write: int, how: str, *by: int) -> None:
        """Let a session know `write`, and what was known to its writer; the last of the operations `by` is its own."""
        mine = self._sessions[self.history.process[by[-1]]]
        taken_over = how if how in _TAKEN_OVER else CAUSAL_REVERSE
        for one in self._at_write[write].values():
            self._keep(mine, _Known(one.write, taken_over, (*one.rows, write, *by)))
        self._keep(mine, _Known(write, how, (write, *by)))

    def _keep(self, known: _Knowledge, one: _Known) -> None:
        """Keep the one of two known writes of a key that was invoked last."""
        key, invoked = self.history.key[one.write] or "", self.history.invoke_index
        if key not in known or invoked[known[key].write] < invoked[one.write]:
            known[key] = one

    def _write_of(self, read: int) -> int | None:
        return self._writes.get(self.history.key[read] or "", {}).get(token(self.history.result[read]))

    def _is_older(self, write: int, than: int) -> bool:
        history = self.history
        return history.outcome[write] == "ok" and history.complete_index[write] < history.invoke_index[than]

    def _expect_pair(self, row: int, value: Any) -> None:
        """Raise `UsageError` unless `value` is a pair."""
        if not isinstance(value, list | tuple) or len(value) != 2:
            did = "wrote" if self.history.f[row] == "write" else "answered"
            raise wrong_shape(DependentWritesChecker.name, self.history, row, f"{did} {told(value)}", _EXPECTED)

    def _rows(self, known: _Known, read: int) -> tuple[int, ...]:
        write = self._write_of(read)
        return tuple(sorted({*known.rows, read} if write is None else {*known.rows, write, read}))

    def _told(self, known: _Known, read: int) -> str:
        history, by = self.history, known.rows[-1]
        return _SENTENCES[known.how].format(
            client=client(history, read),
            seen=told(history.result[read]),
            newer=told(history.value[known.write]),
            effect=told(history.result[by]),
            place=history.key[by],
        )


def _chain(key: str | None) -> str:
    return (key or "").rpartition("/")[0]
