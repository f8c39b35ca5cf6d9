"""Measure the findings and the passes of the shipped campaigns, and record them with seeds.

    python tools/record_evidence.py                         5,000 seeds of each correct system, 500 of each planted bug
    python tools/record_evidence.py --system paxos-kv       one system; the records of the others stay
    python tools/record_evidence.py --bug naive-reset --bugs 200 --correct 0
    python tools/record_evidence.py --again                 measures anew what is recorded already
    python tools/record_evidence.py --rare                  measures anew the best cell of each planted bug that lacks
                                                            counts of clients' findings, or 500 runs below 20 %
    python tools/record_evidence.py --page                  measures nothing, writes the page from the records
    python tools/record_evidence.py --retell                runs the first seed of each record and records the present
                                                            name of its finding; the figures stay

Each cell is recorded in docs/reference/planted-bugs.jsonl as soon as it is finished, so it can be stopped at any time
and goes on where it stopped. What is recorded with as many seeds already is left alone, unless its campaign has
changed. From the records comes docs/reference/generated/planted-bugs.md.

The runs are those of the command beside each row, seed by seed, through the same engine; only Spark is left out, and
with it the folders, pages and shrunk runs, which have no reader here.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import NamedTuple

import msgspec
from bug_evidence import (
    DATA,
    Place,
    Record,
    anomaly_places,
    bug_places,
    bugs,
    campaigns_without_cells,
    correct_places,
    marks_missing,
    read_records,
    reference_systems,
    unrecorded,
    write_records,
)
from bug_evidence_page import PAGE, page

from faultline.campaign.engine import default_engine
from faultline.harness.judgement import Judgement
from faultline.harness.system import NodeSystem
from faultline.harness.verdict import Verdict
from faultline.power.worker import INVARIANTS

__all__ = ["RARE", "leave_interrupts_alone", "main", "measured", "rare"]

_SEEDS_PER_TASK = 20

RARE = 0.2
"""Below this rate a planted bug is measured with the greater number of runs."""


class Found(NamedTuple):
    """One finding of a run."""

    checker: str
    anomaly: str
    sentence: str


class Seen(NamedTuple):
    """The result of one seed."""

    seed: int
    verdict: Verdict
    findings: tuple[Found, ...]
    marks: tuple[str, ...]

    def first_by(self, caught_by: tuple[str, ...]) -> Found | None:
        """Return the first finding by one of these checkers or invariants; by any, when none is named."""
        named = (found for found in self.findings if not caught_by or {found.checker, found.anomaly} & set(caught_by))
        return next(named, None)

    @property
    def is_by_clients(self) -> bool:
        """True when a checker of clients' answers accused the run."""
        return any(found.checker != INVARIANTS for found in self.findings)


class Wanted(NamedTuple):
    """One place, the number of seeds, and the findings that count; all do when none is named."""

    place: Place
    runs: int
    caught_by: tuple[str, ...] = ()


def run_seeds(place: Place, first: int, last: int) -> list[Seen]:
    """Run the seeds from `first` to `last` of `place`."""
    engine, plan = default_engine("simulated"), place.plan
    parts = engine.resolve(plan.request(place.cell, first))
    seen = []
    for seed in range(first, last + 1):
        try:
            record = engine.simulate(engine.plan(plan.request(place.cell, seed), parts), parts, False)
            judgement = engine.judge(record, parts, f"seed-{seed}")
        except Exception as error:
            print(f"{place.cell.name}, seed {seed}: {type(error).__name__}: {error}", file=sys.stderr)
            seen.append(Seen(seed, Verdict.HARNESS_ERROR, (), ()))
        else:
            seen.append(_seen(seed, judgement, tuple(record.marks)))
    return seen


def _seen(seed: int, judgement: Judgement, marks: tuple[str, ...]) -> Seen:
    findings = tuple(Found(finding.checker, finding.anomaly, finding.sentence) for finding in judgement.findings)
    return Seen(seed, judgement.verdict, findings, marks)


def measured(wanted: Wanted, executor: Executor) -> Record:
    """Run all seeds and count."""
    place, runs, caught_by = wanted
    starts = range(0, runs, _SEEDS_PER_TASK)
    tasks = [executor.submit(run_seeds, place, start, min(start + _SEEDS_PER_TASK, runs) - 1) for start in starts]
    seen = [one for task in tasks for one in task.result()]
    violations = [one for one in seen if one.verdict is Verdict.VIOLATION]
    found = [(one.seed, finding) for one in violations if (finding := one.first_by(caught_by)) is not None]
    reached = {mark for one in seen for mark in one.marks}
    first_seed, first = found[0] if found else (-1, None)
    return Record(
        system=place.system,
        bug=place.bug,
        campaign=place.campaign,
        cell=place.cell.name,
        run=place.run,
        command=place.command(f"0..{runs - 1}"),
        runs=runs,
        found=len(found),
        expected="violation" if place.bug or place.cell.expected else "pass",
        by_clients=sum(one.is_by_clients for one in violations),
        by_any=len(violations),
        undecided=sum(one.verdict not in (Verdict.PASS, Verdict.VIOLATION) for one in seen),
        first_seed=first_seed,
        finding=f"{first.checker}/{first.anomaly}" if first else "",
        sentence=first.sentence if first else "",
        marks_missing=() if place.bug else tuple(mark for mark in place.plan.must_reach if mark not in reached),
    )


def retold(wanted: Wanted, record: Record) -> Record | None:
    """Return `record` with the finding and the sentence of its first seed today; None when that has no finding."""
    [seen] = run_seeds(wanted.place, record.first_seed, record.first_seed)
    first = seen.first_by(wanted.caught_by)
    if first is None:
        return None
    return msgspec.structs.replace(record, finding=f"{first.checker}/{first.anomaly}", sentence=first.sentence)


def _retell_all(options: argparse.Namespace) -> bool:
    """Retell every record with a finding; return False when one of them is not found any more."""
    records, missed = read_records(), []
    for wanted in all_wanted(options):
        record = records.get(wanted.place.key)
        if record is None or not record.finding:
            continue
        again = retold(wanted, record)
        if again is None:
            missed.append(record)
        elif again != record:
            print(f"{record.cell}: {record.finding} is now {again.finding}: {again.sentence}", flush=True)
            write_records({**read_records(), again.key: again}.values())
    for record in missed:
        print(f"{record.cell}: seed {record.first_seed} finds nothing now; measure it with --again")
    return not missed


def all_wanted(options: argparse.Namespace) -> Iterator[Wanted]:
    """Return all that the command line asks for, planted bugs first."""
    for wanted in _of_systems(options):
        if not options.campaign or wanted.place.campaign in options.campaign:
            yield wanted


def _of_systems(options: argparse.Namespace) -> Iterator[Wanted]:
    for system in reference_systems():
        if options.system and system.name not in options.system:
            continue
        for planted_bug in bugs(system):
            if not options.bug or planted_bug.name in options.bug:
                for place in bug_places(system.name, planted_bug):
                    yield Wanted(place, options.bugs, planted_bug.caught_by)
        if not options.bug:
            yield from (Wanted(place, options.bugs) for place in anomaly_places(system.name))
            yield from (Wanted(place, options.correct) for place in correct_places(system.name))


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--system", action="append", help="only this system; may be repeated")
    parser.add_argument("--bug", action="append", help="only this planted bug, no correct system; may be repeated")
    parser.add_argument("--campaign", action="append", help="only what this campaign measures; may be repeated")
    parser.add_argument("--correct", type=int, default=5_000, help="seeds of each cell of the correct systems")
    parser.add_argument("--bugs", type=int, default=500, help="seeds of each cell of each planted bug")
    parser.add_argument("--again", action="store_true", help="measure also what is recorded")
    parser.add_argument("--rare", action="store_true", help="measure the best cells of planted bugs that lack figures")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--retell", action="store_true", help="measure nothing, name the recorded findings anew")
    parser.add_argument("--cells", type=int, help="stop after so many cells; the next call goes on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Measure, record, write the page; return 1 when a measured bug is not found or a correct system violates."""
    options = parsed(arguments)
    if options.retell and not _retell_all(options):
        return 1
    interrupted = not (options.page or options.retell) and not _record_all(options)
    known = {place.key for system in reference_systems() for place in _places(system)}
    write_records(record for key, record in read_records().items() if key in known)
    PAGE.write_text(page(read_records()), "utf-8")
    return 130 if interrupted else _told(options)


def _record_all(options: argparse.Namespace) -> bool:
    """Measure and record one cell after the other; False when the user stopped it."""
    records = read_records()
    asked = rare(options, records) if options.rare else all_wanted(options)
    due = islice((one for one in asked if options.again or options.rare or _is_due(one, records)), options.cells)
    executor = ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn"), initializer=leave_interrupts_alone)
    try:
        for wanted in due:
            record = measured(wanted, executor)
            # Read again, so that records of another process since then are kept.
            write_records({**read_records(), record.key: record}.values())
            print(f"{record.cell}: {record.found} of {record.runs} ({record.campaign}) {record.finding}", flush=True)
    except KeyboardInterrupt:
        print("Stopped; what was measured is recorded, and the next call goes on.")
        return False
    finally:
        executor.shutdown(cancel_futures=True)
    return True


def rare(options: argparse.Namespace, records: dict[tuple[str, str, str, str], Record]) -> Iterator[Wanted]:
    """Yield the best cell of each planted bug that lacks counts of clients' findings, or runs at a low rate."""
    best = {record.key for record in _best(records)}
    for wanted in all_wanted(options):
        record = records.get(wanted.place.key)
        if record is None or record.key not in best:
            continue
        is_short = record.rate < RARE and record.runs < options.bugs
        if is_short or record.by_clients is msgspec.UNSET:
            yield wanted._replace(runs=options.bugs if is_short else record.runs)


def leave_interrupts_alone() -> None:
    """Ignore Ctrl-C in a worker: it is for the process that hands out the work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _places(system: NodeSystem) -> Iterator[Place]:
    yield from (*correct_places(system.name), *anomaly_places(system.name))
    for planted_bug in bugs(system):
        yield from bug_places(system.name, planted_bug)


def _is_due(wanted: Wanted, records: dict[tuple[str, str, str, str], Record]) -> bool:
    if wanted.runs < 1:
        return False
    record = records.get(wanted.place.key)
    return record is None or record.runs < wanted.runs or record.run != wanted.place.run


def _told(options: argparse.Namespace) -> int:
    """Print missing records and broken promises; with `--bug`, whether these bugs are found, and nothing of others."""
    records = read_records()
    missed = [record for record in _best(records) if not record.found]
    if options.bug:
        missed = [record for record in missed if record.bug in options.bug]
        for record in missed:
            print(f"{record.cell}: {record.bug} was not found in {record.runs} runs")
        print(f"{len(records)} cells recorded in {DATA.name}; page: {PAGE.name}; now run `make docs`")
        return 1 if missed else 0
    passing = [record for record in records.values() if record.expected == "pass"]
    for line in (*unrecorded(records), *campaigns_without_cells()):
        print(line)
    for record in passing:
        if record.found:
            print(f"{record.cell}: the correct system was accused in {record.found} of {record.runs} runs")
        if record.undecided:
            print(f"{record.cell}: {record.undecided} of {record.runs} runs were not decided")
    for mark in (unreached := marks_missing(records.values())):
        print(f"{mark} was demanded and never reached")
    print(f"{len(records)} cells recorded in {DATA.name}; page: {PAGE.name}")
    faulted = any(record.found or record.undecided for record in passing)
    return 1 if faulted or missed or unreached else 0


def _best(records: dict[tuple[str, str, str, str], Record]) -> list[Record]:
    """Return, for each planted bug, the cell in which it was found most often."""
    best: dict[tuple[str, str], Record] = {}
    for record in records.values():
        if record.bug:
            best[record.system, record.bug] = max(
                record, best.get((record.system, record.bug), record), key=lambda one: one.rate
            )
    return list(best.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
