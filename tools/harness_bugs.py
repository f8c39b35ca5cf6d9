"""Try every planted bug of the harness with every scenario, and write docs/reference/generated/harness-bugs.md.

    python tools/harness_bugs.py            also: make harness-bugs

Ends with 1 when a bug is not caught by its scenario, or a bug listed as a hole is caught.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TRIALS = ROOT / "tests" / "harness_bugs"
PAGE = ROOT / "docs" / "reference" / "generated" / "harness-bugs.md"

Noticed = Mapping[str, Mapping[str, str]]

sys.path.insert(0, str(TRIALS))


def main() -> int:
    """Try all bugs, write the page, and print the differences from the tables."""
    known = importlib.import_module("bug_tables")
    tables: Mapping[str, Any] = known.TABLES
    began_s = time.monotonic()
    noticed = dict(_trials())
    spent_s = time.monotonic() - began_s
    bugs = [bug for table in tables.values() for bug in table]
    wrong = [bug.name for bug in bugs if bug.caught_by and bug.caught_by not in noticed[bug.name]]
    wrong += [bug.name for bug in bugs if bug.hole and noticed[bug.name]]
    PAGE.write_text(_page(tables, noticed, len(known.SCENARIOS)), encoding="utf-8")
    print(f"harness bugs: {len(bugs)} tried with {len(known.SCENARIOS)} scenarios each in {spent_s:.0f} s")
    for name in wrong:
        print(f"harness bugs: {name} is not as its table has it: {noticed[name]}", file=sys.stderr)
    return 1 if wrong else 0


def _trials() -> Iterator[tuple[str, Mapping[str, str]]]:
    command = [sys.executable, str(TRIALS / "bug_trials.py"), "all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as trials:
        assert trials.stdout is not None
        for line in trials.stdout:
            told = json.loads(line)
            yield told["bug"], told["noticed"]
    if trials.returncode:
        raise SystemExit(4)


def _page(tables: Mapping[str, Any], noticed: Noticed, scenarios: int) -> str:
    bugs = [bug for table in tables.values() for bug in table]
    holes = [bug for bug in bugs if bug.hole]
    parts = [_HEAD.format(bugs=len(bugs), caught=len(bugs) - len(holes), holes=len(holes), scenarios=scenarios)]
    parts += [_section(table, own, noticed) for table, own in tables.items()]
    parts.append("## Holes\n\n" + "\n".join(f"- `{bug.name}`: {bug.hole}" for bug in holes) + "\n")
    return "\n".join(parts)


def _section(table: str, bugs: Any, noticed: Noticed) -> str:
    rows = [f"| `{bug.name}` | {bug.room} | {bug.breaks} | {_fate(bug, noticed[bug.name])} |" for bug in bugs]
    head = ["| bug | module | what is wrong then | caught by |", "|---|---|---|---|"]
    return "\n".join([f"## {table.capitalize()}", "", *head, *rows, ""])


def _fate(bug: Any, noticed: Mapping[str, str]) -> str:
    if bug.hole:
        return "hole"
    others = len([name for name in noticed if name != bug.caught_by])
    also = f", and {others} other{'s' if others > 1 else ''}" if others else ""
    return f"{bug.told_as}{also}"


_HEAD = """# Planted bugs of the harness

<!-- made by `make harness-bugs`; do not edit -->

A tool that tests stores by planting bugs in them has to bear the same. These are bugs of Faultline itself, slips as
they happen: an exception that is swallowed, a digest that is not compared, the last verdict in place of the worst. Each
is one edit of one function (`tests/harness_bugs/bugs_of_*.py`), made in a process of its own, in which scenarios are
run whose answer is known (`tests/harness_bugs/scenarios_of_*.py`): runs that violate beside their correct twins,
checkers that fail, torn files, histories of other tools, workers that die. A bug is *caught* when a scenario, or a
named test of the suite, fails with it that passes without.

Of {bugs} bugs {caught} are caught, most of them by one of {scenarios} scenarios, and {holes} are holes, listed at the
end with the reason. `make harness-bugs` tries every bug with every scenario and writes this page; `make test` tries
each bug with what is named here.
"""

if __name__ == "__main__":
    sys.exit(main())
