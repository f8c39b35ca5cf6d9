"""From the events of a file to a history, or to the line that cannot be part of one."""

from __future__ import annotations

from typing import Literal

from faultline.checkers.importers.events import EventError, EventRecorder
from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.independent import are_tuples, split_tuples
from faultline.checkers.importers.suggest import suggested_model
from faultline.checkers.importers.text import EventSource, malformed

__all__ = ["imported", "record"]


def imported(
    source: EventSource,
    *,
    model: str | None = None,
    clock: Literal["seconds", "events"] | None = None,
    with_tuples: bool = False,
    events_max: int | None = None,
) -> ImportedHistory:
    """Return the history of `source`, or of its first `events_max` events.

    `model` and `clock` are derived when they are not given; keys are sought in values `with_tuples`.
    """
    recorder = EventRecorder()
    record(source, recorder, events_max)
    has_times = recorder.finish()
    history = recorder.history
    from_tuples = with_tuples and are_tuples(history)
    if from_tuples:
        split_tuples(history)
    return ImportedHistory(
        history,
        model or suggested_model(history),
        clock or ("seconds" if has_times else "events"),
        recorder.nemesis_events,
        "tuples" if from_tuples else "format",
    )


def record(source: EventSource, recorder: EventRecorder, events_max: int | None = None) -> None:
    """Let `recorder` take the events of `source`. Raise UsageError with the line of one that it refuses."""
    try:
        for event in source:
            recorder.record(event)
            if recorder.events == events_max:
                break
    except EventError as error:
        line = source.line_of(recorder.events)
        place = "" if line == recorder.events else f" (event {recorder.events})"
        raise malformed(source.path, line, f"{error}{place}") from error
