"""What the planted bugs of all systems share: their records, how they are put into a node, and a flush that comes late.

A system names its bugs in a table from name to change; a change takes the parts a node is built from and returns them
with one step replaced. A bug of the node or the client itself stands in a table from name to subclass. The correct code
does not know of any of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from faultline.harness.errors import UsageError
from faultline.harness.system import Mutant
from faultline.harness.world.ports import Ports

__all__ = [
    "LazyFlush",
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


def planted(
    name: str,
    row: str,
    summary: str,
    shows_as: str,
    *caught_by: str,
    pattern: str,
    campaign: str,
    **options: str,
) -> Mutant:
    """The record of a planted bug, for tables in which most rows have the pattern and the campaign in common."""
    return Mutant(
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


def forced_options(names: Iterable[str], mutants: Mapping[str, Mutant]) -> dict[str, str]:
    """The options that the planted bugs `names` need to show."""
    return {
        option: value for name in sorted(names) if name in mutants for option, value in mutants[name].options.items()
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
