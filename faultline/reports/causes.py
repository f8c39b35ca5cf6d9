"""The causes of a violation as text: the parts of the run that it needs, in the order of time, and what was tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from faultline.harness.causes import CausalKind, Causes, NecessaryPart, Tried
from faultline.harness.history import Row
from faultline.harness.run_record import MessageRecord, RunRecord
from faultline.reports.sentences import decimals_for, fault_sentence, message_text, operation_sentence, verdict_sentence
from faultline.reports.text import count, shorten, time_point, visible

__all__ = ["causes_lines"]

_KINDS: tuple[CausalKind, ...] = ("fault", "operation", "message", "reset", "flush", "timer")
_PLURALS = {"flush": "flushes"}
_IN_TIME = "in time"
_TEXT_LIMIT = 160


def causes_lines(causes: Causes, record: RunRecord) -> list[str]:
    """Return the explanation of the violation in `record`: its sentence, the necessary parts, and the counts."""
    groups = _grouped(causes.parts)
    decimals = decimals_for(group[0].time_us for group in groups)
    return [
        verdict_sentence("violation", causes.sentence),
        "  Undo one of these, change nothing else, and it does not happen. Those marked `in time` must not come "
        f"{causes.later_us / 1_000:g} ms later either.",
        *(_line(group, record, decimals) for group in groups),
        f"  Needed: {', '.join(_needed(tried) for tried in _in_order(causes.counts))}; what happened after "
        f"{time_point(causes.visible_us)} came too late to matter. {count(causes.runs, 'run')}.",
        *_not_tried(causes),
    ]


def _grouped(parts: Iterable[NecessaryPart]) -> list[list[NecessaryPart]]:
    """Return the parts, each in a group of its own, but the rings of one timer together where the first of them is."""
    groups: dict[tuple[object, ...], list[NecessaryPart]] = {}
    for number, part in enumerate(parts):
        event = part.event
        is_timer = event is not None and part.kind == "timer"
        key = (event.place, event.name, part.in_time) if event is not None and is_timer else (number,)
        groups.setdefault(key, []).append(part)
    return list(groups.values())


def _line(group: Sequence[NecessaryPart], record: RunRecord, decimals: int) -> str:
    part = group[0]
    mark = {True: _IN_TIME, False: "", None: "(?)"}[part.in_time]
    when = time_point(part.time_us, decimals)
    text = visible(shorten(_text(group, record, decimals), _TEXT_LIMIT))
    return f"  {when:>{decimals + 5}}  {mark:<{len(_IN_TIME)}}  {part.kind:<9}  {text}".rstrip()


def _text(group: Sequence[NecessaryPart], record: RunRecord, decimals: int) -> str:
    part = group[0]
    event = part.event
    if event is None:
        if part.kind == "fault":
            return fault_sentence(record.faults[part.place], decimals)
        return operation_sentence(_row_of(part.place, record), decimals)
    if event.kind == "message":
        message = MessageRecord(event.source, event.place, event.name, event.sent_us, event.time_us, event.summary)
        stale = f", stale: sent {time_point(event.sent_us, decimals)}" if event.stale else ""
        return f"{event.source} → {event.place}: {message_text(message)}{stale}"
    if event.kind == "reset":
        return f"{event.source} → {event.place}: the connection breaks"
    if event.kind == "flush":
        return f"{event.place}: a flush ends"
    rings = "rings" if len(group) == 1 else f"rings {len(group)} times until {time_point(group[-1].time_us, decimals)}"
    return f"{event.place}: {event.name} {rings}"


def _row_of(place: int, record: RunRecord) -> Row:
    """Return the row of the operation at this place of the plan: each worker carries its own out in their order."""
    plan, history = record.plan, record.history
    worker = plan.operations[place].worker
    earlier = sum(operation.worker == worker for operation in plan.operations[:place])
    own = [row for row in range(len(history)) if history.process[row] % plan.workers == worker]
    return history.row(own[earlier])


def _in_order(counts: Iterable[Tried]) -> list[Tried]:
    return sorted(counts, key=lambda tried: _KINDS.index(tried.kind))


def _needed(tried: Tried) -> str:
    return f"{tried.necessary} of {count(tried.tried, tried.kind, _PLURALS.get(tried.kind, ''))}"


def _not_tried(causes: Causes) -> list[str]:
    if causes.complete:
        return []
    left = [
        count(tried.parts - tried.tried, tried.kind, _PLURALS.get(tried.kind, ""))
        for tried in _in_order(causes.counts)
        if tried.parts > tried.tried
    ]
    late = sum(part.in_time is None for part in causes.parts)
    left += [f"the time of {count(late, 'needed part')} (marked `(?)`)"] if late else []
    return [f"  Not tried, as the runs were used up: {', '.join(left)}. Give more with --runs."]
