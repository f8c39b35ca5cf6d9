"""The requirement rows of each pattern, in one sentence each.

A row is a requirement of the source texts on a pattern, and has an id: `LWM-R4` is the fourth requirement of the
low-water mark. R rows are requirements, S rows scenarios, I rows invariants, M rows planted bugs.
`requirements/<pattern>.toml` holds the rows of one pattern:

    prefix = "LWM"

    [rows]
    R1 = "A cleaner started at boot removes old segments in the background."

    [left_out]
    R9 = "why nothing shows it"

`narratives.toml` holds the rows of chapters 1 and 2, and `composed-scenarios.toml` those of several patterns joined in
one system or story.

What shows a row is not written there: tests, invariants and planted bugs carry the ids themselves.
`tools/row_evidence.py` gathers them into docs/reference/generated/rows.md, and a test fails when a row has none.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

import msgspec

from faultline.harness.errors import FaultlineError
from faultline.systems_under_test.patterns.catalogue import PATTERNS

__all__ = [
    "COMPOSED_SCENARIOS",
    "NARRATIVES",
    "RequirementRowsError",
    "Requirements",
    "load_requirements",
    "parse_requirements",
]

COMPOSED_SCENARIOS = "composed-scenarios"
"""The name under which the rows of several patterns at once are found, where others have a pattern's slug."""

NARRATIVES = "narratives"
"""The name under which the rows of chapters 1 and 2 are found."""

_ROW = re.compile(r"[RSIM][1-9][0-9]*[a-z]?")


class RequirementRowsError(FaultlineError):
    """A file of requirement rows cannot be read as one."""


class Requirements(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rows of one pattern: `rows` maps an id to its sentence, `left_out` an id to why nothing shows it."""

    pattern: str
    rows: dict[str, str]
    left_out: dict[str, str] = {}


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prefix: str
    rows: dict[str, str]
    left_out: dict[str, str] = {}


def load_requirements() -> dict[str, Requirements]:
    """Return the rows of every pattern that has a file, by its slug, in the order of the book.

    The narratives come first, composed scenarios last.
    """
    folder = files(__package__) / "requirements"
    found = {}
    for slug in (NARRATIVES, *(pattern.slug for pattern in PATTERNS), COMPOSED_SCENARIOS):
        file = folder / f"{slug}.toml"
        if file.is_file():
            found[slug] = parse_requirements(slug, file.read_text(encoding="utf-8"))
    return found


def parse_requirements(slug: str, text: str) -> Requirements:
    """Return the rows in `text`, the content of `requirements/<slug>.toml`.

    RequirementRowsError when it holds no rows.
    """
    try:
        content = msgspec.convert(tomllib.loads(text), _File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise RequirementRowsError(f"{slug}.toml holds no requirement rows: {error}") from error
    wrong = [row for row in content.rows if not _ROW.fullmatch(row)] + [
        row for row in content.left_out if row not in content.rows
    ]
    if wrong:
        raise RequirementRowsError(f"{slug}.toml: {wrong[0]} is not a row (R, S, I or M and a number, under [rows])")
    return Requirements(
        pattern=slug,
        rows={f"{content.prefix}-{row}": sentence for row, sentence in content.rows.items()},
        left_out={f"{content.prefix}-{row}": reason for row, reason in content.left_out.items()},
    )
