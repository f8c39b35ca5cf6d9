"""The page docs/reference/generated/power.md, made from the recorded measurements of `faultline power` alone.

    faultline power --system SYSTEM --json >> docs/reference/power.jsonl

records one more; an older line of the same system goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from faultline.power.result import COUNTED, Ending, Measured, Power, Share, share_of
from faultline.power.sentences import markdown_of

__all__ = ["PAGE", "RECORDS", "all_mutants", "page", "read_records"]

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
    return "\n".join([_OPENING, *_summary(records), *map(_section, records)])


def all_mutants(records: list[Power]) -> list[Measured]:
    """Return the mutants of all systems."""
    return [one for power in records for one in power.mutants]


def _summary(records: list[Power]) -> Iterator[str]:
    """Yield the lines of the table of all systems."""
    yield "| system | drawn | count | by clients | by any means | no pass | green | not reached | processor minutes |"
    yield "|---|--:|--:|---|---|--:|--:|--:|--:|"
    for power in records:
        reached = f"{len(power.not_reached)} of {power.mutants_in_all}"
        yield _summary_row(f"`{power.system}`", list(power.mutants), reached, power.processor_s)
    yield _summary_row("all", all_mutants(records), "", sum(power.processor_s for power in records))
    yield ""


def _summary_row(system: str, mutants: list[Measured], not_reached: str, processor_s: float) -> str:
    count = sum(one.ending in COUNTED for one in mutants)
    shares = [_told(share_of(mutants, by_client=by_client)) for by_client in (True, False)]
    never_accused = [sum(one.ending is ending for one in mutants) for ending in (Ending.INCONCLUSIVE, Ending.SURVIVED)]
    cells = (system, len(mutants), count, *shares, *never_accused, not_reached, f"{processor_s / 60:.1f}")
    return f"| {' | '.join(map(str, cells))} |"


def _told(share: Share) -> str:
    interval = f"{100 * share.low:.0f}–{100 * share.high:.0f} %"
    return f"{share.found} of {share.of}: {100 * share.share:.0f} % ({interval})"


def _section(power: Power) -> str:
    lines = markdown_of(power).replace(_FENCE, f"{_RUN_ELSEWHERE}\n{_FENCE}").splitlines()
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in lines) + "\n"
