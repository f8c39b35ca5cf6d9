"""`faultline show`: one pattern – its promise, a diagram of it at work, and the damage of its planted bug.

The counterexample is live: the planted bug's campaign runs seed by seed until the bug shows, the run is shrunk, and the
same few operations and faults are carried out twice, on the correct system and with the bug.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from faultline.cli.options import output_option
from faultline.cli.output import say
from faultline.cli.pattern_listing import WIDTH, figures_line, pattern_entry, variant_lines
from faultline.harness.errors import UsageError
from faultline.harness.judge import judge
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.system import PlantedBug
from faultline.harness.verdict import Finding, Verdict
from faultline.systems_under_test.patterns.lesson import Lesson, lesson_of, pattern_called

if TYPE_CHECKING:
    from faultline.reports.selection import Shown

__all__ = ["command"]

_SEEDS_MAX = 200
_OPERATIONS_MAX = (8, 4, 2)
"""The numbers of operations that a diagram may have, tried in turn until it is no longer than `_DRAWN_MAX`."""
_MESSAGES_MAX = 24
_DRAWN_MAX = 60


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
    planted = _planted_bugs(lesson, chosen)
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


def _planted_bugs(lesson: Lesson, chosen: str | None) -> list[_Planted]:
    """Return the planted bugs of the pattern over all systems; only the one named `chosen` when that is given.

    The most telling ones come first: those that the lesson names, of these the ones that clients can see, in the order
    of the lesson.
    """
    from faultline.registry import load_system, systems

    slug = lesson.pattern.slug
    named = re.findall(r"`([^`]+)`", lesson.parts.get("Planted bugs", ""))
    found = [
        _Planted(name, planted_bug)
        for name in sorted(systems())
        for planted_bug in load_system(name).planted_bugs.values()
        if planted_bug.pattern == slug
    ]
    if chosen is None:
        return sorted(found, key=lambda bug: _rank(bug.planted_bug, named))
    if not any(bug.planted_bug.name == chosen for bug in found):
        names = ", ".join(bug.planted_bug.name for bug in found) or "none"
        raise UsageError(f"{slug} has no planted bug called {chosen!r}.", f"Its planted bugs: {names}.")
    return [bug for bug in found if bug.planted_bug.name == chosen]


def _rank(planted_bug: PlantedBug, named: list[str]) -> tuple[bool, bool, int]:
    # Checkers of what clients saw have names in small letters, invariants the ids of their rows.
    is_visible = any(name.islower() for name in planted_bug.caught_by)
    is_named = planted_bug.name in named
    return not is_named, not is_visible, named.index(planted_bug.name) if is_named else 0


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
    wrong = _Drawn(plan)
    finding = wrong.judgement.findings[0]
    right = _Drawn(msgspec.structs.replace(plan, planted_bugs=()))
    return [
        "",
        f"How it goes without the bug (seed {request.seed}, shrunk):",
        *right.lines_until(finding),
        "",
        f"The same with `{bug.planted_bug.name}`: {bug.planted_bug.summary}.",
        *wrong.lines_of(finding),
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
            return [
                "",
                f"At work in `{name}`, undisturbed:",
                *_Drawn(make_plan(request, resolve(request))).lines_until(None),
            ]
    return []


class _Drawn:
    """A plan that was carried out with its messages recorded, and its judgement."""

    def __init__(self, plan: Plan) -> None:
        from faultline.registry import resolve

        parts = resolve(plan)
        self.record = run_simulated(plan, parts, record_messages=True)
        self.judgement = judge(self.record, parts, run_id="")

    def lines_of(self, finding: Finding) -> list[str]:
        """Return a diagram of the run around its finding, and the sentence of it."""
        from faultline.reports.selection import shown_of
        from faultline.reports.sentences import judgement_sentence

        shown = _short_enough(
            shown_of(self.record, finding, operations_max=number, messages_max=_MESSAGES_MAX)
            for number in _OPERATIONS_MAX
        )
        return self._lines(shown, judgement_sentence(self.judgement))

    def lines_until(self, finding: Finding | None) -> list[str]:
        """Return a diagram of the last operations, and the verdict; in a run without operations, of the moment at which
        a bug broke a promise with `finding`. A run with a finding of its own is drawn around that."""
        from faultline.reports.selection import shown_rows

        if self.judgement.findings:
            return self.lines_of(self.judgement.findings[0])
        rows = range(len(self.record.history))
        at_us, node = (finding.time_us, finding.node) if finding and not rows else (0, None)
        shown = _short_enough(
            shown_rows(self.record, rows[-number:], at_us, node=node, messages_max=_MESSAGES_MAX)
            for number in _OPERATIONS_MAX
        )
        return self._lines(shown, "✔ No promise and no invariant is broken.")

    def _lines(self, shown: Shown, sentence: str) -> list[str]:
        from faultline.reports.sequence_text import sequence_lines

        return [*(f"  {line}" for line in sequence_lines(shown)), f"  {sentence}"]


def _short_enough(choices: Iterable[Shown]) -> Shown:
    """Return the first choice that has no more messages than a diagram should, else the last one."""
    for shown in choices:
        if len(shown.messages.drawn) <= _DRAWN_MAX:
            break
    return shown
