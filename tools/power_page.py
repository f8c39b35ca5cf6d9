"""The page docs/reference/generated/power.md, made from the recorded measurements of `faultline power` alone.

    faultline power --system SYSTEM --json >> docs/reference/power.jsonl

records one more; an older line of the same system goes. `tools/power_further.py` records further runs of the mutants
that no run accused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from faultline.power.result import COUNTED, Ending, Measured, Power, Share, share_of
from faultline.power.sentences import markdown_of, mutant_row

__all__ = ["FURTHER", "PAGE", "RECORDS", "accused_later", "all_mutants", "page", "read_further", "read_records"]

_REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
RECORDS: Path = _REFERENCE / "power.jsonl"
FURTHER: Path = _REFERENCE / "power-further.jsonl"
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


def read_further(file: Path = FURTHER) -> list[Power]:
    """Return the recorded further runs of mutants that were never accused, one for each system; none without a file."""
    return msgspec.json.Decoder(Power).decode_lines(file.read_bytes()) if file.exists() else []


def accused_later(records: list[Power], further: list[Power]) -> list[Measured]:
    """Return the further runs of those mutants of `records` that were accused in them alone."""
    quiet = {(power.system, one.mutant.id) for power in records for one in power.mutants if one.first is None}
    return [
        one
        for power in further
        for one in power.mutants
        if one.first is not None and (power.system, one.mutant.id) in quiet
    ]


def page(records: list[Power], further: list[Power]) -> str:
    """Return the whole page, a section for each system."""
    return "\n".join([_OPENING, *_summary(records), *_further(records, further), *map(_section, records)])


def _further(records: list[Power], further: list[Power]) -> Iterator[str]:
    """Yield the section on the mutants that only further runs accused."""
    if not further:
        return
    later = accused_later(records, further)
    tried = sum(len(power.mutants) for power in further)
    yield "## Accused in further runs alone"
    yield ""
    yield f"Of {tried} mutants that no run accused, {len(later)} were accused in {_spans(further)} further runs,"
    yield "with seeds that the first ones did not have (`python tools/power_further.py`)."
    yield ""
    yield "| mutant | change | ending | further runs | s | by |"
    yield "|---|---|---|--:|--:|---|"
    yield from map(mutant_row, later)
    yield ""


def _spans(further: list[Power]) -> str:
    """Return the numbers of runs, in words."""
    return " or ".join(map(str, sorted({power.runs_max for power in further})))


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
