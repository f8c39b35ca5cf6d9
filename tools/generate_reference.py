"""Make the reference pages from the listings of the command line itself.

    python tools/generate_reference.py            write docs/reference/generated, the pattern table of the README and
                                                  the package's copy of the measurements of planted bugs
    python tools/generate_reference.py --check    write nothing; end with 1 when something is out of date

`faultline list WHAT --json` is the only source of the listings, so a page says only what the command says.
The page of requirement rows comes from the marks in the code (tools/row_evidence.py), those on planted bugs and on real
stores from what `make campaign` and `make evidence` recorded, what passes are worth from what
`python tools/workload_sensitivity.py` recorded, and the power of campaigns from what `faultline power` printed.
"""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import bug_evidence_page
import pattern_pages
import power_page
import real_evidence
import row_evidence
import rows_page
import story_page
import workload_sensitivity
from bug_evidence import DETECTION, detection_lines, read_records
from witness_records import read_witnesses

from faultline.checkers import anomalies
from faultline.cli.pattern_listing import figures_line
from faultline.harness.world.hosts.evidence.cases import case_names, load_case
from faultline.systems_under_test.patterns.requirement_rows import load_requirements

__all__ = [
    "LISTINGS",
    "PUBLIC_PACKAGES",
    "figures",
    "main",
    "outdated",
    "pages",
    "pattern_table",
    "python_api_page",
    "reference_page",
    "with_pattern_table",
    "with_sensitivity",
]

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
GENERATED = ROOT / "docs" / "reference" / "generated"

PUBLIC_PACKAGES = (
    "faultline",
    "faultline.testing",
    "faultline.testing.strategies",
    "faultline.checkers",
    "faultline.checkers.porcupine",
    "faultline.workloads",
)

LISTINGS = {
    "systems": "The systems under test that come with Faultline, and their options (`--option NAME=VALUE`).",
    "workloads": (
        "What clients do, what that promises, and who judges it (`--workload`). The tables say how many synthetic\n"
        "anomalies passes of 20 seeds would have shown ([what a pass is worth](../sensitivity.md)), measured by\n"
        "`python tools/workload_sensitivity.py`; below 80 % with the reason."
    ),
    "faults": "Fault sets are what `--faults` takes; each plans faults of one or more kinds over a run, then heals.",
    "checkers": "What judges a run.",
    "planted-bugs": "Planted bugs (`--planted-bug`): off unless named, and each caught by a campaign.",
    "plans": "The campaigns that come with Faultline (`faultline campaign --plan NAME`): what they run, and why.",
    "patterns": (
        "The thirty patterns of the book, and where each is implemented. Each has a page of its own, such as\n"
        "[that of leases](patterns/lease.md), from the problem to a counterexample and back."
    ),
}
"""The listings, each with the sentence that opens its page."""

PAGES = {"planted-bugs": "planted-bug-list"}
"""The names of pages that differ from those of their listings."""

HIDDEN = ("name", "summary", "provider")
TABLE_START, TABLE_END = "<!-- patterns: made by `make docs` -->", "<!-- end of patterns -->"

Entry = Mapping[str, Any]


def listing(what: str) -> list[Entry]:
    """Return what `faultline list WHAT --json` prints."""
    command = [sys.executable, "-m", "faultline", "list", what, "--json"]
    entries: list[Entry] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return entries


def reference_page(what: str, opening: str, entries: Sequence[Entry]) -> str:
    """Return the Markdown page for one listing."""
    title = what.replace("-", " ").capitalize()
    head = f"# {title}\n\n{opening}\nMade by `make docs` from `faultline list {what} --json`; do not edit.\n"
    return "\n".join([head, *(_section(entry) for entry in entries)])


def _section(entry: Entry) -> str:
    lines = [f"## {entry['name']}", "", str(entry["summary"]), ""]
    for key, value in entry.items():
        if key not in HIDDEN and value not in ("", [], {}, None):
            lines += _field(key.replace("_", " "), value)
    return "\n".join(lines).rstrip() + "\n"


def _field(label: str, value: object) -> list[str]:
    """Return one field: a mapping of records as a table, a list as names in one line, other values as text."""
    if isinstance(value, Mapping) and all(isinstance(record, Mapping) for record in value.values()):
        return ["", *_table(label, value), ""]
    if isinstance(value, Mapping):
        return [f"- **{label}**: {', '.join(f'`{name}={item}`' for name, item in value.items())}"]
    if isinstance(value, list):
        return [f"- **{label}**: {', '.join(f'`{item}`' for item in value)}"]
    return [f"- **{label}**: {value}"]


def _table(label: str, records: Mapping[str, Mapping[str, object]]) -> list[str]:
    columns = list(dict.fromkeys(column for record in records.values() for column in record))
    header = f"| {label} | {' | '.join(columns)} |"
    rule = "|---" * (len(columns) + 1) + "|"
    rows = [
        f"| `{name}` | {' | '.join(_cell(record.get(column)) for column in columns)} |"
        for name, record in records.items()
    ]
    return [header, rule, *rows]


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(f"`{item}`" for item in value)
    return str(value if value is not None else "").replace("|", "\\|")


def anomalies_page(entries: Sequence[Entry]) -> str:
    """Return the page of the names of anomalies: the rules from the module that has them, and a table for each kind."""
    made = (
        "Made by `make docs` from `faultline/checkers/anomalies.py` and `faultline list anomalies --json`; do not edit."
    )
    lines = ["# Anomalies", "", made, "", (anomalies.__doc__ or "").strip()]
    for about in dict.fromkeys(entry["about"] for entry in entries):
        lines += ["", f"## {about}", "", "| name | what was seen |", "|---|---|"]
        lines += [f"| `{one['name']}` | {_cell(one['summary'])} |" for one in entries if one["about"] == about]
    return "\n".join(lines) + "\n"


def pattern_table(patterns: Sequence[Entry]) -> str:
    """Return the README's table of the thirty patterns, a row each, under the parts of the book."""
    rows = ["| pattern, and what it promises | variants | planted bugs found |", "|---|---|---|"]
    part = ""
    for entry in patterns:
        if entry["part"] != part:
            part = str(entry["part"])
            rows.append(f"| **{part}** | | |")
        rows.append(_pattern_row(entry))
    return "\n".join(rows)


def _pattern_row(entry: Mapping[str, Any]) -> str:
    name = f"[{entry['name']}]({_module_path(entry['module'])})" if entry["module"] else entry["name"]
    promise = entry["promise"].partition(": ")[2] or entry["status"]
    variants = "; ".join(_variants(entry["variants"])) or "–"
    return f"| {name}, ch. {entry['chapter']}: {promise} | {variants} | {figures_line(entry['detection'])} |"


def _variants(options: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return each option once, with the values that it has in any system; without values, if it is a number or text."""
    values: dict[str, dict[str, None]] = {}
    for place, option in options.items():
        choices = option["values"] if option["values"][0].islower() else ()
        values.setdefault(place.split(" ")[1], {}).update(dict.fromkeys(choices))
    return [f"{name}: {', '.join(choices)}" if choices else name for name, choices in values.items()]


def _module_path(module: str) -> str:
    return f"faultline/systems_under_test/{module.replace('.', '/')}.py"


def with_pattern_table(readme: str, table: str) -> str:
    """Return `readme` with `table` between its two marks."""
    before, _, rest = readme.partition(TABLE_START)
    _, mark, after = rest.partition(TABLE_END)
    if not mark:
        raise ValueError(f"README.md lacks the marks {TABLE_START} and {TABLE_END}")
    return f"{before}{TABLE_START}\n{table}\n{TABLE_END}{after}"


def figures() -> dict[Path, str]:
    """Return the measurements as the package has them; the listings, and so the pages, are made from that file."""
    return {DETECTION: detection_lines(read_records())}


def pages() -> dict[Path, str]:
    """Return every page that is made, with the content it should have."""
    listings = {what: listing(what) for what in LISTINGS}
    listings["workloads"] = [with_sensitivity(entry) for entry in listings["workloads"]]
    made = {
        GENERATED / f"{PAGES.get(what, what)}.md": reference_page(what, LISTINGS[what], listings[what])
        for what in LISTINGS
    }
    made[GENERATED / "anomalies.md"] = anomalies_page(listing("anomalies"))
    made[GENERATED / "python-api.md"] = python_api_page()
    made[GENERATED / "rows.md"] = rows_page.rows_page(load_requirements(), row_evidence.evidence(), read_witnesses())
    made[power_page.PAGE] = power_page.page(power_page.read_records(), power_page.read_further())
    made[story_page.PAGE] = story_page.page(story_page.load_chapters(), read_records())
    made |= pattern_pages.pages(read_records(), pattern_pages.read_diagrams())
    made[bug_evidence_page.PAGE] = bug_evidence_page.page(read_records())
    cases = [load_case(name) for name in case_names()]
    made[real_evidence.PAGE] = real_evidence.page(cases, real_evidence.read_records())
    made[README] = with_pattern_table(README.read_text(encoding="utf-8"), pattern_table(listings["patterns"]))
    return made


def python_api_page() -> str:
    """Return the page of the names that are stable: what each package exports, and the first sentence of its
    docstring."""
    lines = [
        "# Python API",
        "",
        "<!-- Made by tools/generate_reference.py; do not edit. -->",
        "",
        "These names are stable: a version that changes one of them says so in the changelog. All other modules are",
        "private by convention, and may change with any version. Each name is imported when it is first asked for, so",
        "`import faultline` costs next to nothing.",
    ]
    for package in PUBLIC_PACKAGES:
        module = importlib.import_module(package)
        lines += ["", f"## {package}", "", "| name | |", "|---|---|"]
        lines += [f"| `{name}` | {_first_sentence(getattr(module, name))} |" for name in module.__all__]
    return "\n".join(lines) + "\n"


def _first_sentence(value: object) -> str:
    """Return the first paragraph of the docstring of a class or function, or what a constant is."""
    documented = inspect.isclass(value) or inspect.isfunction(value)
    text = inspect.getdoc(value) if documented else None
    shown = " ".join(text.partition("\n\n")[0].split()) if text else _of_constant(value)
    return shown.replace("|", "\\|")


def _of_constant(value: object) -> str:
    return f"`{value!r}`" if isinstance(value, str) else f"a {type(value).__name__}"


def with_sensitivity(entry: Entry) -> Entry:
    """Return a workload's entry with the figures of `tools/workload_sensitivity.py`."""
    return {**entry, "a pass would have shown": workload_sensitivity.rows(str(entry["name"]))}


def outdated(made: Mapping[Path, str]) -> list[Path]:
    """Return the files whose content is out of date."""
    return [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main(arguments: Sequence[str]) -> int:
    """Write what is out of date, or with `--check` only say so."""
    writes = "--check" not in arguments
    stale = [path for make in (figures, pages) for path in _brought_up_to_date(make(), writes)]
    for path in stale:
        print(f"{'written' if writes else 'out of date'}: {path.relative_to(ROOT)}")
    return 1 if stale and not writes else 0


def _brought_up_to_date(made: Mapping[Path, str], writes: bool) -> list[Path]:
    """Return the files that were out of date; write them, if `writes`."""
    stale = outdated(made)
    for path in stale if writes else ():
        path.parent.mkdir(exist_ok=True)
        path.write_text(made[path], encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
