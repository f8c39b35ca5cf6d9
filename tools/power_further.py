"""Run the mutants that a recorded measurement of power never accused again, on seeds that it did not have.

    python tools/power_further.py --runs 200 --processes 2

A mutant that anything accuses then is a bug that the measured campaigns missed. One that nothing ever accuses is set
aside: it may break no promise. Each system has a line in `docs/reference/power-further.jsonl`, the output of
`faultline power`; systems that have one are passed over, so the command goes on after an interruption.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from power_page import FURTHER, read_further, read_records

from faultline.power.measure import Asked, candidates_of, measure
from faultline.power.result import Ending, Measured, Power

__all__ = ["first_unused_seed", "main", "never_accused"]


def never_accused(power: Power) -> list[Measured]:
    """Return the mutants that count and that no run of `power` accused."""
    return [one for one in power.mutants if one.ending in (Ending.INCONCLUSIVE, Ending.SURVIVED)]


def first_unused_seed(power: Power) -> int:
    """Return the seed after those of `power`: each of its workloads had every seed once."""
    return power.seed + -(-power.runs_max // len(power.workloads))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run them, and append the results to the record."""
    parser = argparse.ArgumentParser(description="Further runs of the mutants that were never accused.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--record", type=Path, default=FURTHER)
    options = parser.parse_args(arguments)
    done = {power.system for power in read_further(options.record)}
    for power in read_records():
        if power.system in done or not never_accused(power):
            continue
        asked = Asked(
            system=power.system,
            seed=first_unused_seed(power),
            runs=options.runs,
            processes=options.processes,
            mutant_ids=tuple(one.mutant.id for one in never_accused(power)),
        )
        further = measure(asked, candidates_of(power.system), lambda _said: None)
        if further.interrupted:
            return 130
        with options.record.open("ab") as file:
            file.write(msgspec.json.encode(further) + b"\n")
        accused = [one for one in further.mutants if one.first is not None]
        print(f"{power.system}: {len(accused)} of {len(further.mutants)} accused in further runs", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
