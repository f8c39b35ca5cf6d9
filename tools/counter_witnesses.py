"""Find, for each piece of evidence of a requirement row, a small change of the code under which it fails.

    python tools/counter_witnesses.py                       what has none yet, for all rows
    python tools/counter_witnesses.py --row WAL-R3 --again  the evidence of some rows, anew
    python tools/counter_witnesses.py --check 24 --seed 7   a sample of those recorded: does the evidence still fail?
    python tools/counter_witnesses.py --check all

Evidence that cannot fail shows nothing. The changes are the mutants of `faultline power`. A fork that gives no answer
within its processor time has failed, as a test that waits for ever has.

Records are in docs/reference/counter-witnesses.jsonl. A record whose mutant is gone, since its code changed, is due
again. Tests of real processes and of Spark are left out.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from random import Random

from collected_tests import with_collected
from invariant_witnesses import invariant_witness, problem_of_invariant
from row_evidence import evidence
from witness_records import CounterWitness, is_of_invariant, read_witnesses, wanted, write_witnesses
from witness_search import Search, test_of

from faultline.systems_under_test.patterns.requirement_rows import load_requirements

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Search or check, as the arguments say; return 1 when a checked record no longer kills its evidence."""
    options = _parsed(arguments)
    rows = wanted(load_requirements(), evidence())
    records = {key: record for key, record in read_witnesses().items() if key in rows}
    if options.check:
        kept = [record for record in records.values() if record.is_killed]
        number = len(kept) if options.check == "all" else min(int(options.check), len(kept))
        return _check(Random(options.seed).sample(kept, number), rows, options.processes)
    due = {
        key: ids
        for key, ids in rows.items()
        if (not options.row or ids & set(options.row))
        and (options.again or key not in records or (options.unkilled and not records[key].is_killed))
    }
    for key, ids in due.items():
        if is_of_invariant(key[0]):
            records[key] = invariant_witness(*key, min(ids))
    tests = [key for key in due if not is_of_invariant(key[0])]
    if tests:
        _collect(tests, options.processes, lambda search: _search(search, records))
    write_witnesses(records.values())
    killed = sum(record.is_killed for record in records.values())
    print(f"{killed} of {len(rows)} pieces of evidence fail under a recorded change; {len(due)} were searched.")
    return 0


def _collect(keys: Sequence[tuple[str, str]], processes: int, action: Callable[[Search], None]) -> None:
    """Collect the tests of the evidence and call `action` with a search over it."""
    files = sorted({test_of(where).partition("::")[0] for where, _pattern in keys})
    with_collected(files, lambda items: action(Search(items, keys, processes)))


def _search(search: Search, records: dict[tuple[str, str], CounterWitness]) -> None:
    """Search, and record now and then, so that the tool can be stopped anywhere."""
    for number, of in search.mark_all():
        _tell("marked", number, of)
    for number, record in enumerate(search.witnesses(), 1):
        records[record.key] = record
        if _tell("searched", number, len(search.due)):
            write_witnesses(records.values())


def _check(sample: Sequence[CounterWitness], rows: Mapping[tuple[str, str], set[str]], processes: int) -> int:
    """Run each record's evidence with and without its change; return 1 when one does not come out as recorded."""
    problems = [
        (record, problem_of_invariant(record, min(rows[record.key])))
        for record in sample
        if is_of_invariant(record.where)
    ]
    tests = [record for record in sample if not is_of_invariant(record.where)]
    if tests:
        _collect([record.key for record in tests], processes, lambda search: problems.extend(search.checked(tests)))
    wrong = [
        f"{record.where} ({record.pattern}): {problem}. The change: {record.run or f'{record.mutant}: {record.diff}'}"
        for record, problem in problems
        if problem
    ]
    print(*wrong, f"{len(problems)} counter-witnesses checked, {len(wrong)} of them wrong.", sep="\n")
    return 1 if wrong else 0


def _tell(what: str, number: int, of: int) -> bool:
    """Print the progress and return True at every fiftieth, and at the last."""
    due = number % 50 == 0 or number == of
    if due:
        print(f"{what} {number} of {of}", flush=True)
    return due


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="counter_witnesses.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--row", action="append", help="only the evidence of this row; may be given again")
    parser.add_argument("--again", action="store_true", help="also what is recorded already")
    parser.add_argument("--unkilled", action="store_true", help="also what nothing killed when it was recorded")
    parser.add_argument("--check", metavar="N", help="check a sample of N records, or `all`, and record nothing")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the sample")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
