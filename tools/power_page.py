"""The page docs/reference/generated/power.md, made from the recorded measurements of `faultline power` alone.

    faultline power --system SYSTEM --json >> docs/reference/power.jsonl

records one more; an older line of the same system goes.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from faultline.power.result import Power
from faultline.power.sentences import markdown_of

__all__ = ["PAGE", "RECORDS", "page", "read_records"]

_REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
RECORDS: Path = _REFERENCE / "power.jsonl"
PAGE: Path = _REFERENCE / "generated" / "power.md"

_OPENING = """\
# Measured power

Made by `make docs` from the records in `docs/reference/power.jsonl`, each the output of the command that
stands beside it; do not edit. [How to read it](../power.md).
"""
_FENCE = "```sh"
_RUN_ELSEWHERE = "<!-- run elsewhere: it takes minutes, and its result is the record -->"


def read_records() -> list[Power]:
    """Return the recorded measurements, one for each system."""
    return msgspec.json.Decoder(Power).decode_lines(RECORDS.read_bytes())


def page(records: list[Power]) -> str:
    """Return the whole page, a section for each system."""
    return "\n".join([_OPENING, *map(_section, records)])


def _section(power: Power) -> str:
    lines = markdown_of(power).replace(_FENCE, f"{_RUN_ELSEWHERE}\n{_FENCE}").splitlines()
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in lines) + "\n"
