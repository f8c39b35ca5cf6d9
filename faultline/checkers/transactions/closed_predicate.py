"""Predicates over a closed universe: transactions that write objects and select all that meet a condition.

Besides the information of registers, an answer shows which objects are *not* in it. With the partial order of versions
of `predicate_versions`, the dependencies are (Adya, *Weak Consistency*, chapter 3):

- `ww`: from the writer of a version to the writer of one that is known to follow it;
- `wr`: from the writer of the version that was seen, also if it was seen by its absence (a transaction deleted it);
- `rw`: from the reader of an object to the writer of a version that follows the one in the answer;
- predicate `rw`: from a reader whose answer lacks an object to the writer that made it meet the condition later.

An absent object may have been seen in one of several versions; an edge is drawn only if it holds for all of them.

Limits: every read is compared with every version of every object of its table, at most `COMPARISONS` times; a larger
universe is not judged, so use few keys (some ten) and some hundred transactions in a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from faultline.checkers.transactions.columns import FAIL, OK, Booleans, encode
from faultline.checkers.transactions.component import Step
from faultline.checkers.transactions.edges import EdgeKind, EdgeList
from faultline.checkers.transactions.inference import Inference, Reason
from faultline.checkers.transactions.observations import Observations, shown
from faultline.checkers.transactions.predicate_reads import Sighting, find_sightings
from faultline.checkers.transactions.predicate_versions import INITIAL, KeyOrder, Universe, find_universe, order_key
from faultline.checkers.transactions.predicates import PredicateLanguage
from faultline.harness.history import History

__all__ = ["COMPARISONS", "PredicateWords", "UniverseTooLargeError", "infer_closed_predicates"]

COMPARISONS = 4_000_000
"""The number of pairs of a predicate read and a version that may be compared."""


class UniverseTooLargeError(Exception):
    """The history has more pairs of a predicate read and a version than may be compared."""


@dataclass(slots=True)
class _Drawing:
    """The edges drawn so far, and for each the object and the version that it is about."""

    universe: Universe
    happened: Booleans
    edges: EdgeList
    because: dict[tuple[int, int, int, int], tuple[str, int]] = field(default_factory=dict)

    def add(self, source: int, target: int, kind: EdgeKind, reason: int, key: str, version: int) -> None:
        place = (source, target, int(kind), reason)
        if source != target and place not in self.because and self.happened[source] and self.happened[target]:
            self.edges.add(source, target, kind, reason)
            self.because[place] = (key, version)


def infer_closed_predicates(history: History, initial: Mapping[str, Any], comparisons: int = COMPARISONS) -> Inference:
    """Return the inference on the order of transactions in a history of predicate reads, from `initial` values on.

    Raise UniverseTooLargeError if that would take more than `comparisons` of a read with a version.
    """
    language = PredicateLanguage(history.key)
    columns = encode(history, "w", language.triples)
    universe = find_universe(columns, initial, language.table_of)
    _refuse_too_many(universe, language, comparisons)
    found = Observations(columns)
    sightings = find_sightings(universe, language.predicates, found)
    orders = _orders(universe, sightings, found)
    drawing = _Drawing(universe, _happened(universe, sightings), EdgeList(len(columns)))
    for key, order in orders.items():
        _write_edges(drawing, key, order)
    for sighting in sightings:
        _read_edges(drawing, sighting, orders[sighting.key])
    return Inference(columns, drawing.edges.finish(), found, PredicateWords(universe, drawing.because))


def _refuse_too_many(universe: Universe, language: PredicateLanguage, comparisons: int) -> None:
    columns = universe.columns
    asked = [language.predicates[columns.keys[key]].table for key in columns.key[columns.is_read].tolist()]
    versions = {table: sum(len(universe.visible[key]) for key in keys) for table, keys in universe.tables.items()}
    if sum(versions.get(table, 0) for table in asked) > comparisons:
        raise UniverseTooLargeError(f"{len(asked)} predicate reads of {sum(versions.values())} versions")


def _orders(universe: Universe, sightings: list[Sighting], found: Observations) -> dict[str, KeyOrder]:
    pairs: dict[str, list[tuple[int, int]]] = {key: [] for key in universe.visible}
    for sighting in sightings:
        written = universe.last_write.get((universe.owner(sighting.read), sighting.key))
        if written is not None and len(sighting.versions) == 1:
            pairs[sighting.key].append((sighting.versions[0], written))
    return {key: order_key(universe, key, pairs[key], found) for key in pairs}


def _happened(universe: Universe, sightings: list[Sighting]) -> Booleans:
    """Return the transactions known to have taken effect: the ok ones, and unknown ones with a write that was seen."""
    columns = universe.columns
    happened: Booleans = columns.outcome == OK
    seen = [universe.owner(sighting.versions[0]) for sighting in sightings if len(sighting.versions) == 1]
    happened[[writer for writer in seen if writer >= 0]] = True
    happened &= columns.outcome != FAIL
    return happened


def _write_edges(drawing: _Drawing, key: str, order: KeyOrder) -> None:
    universe = drawing.universe
    for earlier, following in order.next.items():
        for later in sorted(following) if earlier != INITIAL else ():
            drawing.add(universe.owner(earlier), universe.owner(later), EdgeKind.WW, later, key, earlier)


def _read_edges(drawing: _Drawing, sighting: Sighting, order: KeyOrder) -> None:
    universe, read, seen = drawing.universe, sighting.read, sighting.versions
    reader, key = universe.owner(read), sighting.key
    least = [version for version in seen if all(other == version or other in _after(order, version) for other in seen)]
    for version in least:
        if version != INITIAL:
            drawing.add(universe.owner(version), reader, EdgeKind.WR, read, key, version)
    kind = EdgeKind.RW if sighting.selected else EdgeKind.PREDICATE_RW
    for version in universe.visible[key]:
        # An absent object may have been seen in any version of `seen`. An edge is right for each of them only if the
        # version follows all.
        # From a version that was seen itself the next versions are enough, since ww edges lead on from there.
        if all(version in (order.next if sighting.selected else order.after).get(other, ()) for other in seen):
            drawing.add(reader, universe.owner(version), kind, read, key, version)


def _after(order: KeyOrder, version: int) -> set[int]:
    return order.after.get(version, set())


class PredicateWords:
    """The words for edges over predicates; `because` has the object and version behind each."""

    def __init__(self, universe: Universe, because: dict[tuple[int, int, int, int], tuple[str, int]]) -> None:
        self._universe = universe
        self._because = because

    def reason(self, step: Step, source: str, target: str) -> Reason:
        """Return why `step.source`, called `source`, precedes `step.target`, called `target`."""
        columns = self._universe.columns
        key, version = self._because[step.source, step.target, int(step.kind), step.reason]
        done = self._done(key, version)
        if step.kind & EdgeKind.WW:
            return Reason(f"{target} had {self._done(key, step.reason)}, knowing that {source} had {done}", key)
        where, answer = columns.keys[columns.key[step.reason]], columns.values[step.reason] or {}
        if step.kind & EdgeKind.WR:
            missing = "" if key in answer else f" without {key}"
            return Reason(f"{target} asked for {where}{missing} after {source} had {done}", key)
        seen = f"read {shown(answer[key])} of {key}" if key in answer else f"did not find {key}"
        return Reason(f"{source} asked for {where} and {seen}, before {target} had {done}", key)

    def _done(self, key: str, version: int) -> str:
        value = self._universe.value(key, version)
        return f"deleted {key}" if value is None else f"written {shown(value)} to {key}"
