"""The check that deciding messages are drawn: violations of all systems, each with the messages its figure must have.

    python tools/deciding_messages.py                one run of every kind of violation that a planted bug was found by
    python tools/deciding_messages.py --world local  one violation on processes of each system
    python tools/deciding_messages.py --pages DIR    counts the arrows of all pages below DIR, a campaign's for instance

The deciding messages are sought by simple rules over the trace, independent of the choice that figures make:

- *own*: each message between the client of a shown operation and a node, while the operation lasted (the first and the
  last twenty, where it was tried that often);
- *answer*: the message on whose receipt a node gave the answer that is wrong, and those on whose receipt that was sent;
- *copies*: for a shown write that was acknowledged, the messages with its key that the answering node sent to other
  nodes between request and answer: each of them, arrived or lost;
- *breach*: the message on whose receipt a node broke an invariant.

In the local world times are taken between the processes, so no two steps share a moment. There *answer* is the last
message to the client of a shown operation that completed, and the last one that the answering node had from another
node between the request and its answer; *breach* is the last message from a node within 50 ms before.

Every one must be a row of the figure's table, and the figure must have as many arrows as its table has rows and as its
caption says.
"""

from __future__ import annotations

import html
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from bug_evidence import Place, Record, bug_places, read_records

from faultline.harness.errors import FaultlineError, HarnessError
from faultline.harness.history import OPEN, Row
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import MessageRecord, RunRecord
from faultline.harness.verdict import Finding
from faultline.harness.world.local.world import run_local
from faultline.registry import load_system, resolve
from faultline.reports.run_page import write_run_report
from faultline.reports.selection import shown_of

__all__ = ["Outcome", "cases", "figures_of", "tried"]

_FIGURE = re.compile(r'<figure id="[\w-]+-figure">.*?</figure>', re.DOTALL)
_TABLE = re.compile(r"<summary>The messages drawn \((\d+) of (\d+)\)</summary>(.*?)</details>", re.DOTALL)
_CAPTION = re.compile(r"([\d,]+) of ([\d,]+) messages? sent meanwhile")
_ROW = re.compile(r"<tr><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>", re.DOTALL)
_ENDLESS = ("late-put-locks",)
"""The bug with which the run of the recorded seed never ends, so that it has no figure."""
_UPDATES = ("write", "cas", "append", "add", "enqueue", "put", "increment")


_LOCAL_SEEDS = 3
"""The seeds with which a bug is tried on processes before the next one of its system is."""
_HANDLING_US_MAX = 50_000


class Figure(msgspec.Struct, frozen=True):
    """A figure of a page: the number of its arrows, the number in its caption, and the rows of its table."""

    arrows: int
    caption: int
    rows: tuple[tuple[str, str, str, str], ...]

    @property
    def is_whole(self) -> bool:
        """True when as many messages are drawn as the caption says, and as the table has."""
        return self.arrows == self.caption == len(self.rows)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One violation: its deciding messages by rule, those that are not drawn, and whether its figures are whole."""

    case: str
    anomaly: str
    deciding: dict[str, int]
    missing: tuple[str, ...]
    drawn: int
    figures: int
    cut: int


def cases(system: str = "") -> Iterator[tuple[Record, Place]]:
    """Return one run for each system and kind of finding among the recorded planted bugs: the first seed that showed
    it.

    Only those of one `system` when it is given.
    """
    chosen: set[tuple[str, str]] = set()
    for record in read_records().values():
        kind = record.system, record.finding
        if not record.bug or not record.found or kind in chosen or record.bug in _ENDLESS:
            continue
        if system not in ("", record.system):
            continue
        for place in bug_places(record.system, load_system(record.system).planted_bugs[record.bug]):
            if place.key == record.key and place.run == record.run:
                chosen.add(kind)
                yield record, place


def tried(record: Record, place: Place) -> Outcome | None:
    """Carry out the run of `record` and compare its page with the deciding messages; None when it passes today."""
    request = place.plan.request(place.cell, record.first_seed)
    parts = resolve(request)
    run = run_simulated(make_plan(request, parts), parts, record_messages=True)
    judgement = judge(run, parts, run_id="figure")
    return outcome_of(run, judgement, f"{record.run} {record.first_seed}") if judgement.findings else None


def tried_locally(record: Record, place: Place) -> Outcome | None:
    """Carry the bug of `record` out on processes until it shows, and compare as `tried`; None when no seed shows it."""
    for seed in range(record.first_seed, record.first_seed + _LOCAL_SEEDS):
        request = msgspec.structs.replace(place.plan.request(place.cell, seed), world="local")
        parts = resolve(request)
        with tempfile.TemporaryDirectory() as folder:
            run = run_local(make_plan(request, parts), parts, folder=Path(folder))
        judgement = judge(run, parts, run_id="figure")
        if judgement.findings:
            return outcome_of(run, judgement, f"{record.run} {seed} --world local")
    return None


def outcome_of(run: RunRecord, judgement: Judgement, case: str) -> Outcome:
    """Compare the page of `run` with the messages that decide its most important finding."""
    with tempfile.TemporaryDirectory() as folder:
        page = write_run_report(Path(folder), run, judgement).read_text("utf-8")
    figures = list(figures_of(page))
    finding = judgement.findings[0]
    deciding = deciding_messages(run, finding)
    rows = set(figures[0].rows) if figures else set()
    missing = [f"{rule}: {_cells(message)}" for rule, message in deciding if _cells(message) not in rows]
    return Outcome(
        case=case,
        anomaly=finding.signature,
        deciding=dict(Counter(rule for rule, _ in deciding)),
        missing=tuple(missing),
        drawn=len(rows),
        figures=len(figures),
        cut=sum(not figure.is_whole for figure in figures),
    )


def figures_of(page: str) -> Iterator[Figure]:
    """Yield the figures of a page on a run that have messages, or whose table has some."""
    tables = [(match.start(), match) for match in _TABLE.finditer(page)]
    found = list(_FIGURE.finditer(page))
    for number, match in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(page)
        table = next((each for start, each in tables if match.start() < start < end), None)
        arrows = len(re.findall(r'class="message(?: lost)?"', match.group()))
        caption = _CAPTION.search(match.group())
        rows = [tuple(map(html.unescape, row)) for row in _ROW.findall(table.group(3))] if table else []
        if arrows or rows or caption:
            told = int(caption.group(1).replace(",", "")) if caption else 0
            yield Figure(arrows, told, tuple((row[0], row[1], row[2], row[3]) for row in rows))


def _cells(message: MessageRecord) -> tuple[str, str, str, str]:
    """Return the message as a row of the table has it, but for long texts, of which the table has the beginning."""
    from faultline.reports.sentences import message_text
    from faultline.reports.text import value_text

    received = "lost" if message.receive_us < 0 else f"{message.receive_us / 1e6:.6f} s"
    way = f"{message.source} → {message.target}"
    return f"{message.send_us / 1e6:.6f} s", received, way, value_text(message_text(message), 200)


def deciding_messages(run: RunRecord, finding: Finding) -> list[tuple[str, MessageRecord]]:
    """Return the messages that decide, each with the rule by which it does."""
    shown = shown_of(run, finding, messages_max=0)
    rows, start_us = shown.rows, shown.start_us
    found = [("own", message) for row in rows for message in _own(run, row, shown.stop_us)]
    telling = next((row for row in rows if row.row == shown.telling), None)
    if telling is not None:
        found += [("answer", message) for message in _led_to_answer(run, telling, start_us)]
    for row in rows:
        found += [("copies", message) for message in _copies(run, row)]
    if not finding.operations and finding.node:
        received = _received if run.world == "simulated" else _last_received
        found += [("breach", message) for message in received(run, finding.node, finding.time_us, start_us)]
    return list(dict.fromkeys(found))


def _client(row: Row) -> str:
    return f"client-{row.process}"


def _own(run: RunRecord, row: Row, stop_us: int) -> list[MessageRecord]:
    end_us = stop_us if row.complete_index == OPEN else row.complete_us
    client = _client(row)
    own = [
        message
        for message in run.messages
        if (message.source == client and row.invoke_us <= message.send_us < end_us)
        or (message.target == client and row.invoke_us <= message.send_us <= end_us)
    ]
    own.sort(key=lambda message: message.send_us)
    return own if len(own) <= 40 else own[:20] + own[-20:]


def _answer(run: RunRecord, row: Row) -> MessageRecord | None:
    """Return the message on whose receipt the client had its answer."""
    if row.outcome != "ok":
        return None
    own = [message for message in run.messages if message.target == _client(row)]
    if run.world == "simulated":
        return next((message for message in own if message.receive_us == row.complete_us), None)
    return max(
        (message for message in own if row.invoke_us <= message.receive_us <= row.complete_us),
        key=lambda message: message.receive_us,
        default=None,
    )


def _led_to_answer(run: RunRecord, row: Row, start_us: int) -> list[MessageRecord]:
    answer = _answer(run, row)
    if answer is None:
        return []
    if run.world != "simulated":
        return [answer, *_last_received(run, answer.source, answer.send_us, max(row.invoke_us, start_us))]
    found, waiting = [answer], [answer]
    while waiting:
        message = waiting.pop()
        for cause in _received(run, message.source, message.send_us, start_us):
            if cause not in found:
                found.append(cause)
                waiting += [] if cause.source.startswith("client-") else [cause]
    clients = {_client(row)}
    return [each for each in found if not each.source.startswith("client-") or each.source in clients]


def _received(run: RunRecord, node: str, moment_us: int, start_us: int) -> list[MessageRecord]:
    """Return the messages that `node` received at that moment, sent by nodes or clients in the shown time."""
    return [
        message
        for message in run.messages
        if message.target == node and message.receive_us == moment_us and message.send_us >= start_us
        if not (message.source.startswith("client-") and moment_us == 0)
    ]


def _last_received(run: RunRecord, node: str, moment_us: int, since_us: int) -> list[MessageRecord]:
    """Return the last message from another node that `node` received in the 50 ms before, sent since `since_us`."""
    received = [
        message
        for message in run.messages
        if message.target == node and not message.source.startswith("client-") and message.send_us >= since_us
        if moment_us - _HANDLING_US_MAX <= message.receive_us <= moment_us
    ]
    return [max(received, key=lambda message: message.receive_us)] if received else []


def _copies(run: RunRecord, row: Row) -> list[MessageRecord]:
    answer = _answer(run, row)
    if answer is None or row.f not in _UPDATES or row.key is None:
        return []
    asked = [
        message.receive_us
        for message in run.messages
        if message.source == _client(row)
        if message.target == answer.source and row.invoke_us <= message.send_us <= message.receive_us
    ]
    first_us = max((time_us for time_us in asked if time_us <= answer.send_us), default=None)
    if first_us is None:
        return []
    return [
        message
        for message in run.messages
        if message.source == answer.source and first_us <= message.send_us <= answer.send_us
        if not message.target.startswith("client-") and row.key in message.summary
    ]


def _outcomes() -> Iterator[Outcome]:
    for record, place in cases():
        try:
            outcome = tried(record, place)
        except HarnessError as error:
            print(f"  {record.finding:45} is left out: {error}  {record.run} {record.first_seed}", flush=True)
            continue
        if outcome is None:
            print(f"  {record.finding:45} is not found any more by {record.run} {record.first_seed}")
            continue
        yield outcome


def _local_outcomes() -> Iterator[Outcome]:
    """Yield one violation on processes of each system that shows one with the first seeds of a bug."""
    shown: set[str] = set()
    for record, place in cases():
        bug = load_system(record.system).planted_bugs[record.bug]
        if record.system in shown or "local" not in bug.worlds:
            continue
        try:
            outcome = tried_locally(record, place)
        except FaultlineError as error:
            print(f"  {record.system}+{record.bug} is left out: {error}", flush=True)
            continue
        if outcome is None:
            print(f"  {record.system}+{record.bug} did not show on processes", flush=True)
            continue
        shown.add(record.system)
        yield outcome


def _try_all(found: Iterable[Outcome]) -> int:
    outcomes = []
    for outcome in found:
        outcomes.append(outcome)
        told = ", ".join(f"{number} {rule}" for rule, number in sorted(outcome.deciding.items())) or "none"
        sign = "!" if outcome.missing or outcome.cut else " "
        print(f"{sign} {outcome.anomaly:45} {outcome.drawn:4} drawn; decide: {told}  {outcome.case}", flush=True)
        for line in outcome.missing[:5]:
            print(f"    not drawn: {line}")
    systems = {outcome.case.split("--system ")[1].split()[0] for outcome in outcomes}
    deciding = sum(sum(outcome.deciding.values()) for outcome in outcomes)
    missing = sum(len(outcome.missing) for outcome in outcomes)
    cut = sum(outcome.cut for outcome in outcomes)
    figures = sum(outcome.figures for outcome in outcomes)
    print(
        f"{len(outcomes)} violations of {len(systems)} systems: {missing} of {deciding} deciding messages are "
        f"not drawn, and {cut} of {figures} figures draw another number than their caption and table say."
    )
    return 1 if missing or cut else 0


def _count_pages(pages: Iterable[Path]) -> int:
    figures = [figure for page in sorted(pages) for figure in figures_of(page.read_text("utf-8"))]
    cut = sum(not figure.is_whole for figure in figures)
    print(f"{len(figures)} figures with messages; {cut} draw another number than their caption and table say.")
    return 1 if cut else 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--pages"]:
        sys.exit(_count_pages(Path(arguments[1]).rglob("report.html")))
    sys.exit(_try_all(_local_outcomes() if arguments == ["--world", "local"] else _outcomes()))
