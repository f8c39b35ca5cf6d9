"""What the planted bugs of all systems share: how they are put into the parts of a node, and a flush that comes late.

A system names its bugs in a table from name to change; a change takes the parts a node is built from and returns them
with one step replaced. The correct code does not know of any of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from faultline.harness.errors import UsageError
from faultline.harness.system import Mutant
from faultline.harness.world.ports import Ports

__all__ = ["LazyFlush", "forced_options", "layered", "with_bugs"]

Parts = TypeVar("Parts")

_LAZY_FLUSH_US = 200_000


def with_bugs(
    system: str, names: Iterable[str], parts: Parts, changes: Mapping[str, Callable[[Parts], Parts]]
) -> Parts:
    """`parts` with the planted bugs `names`, as they are with none. Raises UsageError for a bug `system` has not."""
    for name in sorted(names):
        if name not in changes:
            raise UsageError(f"{system} has no planted bug {name!r}.", f"It has {', '.join(changes)}.")
        parts = changes[name](parts)
    return parts


def layered(part: str, change: type[Any]) -> Callable[[Any], Any]:
    """Puts the class `change` in front of the class that is there as `part`, so that several bugs can be combined."""

    def changed(parts: Any) -> Any:
        return replace(parts, **{part: type(change.__name__, (change, getattr(parts, part)), {})})

    return changed


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
