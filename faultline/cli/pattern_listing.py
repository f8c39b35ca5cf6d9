"""The listing of a pattern: promise, variants, planted bugs and their detection rates; as data and in 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faultline.systems_under_test.patterns.catalogue import Pattern

__all__ = ["WIDTH", "figures_line", "pattern_entry", "pattern_lines", "variant_lines"]

WIDTH = 100
_LABEL = 10

Entry = dict[str, Any]


def pattern_entry(pattern: Pattern, systems: Mapping[str, Any]) -> Entry:
    """Return all about one pattern as plain data; `systems` are the loaded systems by name."""
    import msgspec

    from faultline.systems_under_test.patterns.lesson import lesson_of

    planted = _planted(pattern.slug, systems)
    entry: Entry = msgspec.to_builtins(pattern)
    return entry | {
        "status": pattern.status,
        "summary": f"{pattern.part}, chapter {pattern.chapter}: {pattern.status}.",
        "promise": lesson_of(pattern).promise if pattern.module else "",
        "variants": _variants(pattern.slug, systems),
        "planted_bugs": planted,
        "detection": _detection(planted),
    }


def _variants(slug: str, systems: Mapping[str, Any]) -> Entry:
    """Return the options that select a variant, as `SYSTEM OPTION`, with their values as the system declares them."""
    from faultline.harness.options import all_options
    from faultline.systems_under_test.patterns.variants import VARIANTS

    found: Entry = {}
    for system, names in VARIANTS.get(slug, {}).items():
        for name in names if system in systems else ():
            option = all_options(systems[system])[name]
            values = list(option.choices) or ["TEXT" if option.is_text else "NUMBER"]
            found[f"{system} {name}"] = {"values": values, "default": option.default, "summary": option.summary}
    return found


def _planted(slug: str, systems: Mapping[str, Any]) -> Entry:
    """Return the pattern's planted bugs, as `SYSTEM+BUG`, with their measured rates; no runs where none were
    measured."""
    from faultline.systems_under_test.patterns.variants import detections

    found: Entry = {}
    for system in systems.values():
        for planted_bug in system.planted_bugs.values():
            if planted_bug.pattern == slug:
                seen = detections().get((system.name, planted_bug.name))
                runs, hits, percent = (seen.runs, seen.found, round(100 * seen.rate, 1)) if seen else (0, 0, 0.0)
                found[f"{system.name}+{planted_bug.name}"] = {
                    "row": planted_bug.id,
                    "campaign": planted_bug.campaign,
                    "runs": runs,
                    "found": hits,
                    "percent": percent,
                }
    return found


def _detection(planted: Mapping[str, Entry]) -> Entry:
    """Return the figures of all planted bugs of a pattern together; empty when it has none."""
    if not planted:
        return {}
    percents = [bug["percent"] for bug in planted.values()]
    return {
        "bugs": len(planted),
        "found": sum(1 for bug in planted.values() if bug["found"]),
        "lowest_percent": min(percents),
        "median_percent": round(median(percents), 1),
        "highest_percent": max(percents),
    }


def pattern_lines(entry: Entry) -> list[str]:
    """Return the lines of one pattern: a headline, and below it its promise, variants, bugs and figures."""
    head = f"{entry['name']}  ({entry['summary'].rstrip('.')})"
    return [
        head,
        *_wrapped("promise", entry["promise"]),
        *_wrapped("variants", _variants_in_short(entry["variants"])),
        *_wrapped(
            "bugs",
            ", ".join(entry["planted_bugs"]) or "none in a system; tests/planted_bugs plants bugs in the module itself",
        ),
        *_wrapped("detection", figures_line(entry["detection"])),
        "",
    ]


def _variants_in_short(variants: Mapping[str, Entry]) -> str:
    names = [f"{name}={'|'.join(option['values'])}" for name, option in variants.items()]
    return "; ".join(names) or "one form only"


def figures_line(detection: Entry) -> str:
    """Return the share of runs of its campaign that find a bug of the pattern, over all of its bugs."""
    if not detection:
        return "–"
    low, middle, high = (detection[f"{which}_percent"] for which in ("lowest", "median", "highest"))
    share = f"{middle:g} % of runs" if low == high else f"{low:g} to {high:g} % of runs, median {middle:g} %"
    return f"{detection['found']} of {detection['bugs']} found, each in {share}"


def variant_lines(entry: Entry) -> list[str]:
    """Return the variants one by one, each with the option that selects it and that option's summary."""
    lines = []
    for name, option in entry["variants"].items():
        system, option_name = name.split(" ")
        text = f"{system} --option {option_name}={'|'.join(option['values'])}: {option['summary']}"
        lines += textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return ["", "Variants:", *lines] if lines else []


def _wrapped(label: str, text: str) -> Sequence[str]:
    first, rest = f"  {label:<{_LABEL}}", " " * (_LABEL + 2)
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
