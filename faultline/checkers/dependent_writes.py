"""Dependent writes: a client that has seen an effect must not miss its cause, nor go back.

Shape: `read`, and `write` of `[number, cause]`, with numbers that are never written twice to a key. Keys of one chain
are `chain/0`, `chain/1` …; the cause of a value of `chain/1` is the value of `chain/0` that was read before, or null.
`read-after` of `[null, answer]` is a read by a session that was handed the answer to a write, such as its version.

A write is *known* to a session when the session made it and it was acknowledged, when the session read its value, and
when it was known to the writer of a value that the session read or was handed, at the time of that write. With
`across_clients` the cause in a value, and all that was known to its writer, is known to its reader too, also when
another client than the writer had been shown it before. One write is *older* than another of its key if it was
acknowledged before the other was invoked. A read is wrong when it answers a value older than a known one, or nothing
although a value is known:

| anomaly                      | how the newer value is known                              |
|------------------------------|-----------------------------------------------------------|
| `read-your-writes-violated`  | the session had itself written it, or was handed it       |
| `monotonic-reads-violated`   | the session had itself read it                            |
| `causal-reverse`             | the session had read an effect of it                      |
| `garbage-read`, `aborted-read`, `future-read` | the value cannot have been there (`misreads`) |

Of the known values of a key that one counts which was invoked last: whatever is older than any of them is older than
that. So a session keeps one row per key of a chain, and one pass over the events decides.

Limits: knowledge does not cross from chain to chain. The order of writes that overlap, or that were never acknowledged,
is open, so a read of them proves nothing. A session is a process. A store whose writes of one key need not take effect
in the order of their acknowledgements does not promise this. A number written twice makes the verdict *unknown*.

Sources: Terry et al. (1994); Bouajjani et al., "On verifying causal consistency" (POPL 2017).
"""

from __future__ import annotations

from collections import Counter
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

_HANDED = "handed"
_FUNCTIONS = ("read", "read-after", "write")
_EXPECTED = "`write` of [number, cause], and `read` that answers such a pair, or null where nothing was written."
_SENTENCES = {
    READ_YOUR_WRITES: "{client} read {seen} after it had itself written {newer}",
    MONOTONIC_READS: "{client} read {seen} after it had read {newer}",
    _HANDED: "{client} read {seen} after it had been handed a session that knew {newer}",
    CAUSAL_REVERSE: "{client} read {seen} after it had read {effect} on {place}, whose writer knew {newer}",
}


class _Known(NamedTuple):
    """A write that a session knows, and the operation of the session by which it does."""

    write: int
    how: str
    by: int


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
        by_key: dict[str, list[int]] = {}
        for row in rows:
            if self.history.f[row] == "write":
                self._number(row, self.history.value[row])
                by_key.setdefault(self.history.key[row] or "", []).append(row)
        self._written_with = self._by_answer()
        self.writes = {key: writers(self.history, written) for key, written in by_key.items()}
        self.doubtful = {key: self._written_twice(key, written) for key, written in by_key.items()}
        self._sessions: dict[int, _Knowledge] = {}
        self._at_write: dict[int, _Knowledge] = {}
        self._shown: set[int] = set()
        self._cases: dict[tuple[str, str], list[Case]] = {}

    def judge(self) -> None:
        """Go through the events in their order, and accuse."""
        history = self.history
        reads = [row for row in self.rows if history.f[row] != "write" and history.outcome[row] == "ok"]
        self.conclusion.counts["reads"] += len(reads)
        for key in dict.fromkeys(history.key[row] for row in reads):
            of_key = [row for row in reads if history.key[row] == key and history.result[row] is not None]
            accuse_misreads(
                self.conclusion, [(row, history.result[row], self._write_of(row)) for row in of_key], key=key
            )
        for _, is_end, row in sorted(self._events()):
            if not is_end:
                self._begin(row)
            elif history.f[row] == "write":
                self._learn(row, row, READ_YOUR_WRITES)
            else:
                self._read(row)
        for (key, how), cases in self._cases.items():
            anomaly = READ_YOUR_WRITES if how == _HANDED else how
            self.conclusion.accuse(anomaly, cases, self._told(how), noun="such read", key=key)

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
            self._take_over(row, write, _HANDED)
            self._learn(row, write, _HANDED)

    def _begin_write(self, row: int) -> None:
        history = self.history
        known = dict(self._sessions.get(history.process[row], {}))
        cause = self._cause(row) if self._across_clients else None
        if cause is not None:
            for key, one in {**self._at_write[cause], history.key[cause] or "": _Known(cause, "", row)}.items():
                self._keep(known, key, one)
        self._at_write[row] = known

    def _cause(self, row: int) -> int | None:
        """Return the write of the value that is the cause of what `row` writes, if a client had been shown it."""
        key, (_, cause) = self.history.key[row] or "", self.history.value[row]
        chain, _, place = key.rpartition("/")
        if cause is None or not place.isdigit():
            return None
        before = f"{chain}/{int(place) - 1}"
        write = self.writes.get(before, {}).get(token(cause))
        if write is None or write not in self._shown or token(cause) in self.doubtful[before]:
            return None
        return write

    def _read(self, row: int) -> None:
        history = self.history
        key, value = history.key[row] or "", history.result[row]
        if value is not None:
            self._number(row, value)
        write = None if value is None else self._write_of(row)
        # A value that cannot have been there, or that two writes may explain, says nothing about what the reader knows.
        if value is not None and (
            write is None or misread(history, row, write) or token(value) in self.doubtful.get(key, ())
        ):
            return
        mine = self._sessions.setdefault(history.process[row], {})
        known = mine.get(key)
        if known is not None:
            self.conclusion.counts["telling"] += known.how in (CAUSAL_REVERSE, _HANDED)
            if self._is_older(write, known.write):
                case = Case(value, (known.write, known.by, row))
                self._cases.setdefault((key, known.how), []).append(case)
        if write is not None:
            self._take_over(row, write, CAUSAL_REVERSE)
            self._learn(row, write, MONOTONIC_READS)

    def _take_over(self, row: int, write: int, how: str) -> None:
        """Let the session of `row` know what was known to the writer of `write`."""
        mine = self._sessions.setdefault(self.history.process[row], {})
        for key, one in self._at_write[write].items():
            self._keep(mine, key, _Known(one.write, how, row))

    def _learn(self, row: int, write: int, how: str) -> None:
        """Let the session of `row` know `write` by that operation."""
        self._shown.add(write)
        mine = self._sessions.setdefault(self.history.process[row], {})
        self._keep(mine, self.history.key[write] or "", _Known(write, how, row))

    def _keep(self, known: _Knowledge, key: str, one: _Known) -> None:
        """Keep the one of two known writes of `key` that was invoked last."""
        mine, invoked = known.get(key), self.history.invoke_index
        if mine is None or invoked[mine.write] < invoked[one.write]:
            known[key] = one

    def _write_of(self, read: int) -> int | None:
        return self.writes.get(self.history.key[read] or "", {}).get(token(self.history.result[read]))

    def _is_older(self, write: int | None, than: int) -> bool:
        history = self.history
        if write is None:
            return True
        return history.outcome[write] == "ok" and history.complete_index[write] < history.invoke_index[than]

    def _written_twice(self, key: str, rows: Sequence[int]) -> set[Any]:
        values = {token(self.history.value[row]): self.history.value[row] for row in rows}
        times = Counter(token(self.history.value[row]) for row in rows)
        twice = [value for value, count in times.items() if count > 1]
        for value in twice:
            sentence = f"{told(values[value])} was written to {key} twice; it tells nothing."
            self.conclusion.doubt(sentence, Cause.REPEATED_VALUES)
        return set(twice)

    def _number(self, row: int, value: Any) -> None:
        """Raise `UsageError` unless `value` is a pair."""
        if not isinstance(value, list | tuple) or len(value) != 2:
            did = "wrote" if self.history.f[row] == "write" else "answered"
            raise wrong_shape(DependentWritesChecker.name, self.history, row, f"{did} {told(value)}", _EXPECTED)

    def _by_answer(self) -> dict[Any, int]:
        """Return the acknowledged write of each answer that no other write had; null says nothing."""
        history = self.history
        found: dict[Any, list[int]] = {}
        for row in self.rows:
            if history.f[row] == "write" and history.outcome[row] == "ok" and history.result[row] is not None:
                found.setdefault(token(history.result[row]), []).append(row)
        return {answer: rows[0] for answer, rows in found.items() if len(rows) == 1}

    def _told(self, how: str) -> Any:
        history = self.history

        def told_case(case: Case) -> str:
            newer, by, read = case.rows
            return _SENTENCES[how].format(
                client=client(history, read),
                seen=told(case.what),
                newer=told(history.value[newer]),
                effect=told(history.result[by]),
                place=history.key[by],
            )

        return told_case


def _chain(key: str | None) -> str:
    return (key or "").rpartition("/")[0]
