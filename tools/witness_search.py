"""The search for a mutant under which a piece of evidence fails.

A test runs in a fork with the marks of all mutants; of those whose places it executes, the ones in the module of the
row's pattern are tried first, then those of other patterns, of systems, and the rest. Among equally near ones the
functions take turns, and mutants that few tests reach come first: a change under which everything fails says little
about one row.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

import msgspec
import pytest
from changed_code import EMPTIED, CannotChangeError, changes_of, imported_modules, mark, mutate
from record_evidence import leave_interrupts_alone
from tests_in_forks import Failed, fork, run_item
from witness_records import Among, CounterWitness, nearness

from faultline.power.modules import SourceModule
from faultline.power.mutants import SYSTEMS, Mutant

__all__ = ["Search", "test_of"]

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

PACKAGES = (
    SYSTEMS,
    "faultline.story",
    "faultline.nemesis",
    "faultline.workloads",
    "faultline.checkers",
    "update_queue",
)
SLOWEST_S = 15.0
"""The processor time that the tests of a piece of evidence may take under marks."""
TRIES = 60
SEARCH_S = 60.0
"""The processor time after which no further mutant is tried for a piece of evidence."""
_TRANSCRIPTS = "tests/scenarios/test_transcripts.py::test_a_transcript_gives_the_output_it_says"
_SCENES = "tests/scenarios/test_story.py::test_a_scene_goes_as_it_says"


class Code(msgspec.Struct, frozen=True):
    """All mutants of the imported modules by their ids, and the module of each."""

    modules: dict[str, SourceModule]
    mutants: dict[str, Mutant]


def test_of(where: str) -> str:
    """Return the test that plays a transcript or a scene; a test is its own."""
    path, _, name = where.rpartition("/")
    if not name.endswith(".txt"):
        return where
    return f"{_SCENES if path.endswith('scenes') else _TRANSCRIPTS}[{name.removesuffix('.txt')}]"


def items_of(where: str, items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the collected tests that are the evidence `where`, one for each set of parameters."""
    test = test_of(where)
    return [item for item in items if item.nodeid == test or item.nodeid.startswith(f"{test}[")]


def imported_code() -> Code:
    """Return the mutants of the modules that the collected tests have imported."""
    modules = {module.name: module for module in imported_modules(PACKAGES)}
    found = [mutant for module in modules.values() for mutant in changes_of(module.text, module.name)]
    return Code(modules, {mutant.id: mutant for mutant in found})


class Reach(msgspec.Struct, frozen=True):
    """The mutants that tests reach in the unchanged code, by the test's id, and the processor time that all take."""

    by_item: dict[str, set[str]]
    processor_s: float

    @property
    def ids(self) -> set[str]:
        """The mutants that any of the tests reaches."""
        return set[str]().union(*self.by_item.values())

    @property
    def limit_s(self) -> float:
        """The processor time after which a mutant has made the tests hang."""
        return 5 + 5 * self.processor_s


def reach_of(items: Sequence[pytest.Item], seen: set[str]) -> Reach | str:
    """Return what the tests reach, in a process whose marks add to `seen`; or why they tell nothing about mutants."""

    def run() -> Reach | str:
        by_item, began_s = dict[str, set[str]](), time.process_time()
        for item in items:
            seen.clear()
            if run_item(item):
                return f"{item.nodeid} fails without a change"
            by_item[item.nodeid] = set(seen)
        return Reach(by_item, time.process_time() - began_s)

    try:
        return fork(run, SLOWEST_S)
    except Failed as why:
        return f"without a change: {why}"


def fails(items: Sequence[pytest.Item], module: SourceModule, mutant: Mutant, processor_s: float) -> bool:
    """Return whether one of the tests fails with the mutant. Raise `CannotChangeError` when it cannot be put in."""

    def mutated() -> bool | str:
        try:
            mutate(module, mutant)
        except CannotChangeError as why:
            return str(why)
        return any(run_item(item) for item in items)

    try:
        answer = fork(mutated, processor_s)
    except Failed:
        return True
    if isinstance(answer, str):
        raise CannotChangeError(answer)
    return answer


class Search:
    """The common ground of the forks: the collected tests, the code, and what each piece of evidence reaches."""

    def __init__(self, items: list[pytest.Item], due: Sequence[tuple[str, str]], processes: int) -> None:
        self.items = {where: items_of(where, items) for where, _pattern in due}
        self.code = imported_code()
        self.due = due
        self.processes = processes
        self.reach = dict[str, Reach | str]()
        self._tests_that_reach = Counter[str]()

    def mark_all(self) -> Iterator[tuple[int, int]]:
        """Find what each piece of evidence reaches; yield how many of how many are done."""
        waiting = sorted({where for where, _pattern in self.due})
        for where, reach in _shared(self, _reach, waiting, _begin_marked):
            self.reach[where] = reach
            if isinstance(reach, Reach):
                self._tests_that_reach.update(reach.ids)
            yield len(self.reach), len(waiting)

    def witnesses(self) -> Iterator[CounterWitness]:
        """Yield the record of each piece of evidence that is due, in the order in which they are found."""
        yield from (record for _key, record in _shared(self, _witness, list(self.due)))

    def checked(self, records: Sequence[CounterWitness]) -> Iterator[tuple[CounterWitness, str]]:
        """Yield each record with what is wrong with it: nothing, when the change alone makes its evidence fail."""
        yield from _shared(self, _problem, list(records))

    def witness(self, where: str, pattern: str) -> CounterWitness:
        """Try one mutant after the other until one kills the evidence."""
        reach = self.reach[where]
        if isinstance(reach, str):
            return CounterWitness(where=where, pattern=pattern, note=reach)
        found = CounterWitness(where=where, pattern=pattern, systems=_systems(reach))
        tried, began_s = 0, _of_forks_s()
        for mutant in self._candidates(reach, pattern)[:TRIES]:
            if _of_forks_s() - began_s > SEARCH_S:
                break
            items = [item for item in self.items[where] if mutant.id in reach.by_item[item.nodeid]]
            try:
                killed = fails(items, self.code.modules[mutant.module], mutant, reach.limit_s)
            except CannotChangeError:
                continue
            tried += 1
            if killed:
                among = nearness(mutant.module, pattern)
                found = msgspec.structs.replace(
                    found, among=among, module=mutant.module, mutant=mutant.id, diff=mutant.diff
                )
                break
        return msgspec.structs.replace(found, tried=tried)

    def _candidates(self, reach: Reach, pattern: str) -> list[Mutant]:
        """Return the reached mutants: the nearest modules first, then a place after the other, rare ones first."""
        rare = sorted(reach.ids & self.code.mutants.keys(), key=lambda each: (self._tests_that_reach[each], each))
        seen, order = Counter[tuple[str, str]](), []
        for number, mutant in enumerate(self.code.mutants[each] for each in rare):
            place = mutant.module, mutant.place
            near = list(Among).index(nearness(mutant.module, pattern))
            order.append((near, mutant.operator == EMPTIED, seen[place], number, mutant))
            seen[place] += 1
        return [mutant for *_key, mutant in sorted(order, key=lambda each: each[:4])]


def _of_forks_s() -> float:
    """Return the processor time of all forks of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _systems(reach: Reach) -> tuple[str, ...]:
    return tuple(sorted({each.split(".")[1] for each in reach.ids if each.startswith("reference.")}))


_SEARCH: Search | None = None
"""The search, for the processes of the pool, which are forked after it is set."""
_SEEN = set[str]()
"""The mutants that a process with marks has reached."""


def _shared(
    search: Search,
    work: Callable[[_Task], _Result],
    tasks: Sequence[_Task],
    begin: Callable[[], None] = leave_interrupts_alone,
) -> Iterator[tuple[_Task, _Result]]:
    """Yield each task with its result, from a pool of forks of this process, in the order in which they end."""
    global _SEARCH
    _SEARCH = search
    with ProcessPoolExecutor(search.processes, mp_context=get_context("fork"), initializer=begin) as pool:
        futures: dict[Future[_Result], _Task] = {pool.submit(work, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _begin_marked() -> None:
    leave_interrupts_alone()
    assert _SEARCH is not None
    mark(list(_SEARCH.code.modules.values()), _SEEN)


def _reach(where: str) -> Reach | str:
    assert _SEARCH is not None
    items = _SEARCH.items[where]
    if not items:
        return "it was not collected"
    if any(item.get_closest_marker(name) for item in items for name in ("real", "spark")):
        return "it starts processes of its own"
    return reach_of(items, _SEEN)


def _witness(key: tuple[str, str]) -> CounterWitness:
    assert _SEARCH is not None
    return _SEARCH.witness(*key)


def _problem(record: CounterWitness) -> str:
    assert _SEARCH is not None
    items, code = _SEARCH.items[record.where], _SEARCH.code
    if record.mutant not in code.mutants:
        return "the change does not exist"
    reach = reach_of(items, set())
    if isinstance(reach, str):
        return reach
    mutant = code.mutants[record.mutant]
    return "" if fails(items, code.modules[record.module], mutant, reach.limit_s) else "it passes with the change"
