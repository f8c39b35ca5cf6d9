"""The records of counter-witnesses: a small change of the code under which a piece of evidence fails.

A record is about one piece of evidence, a test or a transcript, and one pattern whose rows it shows. A row is *killed*
when one of the pieces that it names has a record with a change; `among` says where that change is: in the module of
the pattern, in one of another pattern, in an assembled system, or elsewhere.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec
from row_evidence import ROOT, Evidence

from faultline.power.modules import group_of
from faultline.power.mutants import SYSTEMS, mutants_of
from faultline.systems_under_test.patterns.requirement_rows import Requirements

__all__ = [
    "RECORDS",
    "WITNESSED",
    "Among",
    "CounterWitness",
    "is_of_invariant",
    "is_present",
    "nearness",
    "read_witnesses",
    "wanted",
    "write_witnesses",
]

RECORDS: Path = ROOT / "docs" / "reference" / "counter-witnesses.jsonl"
WITNESSED = "RSI"
"""The kinds of rows that want a counter-witness; of M rows, the planted bug is one."""


class Among(enum.StrEnum):
    """The place of the change, seen from the pattern of the row; the nearest come first."""

    OWN = "the pattern's module"
    PATTERNS = "another pattern"
    SYSTEMS = "a system"
    ELSEWHERE = "elsewhere"


class CounterWitness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The change under which the evidence `where` of rows of `pattern` fails; without one, `mutant` is empty.

    `mutant` is the id of a mutant in `module`, and `diff` the change in one line. `tried` counts the mutants that were
    tried until one killed. `systems` are the assembled systems whose code the evidence executes: none, for a test of a
    component. `note` says why nothing was tried. For an invariant, `bug` is a planted bug (`system+name`) that it
    accuses in the run `run`, one of the campaign's `cell` with the `seed`.
    """

    where: str
    pattern: str
    among: Among | None = None
    module: str = ""
    mutant: str = ""
    diff: str = ""
    tried: int = 0
    systems: tuple[str, ...] = ()
    note: str = ""
    bug: str = ""
    run: str = ""
    cell: str = ""
    seed: int = -1

    @property
    def is_killed(self) -> bool:
        """The answer to whether the evidence fails under a change."""
        return bool(self.mutant or self.bug)

    @property
    def key(self) -> tuple[str, str]:
        """The key of a record: of evidence and pattern there is one."""
        return self.where, self.pattern


def is_of_invariant(where: str) -> bool:
    """Return whether the evidence is the class of an invariant, and no test and no transcript."""
    return ".py::" in where and not where.rpartition("::")[2].startswith("test")


def nearness(module: str, pattern: str) -> Among:
    """Return where `module` is, seen from the pattern with the slug `pattern`."""
    if group_of(module) == pattern:
        return Among.OWN
    inside = module.removeprefix(f"{SYSTEMS}.")
    if inside.startswith("patterns."):
        return Among.PATTERNS
    return Among.SYSTEMS if inside.startswith("reference.") else Among.ELSEWHERE


def is_present(record: CounterWitness) -> bool:
    """Return whether the code still has the place of the record's mutant; a record without one waits for none."""
    return not record.mutant or record.mutant in _ids(record.module)


@cache
def _ids(module: str) -> frozenset[str]:
    """Return the ids of the changes that a module can have; none when it is gone."""
    inside = module.replace(".", "/")
    files = (ROOT / f"{inside}.py", ROOT / inside / "__init__.py", *ROOT.glob(f"examples/*/{inside}.py"))
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        return frozenset()
    return frozenset(each.id for each in mutants_of(file.read_text("utf-8"), module, thorough=True))


def wanted(
    found: Mapping[str, Requirements], shown: Mapping[str, Iterable[Evidence]]
) -> dict[tuple[str, str], set[str]]:
    """Return the R, S and I rows that each piece of evidence shows, by the evidence and the pattern."""
    rows = dict[tuple[str, str], set[str]]()
    for slug, pattern in found.items():
        for row in pattern.rows:
            for item in shown.get(row, ()):
                if row.partition("-")[2][0] in WITNESSED and item.kind != "planted bug":
                    rows.setdefault((item.where, slug), set()).add(row)
    return rows


def read_witnesses() -> dict[tuple[str, str], CounterWitness]:
    """Return the recorded counter-witnesses by their keys, without those whose mutant the code no longer has."""
    lines = RECORDS.read_bytes() if RECORDS.exists() else b""
    records = msgspec.json.Decoder(CounterWitness).decode_lines(lines)
    return {record.key: record for record in records if is_present(record)}


def write_witnesses(records: Iterable[CounterWitness]) -> None:
    """Write all records, in the order of their evidence."""
    encoder = msgspec.json.Encoder()
    lines = [encoder.encode(record) for record in sorted(records, key=lambda record: record.key)]
    RECORDS.write_bytes(b"".join(line + b"\n" for line in lines))
