"""`faultline show`: one pattern – its promise, a diagram of it at work, and the damage of its planted bug.

The counterexample is live: the planted bug's campaign runs seed by seed until the bug shows, the run is shrunk, and the
same few operations and faults are carried out twice, on the correct system and with the bug.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from faultline.cli.options import output_option
from faultline.cli.output import say
from faultline.cli.pattern_listing import WIDTH, figures_line, pattern_entry, variant_lines
from faultline.harness.errors import UsageError
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.system import PlantedBug
from faultline.harness.verdict import Verdict
from faultline.systems_under_test.patterns.lesson import Lesson, lesson_of, pattern_called

__all__ = ["command"]

_SEEDS_MAX = 200
_OPERATIONS_MAX = 8
_MESSAGES_MAX = 24


class _Planted(msgspec.Struct, frozen=True):
    """A planted bug and the system that carries it."""

    system: str
    planted_bug: PlantedBug


@click.command("show")
@click.argument("pattern")
@click.option(
    "--planted-bug",
    "--mutant",
    "chosen",
    help="Which of the pattern's planted bugs to show [default: the first that shows].",
)
@output_option
def command(pattern: str, chosen: str | None, output: Path) -> int:
    """Show PATTERN (`low-water-mark`): its promise, a diagram of it at work, and a counterexample of a planted bug."""
    lesson = lesson_of(pattern_called(pattern))
    planted = _planted_bugs(lesson.pattern.slug, chosen)
    entry = _entry(lesson)
    say("\n".join([*_lesson_lines(lesson), *variant_lines(entry), *_bug_lines(planted, entry)]))
    for bug in planted:
        request = _first_violation(bug)
        if request is not None:
            say("\n".join(_counterexample_lines(bug, request, output)))
            return 0
    if planted:
        say(f"None of them showed within {_SEEDS_MAX} seeds of its campaign.")
    say("\n".join(_calm_lines(lesson.pattern.slug)))
    return 0


def _planted_bugs(slug: str, chosen: str | None) -> list[_Planted]:
    """Return the planted bugs of the pattern over all systems; only the one named `chosen` when that is given."""
    from faultline.registry import load_system, systems

    found = [
        _Planted(name, planted_bug)
        for name in sorted(systems())
        for planted_bug in load_system(name).planted_bugs.values()
        if planted_bug.pattern == slug
    ]
    if chosen is None:
        return found
    if not any(bug.planted_bug.name == chosen for bug in found):
        names = ", ".join(bug.planted_bug.name for bug in found) or "none"
        raise UsageError(f"{slug} has no planted bug called {chosen!r}.", f"Its planted bugs: {names}.")
    return [bug for bug in found if bug.planted_bug.name == chosen]


def _lesson_lines(lesson: Lesson) -> list[str]:
    pattern = lesson.pattern
    lines = [
        f"{pattern.name} – {pattern.part}, chapter {pattern.chapter}",
        "",
        *textwrap.wrap(lesson.promise, WIDTH),
        "",
    ]
    for heading, text in lesson.parts.items():
        lines += textwrap.wrap(f"{heading}. {text}", WIDTH, subsequent_indent="  ")
    module = f"faultline/systems_under_test/{pattern.module.replace('.', '/')}.py"
    return [*lines, "", f"To read on: {module}"]


def _entry(lesson: Lesson) -> dict[str, Any]:
    """Return the entry of `faultline list patterns`."""
    from faultline.registry import load_system, systems

    return pattern_entry(lesson.pattern, {name: load_system(name) for name in sorted(systems())})


def _bug_lines(planted: list[_Planted], entry: dict[str, Any]) -> list[str]:
    if not planted:
        return [
            "",
            "No system carries a planted bug of this pattern (the reason is above); "
            "tests/planted_bugs plants bugs in the module itself.",
        ]
    lines = []
    for bug in planted:
        name = f"{bug.system}+{bug.planted_bug.name}"
        text = f"{name}: {bug.planted_bug.summary} {_figures(entry['planted_bugs'][name])}"
        lines += textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return ["", f"Planted bugs ({figures_line(entry['detection'])}):", *lines]


def _figures(bug: dict[str, Any]) -> str:
    if not bug["runs"]:
        return "[not measured yet]"
    return f"[{bug['percent']:g} % of {bug['runs']} runs of campaign {bug['campaign']}]"


def _requests(bug: _Planted) -> Iterator[RunRequest]:
    """Yield the runs of the bug's campaign, seed by seed over all its cells, with the bug switched on."""
    from faultline.campaign.planfile import load_plan

    campaign = load_plan(bug.planted_bug.campaign)
    cells = [cell for cell in campaign.cells() if cell.system == bug.system and not cell.planted_bugs]
    for seed in range(_SEEDS_MAX):
        for cell in cells:
            yield msgspec.structs.replace(campaign.request(cell, seed), planted_bugs=(bug.planted_bug.name,))


def _first_violation(bug: _Planted) -> RunRequest | None:
    return next((request for request in _requests(bug) if _violates(request)), None)


def _violates(request: RunRequest) -> bool:
    from faultline.registry import resolve

    parts = resolve(request)
    judgement = judge(run_simulated(make_plan(request, parts), parts), parts, run_id="")
    return judgement.verdict is Verdict.VIOLATION


def _counterexample_lines(bug: _Planted, request: RunRequest, output: Path) -> list[str]:
    """Return the diagrams of the same minimal plan without the bug and with it, and the command that shows more."""
    from faultline.cli.single_run import carry_out, replay_line
    from faultline.harness.store import read_run

    folder = carry_out(request, output, shrinks=True).folder / "minimal"
    plan = read_run(folder).file.plan
    right, wrong = _diagram_of(msgspec.structs.replace(plan, planted_bugs=())), _diagram_of(plan)
    return [
        "",
        f"How it goes without the bug (seed {request.seed}, shrunk):",
        *right,
        "",
        f"The same with `{bug.planted_bug.name}`: {bug.planted_bug.summary}.",
        *wrong,
        "",
        f"Replay: {replay_line(folder)}",
        f"Report: {folder / 'report.html'}",
    ]


def _calm_lines(slug: str) -> list[str]:
    """Return a diagram for a pattern without a bug to show: two undisturbed operations of a system that uses it."""
    from faultline.registry import load_system, resolve, systems

    for name in sorted(systems()):
        system = load_system(name)
        workload = "register" if "cas" in system.functions else "read-write"
        if slug in system.patterns and {"read", "write"} <= set(system.functions):
            request = RunRequest(
                system=name, workload=workload, faults=(), operations=2, workers=1, beyond_promise=True
            )
            lines = _diagram_of(make_plan(request, resolve(request)))
            return ["", f"At work in `{name}`, undisturbed:", *lines]
    return []


def _diagram_of(plan: Plan) -> list[str]:
    from faultline.registry import resolve

    parts = resolve(plan)
    record = run_simulated(plan, parts, record_messages=True)
    return _diagram_lines(record, judge(record, parts, run_id=""))


def _diagram_lines(record: RunRecord, judgement: Judgement) -> list[str]:
    """Return a diagram of a run, around its finding or of its last operations, and the verdict."""
    from faultline.reports.selection import shown_of, shown_rows
    from faultline.reports.sentences import judgement_sentence
    from faultline.reports.sequence_text import sequence_lines

    history = record.history
    if judgement.findings:
        finding = judgement.findings[0]
        shown = shown_of(record, finding, operations_max=_OPERATIONS_MAX, messages_max=_MESSAGES_MAX)
        sentence = judgement_sentence(judgement)
    else:
        shown = shown_rows(record, range(len(history))[-_OPERATIONS_MAX:], messages_max=_MESSAGES_MAX)
        sentence = "✔ No promise and no invariant is broken."
    return [*(f"  {line}" for line in sequence_lines(shown)), f"  {sentence}"]
