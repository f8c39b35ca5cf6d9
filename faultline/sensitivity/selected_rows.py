"""Anomalies of transactions that select rows of tables by a condition.

- `lost-write`, drawn from acknowledged transactions that made a row: from a moment on its value is in no answer;
- `stale-read`, drawn from rows in answers, made by transactions acknowledged before the selection: the row is not in
  any answer of that transaction;
- `phantom`, drawn from transactions that selected a row twice: the first answer lacks it, as if it came in between;
- `fractured-read`, drawn from transactions that saw two rows which another made: they do not see one of them;
- `write-skew`, drawn from rows that a transaction selected and wrote, while another began that writes other rows: that
  one sees the row as the first had found it, so that neither sees the other.

A row is *made* by a transaction that writes it if no other transaction, unless it failed, has a write of it that began
before: there is then no older value that an answer should have had instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from faultline.harness.run_record import RunRecord
from faultline.harness.selection import meets
from faultline.harness.sensitivity import Anomaly, Answer, Insertion
from faultline.sensitivity.moments import Moments, drawn

__all__ = ["selected_rows"]

_Changes = dict[int, list[Any]]


class _Sight(NamedTuple):
    """A row of a table in the answer to the step at `place` of the transaction in `row`."""

    row: int
    place: int
    name: str
    value: Any


class _Tables:
    """The transactions of a run, by table, and the writers of all values."""

    def __init__(self, record: RunRecord) -> None:
        self.history, self.moments = record.history, Moments(record.history)
        self.rows_of = self.history.rows_by_key()
        self.writer_of: dict[Any, int] = {}
        self.maker_of: dict[tuple[Any, str], int] = {}
        for row in range(len(self.history)):
            if self.history.outcome[row] != "fail":
                for name, value in _written(self.history.value[row]).items():
                    self.writer_of[value] = row
                    self.maker_of.setdefault((self.history.key[row], name), row)
        self.sights = [sight for row in range(len(self.history)) for sight in self._sights(row)]
        self.sights_of_row: dict[int, list[_Sight]] = {}
        for sight in self.sights:
            self.sights_of_row.setdefault(sight.row, []).append(sight)

    def _sights(self, row: int) -> Iterator[_Sight]:
        """Yield what the transaction saw of others: not the rows that it had written itself."""
        if self.history.outcome[row] != "ok":
            return
        own: set[str] = set()
        for place, step in enumerate(self.history.result[row]):
            if step[0] != "rp":
                own.add(step[1])
                continue
            yield from (_Sight(row, place, name, value) for name, value in step[2].items() if name not in own)

    def maker(self, sight: _Sight) -> int | None:
        """Return the transaction that wrote the value that was seen, if it made the row."""
        writer = self.writer_of.get(sight.value)
        return writer if self.maker_of.get((self.history.key[sight.row], sight.name)) == writer else None

    def without(self, sights: Sequence[_Sight], table: Any) -> Insertion:
        """Return the insertion in which none of `sights` was seen."""
        return self.answered(dict.fromkeys(sights), table)

    def answered(self, sights: Mapping[_Sight, Any], table: Any) -> Insertion:
        """Return the insertion in which each of `sights` shows another value, or nothing at all."""
        changed: _Changes = {}
        for sight, value in sights.items():
            steps = changed.setdefault(sight.row, [list(step) for step in self.history.result[sight.row]])
            found = {name: seen for name, seen in steps[sight.place][2].items() if name != sight.name}
            steps[sight.place][2] = found if value is None else {**found, sight.name: value}
        return Insertion({row: Answer("ok", steps) for row, steps in changed.items()}, self.rows_of[table])


def selected_rows(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of tables whose transactions are strictly serializable."""
    tables = _Tables(record)
    made = [sight for sight in tables.sights if tables.maker(sight) is not None]
    makers = sorted({row for row in tables.maker_of.values() if record.history.outcome[row] == "ok"})
    no_moment = "No row had been made when a fault began or ended."
    return (
        Anomaly("lost-write", makers, lambda row, chance: _lost(tables, row, chance), no_moment),
        _unseen("stale-read", tables, made, _is_known, "No answer had a row that was made before it was asked for."),
        _once("phantom", tables, made),
        _unseen("fractured-read", tables, made, _has_sibling, "No transaction saw two rows that another made."),
        _skewed(tables),
    )


def _lost(tables: _Tables, row: int, chance: int) -> Insertion | None:
    history, table = tables.history, tables.history.key[row]
    due = tables.moments.between(history.complete_index[row])
    written = _written(history.value[row])
    names = [name for name in written if tables.maker_of[table, name] == row]
    if not due or not names:
        return None
    moment, name = drawn(due, chance), drawn(names, chance // 64)
    gone = [
        sight for sight in tables.sights if sight.value == written[name] and history.invoke_index[sight.row] > moment
    ]
    # A value that others may have replaced before any read is no loss.
    others = [other for other in tables.rows_of[table] if other != row]
    is_replaced = any(name in _written(history.value[other]) for other in others)
    return tables.without(gone, table) if gone or not is_replaced else None


def _unseen(
    name: str, tables: _Tables, made: list[_Sight], fits: Callable[[_Tables, _Sight], bool], missing: str
) -> Anomaly:
    """Return the anomaly of a transaction that sees a row in none of its answers."""

    def insert(sight: _Sight, _chance: int) -> Insertion | None:
        if not fits(tables, sight):
            return None
        same = [each for each in tables.sights_of_row[sight.row] if each.name == sight.name]
        return tables.without(same, tables.history.key[sight.row])

    return Anomaly(name, made, insert, missing)


def _once(name: str, tables: _Tables, made: list[_Sight]) -> Anomaly:
    def insert(sight: _Sight, _chance: int) -> Insertion | None:
        later = [each for each in tables.sights_of_row[sight.row] if each.name == sight.name and each != sight]
        return (
            tables.without([sight], tables.history.key[sight.row]) if later and later[0].place > sight.place else None
        )

    return Anomaly(name, made, insert, "No transaction selected a row twice.")


def _skewed(tables: _Tables) -> Anomaly:
    """Return the anomaly of a transaction that sees a row as an overlapping one had found it, which then wrote it."""
    history = tables.history
    changed = [sight for sight in tables.sights if sight.name in _written(history.value[sight.row])]

    def insert(sight: _Sight, chance: int) -> Insertion | None:
        others = [
            row
            for row in tables.rows_of[history.key[sight.row]]
            if history.outcome[row] == "ok"
            and history.invoke_index[sight.row] < history.invoke_index[row] < history.complete_index[sight.row]
            and sight.name not in _written(history.value[row])
            and _written(history.value[row])
        ]
        if not others:
            return None
        row = drawn(others, chance)
        seen: dict[_Sight, Any] = {}
        for place, (kind, condition, *found) in enumerate(history.result[row]):
            before = sight.value if kind == "rp" and meets(condition, sight.value) else None
            if kind == "rp" and found[0].get(sight.name) != before:
                seen[_Sight(row, place, sight.name, None)] = before
        # An answer that had to be the same before and after the write hides nothing.
        return tables.answered(seen, history.key[row]) if seen else None

    return Anomaly("write-skew", changed, insert, "No transaction overlapped one that wrote what it had selected.")


def _is_known(tables: _Tables, sight: _Sight) -> bool:
    """Return whether the row had been acknowledged before the selection began."""
    maker, history = tables.writer_of[sight.value], tables.history
    return history.outcome[maker] == "ok" and history.complete_index[maker] < history.invoke_index[sight.row]


def _has_sibling(tables: _Tables, sight: _Sight) -> bool:
    """Return whether the transaction saw another row of the same maker."""
    others = tables.sights_of_row[sight.row]
    return any(each.name != sight.name and tables.maker(each) == tables.maker(sight) for each in others)


def _written(steps: Any) -> dict[str, Any]:
    """Return the last value that the steps give to each row; a deletion gives null."""
    return {step[1]: step[2] if len(step) > 2 else None for step in steps if step[0] != "rp"}
