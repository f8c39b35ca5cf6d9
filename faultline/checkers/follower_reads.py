"""The promises of reads that need not be fresh: own writes, no going back, a bound, nothing invented.

Shape: `write` of values that are never written twice to a key, and `read`; the result of a write may be its version, an
integer that grows in the order in which writes took effect. One write is *known to be older* than another if both have
versions and its is smaller, or else if it had completed before the other began.

| anomaly                      | meaning                                                                            |
|------------------------------|------------------------------------------------------------------------------------|
| `read-your-writes-violated`  | a session read a value older than one it had written itself (or nothing at all)    |
| `monotonic-reads-violated`   | a session read a value older than one it had read before (or nothing at all)       |
| `staleness-bound-exceeded`   | a value older than one whose write had completed longer ago than the bound         |
| `garbage-read`, `aborted-read`, `future-read` | a value that cannot have been there (`misreads`)                  |

Which of the first three count is for the workload to say: `read_your_writes`, `monotonic_reads`, and the bound, which
is the option `max_staleness_ms` of the plan where `bounded` is set, and an eighth more, for clocks that run slow; it is
0 for a system without that option, whose answers are all fresh. A session is a process. Completion is later than
commitment, so an answer that is called too old is so in truth, by the time it took the write to be acknowledged; the
invariant FR-I6 knows the time of commitment itself.

Limits: the version of a write that was never acknowledged is unknown, so a read of its value proves little. Deletions
are not written here. A value written twice makes the verdict *unknown*.

Sources: Terry et al. (1994); Golab, Li and Shah, "Analyzing consistency properties for fun and profit" (PODC 2011).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from faultline.checkers.classic.misreads import MISREADS, misread, writers
from faultline.checkers.classic.sessions import MONOTONIC_READS, READ_YOUR_WRITES
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions
from faultline.checkers.common.words import client, counted, token, told
from faultline.harness.history import OPEN, History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.follower_reads import IncrementalFollowerReads

__all__ = ["STALENESS_BOUND", "FollowerReadsChecker"]

STALENESS_BOUND = "staleness-bound-exceeded"

_BOUND_OPTION = "max_staleness_ms"
_EXPECTED = "`read` and `write` of values that are never written twice to a key."
_SENTENCES = {
    READ_YOUR_WRITES: "{client} read {seen} after it had itself written {newer}",
    MONOTONIC_READS: "{client} read {seen} after it had read {newer}",
    STALENESS_BOUND: "{client} read {seen} {late} ms after the write of {newer} had completed",
    **{anomaly: f"{{client}} read {{seen}}, {why}" for anomaly, why in MISREADS.items()},
}


class FollowerReadsChecker:
    """Judges every read by what its session, and the others, had done before."""

    name = "follower-reads"

    def __init__(self, *, read_your_writes: bool = True, monotonic_reads: bool = True, bounded: bool = False) -> None:
        self._judged = [*MISREADS]
        self._judged += [READ_YOUR_WRITES] * read_your_writes
        self._judged += [MONOTONIC_READS] * monotonic_reads
        self._judged += [STALENESS_BOUND] * bounded

    def incremental(self) -> IncrementalFollowerReads:
        """Return the twin that judges while a run goes on; it leaves the bound to the end."""
        from faultline.checkers.incremental.follower_reads import IncrementalFollowerReads

        own, monotonic = READ_YOUR_WRITES in self._judged, MONOTONIC_READS in self._judged
        return IncrementalFollowerReads(read_your_writes=own, monotonic_reads=monotonic)

    def check(self, history: History, run: RunRecord) -> CheckResult:
        """Return the verdict on every key of `history`; of `run` the option with the bound is needed."""
        expect_functions(self.name, history, ("read", "write"), _EXPECTED)
        bound_us = 1_125 * int(run.plan.options.get(_BOUND_OPTION, "0"))
        conclusion = Conclusion(self.name, history)
        oldest_us = 0
        for key, rows in history.rows_by_key().items():
            one = _Key(history, rows)
            for value in one.written_twice:
                conclusion.doubt(f"{told(value)} was written to {key} twice; it tells nothing.", Cause.REPEATED_VALUES)
            cases = one.cases(bound_us)
            for anomaly in self._judged:
                conclusion.accuse(anomaly, cases[anomaly], one.sentence(anomaly), noun="such read", key=key)
            conclusion.counts["reads"] += len(one.reads)
            oldest_us = max(oldest_us, one.oldest_us)
        if not conclusion.counts["reads"]:
            conclusion.doubt(f"No read succeeded among {counted(len(history), 'operation')}, so nothing is known.")
        conclusion.detail["oldest_answer_ms"] = oldest_us // 1_000
        return conclusion.result(
            f"All {conclusion.counts['reads']} reads keep the promise ({', '.join(self._judged)} do not occur); "
            f"the oldest answer missed a write completed {oldest_us // 1_000} ms before."
        )


class _Key:
    """One key: its writes by value, and its reads, by session."""

    def __init__(self, history: History, rows: Sequence[int]) -> None:
        self.history = history
        self.oldest_us = 0
        writes = [row for row in rows if history.f[row] == "write"]
        self.reads = [row for row in rows if history.f[row] == "read" and history.outcome[row] == "ok"]
        self.writes = writers(history, writes)
        written = Counter(token(history.value[row]) for row in writes)
        self.written_twice = [value for value, times in written.items() if times > 1]
        self._acknowledged = sorted(
            (row for row in writes if history.outcome[row] == "ok"), key=history.complete_index.__getitem__
        )

    def cases(self, bound_us: int) -> dict[str, list[Case]]:
        """Return the cases of each anomaly among the reads of this key."""
        found: dict[str, list[Case]] = {anomaly: [] for anomaly in _SENTENCES}
        read_before: dict[int, list[int]] = {}
        for read in self.reads:
            write = self._write_of(read)
            anomaly = None if write is None else misread(self.history, read, None if write == OPEN else write)
            if anomaly is not None:
                found[anomaly].append(Case(self.history.result[read], (read,)))
                continue
            if token(self.history.result[read]) in self.written_twice:
                continue  # it is open which of its writes the read shows, and so how old the answer is
            mine = read_before.setdefault(self.history.process[read], [])
            for missed, newer in self._missed(read, write, mine, bound_us):
                found[missed].append(Case(self.history.result[read], (newer, read)))
            mine.append(read)
        return found

    def _write_of(self, read: int) -> int | None:
        """Return the write whose value was read; OPEN for a value never written, None where nothing was read."""
        value = self.history.result[read]
        return None if value is None else self.writes.get(token(value), OPEN)

    def _missed(self, read: int, write: int | None, mine: list[int], bound_us: int) -> Iterator[tuple[str, int]]:
        history = self.history
        begin, process = history.invoke_index[read], history.process[read]
        for newer in self._acknowledged:
            if history.complete_index[newer] > begin:
                break
            if self._is_older(write, newer):
                if history.process[newer] == process:
                    yield READ_YOUR_WRITES, newer
                late_us = history.invoke_us[read] - history.complete_us[newer]
                self.oldest_us = max(self.oldest_us, late_us)
                if late_us > bound_us:
                    yield STALENESS_BOUND, newer
        for earlier in mine:
            seen = self._write_of(earlier)
            if seen is not None and self._is_older(write, seen):
                yield MONOTONIC_READS, earlier

    def _is_older(self, write: int | None, than: int) -> bool:
        """Return whether the value of `write` is known to be older than that of `than`; no write is older than all."""
        if write is None:
            return True
        if write == than:
            return False
        history = self.history
        one, other = history.result[write], history.result[than]
        if type(one) is int and type(other) is int:
            return one < other
        return history.outcome[write] == "ok" and history.complete_index[write] < history.invoke_index[than]

    def sentence(self, anomaly: str) -> Any:
        """Return the function that tells a case of `anomaly`."""
        history = self.history

        def told_case(case: Case) -> str:
            newer, read = case.rows[0], case.rows[-1]
            value = history.value[newer] if history.f[newer] == "write" else history.result[newer]
            late_us = history.invoke_us[read] - max(0, history.complete_us[newer])
            return _SENTENCES[anomaly].format(
                client=client(history, read), seen=told(case.what), newer=told(value), late=late_us // 1_000
            )

        return told_case
