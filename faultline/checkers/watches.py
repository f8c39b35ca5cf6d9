"""Events told to watchers: none missed, none twice, none out of order, none made up, every gap announced.

Shape: `put` of values that are never written twice to a key, and `delete`, both answered with the index of their log
entry; `attach` of `{"lease": …, "value": …}`; `watch` on a path; `drain`, answered with the number of the watch and
what came since, in order; `list`, answered with an index and the values at and below a path. Items of a drain are

    ["state", [index, ordinal], {key: value, …}, reason]   a beginning; a later one announces a gap, for that reason
    ["event", index, ordinal, key, value, is_deleted]
    ["upto", [index, ordinal]]                             everything up to here was told

In sentences an index is a *revision*, with its first and second change. The items of one watch are one stream. A state
begins a *span*, which lasts to the last thing that was told before the next. All streams together, and the acknowledged
changes, tell which events there were: an event is known by the index of its entry and its key, since an entry changes
no key twice. Its ordinal, which no writer is told, says where it stands among the events of its entry; a store whose
watches count only what they tell has other ordinals in watches of other paths, and then has to tell whole entries.

| anomaly              | meaning                                                                                  |
|----------------------|------------------------------------------------------------------------------------------|
| `missed-event`       | an event that another watcher got, or an acknowledged change, is missing in a span it is in  |
| `event-out-of-order` | an event, or a state after a gap, that is not behind all that was told before it: or twice  |
| `foreign-event`      | an event of a key that is not at or below the path                                        |
| `unexpected-event`   | an event with a value whose write had not begun, or had definitely failed                 |
| `events-disagree`    | two watchers were told different things of one event, or another index than the writer    |
| `wrong-state`        | span and events give another content than a list at an index within the span                |
| `watch-stalled`      | long after the heal a watcher was told of nothing more, and not of all acknowledged before |

Limits: an event that no watcher got and no writer was told of is not known to be missing. Gaps that are announced are
counted, and never wrong: how many there may be is for the workload's options. A key is below a path by whole segments.

Sources: Patterns of Distributed Systems ch. 27; the watch tests of Jepsen's etcd suite (2020) had the idea of comparing
the logs of several watchers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, wrong_shape
from faultline.checkers.common.words import client, counted, token, told
from faultline.checkers.watch_streams import Event, KnownEvent, Span, Stream, is_below, known_events, streams_of
from faultline.harness.history import History
from faultline.harness.revisions import WHOLE_ENTRY, change, change_after, revision
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.watches import IncrementalWatches

__all__ = ["WatchesChecker"]

_FUNCTIONS = ("put", "delete", "attach", "acquire", "abandon", "watch", "drain", "list")
_EXPECTED = "`put`, `delete`, `attach`, `watch`, `drain` and `list` as the workload watches has them."
_SETTLED_US = 500_000


class WatchesChecker:
    """Compares what watchers were told with each other, with the writers and with lists."""

    name = "watches"

    def incremental(self) -> IncrementalWatches:
        """Return the twin that judges while a run goes on."""
        from faultline.checkers.incremental.watches import IncrementalWatches

        return IncrementalWatches()

    def check(self, history: History, run: RunRecord) -> CheckResult:
        """Return the verdict on all watches of `history`; of `run` the time of the heal is needed."""
        expect_functions(self.name, history, _FUNCTIONS, _EXPECTED)
        conclusion = Conclusion(self.name, history)
        streams = streams_of(self.name, history, _EXPECTED)
        events = [event for stream in streams for span in stream.spans for event in span.events]
        gaps = sum(max(0, len(stream.spans) - 1) for stream in streams)
        conclusion.counts.update({"streams": len(streams), "events": len(events), "gaps": gaps})
        known = known_events(history, events)
        _judge_order(conclusion, streams)
        _judge_paths(conclusion, streams)
        _judge_values(conclusion, events)
        _judge_agreement(conclusion, events)
        _judge_completeness(conclusion, streams, known)
        _judge_lists(conclusion, streams)
        _judge_progress(conclusion, streams, run)
        if len(history) and not events and not gaps:
            conclusion.doubt("No watcher was told of any event or gap, so nothing is known about watches.")
        return conclusion.result(
            f"{counted(len(streams), 'watch')} told {counted(len(events), 'event')}, none missing, repeated, out of "
            f"order or made up; {counted(gaps, 'gap')} announced."
        )


def _judge_order(conclusion: Conclusion, streams: list[Stream]) -> None:
    history = conclusion.history
    for stream in streams:
        cases = list(stream.disorder)
        for before, span in zip(stream.spans, stream.spans[1:], strict=False):
            if span.start < before.end:
                cases.append(Case([list(before.end), list(span.start)], (before.row, span.row)))
        conclusion.accuse(
            "event-out-of-order",
            cases,
            lambda case: f"{client(history, case.rows[-1])} was told of {change_after(case.what)}",
            noun="such event",
            tell=change_after,
            key=stream.path,
        )


def _judge_paths(conclusion: Conclusion, streams: list[Stream]) -> None:
    history = conclusion.history
    for stream in streams:
        foreign = [
            Case(key, (row,))
            for span in stream.spans
            for key, row in [
                *((event.key, event.row) for event in span.events),
                *((key, span.row) for key in span.state),
            ]
            if not is_below(stream.path, key)
        ]
        conclusion.accuse(
            "foreign-event",
            foreign,
            lambda case: f"{client(history, case.rows[0])} was told of {case.what}, which is not at or below the path",
            noun="such event",
            key=stream.path,
        )


def _judge_values(conclusion: Conclusion, events: list[Event]) -> None:
    history = conclusion.history
    written: dict[tuple[str | None, Any], int] = {}
    for row in _writes(history):
        identity = history.key[row], _written(history, row)
        if history.outcome[written.setdefault(identity, row)] == "fail":
            written[identity] = row  # of several attempts, the first that may have taken effect counts

    def is_invented(event: Event) -> bool:
        write = written.get((event.key, token(event.value)))
        if write is None or history.outcome[write] == "fail":
            return True
        return history.invoke_index[write] > history.complete_index[event.row]

    conclusion.accuse(
        "unexpected-event",
        [Case(event.value, (event.row,)) for event in events if not event.is_deleted and is_invented(event)],
        lambda case: (
            f"{client(history, case.rows[0])} was told of {told(case.what)}, whose write had not begun or had failed"
        ),
        noun="such event",
    )


def _writes(history: History) -> Iterator[int]:
    return (row for row in range(len(history)) if history.f[row] in ("put", "attach"))


def _written(history: History, row: int) -> Any:
    """Return the token of the value that a put or an attach writes."""
    value = history.value[row]
    return token(value["value"] if history.f[row] == "attach" else value)


def _judge_agreement(conclusion: Conclusion, events: list[Event]) -> None:
    history = conclusion.history
    first: dict[tuple[int, str], Event] = {}
    index_of: dict[tuple[str | None, Any], dict[Any, int]] = {}
    for row in _writes(history):
        if history.outcome[row] != "fail":
            is_told = history.outcome[row] == "ok" and type(history.result[row]) is int
            indexes = index_of.setdefault((history.key[row], _written(history, row)), {})
            indexes[history.result[row] if is_told else None] = row
    cases = []
    for event in events:
        one = first.setdefault(event.identity, event)
        if one.what != event.what:
            cases.append(Case(list(event.position), (one.row, event.row)))
        indexes = index_of.get((event.key, token(event.value)), {})
        # A write that was not told its index may be at any, also beside others of the same value.
        if indexes and not event.is_deleted and None not in indexes and event.position[0] not in indexes:
            cases.append(Case(list(event.position), (min(indexes.values()), event.row)))
    conclusion.accuse(
        "events-disagree",
        cases,
        lambda case: f"{client(history, case.rows[1])} was told of {change(case.what)} otherwise than others were",
        noun="such event",
        tell=revision,
    )


def _judge_completeness(conclusion: Conclusion, streams: list[Stream], known: list[KnownEvent]) -> None:
    history = conclusion.history
    for stream in streams:
        cases = []
        for span in stream.spans:
            told_of = {event.identity for event in span.events}
            cases += [
                Case(list(event.first), (event.row, stream.last_row))
                for event in known
                if span.start < event.first
                and event.last <= span.end
                and (event.first[0], event.key) not in told_of
                and is_below(stream.path, event.key)
            ]
        conclusion.accuse(
            "missed-event",
            cases,
            lambda case: (
                f"{client(history, case.rows[1])} was never told of {change(case.what)}, which is within what it "
                "was told completely"
            ),
            noun="missing event",
            tell=revision,
            key=stream.path,
        )


def _judge_lists(conclusion: Conclusion, streams: list[Stream]) -> None:
    history = conclusion.history
    rows = [row for row in range(len(history)) if history.f[row] == "list" and history.outcome[row] == "ok"]
    conclusion.counts["lists"] += len(rows)
    for row in rows:
        answer = history.result[row]
        if not isinstance(answer, dict) or "index" not in answer or not isinstance(answer.get("values"), dict):
            raise wrong_shape(conclusion.checker, history, row, f"answered {told(answer)}", _EXPECTED)
    cases = []
    for row in rows:
        index, values, path = history.result[row]["index"], history.result[row]["values"], history.key[row] or ""
        for stream, span in _spans_around(streams, path, index):
            if _content(span, path, index) != {key: token(value) for key, value in values.items()}:
                cases.append(Case(index, (row, stream.last_row)))
                break
    conclusion.accuse(
        "wrong-state",
        cases,
        lambda case: (
            f"{client(history, case.rows[0])} listed something else at revision {case.what} than state and events gave "
            f"{client(history, case.rows[1])}"
        ),
        noun="such list",
    )
    foreign = [
        Case(key, (row,))
        for row in rows
        for key in history.result[row]["values"]
        if not is_below(history.key[row] or "", key)
    ]
    conclusion.accuse(
        "foreign-event",
        foreign,
        lambda case: f"{client(history, case.rows[0])} listed {case.what}, which is not at or below the path",
        noun="such key",
    )


def _spans_around(streams: list[Stream], path: str, index: int) -> Iterator[tuple[Stream, Span]]:
    """Yield the spans that tell the content below `path` at `index`."""
    for stream in streams:
        if is_below(stream.path, path):
            for span in stream.spans:
                if span.start[0] <= index and (index, WHOLE_ENTRY) <= span.end:
                    yield stream, span


def _content(span: Span, path: str, index: int) -> dict[str, Any]:
    """Return the content below `path` that state and events give once the entry at `index` is applied."""
    content = {key: token(value) for key, value in span.state.items() if is_below(path, key)}
    for event in span.events:
        if event.position[0] > index:
            break
        if is_below(path, event.key):
            content.pop(event.key, None)
            if not event.is_deleted:
                content[event.key] = token(event.value)
    return content


def _judge_progress(conclusion: Conclusion, streams: list[Stream], run: RunRecord) -> None:
    history, heal_us = conclusion.history, run.healed_us
    before = [
        row
        for row in range(len(history))
        if history.f[row] == "put"
        and history.outcome[row] == "ok"
        and history.complete_us[row] < heal_us
        and type(history.result[row]) is int
    ]
    if not before:
        return
    last = max(before, key=lambda row: history.result[row])
    late = [
        Case(stream.path, (last, stream.last_row))
        for stream in streams
        if history.invoke_us[stream.last_row] > heal_us + _SETTLED_US
        and _began(history, stream) < heal_us
        and stream.last_news <= 0
        and (not stream.spans or stream.spans[-1].end[0] < history.result[last])
    ]
    conclusion.accuse(
        "watch-stalled",
        late,
        lambda case: (
            f"long after the heal {client(history, case.rows[1])}, who watches {case.what}, had not been told of "
            f"everything up to revision {history.result[case.rows[0]]}, acknowledged before the heal"
        ),
        noun="such watch",
    )


def _began(history: History, stream: Stream) -> int:
    """Return the time at which the watch of `stream` was asked for; 0 when the history has no such request."""
    process = history.process[stream.last_row]
    number = history.result[stream.last_row]["number"]
    return min(
        (
            history.invoke_us[row]
            for row in range(len(history))
            if history.f[row] == "watch"
            and history.process[row] == process
            and history.outcome[row] == "ok"
            and history.result[row]["number"] == number
        ),
        default=0,
    )
