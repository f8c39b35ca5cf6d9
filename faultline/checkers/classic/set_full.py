"""A set that only grows, judged by the life of each element over all reads (Jepsen's `set-full`).

Shape: `add` with the element as value; `read`, whose result is the list of elements. One set for each key.

An element is *known* from the moment its add was acknowledged, or a read that contains it has ended, whichever comes
first: from then on it is certainly in the set. A read that begins later and lacks the element *misses* it.

| fate       | meaning                                                                                         |
|------------|-------------------------------------------------------------------------------------------------|
| stable     | seen, and not missed by any read that begins after the last one that sees it has ended          |
| stale      | stable, but missed by a read after it was known: fine for an eventual set, not a linearizable one |
| lost       | known, and missed by a read that begins after every read that sees it had ended                  |
| never read | known, and no read that could show it began afterwards; or its add was never seen to take effect |

Lost, unexpected and duplicated elements are violations; stale ones are with `linearizable`. A missing read must begin
after the last sighting has *ended*: Jepsen compares the beginnings of both, and calls an
element lost that a slow read still returns. Its detection of duplicates never fires, this one does.

Latencies in microseconds, as quantiles: *stable latency* from known to the beginning of the last read that misses the
element (0 for most), *lost latency* from known to the end of the last read that sees it.

Two passes over the reads, linear in the sum of their lengths, with a few numbers for each element.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faultline.checkers.classic.sets import DUPLICATED_ELEMENT, EXPECTED, LOST_ELEMENT, UNEXPECTED_ELEMENT
from faultline.checkers.common.conclusion import EXAMPLES_MAX, Case, Conclusion
from faultline.checkers.common.shape import elements, expect_functions
from faultline.checkers.common.words import client, counted, token, tokens, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.sets import IncrementalSets

__all__ = ["STALE_ELEMENT", "SetFullChecker", "quantiles"]

STALE_ELEMENT = "stale-element"

_NONE = -1
_QUANTILES = (0.0, 0.5, 0.95, 0.99, 1.0)


class SetFullChecker:
    """A checker that no element is lost, made up or doubled; with `linearizable`, none is missed once it was known."""

    name = "set-full"

    def __init__(self, *, linearizable: bool = False) -> None:
        self.linearizable = linearizable

    def incremental(self) -> IncrementalSets:
        """Return the twin that judges while a run goes on."""
        from faultline.checkers.incremental.sets import IncrementalSets

        return IncrementalSets(linearizable=self.linearizable)

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every set of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, ("add", "read"), EXPECTED)
        conclusion = Conclusion(self.name, history)
        latencies: dict[str, list[int]] = {"stable": [], "lost": []}
        for key, rows in history.rows_by_key().items():
            _Set(conclusion, key, rows).judge(self.linearizable, latencies)
        conclusion.detail |= {f"{fate}_latency_us": quantiles(values) for fate, values in latencies.items()}
        counts = conclusion.counts
        conclusion.doubt_unread(("read",))
        if not counts["stable"]:
            conclusion.doubt(
                f"No element was seen by a read, of {counts['attempted']} that were added, so nothing is known."
            )
        return conclusion.result(
            f"None of {counted(counts['attempted'], 'element')} was lost: {counts['stable']} are stable, "
            f"{counts['stale']} of them were stale for a time, {counts['never-read']} were never read."
        )


def quantiles(values: Sequence[int]) -> dict[str, int]:
    """Return the values at 0, 50, 95, 99 and 100 %, by rank; none for no values."""
    ordered = sorted(values)
    return {f"{share:g}": ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in _QUANTILES if ordered}


@dataclass(slots=True)
class _Life:
    """The life of one element. Moments are indices of events, reads are ranks in order of their beginning."""

    add: int = _NONE
    may_exist: int = _NONE
    known: int = _NONE
    known_us: int = 0
    known_row: int = _NONE
    last_seen: int = _NONE
    last_seen_end: int = _NONE
    last_seen_row: int = _NONE
    last_missed: int = _NONE
    misses: int = 0


class _Set:
    """One set: its elements with their lives, and its ok reads in order of their beginning."""

    def __init__(self, conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
        self.conclusion, self.key, self.history = conclusion, key, conclusion.history
        history = self.history
        self.reads = [row for row in rows if history.f[row] == "read" and history.outcome[row] == "ok"]
        self.lives: dict[Any, _Life] = {}
        self.unexpected: dict[Any, Case] = {}
        self.duplicated: dict[Any, Case] = {}
        self.read_begins = [history.invoke_index[row] for row in self.reads]
        for row in rows:
            if history.f[row] == "add":
                self._add(row)

    def judge(self, linearizable: bool, latencies: dict[str, list[int]]) -> None:
        self._learn()
        self._miss()
        lost = [(element, life) for element, life in self._known() if self._is_lost(life)]
        stale = [(element, life) for element, life in self._known() if life.misses and not self._is_lost(life)]
        stable = [life for _, life in self._known() if life.last_seen != _NONE and not self._is_lost(life)]
        self.conclusion.counts.update(
            {"attempted": sum(life.add != _NONE for life in self.lives.values()), "reads": len(self.reads)}
            | {"stable": len(stable), "stale": len(stale), "never-read": len(self.lives) - len(stable) - len(lost)}
        )
        latencies["stable"] += map(self._stable_latency_us, stable)
        latencies["lost"] += [self._lost_latency_us(life) for _, life in lost]
        self._accuse(lost, stale, linearizable)

    def _add(self, row: int) -> None:
        history = self.history
        life = self.lives.setdefault(token(history.value[row]), _Life())
        if life.add == _NONE:
            life.add = row
        if history.outcome[row] != "fail" and life.may_exist == _NONE:
            life.may_exist = history.invoke_index[row]
        if history.outcome[row] == "ok":
            self._know(life, row)

    def _know(self, life: _Life, row: int) -> None:
        end = self.history.complete_index[row]
        if life.known == _NONE or end < life.known:
            life.known, life.known_us, life.known_row = end, self.history.complete_us[row], row

    def _seen_in(self, row: int) -> Counter[Any]:
        return Counter(tokens(elements(self.conclusion.checker, self.history, row, EXPECTED)))

    def _learn(self) -> None:
        """Find when each element is known, and report unexpected and duplicated ones; the first pass."""
        for row in self.reads:
            end = self.history.complete_index[row]
            seen = self._seen_in(row)
            for element in seen:
                life = self.lives.get(element)
                if life is None or life.may_exist == _NONE or life.may_exist > end:
                    add = () if life is None or life.add == _NONE else (life.add,)
                    self.unexpected.setdefault(element, Case(element, (*add, row)))
                    life = self.lives.setdefault(element, _Life())
                if life.last_seen_end < end:
                    life.last_seen_end, life.last_seen_row = end, row
                self._know(life, row)
            if len(seen) != seen.total():
                self._note_duplicates(row, seen)

    def _note_duplicates(self, row: int, seen: Counter[Any]) -> None:
        for element, count in seen.items():
            if count > 1:
                self.duplicated.setdefault(element, Case(element, (row,)))

    def _miss(self) -> None:
        """Count the misses of each element once it was known, and note the last one; the second pass."""
        for rank, row in enumerate(self.reads):
            for element in self._seen_in(row):
                life = self.lives[element]
                self._miss_between(life, life.last_seen, rank)
                life.last_seen = rank
        for life in self.lives.values():
            if life.known != _NONE:
                self._miss_between(life, life.last_seen, len(self.reads))

    def _miss_between(self, life: _Life, seen: int, rank: int) -> None:
        """Note the reads between two sightings, which lack the element: those that began after it was known miss it."""
        last = rank - 1
        if last > seen and self.read_begins[last] > life.known:
            life.last_missed = last
            life.misses += last - max(seen, bisect_right(self.read_begins, life.known) - 1)

    def _known(self) -> Iterator[tuple[Any, _Life]]:
        return ((element, life) for element, life in self.lives.items() if life.known != _NONE)

    def _is_lost(self, life: _Life) -> bool:
        return life.last_missed != _NONE and self.read_begins[life.last_missed] > life.last_seen_end

    def _stable_latency_us(self, life: _Life) -> int:
        if life.last_missed == _NONE:
            return 0
        return max(0, self.history.invoke_us[self.reads[life.last_missed]] - life.known_us)

    def _lost_latency_us(self, life: _Life) -> int:
        if life.last_seen_row == _NONE:
            return 0
        return max(0, self.history.complete_us[life.last_seen_row] - life.known_us)

    def _accuse(
        self, lost: Sequence[tuple[Any, _Life]], stale: Sequence[tuple[Any, _Life]], linearizable: bool
    ) -> None:
        conclusion, history = self.conclusion, self.history
        conclusion.accuse(
            LOST_ELEMENT,
            [self._missed_case(element, life) for element, life in lost],
            lambda case: (
                f"{told(case.what)} was certainly in the set, and {client(history, case.rows[-1])} began a read "
                "afterwards that lacks it, as do all that began later"
            ),
            noun="lost element",
            key=self.key,
        )
        conclusion.accuse(
            UNEXPECTED_ELEMENT,
            list(self.unexpected.values()),
            lambda case: f"{client(history, case.rows[-1])} read {told(case.what)}, which no add can have put there",
            noun="unexpected element",
            key=self.key,
        )
        conclusion.accuse(
            DUPLICATED_ELEMENT,
            list(self.duplicated.values()),
            lambda case: f"{client(history, case.rows[-1])} read {told(case.what)} more than once in one set",
            noun="duplicated element",
            key=self.key,
        )
        self._tell_stale(stale, linearizable)

    def _tell_stale(self, stale: Sequence[tuple[Any, _Life]], linearizable: bool) -> None:
        """Report stale elements, the longest first: as findings where the set must be linearizable, else as
        examples."""
        worst = sorted(stale, key=lambda item: -self._stable_latency_us(item[1]))
        if linearizable:
            self.conclusion.accuse(
                STALE_ELEMENT,
                [self._missed_case(element, life) for element, life in worst],
                lambda case: (
                    f"{told(case.what)} was certainly in the set, and {client(self.history, case.rows[-1])} "
                    "began a read afterwards that lacks it"
                ),
                noun="stale element",
                key=self.key,
            )
        self.conclusion.detail.setdefault("worst_stale", []).extend(
            {"element": told(element), "stable_latency_us": self._stable_latency_us(life), "misses": life.misses}
            for element, life in worst[:EXAMPLES_MAX]
        )

    def _missed_case(self, element: Any, life: _Life) -> Case:
        """Return the rows that made it known, that saw it last, and the last read that lacks it."""
        sighting = (life.last_seen_row,) if life.last_seen_row != _NONE else ()
        return Case(element, (life.known_row, *sighting, self.reads[life.last_missed]))
