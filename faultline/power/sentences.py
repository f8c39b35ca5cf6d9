"""A measurement in words: for the terminal, and as a page in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from faultline.campaign.statistics import wilson_interval
from faultline.power.modules import group_of
from faultline.power.result import ANY, CLIENTS, COUNTED, Cell, Ending, Measured, Power, Share, share_of

__all__ = ["headline", "lines_of", "markdown_of", "mutant_lines", "mutant_row"]

_APART = {
    Ending.UNREACHED: "never reached in these runs",
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
    those = f"{_count(clients.of, 'mutant')} that count{'s' if clients.of == 1 else ''}"
    return (
        f"Of {those}, {_percent(clients)} were found by clients and {_percent(found)} by any means, "
        f"within {budget}{median}."
    )


def _seen(power: Power) -> str:
    """Return a sentence about the mutants that certainly do harm: those that clients see, and the kinds of the rest."""
    found, seen = power.any.found, power.clients.found
    if not found:
        return "No mutant was found by any means."
    low, high = wilson_interval(seen, found)
    share = f"{100 * seen / found:.0f} % ({100 * low:.0f}–{100 * high:.0f} %)"
    return f"Of the {found} that were found by any means, clients saw {seen}: {share}. {_never_accused(power)}"


def _never_accused(power: Power) -> str:
    """Return a sentence about the mutants that changed answers and were never accused."""
    green, quiet = len(_with(power, Ending.SURVIVED)), len(_with(power, Ending.INCONCLUSIVE))
    harmless = "bugs that were missed, or no bugs"
    if not quiet:
        return f"The other {green} changed answers and were never accused: {harmless}."
    return (
        f"The other {green + quiet} changed answers and were never accused: with {quiet} the campaign is no pass, as "
        f"runs of a workload tested too little or were not decided; {green} are {harmless}."
    )


def _not_reached(power: Power) -> str:
    groups = Counter(group_of(one.module) for one in power.not_reached)
    names = ", ".join(f"{count} in {name}" for name, count in groups.most_common())
    apart = f"{len(power.not_reached)} of {_count(power.mutants_in_all, 'mutant')}"
    return f"Not reached by the unchanged program, and not drawn: {apart}{f' ({names})' if names else ''}."


def lines_of(power: Power) -> list[str]:
    """Return the lines for the terminal."""
    lines = [headline(power), _seen(power), _not_reached(power), _unchanged(power)]
    lines += [
        f"  False alarm, or a bug of the system: {alarm.by}: {alarm.sentence}\n    {alarm.replay}"
        for alarm in power.alarms
    ]
    counts = {ending: len(_with(power, ending)) for ending in (*COUNTED, *_APART)}
    lines.append("Endings: " + ", ".join(f"{count} {name}" for name, count in counts.items() if count) + ".")
    lines += _shortcomings(power)
    for one in power.mutants:
        lines += mutant_lines(one)
    return lines


def _shortcomings(power: Power) -> Iterator[str]:
    """Yield the limits of the result: mutants that were not measured, or not in all their runs."""
    if power.missing:
        why = "Interrupted" if power.interrupted else "No run of the unchanged program is clean"
        yield f"{why}: {_count(power.missing, 'mutant')} not measured."
    late = sum(one.out_of_time for one in power.mutants)
    if late:
        yield f"{_count(late, 'mutant')} ran out of processor time, so that another machine may find more or fewer."


def mutant_lines(one: Measured) -> Iterator[str]:
    """Yield the lines about one mutant: its change, and the first run that found it."""
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
        _seen(power),
        "",
        f"Measured with Faultline {power.version}, {power.processor_s / 60:.1f} processor minutes, by",
        "",
        "```sh",
        power.command,
        "```",
        "",
        _unchanged(power),
        *_shortcomings(power),
        "",
        "| within | by clients | by any means |",
        "|---|---|---|",
        *_rows_by_runs(power),
        "",
        "## Found, by pattern, fault package and checker",
        "",
        "`any` is all together. A run with several packages counts for each. The last column counts the mutants",
        "that clients saw in a processor minute of such runs.",
        "",
        "| pattern | faults | mutants | by clients | by any means | checkers | per minute |",
        "|---|---|---|---|---|---|---|",
        *_matrix_rows(power),
        "",
        "## Mutants",
        "",
        "| mutant | change | ending | runs | s | by |",
        "|---|---|---|---|---|---|",
        *map(mutant_row, (one for ending in COUNTED for one in _with(power, ending))),
    ]
    for ending, words in _APART.items():
        rows = [mutant_row(one) for one in _with(power, ending)]
        if rows:
            head = ["| mutant | change | ending | runs | s | by |", "|---|---|---|---|---|---|"]
            lines += ["", f"## {words[0].upper()}{words[1:]}", "", *head, *rows]
    if power.not_reached:
        lines += ["", "## Not reached", "", _not_reached(power), "", "| mutant | change |", "|---|---|"]
        lines += [f"| `{one.id}` | {_code(one.diff)} |" for one in power.not_reached]
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


def _rows_by_runs(power: Power) -> Iterator[str]:
    """Yield the shares found by smaller campaigns: by one run, by ten, and so on."""
    within = 1
    while within < power.runs_max:
        yield _row_within(power, within)
        within *= 10
    yield _row_within(power, power.runs_max)


def _row_within(power: Power, runs: int) -> str:
    shares = [share_of(power.mutants, by_client=by_client, within=runs) for by_client in (True, False)]
    cells = [f"{share.found} of {share.of}: {_percent(share)}" for share in shares]
    return f"| {_count(runs, 'run')} | {' | '.join(cells)} |"


def _matrix_rows(power: Power) -> Iterator[str]:
    """Yield a row for each group and package, those of all together first."""
    rows: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in power.matrix:
        rows.setdefault((cell.group, cell.faults), {})[cell.checker] = cell
    for group, faults in sorted(rows, key=lambda row: [(name != ANY, name) for name in row]):
        row = rows[group, faults]
        clients, anyhow = row.pop(CLIENTS), row.pop(ANY)
        by = ", ".join(f"{checker} {cell.found}" for checker, cell in sorted(row.items()))
        columns = (group, faults, anyhow.mutants, _probability(clients), _probability(anyhow), by or "–")
        yield f"| {' | '.join(map(str, columns))} | {clients.per_minute:.1f} |"


def _probability(cell: Cell) -> str:
    return f"{cell.found}: {100 * cell.probability:.0f} % ({100 * cell.low:.0f}–{100 * cell.high:.0f} %)"


def mutant_row(one: Measured) -> str:
    """Return the row of one mutant in a table of Markdown: its change, its ending, and the run that found it."""
    seen = one.first_client or one.first
    by, runs, seconds = (seen.by, seen.runs, seen.processor_s) if seen else ("–", one.runs, one.processor_s)
    return f"| `{one.mutant.id}` | {_code(one.mutant.diff)} | {one.ending} | {runs} | {seconds:.1f} | {by} |"


def _code(text: str) -> str:
    # A bar would end the cell.
    return "`" + text.replace("|", "\\|").replace("`", "'") + "`"
