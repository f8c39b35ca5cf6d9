"""The sensitivity of a pass: anomalies are inserted into the history of a run, and its own checkers are asked about
each.

An *anomaly* is a kind of wrong answer that a buggy store could have given to the same operations at the same times. It
lists the *places* where it could have happened, whether or not any answer would have shown it, and makes an *insertion*
at one of them: the answers that change. The list of places must be honest. An acknowledged write that is lost and never
read again changes no answer: it counts as inserted and not as shown, for the clients of the store have lost it.

The checkers are those of the run that judge the answers to clients (not `judges_the_test`). An insertion is *shown*
when one of them answers VIOLATION. It is asked about the rows of the insertion alone, the part of the history that is
judged apart from all others (a key, the keys that transactions join), so that a probe costs a fraction of the judging.

Everything is a function of the record and the seed: places are drawn by hashes, and their number comes from the size of
the history, never from measured time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import gcd
from typing import Any, NamedTuple

import msgspec

from faultline.harness.checks import ask, name_of
from faultline.harness.generator.chance import chance_of, chance_of_text
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Verdict
from faultline.harness.workload import Checker

__all__ = [
    "INSERTIONS_MAX",
    "SAMPLED_EVERY",
    "Anomalies",
    "Anomaly",
    "Answer",
    "Insertion",
    "Sensitivity",
    "changed_record",
    "is_sampled",
    "probe",
    "sensitivity_sentence",
    "summed",
]

SAMPLED_EVERY = 25
"""One in so many simulated runs is probed: those whose seed it divides. Runs of real processes are always probed."""

INSERTIONS_MAX = 200
"""The largest number of insertions of one anomaly in a run."""

_ROWS_OF_REAL_RUN, _ROWS_OF_REAL_RUN_MIN = 0.2, 4_000
"""The number of times that the rows of a real run are judged again, over all anomalies; and a floor in rows."""

_ROWS_OF_SAMPLED_RUN = _ROWS_OF_REAL_RUN * SAMPLED_EVERY
"""The same for a simulated run, which is probed on behalf of many runs."""

_ROWS_OF_ASKING = 60
"""The cost of one question without any row, in rows."""

_TRIES_MAX = 8
"""The number of places that are tried for each insertion, as some turn out to be unfit."""


class Sensitivity(msgspec.Struct, frozen=True, kw_only=True):
    """The insertions of `anomaly` that were made and shown; `limit`, a sentence, says why some did not count."""

    anomaly: str
    inserted: int = 0
    shown: int = 0
    limit: str = ""


class Answer(NamedTuple):
    """The end of an operation, as an insertion changes it."""

    outcome: str
    result: Any = None
    error: str | None = None


class Insertion(NamedTuple):
    """The answers that an anomaly changes, by row, and the rows that are judged apart from all others."""

    changes: Mapping[int, Answer]
    rows: Sequence[int]


class Anomaly(NamedTuple):
    """An anomaly of one run: its name, the places where it could have happened, and the insertion at one of them.

    `insert` is given the place and a 64-bit chance for further draws; it returns None for a place that turns out to be
    unfit, so that `places` may be quick to list. `missing` is a sentence that says why there are no places.
    """

    name: str
    places: Sequence[Any]
    insert: Callable[[Any, int], Insertion | None]
    missing: str


Anomalies = Callable[[RunRecord], Sequence[Anomaly]]
"""The anomalies that fit a workload, for one of its runs."""


def is_sampled(record: RunRecord) -> bool:
    """Return whether `record` is probed: every run of real processes is, and one in SAMPLED_EVERY simulated ones."""
    return record.world != "simulated" or record.plan.seed % SAMPLED_EVERY == 0


def probe(
    record: RunRecord, checkers: Iterable[Checker], anomalies: Anomalies | None, *, insertions: int | None = None
) -> tuple[Sensitivity, ...]:
    """Return how many of `anomalies` the `checkers` would have shown in `record`, a run that passed; one entry for
    each.

    `insertions` is the number of each anomaly, by default as many as the size of the history allows. Where the workload
    has no anomalies, the only entry says why and has the name `none`.
    """
    judges = [checker for checker in checkers if not getattr(checker, "judges_the_test", False)]
    workload = record.plan.workload
    if anomalies is None:
        return (_without(f"No synthetic anomaly exists for the workload {workload}."),)
    if not judges:
        return (_without(f"No checker of the workload {workload} judges the answers to clients."),)
    try:
        known = list(anomalies(record))
    except Exception as error:
        return (_without(f"The answers do not have the form of {workload}: {type(error).__name__}: {error}."),)
    return tuple(_probed(record, judges, anomaly, len(known), insertions) for anomaly in known)


def summed(runs: Iterable[Sequence[Sensitivity]]) -> tuple[Sensitivity, ...]:
    """Return the figures of many runs together, anomalies in order of their first mention.

    The first limit stays; a limit that only says why one run had no place is dropped when another run had one.
    """
    total: dict[str, list[Sensitivity]] = {}
    for each in (entry for run in runs for entry in run):
        total.setdefault(each.anomaly, []).append(each)
    return tuple(_sum(anomaly, entries) for anomaly, entries in total.items())


def _sum(anomaly: str, entries: Sequence[Sensitivity]) -> Sensitivity:
    telling = [entry for entry in entries if entry.inserted] or entries
    return Sensitivity(
        anomaly=anomaly,
        inserted=sum(entry.inserted for entry in entries),
        shown=sum(entry.shown for entry in entries),
        limit=next((entry.limit for entry in telling if entry.limit), ""),
    )


def sensitivity_sentence(figures: Sequence[Sensitivity]) -> str:
    """Return `figures` in one sentence, as reports tell them; '' where nothing was probed."""
    told = [
        f"{100 * entry.shown // entry.inserted} % of inserted {entry.anomaly} ({entry.shown} of {entry.inserted})"
        for entry in figures
        if entry.inserted
    ]
    if told:
        return f"This pass would have shown {', '.join(told)}."
    return figures[0].limit if figures else ""


def changed_record(record: RunRecord, insertion: Insertion) -> RunRecord:
    """Return `record` with the rows of `insertion` alone, and the answers that it changes; faults stay as they are."""
    history = record.history
    part = History()
    for name, column in vars(history).items():
        if isinstance(column, list) and name != "faults":
            setattr(part, name, [column[row] for row in insertion.rows])
    part.faults = history.faults
    part.next_index = history.next_index
    for place, row in enumerate(insertion.rows):
        if row in insertion.changes:
            part.outcome[place], part.result[place], part.error[place] = insertion.changes[row]
    return msgspec.structs.replace(record, history=part)


def _without(limit: str) -> Sensitivity:
    return Sensitivity(anomaly="none", limit=limit)


def _probed(
    record: RunRecord, judges: Sequence[Checker], anomaly: Anomaly, anomalies: int, insertions: int | None
) -> Sensitivity:
    inserted, shown, failures = 0, 0, []
    number = insertions or INSERTIONS_MAX
    for insertion in _insertions(record, anomaly, number):
        if not insertions and not inserted:
            number = _affordable(record, len(insertion.rows), anomalies)
        inserted += 1
        if insertion.changes:
            answers = _asked(judges, changed_record(record, insertion))
            shown += any(answer.verdict is Verdict.VIOLATION for answer in answers)
            failures += [answer.sentence for answer in answers if _has_failed(answer)]
        if inserted >= number:
            break
    if not inserted:
        return Sensitivity(anomaly=anomaly.name, limit=anomaly.missing)
    limit = f"Not judged {len(failures)} times. {failures[0]}" if failures else ""
    return Sensitivity(anomaly=anomaly.name, inserted=inserted, shown=shown, limit=limit)


def _insertions(record: RunRecord, anomaly: Anomaly, number: int) -> Iterator[Insertion]:
    """Yield insertions at places drawn at random, none of them twice; at all places when they are few."""
    places, tries = len(anomaly.places), number * _TRIES_MAX
    chance = chance_of_text("sensitivity", anomaly.name, record.plan.seed)
    # A step that shares no divisor with the number of places visits each of them once, without a shuffled copy.
    step = next(each for each in count(1 + chance_of(chance, 0) % max(1, places)) if gcd(each, places) == 1)
    for number in range(min(places, tries)):
        draw = chance_of(chance, number + 1)
        insertion = anomaly.insert(anomaly.places[(chance + number * step) % places], draw)
        if insertion is not None:
            yield insertion


def _affordable(record: RunRecord, rows_each: int, anomalies: int) -> int:
    """Return as many insertions as the rows that may be judged again allow, at least one."""
    rows = len(record.history) * _ROWS_OF_SAMPLED_RUN
    if record.world != "simulated":
        rows = max(_ROWS_OF_REAL_RUN_MIN, len(record.history) * _ROWS_OF_REAL_RUN)
    return min(INSERTIONS_MAX, max(1, int(rows / anomalies / (rows_each + _ROWS_OF_ASKING))))


def _asked(judges: Sequence[Checker], changed: RunRecord) -> list[CheckResult]:
    """Return the results of the checkers, up to the first that finds a violation."""
    answers: list[CheckResult] = []
    for checker in judges:
        answers.append(ask(_Quick(checker) if hasattr(checker, "refutes") else checker, changed))
        if answers[-1].verdict is Verdict.VIOLATION:
            break
    return answers


class _Quick:
    """A checker that is asked for its verdict alone."""

    def __init__(self, checker: Any) -> None:
        self.name = name_of(checker)
        self._refutes = checker.refutes

    def check(self, history: History, run: RunRecord) -> CheckResult:
        verdict = Verdict.VIOLATION if self._refutes(history, run) else Verdict.PASS
        return CheckResult(checker=self.name, verdict=verdict, sentence="")


def _has_failed(answer: CheckResult) -> bool:
    """Return whether the checker could not judge at all, which differs from judging that nothing is wrong."""
    return answer.verdict is Verdict.HARNESS_ERROR or (
        answer.reason is not None and answer.reason.cause == "checker-failed"
    )
