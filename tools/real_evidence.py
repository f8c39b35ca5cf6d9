"""Record the behaviour of real stores under faults, with seeds, and make its page of the records.

    python tools/real_evidence.py NAME ...    run every seed of these claims (`faultline evidence` lists them), record
    python tools/real_evidence.py --all       all of them; --missing: those without a record of their present text
    python tools/real_evidence.py --page      run nothing, write the page

A claim is a file in faultline/harness/world/hosts/evidence. Its record is one line of
docs/reference/real-evidence.jsonl, with the digest of the claim it was made for: a claim that was changed since has no
record. Unlike `faultline evidence NAME`,
which stops at the first seed that shows an expected violation, this runs them all, to count those that do.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from faultline.cli.reproduce import Outcome, outcome_of, runs_of
from faultline.harness.system import HostedStore
from faultline.harness.world.hosts.evidence.cases import Case, case_names, load_case
from faultline.registry import load_system

__all__ = ["DATA", "PAGE", "Record", "main", "page", "read_records", "unrecorded"]

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "reference" / "real-evidence.jsonl"
PAGE = ROOT / "docs" / "reference" / "generated" / "real-evidence.md"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one claim: their results, the version of the store, the kind of machine, and the date."""

    name: str
    digest: str
    outcome: Outcome
    store: str
    kernel: str
    load: float
    day: str


def digest_of(case: Case) -> str:
    """Return the digest that tells a claim from its earlier texts."""
    runs = msgspec.structs.replace(case, claim="", twin="")
    return hashlib.sha256(msgspec.json.encode(runs)).hexdigest()[:16]


def read_records(data: Path = DATA) -> dict[str, Record]:
    """Return the records by the name of their claim."""
    lines = data.read_bytes().splitlines() if data.exists() else []
    records = [msgspec.json.decode(line, type=Record) for line in lines if line.strip()]
    return {record.name: record for record in records}


def write_record(record: Record) -> None:
    """Put `record` in the place of an earlier one; sorted, so that two people's records merge line by line."""
    records = {**read_records(), record.name: record}
    lines = [msgspec.json.encode(records[name]) for name in sorted(records)]
    DATA.write_bytes(b"".join(line + b"\n" for line in lines))


def unrecorded(cases: Iterable[Case], records: dict[str, Record]) -> list[str]:
    """Return the claims without a record of their present text."""
    return [case.name for case in cases if case.name not in records or records[case.name].digest != digest_of(case)]


def measured(case: Case) -> Record:
    """Run all seeds of `case`; folders of the runs are not kept."""
    load = os.getloadavg()[1]
    with tempfile.TemporaryDirectory(prefix="faultline-evidence-") as scratch:
        outcome = outcome_of(case, list(runs_of(case, Path(scratch), every_seed=True)))
    return Record(
        name=case.name,
        digest=digest_of(case),
        outcome=msgspec.structs.replace(outcome, folders=()),
        store=_version(case),
        kernel=f"{platform.system()} {platform.release().split('-')[0]}",
        load=round(load, 1),
        day=datetime.now(UTC).date().isoformat(),
    )


def _version(case: Case) -> str:
    """Return the store and the version of its Debian package, where it is one; Faultline's own systems have none."""
    system = load_system(case.system)
    dpkg = shutil.which("dpkg-query")
    if not isinstance(system, HostedStore) or dpkg is None:
        return case.system
    if case.options.get("jars") == "pyspark":
        return f"{case.system} of PySpark {version('pyspark')}"
    packages = dict.fromkeys(system.programs.values())
    asked = [
        subprocess.run([dpkg, "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
        for package in packages
    ]
    return f"{case.system} {', '.join(dict.fromkeys(answer.stdout.strip() for answer in asked))}".strip()


_OPENING = """\
# Real stores: known bad, known good

Made by `tools/real_evidence.py` from the records in `docs/reference/real-evidence.jsonl`; do not edit. Each claim is a
few runs on hosts of namespaces, one process of the store on each, reproduced by the command beside it. A known-bad
configuration breaks a promise, mostly as the store's own documentation says; its known-good twin differs in that one
thing and must be clean. *Shown by*: of all seeds, those with the violation that the claim means; a real run is one
draw, so one of them suffices, and the command stops there. A finding is called what it was called on the day of its
record; what was recorded before losses were told from stale reads may be a `stale-read` here.
[How to add one](../../how-to/reproduce-recorded-findings.md#add-a-claim).
"""


def page(cases: Sequence[Case], records: dict[str, Record]) -> str:
    """Return the whole page: a table, then each claim with the sentence of its telling run."""
    known = {case.name: records[case.name] for case in cases if case.name not in unrecorded(cases, records)}
    lines = [
        "| claim | expected | shown by | clean | operations | store | command |",
        "|---|---|---|---|--:|---|---|",
        *(_row(case, known.get(case.name)) for case in cases),
        "",
    ]
    return "\n".join([_OPENING, *lines, *(_story(case, known.get(case.name)) for case in cases)])


def _row(case: Case, record: Record | None) -> str:
    if record is None:
        return f"| [{case.name}](#{case.name}) | {case.expected} | not recorded yet | | | | `{case.command}` |"
    outcome = record.outcome
    share = f"{len(outcome.shown)} of {len(outcome.tried)}"
    return (
        f"| [{case.name}](#{case.name}) | {case.expected} | {share} | {len(outcome.passed)} of {len(outcome.tried)} "
        f"| {outcome.operations:,} | {record.store} | `{case.command}` |"
    )


def _story(case: Case, record: Record | None) -> str:
    settings = {**case.options, **case.host_options}
    lines = [
        f"## {case.name}",
        "",
        case.claim + (f" Its twin is [{case.twin}](#{case.twin})." if case.twin else ""),
        "",
        f"- **run**: `{case.system}`, workload `{case.workload}`, faults `{','.join(case.faults) or 'none'}`, "
        f"{case.hosts} hosts, {case.duration_s:g} s"
        + "".join(f", `{name}={value}`" for name, value in settings.items()),
    ]
    if record is not None:
        lines += _found(record)
    return "\n".join([*lines, ""])


def _found(record: Record) -> list[str]:
    outcome = record.outcome
    lines = [
        f"- **seeds**: {_seeds(outcome.tried)}; shown by {_seeds(outcome.shown)}; clean: {_seeds(outcome.passed)}",
        f"- **with**: {record.store}, {record.kernel}, load {record.load:g}, {record.day}",
    ]
    if outcome.sentence:
        lines.append(f"- **found**: `{outcome.finding}`: {outcome.sentence}")
    return lines


def _seeds(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds)) or "none"


def main(arguments: Sequence[str]) -> int:
    """Run, record and write the page; return 1 when a claim is not confirmed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="every claim")
    parser.add_argument("--missing", action="store_true", help="every claim without a record")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    options = parser.parse_args(arguments)
    cases = [load_case(name) for name in case_names()]
    names = case_names() if options.all else (*options.names, *(unrecorded(cases, read_records()) * options.missing))
    failed = [] if options.page else [name for name in names if not _recorded(load_case(name))]
    PAGE.write_text(page(cases, read_records()), "utf-8")
    for name in unrecorded(cases, read_records()):
        print(f"{name} has no record; run: python tools/real_evidence.py {name}")
    return 1 if failed else 0


def _recorded(case: Case) -> bool:
    """Measure and record `case`, if it is confirmed; otherwise print the result and record none."""
    record = measured(case)
    outcome = record.outcome
    print(f"{case.name}: shown by {_seeds(outcome.shown)} of {_seeds(outcome.tried)}; clean: {_seeds(outcome.passed)}")
    if outcome.borne_out:
        write_record(record)
    else:
        print(f"  NOT as expected: {outcome.sentence}")
    return outcome.borne_out


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
