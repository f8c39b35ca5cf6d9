"""Planted bugs: one class says what is broken, how it shows and which campaign finds it, and is the change itself.

    BUGS = PlantedBugs("timestamped-kv", Parts)

    @BUGS.plant("wall-time-stamps", "HYC-M1", part="hybrid", campaign="causes", caught_by=("causal-pairs",))
    class WallTime(HybridStamps):
        '''A write is stamped with the wall time, and nothing else.

        Shows as: under wrong clocks effects come before causes, and new versions below old ones.
        '''

The class is put in front of the correct one under `part` of the node's `Parts`; for a bug of the client `part` is
`client`. The correct code does not know of any of this.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar

from faultline.harness.errors import UsageError
from faultline.harness.system import PlantedBug
from faultline.harness.world.ports import Ports

__all__ = [
    "LazyFlush",
    "PlantedBugs",
    "class_with_bugs",
    "forced_options",
    "in_front",
    "layered",
    "parts_with_bugs",
    "planted",
    "together",
    "with_bugs",
]

Parts = TypeVar("Parts")
Part = TypeVar("Part")

_LAZY_FLUSH_US = 200_000

Client = TypeVar("Client")
Change = Callable[[type[Any]], type[Any]]
CLIENT = "client"


class PlantedBugs(Generic[Parts]):
    """The bugs planted in `system`; `usual` makes the correct parts, `defaults` are what most bugs have in common."""

    def __init__(self, system: str, usual: Callable[[], Parts], **defaults: Any) -> None:
        self.planted_bugs: dict[str, PlantedBug] = {}
        self._system, self._usual, self._defaults = system, usual, defaults
        self._changes: dict[str, tuple[tuple[str, ...], Change]] = {}

    def plant(
        self, name: str, row: str, *, part: str, replaces: bool = False, **record: Any
    ) -> Callable[[type[Any]], type[Any]]:
        """Register the decorated class as the bug `name`; `part` may name several parts, separated by blanks.

        With `replaces` the class stands alone where the correct one was; else it is put in front of it.
        """

        def planted(change: type[Any]) -> type[Any]:
            summary, _, shows_as = inspect.getdoc(change).partition("\n\nShows as: ")  # type: ignore[union-attr]
            told: dict[str, Any] = {"summary": _told(summary), "shows_as": _told(shows_as)}
            self.planted_bugs[name] = PlantedBug(name=name, id=row, **told, **{**self._defaults, **record})
            self._changes[name] = (tuple(part.split()), partial(_put, change, replaces))
            return change

        return planted

    def parts(self, names: Iterable[str]) -> Parts:
        """The parts with the bugs `names`. Raises UsageError for one that there is not."""
        parts = self._usual()
        for places, change in self._chosen(names):
            for place in places:
                if place != CLIENT:
                    outer, _, key = place.partition(".")
                    there = getattr(parts, outer)
                    new = {**there, key: change(there[key])} if key else change(there)
                    parts = replace(parts, **{outer: new})  # type: ignore[type-var]
        return parts

    def client(self, correct: type[Client], names: Iterable[str]) -> type[Client]:
        """The client with those of the bugs `names` that sit in it."""
        for places, change in self._chosen(names):
            correct = change(correct) if CLIENT in places else correct
        return correct

    def _chosen(self, names: Iterable[str]) -> list[tuple[tuple[str, ...], Change]]:
        for name in sorted(names):
            if name not in self._changes:
                raise UsageError(f"{self._system} has no planted bug {name!r}.", f"It has {', '.join(self._changes)}.")
        return [self._changes[name] for name in sorted(names)]


def _put(change: type[Any], replaces: bool, correct: type[Any]) -> type[Any]:
    return change if replaces else in_front(change, correct)


def _told(text: str) -> str:
    words = " ".join(text.split()).removesuffix(".")
    return words[:1].lower() + words[1:]


def planted(
    name: str,
    row: str,
    summary: str,
    shows_as: str,
    *caught_by: str,
    pattern: str,
    campaign: str,
    **options: str,
) -> PlantedBug:
    """The record of a planted bug, for tables in which most rows have the pattern and the campaign in common."""
    return PlantedBug(
        name=name,
        pattern=pattern,
        id=row,
        summary=summary,
        shows_as=shows_as,
        campaign=campaign,
        caught_by=caught_by,
        options=options,
    )


def with_bugs(
    system: str,
    names: Iterable[str],
    parts: Parts,
    changes: Mapping[str, Callable[[Parts], Parts]],
    elsewhere: Iterable[str] = (),
) -> Parts:
    """`parts` with the planted bugs `names`, as they are with none; bugs `elsewhere` are known and not in these parts.

    Raises UsageError for a bug that `system` has not.
    """
    chosen, known = sorted(names), (*changes, *elsewhere)
    for name in chosen:
        if name not in known:
            raise UsageError(f"{system} has no planted bug {name!r}.", f"It has {', '.join(known)}.")
    return parts_with_bugs(chosen, parts, changes)


def parts_with_bugs(names: Iterable[str], parts: Parts, changes: Mapping[str, Callable[[Parts], Parts]]) -> Parts:
    """`parts` with those of the planted bugs `names` that sit in them."""
    for name in sorted(names):
        if name in changes:
            parts = changes[name](parts)
    return parts


def class_with_bugs(names: Iterable[str], correct: type[Part], changes: Mapping[str, type[Part]]) -> type[Part]:
    """The class `correct` with those of the planted bugs `names` that are subclasses of it, all of them combined."""
    found = [changes[name] for name in sorted(names) if name in changes]
    return type(correct.__name__, (*found,), {}) if found else correct


def together(*changes: Callable[[Parts], Parts]) -> Callable[[Parts], Parts]:
    """A bug that takes several changes."""

    def changed(parts: Parts) -> Parts:
        for change in changes:
            parts = change(parts)
        return parts

    return changed


def layered(part: str, change: type[Any]) -> Callable[[Any], Any]:
    """Puts the class `change` in front of the class that is there as `part`, so that several bugs can be combined."""
    return lambda parts: replace(parts, **{part: in_front(change, getattr(parts, part))})


def in_front(change: type[Any], correct: type[Part]) -> type[Part]:
    """The class `correct` with the steps that `change`, which is mixed in before it, replaces."""
    return type(change.__name__, (change, correct), {})


def forced_options(names: Iterable[str], planted_bugs: Mapping[str, PlantedBug]) -> dict[str, str]:
    """The options that the planted bugs `names` need to show."""
    return {
        option: value
        for name in sorted(names)
        if name in planted_bugs
        for option, value in planted_bugs[name].options.items()
    }


class LazyFlush:
    """Mixed into what stores something: acknowledges at once and flushes up to 200 ms later."""

    _ports: Ports
    _log: Any
    _flush_is_due = False

    def _flush(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self._ports.timers.after(_LAZY_FLUSH_US, self._flush_late)

    def _flush_late(self) -> None:
        self._flush_is_due = False
        self._log.flush()
