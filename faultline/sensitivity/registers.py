"""Anomalies of registers: `read`, `write` and `cas` on keys, with values that are never written twice to a key.

- `lost-write`, drawn from acknowledged writes that stood at a moment: the key holds the value before;
- `resurrected-write`, drawn from acknowledged writes that had been overwritten before a moment: the key holds the
  value again;
- `stale-read`, drawn from reads that began after the acknowledgement of their value: the read answers a value that was
  overwritten, or none;
- `causal-reverse`, on chains of keys, drawn from reads of a cause by clients that had read its effect: the read answers
  a value older than the cause, or none.

A key that forgets, or goes back, does so until its next write. Where that write came before any read, the answers are
those of a correct store, and it is no anomaly. Where neither a write nor a read followed, it is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from faultline.harness.history import OPEN, History
from faultline.harness.outcome import CAS_MISMATCH
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Answer, Insertion
from faultline.sensitivity.moments import NEVER, Moments, drawn
from faultline.sensitivity.timeline import NOTHING, Read, Slip, Timeline, Write

__all__ = ["bounded_registers", "registers", "registers_of_causes", "registers_of_sessions", "registers_of_writers"]

_BOUND_OPTION = "max_staleness_ms"

Knows = Callable[[History, Timeline, int, Read], bool]
"""A test: it is a breach of the promise when a read misses the write at that place of the timeline, which it saw."""


def registers(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of registers all of whose reads are up to date."""
    keys = _Keys(record)
    stale = _stale(keys, lambda _history, _timeline, _write, _read: True)
    return (_slipped(keys, "lost-write"), stale, _slipped(keys, "resurrected-write"))


def registers_of_sessions(record: RunRecord) -> Sequence[Anomaly]:
    """Return the same where a read may be old, unless its own session had written or read a newer value."""
    keys = _Keys(record)
    return (_slipped(keys, "lost-write"), _stale(keys, _wrote_or_read_it))


def registers_of_causes(record: RunRecord) -> Sequence[Anomaly]:
    """Return those of sessions, and reads that miss the cause of what their session has read."""
    return (*registers_of_sessions(record), _reversed(_Keys(record)))


def registers_of_writers(record: RunRecord) -> Sequence[Anomaly]:
    """Return the same where a read may be old, unless its own session had written a newer value."""
    keys = _Keys(record)
    return (_slipped(keys, "lost-write"), _stale(keys, _wrote_it))


def bounded_registers(record: RunRecord) -> Sequence[Anomaly]:
    """Return the same where a read may be as old as the option `max_staleness_ms` allows, and an eighth more."""
    bound_us = 1_125 * int(record.plan.options.get(_BOUND_OPTION, "0"))

    def is_due(history: History, timeline: Timeline, write: int, read: Read) -> bool:
        return history.invoke_us[read.row] - history.complete_us[timeline.writes[write].row] > bound_us

    keys = _Keys(record)
    return (_slipped(keys, "lost-write"), _stale(keys, is_due), _slipped(keys, "resurrected-write"))


class _Keys:
    """The keys of a run, each with its values over time, computed when it is asked for."""

    def __init__(self, record: RunRecord) -> None:
        self.history, self.moments = record.history, Moments(record.history)
        self.rows = record.history.rows_by_key()
        self._timelines: dict[str | None, Timeline] = {}

    def timeline(self, key: str | None) -> Timeline:
        """Return the values of `key` over time."""
        if key not in self._timelines:
            rows = self.rows[key]
            self._timelines[key] = Timeline(_writes(self.history, rows), _reads(self.history, rows))
        return self._timelines[key]

    def successful(self, *functions: str) -> list[int]:
        """Return the rows of these functions that were answered."""
        columns = zip(self.history.f, self.history.outcome, strict=True)
        return [row for row, (f, outcome) in enumerate(columns) if outcome == "ok" and f in functions]


def _slipped(keys: _Keys, name: str) -> Anomaly:
    """Return the anomaly of writes that are forgotten from a moment on, or whose value comes back."""
    history, comes_back = keys.history, name == "resurrected-write"

    def insert(row: int, chance: int) -> Insertion | None:
        key, value = history.key[row], history.value[row]
        timeline = keys.timeline(key)
        place = timeline.place_of[repr(value[1] if history.f[row] == "cas" else value)]
        end, until = timeline.writes[place].end, int(timeline.stood_until(place))
        due = keys.moments.between(until) if comes_back else keys.moments.between(end, until)
        if not due or (comes_back and until >= NEVER):
            return None
        moment = drawn(due, chance)
        swaps, reads = timeline.replayed(Slip(place, moment, comes_back))
        if not swaps and not reads and timeline.is_overwritten_after(moment):
            return None
        changes = {row: Answer("ok") if done else Answer("fail", None, CAS_MISMATCH) for row, done in swaps.items()}
        return Insertion(changes | {read.row: Answer("ok", value) for read, value in reads}, keys.rows[key])

    state = "had been overwritten" if comes_back else "stood"
    missing = f"No acknowledged write {state} when a fault began or ended."
    return Anomaly(name, keys.successful("write", "cas"), insert, missing)


def _stale(keys: _Keys, knows: Knows) -> Anomaly:
    """Return the anomaly of reads that answer a value that was certainly overwritten."""
    history = keys.history

    def insert(row: int, _chance: int) -> Insertion | None:
        timeline = keys.timeline(history.key[row])
        read = next(read for read in timeline.reads if read.row == row)
        write = timeline.known_before(read)
        if write == NOTHING or not knows(history, timeline, write, read):
            return None
        old = timeline.value_at(timeline.certainly_older(write))
        return Insertion({row: Answer("ok", old)}, keys.rows[history.key[row]])

    return Anomaly("stale-read", keys.successful("read"), insert, "No read saw a value that it must know.")


def _reversed(keys: _Keys) -> Anomaly:
    """Return the anomaly of reads that answer a value older than the cause of an effect that their session had read."""
    history = keys.history

    def insert(place: tuple[int, int], _chance: int) -> Insertion | None:
        effect, row = place
        timeline, cause = keys.timeline(history.key[row]), repr(history.result[effect][1])
        write = timeline.place_of.get(cause, NOTHING)
        if write == NOTHING or not _follows(keys, effect, timeline.seen_by.get(cause, ())):
            return None
        old = timeline.value_at(timeline.certainly_older(write))
        chain = _chain(history.key[row])
        rows = sorted(each for key, of_key in keys.rows.items() if _chain(key) == chain for each in of_key)
        return Insertion({row: Answer("ok", old)}, rows)

    return Anomaly("causal-reverse", _after_effects(history), insert, "No client read a cause after its effect.")


def _follows(keys: _Keys, effect: int, reads_of_cause: Sequence[Read]) -> bool:
    """Return whether the session that wrote what was read in the row `effect` had read its cause itself."""
    history, timeline = keys.history, keys.timeline(keys.history.key[effect])
    write = timeline.writes[timeline.place_of[repr(history.result[effect])]]
    return any(
        history.process[read.row] == history.process[write.row] and read.end < write.begin for read in reads_of_cause
    )


def _after_effects(history: History) -> list[tuple[int, int]]:
    """Return the reads that found a cause, each with the last effect that its session had read before."""
    found: list[tuple[int, int]] = []
    last: dict[tuple[int, str], int] = {}
    for row, (f, outcome, result) in enumerate(zip(history.f, history.outcome, history.result, strict=True)):
        if f not in ("read", "read-after") or outcome != "ok" or result is None:
            continue
        chain, _, place = (history.key[row] or "").rpartition("/")
        effect = last.get((history.process[row], f"{chain}/{int(place) + 1}"))
        if effect is not None:
            found.append((effect, row))
        if result[1] is not None:
            last[history.process[row], f"{chain}/{place}"] = row
    return found


def _chain(key: str | None) -> str:
    return (key or "").rpartition("/")[0]


def _writes(history: History, rows: Sequence[int]) -> Iterator[Write]:
    for row in rows:
        f, value, outcome = history.f[row], history.value[row], history.outcome[row]
        begin, end = history.invoke_index[row], history.complete_index[row]
        last = NEVER if outcome == "info" or end == OPEN else end
        if f == "write" and outcome != "fail":
            yield Write(row, value, begin, last, outcome)
        elif f == "cas" and (outcome != "fail" or history.error[row] == CAS_MISMATCH):
            yield Write(row, value[1], begin, last, outcome, (value[0],))


def _reads(history: History, rows: Sequence[int]) -> Iterator[Read]:
    for row in rows:
        if history.f[row] == "read" and history.outcome[row] == "ok":
            yield Read(row, history.result[row], history.invoke_index[row], history.complete_index[row])


def _wrote_it(history: History, timeline: Timeline, write: int, read: Read) -> bool:
    return history.process[timeline.writes[write].row] == history.process[read.row]


def _wrote_or_read_it(history: History, timeline: Timeline, write: int, read: Read) -> bool:
    before = timeline.seen_by[repr(read.value)]
    return _wrote_it(history, timeline, write, read) or any(
        history.process[one.row] == history.process[read.row] and one.end < read.begin for one in before
    )
