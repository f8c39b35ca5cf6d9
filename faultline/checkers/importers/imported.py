"""The result of an importer: a history in Faultline's own form, and the facts about its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from faultline.harness.history import History

__all__ = ["ImportedHistory"]


@dataclass(frozen=True, slots=True)
class ImportedHistory:
    """A history with the model that fits its functions; None when no model is known.

    `clock` says whether its times are seconds or numbers of events, `nemesis_events` how many events of faults were
    left out, `keys_from` the source of the keys: the format, `[key value]` tuples, or none. `part` names the
    history within a file that holds several.
    """

    history: History
    model: str | None
    clock: Literal["seconds", "events"] = "events"
    nemesis_events: int = 0
    keys_from: Literal["format", "tuples"] = "format"
    part: str | None = None
