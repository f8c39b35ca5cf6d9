"""Planted bugs: one class says what is broken, how it shows and which campaign finds it, and is the change itself.

    BUGS = PlantedBugs("timestamped-kv", Parts)

    @BUGS.plant("wall-time-stamps", "HYC-M1", part="hybrid", campaign="causes", caught_by=("causal-pairs",))
    class _WallTime(HybridStamps):
        '''A write is stamped with the wall time, and nothing else.

        Shows as: under wrong clocks effects come before causes, and new versions below old ones.
        '''

The class is put in front of the correct one under `part` of the node's `Parts`; `part="client"` and `part="node"` stand
for the classes of the client and the node themselves. A function takes the place of the correct function. The correct
code does not know of any of this.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypedDict, TypeVar, Unpack

from faultline.harness.system import PlantedBug
from faultline.harness.world.ports import Ports
from faultline.systems_under_test.reference.shared.settings import unknown_name

if TYPE_CHECKING:
    from _typeshed import DataclassInstance  # stubs of the type checker, which have no public name for it

__all__ = [
    "BugRecord",
    "LazyFlush",
    "NoParts",
    "PlantedBugs",
    "in_front",
]

NodeParts = TypeVar("NodeParts", bound="DataclassInstance")
Part = TypeVar("Part")
Change = TypeVar("Change", bound=Callable[..., object])

_LAZY_FLUSH_US = 200_000
_OUTSIDE_THE_PARTS = frozenset({"client", "node"})


class BugRecord(TypedDict, total=False):
    """The fields of a bug's record that its class does not tell by itself.

    `summary` takes the place of the docstring's first sentence.
    """

    summary: str

    pattern: str
    campaign: str
    caught_by: tuple[str, ...]
    options: dict[str, str]
    worlds: tuple[str, ...]
    why_not: str


@dataclass(frozen=True)
class NoParts:
    """The parts of a system that has none: all its bugs sit in the node or the client."""


class _Place(NamedTuple):
    """The place of a change: a part (`stamps`), an entry of one (`waits.write`, `waits.*`), `node` or `client`."""

    part: str
    change: Callable[..., object]
    replaces: bool

    def put(self, correct: object) -> object:
        """Return `correct` with the change."""
        if self.replaces or not isinstance(self.change, type):
            return self.change
        assert isinstance(correct, type), f"{self.change.__name__} is no class, but {self.part} is"
        return in_front(self.change, correct)


class PlantedBugs(Generic[NodeParts]):
    """The bugs planted in `system`; `usual` makes the correct parts, `common` is what the records have in common."""

    def __init__(self, system: str, usual: Callable[[], NodeParts], **common: Unpack[BugRecord]) -> None:
        self.planted_bugs: dict[str, PlantedBug] = {}
        self._system, self._usual, self._common = system, usual, common
        self._places: dict[str, list[_Place]] = {}

    def group(self, **common: Unpack[BugRecord]) -> PlantedBugs[NodeParts]:
        """Return a place to plant bugs of this system whose records have `common` in common."""
        record: BugRecord = {**self._common, **common}
        group = PlantedBugs(self._system, self._usual, **record)
        group.planted_bugs, group._places = self.planted_bugs, self._places
        return group

    def with_those_of(self, *others: PlantedBugs[NodeParts]) -> PlantedBugs[NodeParts]:
        """Return the bugs of this system that stand in several modules, in the order of the modules."""
        joined = PlantedBugs(self._system, self._usual)
        for each in (self, *others):
            twice = joined.planted_bugs.keys() & each.planted_bugs.keys()
            assert not twice, f"{self._system} has two planted bugs {', '.join(sorted(twice))}"
            joined.planted_bugs.update(each.planted_bugs)
            joined._places.update(each._places)
        return joined

    def plant(
        self, name: str, row: str, *, part: str | tuple[str, ...], replaces: bool = False, **record: Unpack[BugRecord]
    ) -> Callable[[Change], Change]:
        """Register the decorated class as the bug `name`, which breaks the requirement `row`.

        With `replaces` the class stands alone where the correct one was; else it is put in front of it.
        """
        assert name not in self.planted_bugs, f"{self._system} has two planted bugs {name}"

        def planted(change: Change) -> Change:
            summary, _, shows_as = (inspect.getdoc(change) or "").partition("\n\nShows as: ")
            assert shows_as, f"the docstring of the planted bug {name} has no paragraph `Shows as: …`"
            fields: BugRecord = {"summary": _as_clause(summary), **self._common, **record}
            self.planted_bugs[name] = PlantedBug(name=name, id=row, shows_as=_as_clause(shows_as), **fields)
            return self.also(name, part=part, replaces=replaces)(change)

        return planted

    def also(self, name: str, *, part: str | tuple[str, ...], replaces: bool = False) -> Callable[[Change], Change]:
        """Register the decorated class as a further change that the bug `name` takes."""

        def planted(change: Change) -> Change:
            parts = (part,) if isinstance(part, str) else part
            self._places.setdefault(name, []).extend(_Place(each, change, replaces) for each in parts)
            return change

        return planted

    def parts(self, names: Iterable[str]) -> NodeParts:
        """Return the parts with the bugs `names`. Raise `UsageError` for an unknown one."""
        parts = self._usual()
        for place in self._chosen(names):
            if place.part not in _OUTSIDE_THE_PARTS:
                parts = _changed(parts, place.part, place)
        return parts

    def client(self, correct: type[Part], names: Iterable[str]) -> type[Part]:
        """Return the class of the client with those of the bugs `names` that sit in it."""
        return self._class("client", correct, names)

    def node(self, correct: type[Part], names: Iterable[str]) -> type[Part]:
        """Return the class of the node with those of the bugs `names` that sit in it."""
        return self._class("node", correct, names)

    def _class(self, part: str, correct: type[Part], names: Iterable[str]) -> type[Part]:
        for place in self._chosen(names):
            if place.part == part:
                assert isinstance(place.change, type)
                correct = in_front(place.change, correct)
        return correct

    def _chosen(self, names: Iterable[str]) -> list[_Place]:
        # In one order, whatever the order of the names: a set of bugs always makes the same classes.
        chosen = sorted(names)
        for name in chosen:
            if name not in self.planted_bugs:
                raise unknown_name(f"{self._system} has no planted bug", name, self.planted_bugs)
        return [place for name in chosen for place in self._places[name]]


def _changed(owner: Any, path: str, place: _Place) -> Any:
    """Return the parts `owner`, a record or a mapping, with the change at `path`, as in `waits.write` or `waits.*`."""
    if not path:
        return place.put(owner)
    name, _, rest = path.partition(".")
    if isinstance(owner, Mapping):
        entries = owner if name == "*" else (name,)
        return {**owner, **{entry: _changed(owner[entry], rest, place) for entry in entries}}
    return replace(owner, **{name: _changed(getattr(owner, name), rest, place)})


def _as_clause(text: str) -> str:
    """Return a sentence of a docstring as records have it: on one line, without capital and full stop."""
    words = " ".join(text.split()).removesuffix(".")
    return words if words[1:2].isupper() else words[:1].lower() + words[1:]


def in_front(change: type[Any], correct: type[Part]) -> type[Part]:
    """Return a class of `change` and `correct` behind it, which has the steps that `change` does not override."""
    return type(change.__name__, (change, correct), {})


class LazyFlush:
    """A mix-in for stores: it acknowledges at once and flushes up to 200 ms later."""

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
