"""A measurement in words: for the terminal, and as a page in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from faultline.power.result import COUNTED, Cell, Ending, Measured, Power, Share

__all__ = ["headline", "lines_of", "markdown_of", "mutant_lines"]

_APART = {
    Ending.UNREACHED: "never reached: the campaign lacks the situation",
    Ending.UNDISTINGUISHED: "reached, and no run came out differently: perhaps no change of behaviour",
    Ending.REFUSED: "refused before the run: the system could not be made",
}


def headline(power: Power) -> str:
    """Return the result in one sentence."""
    clients, found = power.clients, power.any
    if not clients.of:
        return f"No mutant of {power.system} counts, of {len(power.mutants)} that were measured."
    median = f"; median {found.median_s:.1f} s, run {found.median_runs:g}" if found.median_s is not None else ""
    budget = f"{_count(power.runs_max, 'run')} and {power.processor_s_max:g} s each"
    return (
        f"Of {_count(clients.of, 'mutant')} that count, {_percent(clients)} were found by clients and "
        f"{_percent(found)} by any means, within {budget}{median}."
    )


def lines_of(power: Power) -> list[str]:
    """Return the lines for the terminal."""
    lines = [headline(power), _unchanged(power)]
    lines += [
        f"  False alarm, or a bug of the system: {alarm.by}: {alarm.sentence}\n    {alarm.replay}"
        for alarm in power.alarms
    ]
    counts = {ending: len(_with(power, ending)) for ending in (*COUNTED, *_APART)}
    lines.append("Endings: " + ", ".join(f"{count} {name}" for name, count in counts.items() if count) + ".")
    if power.missing:
        why = "Interrupted" if power.interrupted else "No run of the unchanged program is clean"
        lines.append(f"{why}: {_count(power.missing, 'mutant')} not measured.")
    late = sum(one.out_of_time for one in power.mutants)
    if late:
        lines.append(
            f"{_count(late, 'mutant')} ran out of processor time, so that another machine may find more or fewer."
        )
    for one in power.mutants:
        lines += mutant_lines(one)
    return lines


def mutant_lines(one: Measured) -> Iterator[str]:
    """Yield the lines about one mutant: what it changes, and the first run that found it."""
    yield f"{one.mutant.id}  {one.ending}"
    yield f"    line {one.mutant.line}: {one.mutant.diff}"
    seen = one.first_client or one.first
    if seen is None:
        reached = f"{one.runs_reached} reached the place, {one.runs_changed} came out differently"
        yield f"    {_count(one.runs, 'run')}, {reached}"
        return
    if one.first is not None and one.first_client is not None and one.first.runs < one.first_client.runs:
        yield f"    first seen by {one.first.by} in run {one.first.runs}"
    yield f"    run {seen.runs}, {seen.processor_s:.1f} s, by {seen.by}: {seen.sentence}"
    yield f"    {seen.replay}"


def markdown_of(power: Power) -> str:
    """Return the page: the sentence, the command, the matrix, and every mutant."""
    lines = [
        f"# The power of the default campaign over `{power.system}`",
        "",
        headline(power),
        "",
        f"Measured with Faultline {power.version}, {power.processor_s / 60:.1f} processor minutes, by",
        "",
        "```sh",
        power.command,
        "```",
        "",
        _unchanged(power),
        "",
        "| found | of | share | 95 % interval | median runs | median s |",
        "|---|---|---|---|---|---|",
        _share_row("by clients", power.clients),
        _share_row("by any means", power.any),
        "",
        "## Found, by pattern, fault package and checker",
        "",
        "A run with several packages counts for each. `clients` is any client-visible checker.",
        "",
        "| pattern | faults | checker | found | mutants | probability | per processor minute |",
        "|---|---|---|---|---|---|---|",
        *map(_cell_row, power.matrix),
        "",
        "## Mutants",
        "",
        "| mutant | change | ending | runs | s | by |",
        "|---|---|---|---|---|---|",
        *map(_mutant_row, (one for ending in COUNTED for one in _with(power, ending))),
    ]
    for ending, words in _APART.items():
        rows = [_mutant_row(one) for one in _with(power, ending)]
        if rows:
            head = ["| mutant | change | ending | runs | s | by |", "|---|---|---|---|---|---|"]
            lines += ["", f"## {words[0].upper()}{words[1:]}", "", *head, *rows]
    return "\n".join([*lines, ""])


def _unchanged(power: Power) -> str:
    verdicts = ", ".join(f"{count} {name}" for name, count in power.unchanged_verdicts.items())
    alarms = f"{len(power.alarms)} accusations" if power.alarms else "no accusation"
    return f"The unchanged program, in the same runs: {verdicts}; {alarms}."


def _with(power: Power, ending: Ending) -> list[Measured]:
    return [one for one in power.mutants if one.ending == ending]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _percent(share: Share) -> str:
    return f"{100 * share.share:.0f} % ({100 * share.low:.0f}–{100 * share.high:.0f} %)"


def _share_row(name: str, share: Share) -> str:
    runs = "–" if share.median_runs is None else f"{share.median_runs:g}"
    seconds = "–" if share.median_s is None else f"{share.median_s:.1f}"
    interval = f"{100 * share.low:.0f}–{100 * share.high:.0f} %"
    return f"| {name}: {share.found} | {share.of} | {100 * share.share:.0f} % | {interval} | {runs} | {seconds} |"


def _cell_row(cell: Cell) -> str:
    columns: Iterable[object] = (
        cell.group,
        cell.faults,
        cell.checker,
        cell.found,
        cell.mutants,
        f"{100 * cell.probability:.0f} % ({100 * cell.low:.0f}–{100 * cell.high:.0f} %)",
        f"{cell.per_minute:.2f}",
    )
    return f"| {' | '.join(map(str, columns))} |"


def _mutant_row(one: Measured) -> str:
    seen = one.first_client or one.first
    by, runs, seconds = (seen.by, seen.runs, seen.processor_s) if seen else ("–", one.runs, one.processor_s)
    # A bar would end the cell.
    change = one.mutant.diff.replace("|", "\\|").replace("`", "'")
    return f"| `{one.mutant.id}` | `{change}` | {one.ending} | {runs} | {seconds:.1f} | {by} |"
