"""Measures what the shipped campaigns find and what they let pass, and writes it down with seeds.

    python tools/record_evidence.py                      2,000 seeds of the correct system, 500 of each planted bug
    python tools/record_evidence.py --correct 100 --mutant 50 --store /tmp/evidence
    python tools/record_evidence.py --system paxos-kv

Every row is one campaign of the command line, named beside its figures, so that anybody can run it again. The page is
docs/reference/planted-bugs.md, for one system at a time. On two cores the whole takes ten minutes; it is no part of the
tests.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "planted-bugs.md"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """One cell of one campaign: what was run, and what came of it."""

    command: str
    cell: str
    seeds: str
    runs: int
    violations: int
    others: int
    first_seed: str
    rate: str
    sentence: str

    @property
    def runs_until_found_95(self) -> str:
        """How many runs find it with 95 % certainty, at the lower end of what was measured as the plain rate."""
        share = self.violations / self.runs
        if not 0 < share < 1:
            return "1" if share else "–"
        return str(math.ceil(math.log(0.05) / math.log(1 - share)))


def campaign(arguments: list[str], store: Path) -> Json:
    """Run `faultline campaign` and return its summary. Exit codes 0 and 1 are both results."""
    command = [sys.executable, "-m", "faultline.cli", "campaign", *arguments, "--store", str(store), "--json"]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{shlex.join(command)} ended with {ended.returncode}")
    return json.loads(ended.stdout)  # type: ignore[no-any-return]  # the summary is an object


def measured(arguments: list[str], store: Path) -> list[Measured]:
    """The cells of one campaign."""
    summary = campaign(arguments, store)
    seeds = arguments[arguments.index("--seeds") + 1]
    command = shlex.join(["faultline", "campaign", *arguments])
    return [_cell(summary, cell, command, seeds) for cell in summary["cells"]]


def _cell(summary: Json, cell: Json, command: str, seeds: str) -> Measured:
    counts = cell["counts"]
    violations = counts.get("violation", 0)
    signatures = [entry for entry in summary["signatures"] if entry["cell"] == cell["cell"]]
    first = min(signatures, key=lambda entry: entry["first_seed"], default=None)
    interval = f"{100 * cell['wilson_low']:.1f}–{100 * cell['wilson_high']:.1f} %"
    return Measured(
        command=command,
        cell=cell["cell"],
        seeds=seeds,
        runs=cell["runs"],
        violations=violations,
        others=cell["runs"] - violations - counts.get("pass", 0),
        first_seed=str(first["first_seed"]) if first else "–",
        rate=f"{100 * violations / cell['runs']:.1f} % ({interval})",
        sentence=first["sentence"] if first else "",
    )


def page(system: str, correct: list[Measured], planted: list[tuple[Json, Measured]]) -> str:
    """The Markdown page."""
    lines = [
        "# Planted bugs: what finds them, and how soon",
        "",
        f"The system is `{system}`. Written by `python tools/record_evidence.py`; every row names the command that",
        "gave it. Rates are shares of runs with a Wilson 95 % interval; *runs for 95 %* is how many find the bug with",
        "95 % certainty at that rate.",
        "",
        "| bug | pattern, id | campaign | runs | found in | first seed | runs for 95 % |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| `{mutant['name']}` | {mutant['pattern']}, {mutant['id']} | `{mutant['campaign']}` | {row.runs:,} "
        f"| {row.rate} | {row.first_seed} | {row.runs_until_found_95} |"
        for mutant, row in planted
    ]
    lines += ["", "## How each one shows", ""]
    for mutant, row in planted:
        lines += [f"- **{mutant['name']}**: {mutant['summary']}. {row.sentence} `{row.command}`"]
    lines += [
        "",
        "## The correct system under the same campaigns",
        "",
        "| cell | seeds | runs | violations | not decided | command |",
        "|---|---|--:|--:|--:|---|",
    ]
    lines += [
        f"| `{row.cell}` | {row.seeds} | {row.runs:,} | {row.violations} | {row.others} | `{row.command}` |"
        for row in correct
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure and write the page; end with 1 when a bug was not found or the correct system was accused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--system", default="consistent-core", help="whose planted bugs")
    parser.add_argument("--correct", type=int, default=2_000, help="seeds of the correct system in each campaign")
    parser.add_argument("--mutant", type=int, default=500, help="seeds of each planted bug")
    parser.add_argument("--store", type=Path, default=ROOT / "store", help="folder for the campaigns")
    wanted = parser.parse_args()
    listing = [sys.executable, "-m", "faultline.cli", "list", "mutants", "--json"]
    listed = json.loads(subprocess.run(listing, stdout=subprocess.PIPE, text=True, check=True).stdout)
    mutants = [mutant for mutant in listed if mutant["system"] == wanted.system]
    correct = [
        row
        for name in dict.fromkeys(mutant["campaign"] for mutant in mutants)
        for row in measured(["--plan", name, "--seeds", f"0..{wanted.correct - 1}"], wanted.store)
    ]
    planted = [
        (mutant, row)
        for mutant in mutants
        for row in measured(
            ["--plan", mutant["campaign"], "--mutant", mutant["name"], "--seeds", f"0..{wanted.mutant - 1}"],
            wanted.store,
        )
    ]
    PAGE.write_text(page(wanted.system, correct, planted), "utf-8")
    missed = [mutant["name"] for mutant, row in planted if not row.violations]
    accused = [row.cell for row in correct if row.violations or row.others]
    if missed or accused:
        raise SystemExit(f"not found: {missed or 'none'}; accused or undecided: {accused or 'none'}")


if __name__ == "__main__":
    main()
