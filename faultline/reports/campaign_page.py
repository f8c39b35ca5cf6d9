"""The report on a campaign: `index.html`, made from the `campaign.json` beside it.

The sentence comes first, then the sum that shows that no run was lost, the matrix, the distinct violations with the
line that repeats each, and the situations that the campaign reached and did not reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from faultline.harness.untrusted import read_json
from faultline.reports.campaign_summary import (
    Campaign,
    Cell,
    campaign_sentence,
    read_summary,
    reconciliation,
)
from faultline.reports.page import render, write_page
from faultline.reports.svg import number, tag
from faultline.reports.terminal import campaign_lines

__all__ = ["Block", "blocks", "campaign_values", "rate_bar", "write_campaign_report"]

_MOST_SIGNATURES = 200
_MOST_LATENCY_ROWS = 400
_BAR_WIDTH = 96.0


@dataclass(frozen=True, slots=True)
class Block:
    """The part of the matrix that belongs to one system: its columns, and per workload one cell or None for each."""

    system: str
    fault_sets: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]


def write_campaign_report(folder: Path) -> Path:
    """Write `folder/index.html` from `folder/campaign.json` and return its path.

    Raise UsageError when there is no campaign in the folder, or its summary cannot be read.
    """
    source = folder / "campaign.json"
    summary = read_json(source, dict[str, Any], next_step="Name the folder of a finished campaign, or run it again.")
    return write_page(folder / "index.html", render("campaign.html", campaign_values(summary, folder)))


def campaign_values(summary: dict[str, Any], folder: Path | None = None) -> dict[str, Any]:
    """Return the values for the template of the campaign page. Links to run reports are kept when the file exists."""
    campaign = read_summary(summary)
    shown = campaign.signatures[:_MOST_SIGNATURES]
    return {
        "title": campaign_sentence(campaign),
        "verdict": campaign.shown_status,
        "campaign": campaign,
        "reconciliation": reconciliation(campaign),
        "blocks": blocks(campaign.cells),
        "rate_bar": rate_bar,
        "signatures": [(entry, _link(entry.report, folder), _link(entry.minimal_report, folder)) for entry in shown],
        "first_violation": {entry.cell: place for place, entry in reversed(list(enumerate(shown, start=1)))},
        "signatures_left_out": max(0, len(campaign.signatures) - _MOST_SIGNATURES),
        "latency": campaign.latency[:_MOST_LATENCY_ROWS],
        "latency_left_out": max(0, len(campaign.latency) - _MOST_LATENCY_ROWS),
        "latency_finding": _latency_finding(campaign),
        "unmet": [cell for cell in campaign.cells if cell.unmet],
        "ticket": "\n".join(campaign_lines(summary)),
    }


def blocks(cells: Sequence[Cell]) -> list[Block]:
    """Return the matrix, one block per system with its planted bugs and options, in the order of the campaign."""
    systems = list(dict.fromkeys(cell.system_name for cell in cells))
    return [_block(name, [cell for cell in cells if cell.system_name == name]) for name in systems]


def _block(name: str, cells: list[Cell]) -> Block:
    fault_sets = tuple(dict.fromkeys(cell.fault_set_name for cell in cells))
    workloads = tuple(dict.fromkeys(cell.workload for cell in cells))
    at = {(cell.workload, cell.fault_set_name): cell for cell in cells}
    return Block(
        name, fault_sets, tuple((row, tuple(at.get((row, column)) for column in fault_sets)) for row in workloads)
    )


def rate_bar(cell: Cell) -> Markup:
    """Return the violation rate of a cell as a bar, with its 95 % Wilson interval as a whisker."""
    at = [share * _BAR_WIDTH for share in (cell.rate, cell.low, cell.high)]
    return tag(
        "svg",
        tag("title", f"violations in {cell.rate:.0%} of the runs, 95 % interval {cell.interval}"),
        tag("rect", x=0.5, y=2.5, width=_BAR_WIDTH - 1, height=7, class_="bar-frame"),
        tag("rect", x=0, y=2, width=at[0], height=8, class_="bar-rate"),
        tag("path", d=f"M{number(at[1])},6H{number(at[2])}M{number(at[1])},2v8M{number(at[2])},2v8", class_="whisker"),
        viewBox=f"-1 0 {number(_BAR_WIDTH + 2)} 12",
        width=_BAR_WIDTH + 2,
        height=12,
        role="img",
        class_="rate",
    )


def _link(report: str, folder: Path | None) -> str:
    """Return the relative address of a run's report, or nothing when it is not a file inside the campaign's folder."""
    path = Path(report)
    if not report or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        return ""
    return path.as_posix() if folder is None or (folder / path).is_file() else ""


def _latency_finding(campaign: Campaign) -> str:
    """Return a sentence about the cell in which faults slowed the slowest successful operations most."""
    outside = {(row.cell, row.f): row for row in campaign.latency if row.window == "outside" and row.outcome == "ok"}
    ratios = []
    for row in campaign.latency:
        calm = outside.get((row.cell, row.f))
        if row.window == "inside" and row.outcome == "ok" and calm and calm.p99_us and row.p99_us:
            ratios.append((row.p99_us / calm.p99_us, row.cell, row.f))
    if not ratios:
        return "No function has successful operations both inside and outside faults, so they cannot be compared."
    ratio, cell, f = max(ratios)
    if ratio <= 1:
        return "Faults did not slow the slowest hundredth of successful operations in any cell."
    slowest = f"the slowest hundredth of successful {f} operations"
    return f"Faults hurt most in {cell}: there {slowest} took {ratio:.1f} times as long."
