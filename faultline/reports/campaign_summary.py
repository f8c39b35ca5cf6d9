"""The facts about a campaign that a report needs, read from its `campaign.json`.

Reading is lenient: an older or newer campaign file may lack fields, and a report on half of the facts, which names the
missing ones, is better than none. The numbers, though, are checked: the scheduled runs must equal the sum of the runs
by status, and a page whose sums do not agree says so at its top."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

from faultline.reports.legend import STATUSES
from faultline.reports.sentences import verdict_sentence
from faultline.reports.text import count, percent

__all__ = [
    "Campaign",
    "Cell",
    "Covered",
    "Features",
    "Latency",
    "Signature",
    "campaign_sentence",
    "read_summary",
    "reconciliation",
    "wilson_interval",
]

_NORMAL_95 = 1.959963984540054
_SUM_WORDS = (
    ("pass", "passed"),
    ("violation", "violated"),
    ("expected", "expected"),
    ("unknown", "unknown"),
    ("vacuous", "vacuous"),
    ("harness-error", "harness error"),
    ("not-run", "not run"),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the matrix. `counts` has the number of runs by status; an expected violation counts as expected.

    `expected` are the anomalies that the plan allows here.
    """

    name: str
    system: str
    planted_bugs: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    workload: str
    fault_set: tuple[str, ...]
    expected: tuple[str, ...]
    sentence: str
    runs: int
    counts: dict[str, int]
    rate: float
    low: float
    high: float

    @property
    def status(self) -> str:
        """The status of the cell: the first of `STATUSES` that any run has."""
        return next((status.name for status in STATUSES if self.counts.get(status.name)), "not-run")

    @property
    def fraction(self) -> str:
        """The share of the cell's runs that have its status: `14/50`."""
        return f"{self.counts.get(self.status, 0):,}/{self.runs:,}"

    @property
    def unmet(self) -> bool:
        """True when a violation was expected here and none was seen."""
        return bool(self.expected) and not self.counts.get("expected") and self.runs > 0

    @property
    def system_name(self) -> str:
        """The system with its planted bugs and options, as a heading."""
        options = ", ".join(f"{name}={value}" for name, value in self.options)
        return "".join([self.system, *(f"+{name}" for name in self.planted_bugs)]) + (
            f" ({options})" if options else ""
        )

    @property
    def fault_set_name(self) -> str:
        """The fault packages joined by `+`, `calm` when there are none."""
        return "+".join(self.fault_set) or "calm"

    @property
    def interval(self) -> str:
        """The 95 % Wilson interval of the violation rate; without a violation, the same bound as on the terminal."""
        judged = sum(self.counts.get(name, 0) for name in ("pass", "violation", "expected"))
        if self.rate or not judged:
            return f"95 % interval {percent(self.low)} to {percent(self.high)}"
        return f"below {percent(min(1.0, 3 / judged))}, 95 % sure"


@dataclass(frozen=True, slots=True)
class Signature:
    """One distinct violation: all runs whose counterexample has the same shape; `sentence` describes the smallest."""

    signature: str
    checker: str
    anomaly: str
    cell: str
    count: int
    rate: float
    low: float
    high: float
    first_seed: str
    run_id: str
    operations: int
    fault_kinds: tuple[str, ...]
    judged: int
    sentence: str
    replay: str
    report: str
    expected: bool
    minimal: str = ""
    minimal_report: str = ""

    @property
    def interval(self) -> str:
        """The 95 % Wilson interval of its rate."""
        return f"{percent(self.low)} to {percent(self.high)}"


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency quantiles of one cell, function and outcome, inside or outside faults."""

    cell: str
    f: str
    outcome: str
    window: str
    count: int
    p50_us: int | None
    p95_us: int | None
    p99_us: int | None
    max_us: int | None


@dataclass(frozen=True, slots=True)
class Covered:
    """The values that the runs of one system had in drawn universes, of possible ones: options, pairs, weather.

    `never` are the option values that no run had, `struck` the runs in which a fault struck a role.
    """

    system: str
    runs: int
    values: tuple[int, int]
    pairs: tuple[int, int]
    weather: tuple[int, int]
    never: tuple[str, ...]
    struck: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Features:
    """The number of the declared features of one system that runs entered, and the names of the others."""

    system: str
    entered: int
    declared: int
    never: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign for its report. `counts` are the sums over all cells, `scheduled` the number of planned runs."""

    id: str
    name: str
    sentence: str
    verdict: str
    scheduled: int
    counts: dict[str, int]
    cells: tuple[Cell, ...]
    signatures: tuple[Signature, ...]
    marks: tuple[tuple[str, int], ...]
    marks_missing: tuple[str, ...]
    latency: tuple[Latency, ...]
    overlap: tuple[tuple[str, int], ...]
    features: tuple[Features, ...]
    coverage: tuple[Covered, ...]
    warnings: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]

    @property
    def reconciles(self) -> bool:
        """True when the scheduled runs equal the sum of the runs by status."""
        return sum(self.counts.values()) == self.scheduled

    @property
    def shown_status(self) -> str:
        """The status that gives the campaign's sentence its sign: an expected violation is not a red cross."""
        if self.verdict == "violation" and not self.counts.get("violation") and self.counts.get("expected"):
            return "expected"
        return self.verdict


def wilson_interval(hits: int, runs: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of the rate `hits` / `runs`; (0, 1) when there was no run."""
    if runs <= 0:
        return 0.0, 1.0
    z_squared = _NORMAL_95**2
    rate, scale = hits / runs, 1 + z_squared / runs
    middle = (rate + z_squared / (2 * runs)) / scale
    half = _NORMAL_95 * sqrt(rate * (1 - rate) / runs + z_squared / (4 * runs**2)) / scale
    return max(0.0, middle - half), min(1.0, middle + half)


def campaign_sentence(campaign: Campaign) -> str:
    """Return the first line of every report on the campaign."""
    return verdict_sentence(campaign.shown_status, campaign.sentence)


def reconciliation(campaign: Campaign) -> str:
    """Return `43,200 runs scheduled = 43,100 passed + 41 violated + …`, and the error when the sum
    does not agree."""
    terms = " + ".join(f"{campaign.counts.get(name, 0):,} {word}" for name, word in _SUM_WORDS)
    others = [name for name in sorted(campaign.counts) if name not in dict(_SUM_WORDS)]
    terms += "".join(f" + {campaign.counts[name]:,} {name}" for name in others)
    line = f"{count(campaign.scheduled, 'run')} scheduled = {terms}"
    if campaign.reconciles:
        return line
    return f"{line} – but these add up to {sum(campaign.counts.values()):,}: this campaign's records are incomplete."


def read_summary(summary: Mapping[str, Any]) -> Campaign:
    """Return the campaign in the data of a `campaign.json`; a field that is missing is read as empty."""
    cells = tuple(map(_cell, _list(summary, "cells")))
    counts = _sums(cells) if cells else _counts(summary.get("counts"), 0)
    signatures = list(map(_signature, _list(summary, "signatures")))
    scheduled = int(summary.get("scheduled", summary.get("runs")) or sum(counts.values()))
    return Campaign(
        id=_text(summary, "id"),
        name=_text(summary, "name"),
        sentence=_text(summary, "sentence"),
        verdict=_text(summary, "verdict") or "unknown",
        scheduled=scheduled,
        counts=_with_not_run(counts, scheduled),
        cells=cells,
        signatures=tuple(sorted(signatures, key=_by_urgency)),
        marks=_numbers(summary.get("marks")),
        marks_missing=tuple(sorted(map(str, summary.get("marks_missing") or ()))),
        latency=tuple(map(_latency, _list(summary, "latency"))),
        overlap=_numbers(summary.get("overlap")),
        features=tuple(map(_features, _list(summary, "features"))),
        coverage=tuple(map(_covered, _list(summary, "coverage"))),
        warnings=tuple(map(str, summary.get("warnings") or ())),
        environment=_pairs(summary.get("environment")),
        versions=_pairs(summary.get("versions")),
    )


def _cell(entry: Mapping[str, Any]) -> Cell:
    counts = _counts(entry.get("counts"), int(entry.get("violations_expected") or 0))
    runs = int(entry.get("runs") or sum(counts.values()))
    hits = counts.get("violation", 0) + counts.get("expected", 0)
    low, high = wilson_interval(hits, runs)
    return Cell(
        name=_text(entry, "cell"),
        system=_text(entry, "system"),
        planted_bugs=tuple(map(str, entry.get("mutants") or ())),
        options=_pairs(entry.get("options")),
        workload=_text(entry, "workload"),
        fault_set=tuple(map(str, entry.get("fault_set") or ())),
        expected=_names(entry.get("expected")),
        sentence=_text(entry, "sentence"),
        runs=runs,
        counts=_with_not_run(counts, runs),
        rate=float(entry.get("violation_rate", hits / runs if runs else 0.0)),
        low=float(entry.get("wilson_low", low)),
        high=float(entry.get("wilson_high", high)),
    )


def _signature(entry: Mapping[str, Any]) -> Signature:
    return Signature(
        signature=_text(entry, "signature"),
        checker=_text(entry, "checker"),
        anomaly=_text(entry, "anomaly"),
        cell=_text(entry, "cell"),
        count=int(entry.get("count") or 0),
        rate=float(entry.get("rate") or 0.0),
        low=float(entry.get("wilson_low") or 0.0),
        high=float(entry.get("wilson_high", 1.0)),
        first_seed=_text(entry, "first_seed"),
        run_id=_text(entry, "run_id"),
        operations=_operations(entry.get("operations")),
        fault_kinds=_fault_kinds(entry),
        judged=int(entry.get("judged") or 0),
        sentence=_text(entry, "example") or _text(entry, "sentence"),
        replay=_text(entry, "replay"),
        report=_text(entry, "report"),
        expected=bool(entry.get("expected")),
        minimal=_text(entry, "minimal"),
        minimal_report=_text(entry, "minimal_report"),
    )


def _fault_kinds(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the kinds of fault around the counterexample; a run that left only its
    verdict does not have them."""
    return tuple(map(str, entry.get("fault_kinds") or ())) if entry.get("faults_known", True) else ("not known",)


def _latency(entry: Mapping[str, Any]) -> Latency:
    quantiles = (entry.get(name) for name in ("p50_us", "p95_us", "p99_us", "max_us"))
    known = [None if value is None else int(value) for value in quantiles]
    words = [_text(entry, name) for name in ("cell", "f", "outcome", "window")]
    return Latency(words[0], words[1], words[2], words[3], int(entry.get("count") or 0), *known)


def _features(entry: Mapping[str, Any]) -> Features:
    entered, declared = (int(entry.get(name) or 0) for name in ("entered", "declared"))
    return Features(_text(entry, "system"), entered, declared, _names(entry.get("never")))


def _covered(entry: Mapping[str, Any]) -> Covered:
    values, pairs, weather = (
        (int(entry.get(name) or 0), int(entry.get(f"{name}_possible") or 0)) for name in ("values", "pairs", "weather")
    )
    return Covered(
        system=_text(entry, "system"),
        runs=int(entry.get("runs") or 0),
        values=values,
        pairs=pairs,
        weather=weather,
        never=_names(entry.get("never")),
        struck=_numbers(entry.get("struck")),
    )


def _by_urgency(signature: Signature) -> tuple[bool, int, str, str]:
    """Return a sort key: unexpected violations first, then the most frequent."""
    return signature.expected, -signature.count, signature.cell, signature.signature


def _operations(value: Any) -> int:
    """Return the number of operations that show it, which is stored as a number or as the list of their rows."""
    return len(value) if isinstance(value, list | tuple) else int(value or 0)


def _counts(counts: Mapping[str, Any] | None, expected: int) -> dict[str, int]:
    """Return the runs by status; `expected` of the violations count as expected."""
    read: dict[str, int] = {}
    for name, number in (counts or {}).items():
        known = str(name).replace("_", "-")
        read[known] = read.get(known, 0) + int(number)
    if expected:
        read["expected"] = read.get("expected", 0) + expected
        read["violation"] = read.get("violation", 0) - expected
    return read


def _with_not_run(counts: dict[str, int], scheduled: int) -> dict[str, int]:
    """Count planned runs without a verdict as not run, so that an interrupted campaign does not look smaller."""
    missing = scheduled - sum(counts.values())
    return counts | {"not-run": counts.get("not-run", 0) + missing} if missing > 0 else counts


def _sums(cells: Iterable[Cell]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for cell in cells:
        for name, number in cell.counts.items():
            sums[name] = sums.get(name, 0) + number
    return sums


def _list(summary: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return [entry for entry in summary.get(name) or () if isinstance(entry, Mapping)]


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return "" if value is None else str(value)


def _names(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _numbers(mapping: Mapping[str, Any] | None) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((str(name), int(number)) for name, number in (mapping or {}).items()))


def _pairs(mapping: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(name), str(value)) for name, value in (mapping or {}).items()))
