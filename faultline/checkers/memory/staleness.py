"""The staleness of reads, measured in versions and in time.

Each key of a history of reads and writes (or gets and puts) is measured by itself. `versions` is the smallest k for
which the key is k-atomic: each read sees one of the k latest writes, in some order that keeps real time. It is 1 for a
linearizable key. It is exact up to 2, and beyond when one read shows it; otherwise it is told as two bounds. `stale_us`
is the smallest Δ by which reads would have to begin earlier for the key to be linearizable. Both are of the worst read,
and `clusters` has their sources.

Without options nothing is promised and the figures are the result. `versions_max` and `stale_ms_max` are promises: a
read beyond them is a violation, `staleness-bound-exceeded`. A value that no write can have put is always one, as is a
read that ended before its write began.

Limits: a key on which a read may have seen one of several writes, as their values repeat, is not measured, which leaves
the verdict unknown. Compare-and-sets are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions
from faultline.checkers.common.words import client, counted, listed, told
from faultline.checkers.isolation.committed import INITIAL
from faultline.checkers.linearizability.data_type import Clock
from faultline.checkers.linearizability.operations import INFINITY
from faultline.checkers.memory.accesses import Accesses, read_accesses
from faultline.checkers.memory.clusters import Cluster, Read, staleness_of, versions_needed
from faultline.harness.history import OPEN, History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult

__all__ = ["KeyStaleness", "StalenessChecker"]

_EXPECTED = "`read` and `write`, or `get` and `put`, of single keys."
_KEYS_MAX = 100
"""The number of keys whose figures the detail holds, the stalest first."""

_EXCEEDED = "staleness-bound-exceeded"
_MISREADS = {
    "garbage-read": "which no client wrote",
    "aborted-read": "which only a write that failed would have put",
    "future-read": "whose write began only later",
}


class KeyStaleness(NamedTuple):
    """The figures of one key: bounds of the smallest k, Δ in microseconds, and the rows that need them.

    `oldest` is a read of the oldest version, `stalest` the read that needs the whole Δ, `newer` the write that it
    missed; each is -1 for a linearizable key.
    """

    key: str | None
    versions_min: int
    versions_max: int
    oldest: int
    stale_us: int
    stalest: int
    newer: int


class StalenessChecker:
    """A measure of how stale the reads of each key are, and a checker of bounds on that where they are given.

    `versions_max` is the k of k-atomicity that is promised, `stale_ms_max` the Δ, in milliseconds. `clock` says whether
    times are seconds or, for histories without times, numbers of events.
    """

    name = "staleness"

    def __init__(
        self, *, versions_max: int | None = None, stale_ms_max: float | None = None, clock: Clock = "seconds"
    ) -> None:
        self.versions_max = versions_max
        self.stale_ms_max = stale_ms_max
        self.clock = clock

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the figures of all keys, with a verdict; of `run` nothing is needed."""
        expect_functions(self.name, history, ("read", "write", "get", "put"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        if not any(f in ("read", "get") and kind == "ok" for f, kind in zip(history.f, history.outcome)):
            cause = Cause.NOT_READ_OUT if "ok" in history.outcome else Cause.NOTHING_SEEN
            conclusion.doubt("No read was answered, so nothing was measured.", cause)
            return conclusion.result("")
        measured = self._measure(history, conclusion)
        for figures in measured:
            self._compare(history, conclusion, figures)
        worst = sorted(measured, key=lambda each: (-each.versions_max, -each.stale_us))
        conclusion.detail = {
            "versions": [max((getattr(each, name) for each in measured), default=1) for name in _BOUNDS],
            "stale_us": max((each.stale_us for each in measured), default=0),
            "keys": {str(each.key): each._asdict() for each in worst[:_KEYS_MAX]},
        }
        return conclusion.result(self._sentence(history, measured))

    def _measure(self, history: History, conclusion: Conclusion) -> list[KeyStaleness]:
        """Return the figures of the keys that can be measured; accuse misreads, and doubt repeated values."""
        accesses = read_accesses(self.name, history)
        misreads = [(each.anomaly, each.value, each.reader, each.writer) for each in accesses.misreads]
        unit = history.next_index + 1
        by_key = _clusters(accesses, _moments(history, unit, self.clock))
        for clusters in by_key.values():
            misreads += _future_reads(history, clusters)
        for anomaly, why in _MISREADS.items():
            cases = [
                Case(value, (reader,) if writer is None else (writer, reader))
                for name, value, reader, writer in misreads
                if name == anomaly
            ]
            conclusion.accuse(anomaly, cases, partial(_told_read, history, why), noun="read")
        repeated = list(dict.fromkeys(choice.key for choice in accesses.choices))
        if repeated:
            keys = f"{counted(len(repeated), 'key')} ({listed(repeated, len(repeated))})"
            conclusion.doubt(f"Values repeat on {keys}, so the write that a read saw is open.", Cause.REPEATED_VALUES)
        spoilt = {history.key[reader] for _, _, reader, _ in misreads} | set(repeated)
        return [
            _figures(key, list(clusters.values()), unit)
            for key, clusters in by_key.items()
            if key not in spoilt and any(cluster.reads for cluster in clusters.values())
        ]

    def _compare(self, history: History, conclusion: Conclusion, figures: KeyStaleness) -> None:
        """Accuse the worst read of a key where it is beyond a bound, and doubt a bound that it may be beyond."""
        read = figures.oldest
        if self.versions_max is not None and figures.versions_min > self.versions_max:
            how = f"{figures.versions_min} versions are needed where {self.versions_max} are promised"
            self._accuse(history, conclusion, (read,), how)
        elif self.versions_max is not None and figures.versions_max > self.versions_max:
            conclusion.doubt(f"{_sees(figures)}, where {self.versions_max} are promised.", Cause.BUDGET)
        if self.stale_ms_max is not None and figures.stale_us > 1000 * self.stale_ms_max:
            how = f"{self._late(history, figures)}, where {self.stale_ms_max:g} ms are promised"
            self._accuse(history, conclusion, (figures.newer, figures.stalest), how)

    def _accuse(self, history: History, conclusion: Conclusion, rows: tuple[int, ...], how: str) -> None:
        case = Case(history.result[rows[-1]], rows)
        key = history.key[rows[-1]]
        conclusion.accuse(_EXCEEDED, [case], partial(_told_read, history, how), noun="read", key=key)

    def _late(self, history: History, figures: KeyStaleness) -> str:
        newer = f"{client(history, figures.newer)}'s write of {told(history.value[figures.newer])}"
        return f"{self._told_time(figures.stale_us)} later than {newer} allows"

    def _told_time(self, stale_us: int) -> str:
        return f"{stale_us / 1000:,.3f} ms" if self.clock == "seconds" else counted(stale_us, "event")

    def _sentence(self, history: History, measured: Sequence[KeyStaleness]) -> str:
        """Return the figures of the worst keys in words."""
        if not measured:
            return ""
        keys = counted(len(measured), "key")
        oldest = max(measured, key=lambda each: each.versions_max)
        stalest = max(measured, key=lambda each: each.stale_us)
        if oldest.versions_max == 1:
            return f"No read is stale on {keys}: each is linearizable."
        read = Case(history.result[stalest.stalest], (stalest.stalest,))
        return (
            f"{_sees(oldest)}, at the worst of {keys}. The stalest read: "
            f"{_told_read(history, self._late(history, stalest), read)}."
        )


_BOUNDS = ("versions_min", "versions_max")


def _sees(figures: KeyStaleness) -> str:
    """Return the staleness of a key in versions, in words."""
    place = "" if figures.key is None else f" of {figures.key}"
    low, high = figures.versions_min, figures.versions_max
    return f"Each read{place} sees one of the {low if low == high else f'{low} to {high}'} latest versions"


def _told_read(history: History, why: str, case: Case) -> str:
    place = history.key[case.rows[-1]]
    source = "" if place is None else f" from {place}"
    return f"{client(history, case.rows[-1])} read {told(case.what)}{source}, {why}"


def _clusters(accesses: Accesses, moments: Mapping[int, int]) -> dict[str | None, dict[int, Cluster]]:
    """Return, by key, the writes by number with their reads, at the `moments` of the indices of the history."""
    by_key: dict[str | None, dict[int, Cluster]] = {}
    transactions = accesses.committed.transactions
    spans = [(moments.get(each.invoked, -1), moments.get(each.completed, INFINITY)) for each in transactions]
    for number, access in enumerate(accesses.by_number):
        if number == INITIAL:
            continue
        clusters = by_key.setdefault(access.key, {INITIAL: Cluster(-1, -1, -1)})
        if access.writes:
            clusters[number] = Cluster(transactions[number].row, *spans[number])
    for number, (key, writer) in accesses.committed.reads_from():
        cluster = by_key[key][writer]
        cluster.reads.append(Read(*spans[number], transactions[number].row))
        cluster.end = min(cluster.end, spans[number][1])
    return by_key


def _moments(history: History, unit: int, clock: Clock) -> dict[int, int]:
    """Return, by index, a moment in the history's order that tells the time: `unit` times that, plus the index.

    The order is the history's own. A time that goes back against it is taken for the latest before it.
    """
    times = dict(zip(history.invoke_index, history.invoke_us))
    times |= {at: us for at, us in zip(history.complete_index, history.complete_us) if at != OPEN}
    moments, latest = {}, 0
    for index in sorted(times):
        latest = max(latest, times[index]) if clock == "seconds" else index
        moments[index] = latest * unit + index
    return moments


def _future_reads(history: History, clusters: dict[int, Cluster]) -> list[tuple[str, Any, int, int | None]]:
    """Return the reads that ended before their write began."""
    return [
        ("future-read", history.result[read.row], read.row, cluster.row)
        for cluster in clusters.values()
        for read in cluster.reads
        if read.end < cluster.begin
    ]


def _figures(key: str | None, clusters: Sequence[Cluster], unit: int) -> KeyStaleness:
    low, high, oldest = versions_needed(clusters)
    stale = staleness_of(clusters, unit)
    return KeyStaleness(key, low, high, oldest, stale.shift // unit, stale.read, stale.newer)
