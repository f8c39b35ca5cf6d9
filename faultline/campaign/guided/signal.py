"""The signal of a run: what it covered, in the compact form in which a work unit leaves it for the next wave.

The pairs of successive events at one node tell the order in which situations met. They still grow after hundreds of
runs, when every mark has been reached, and cost one dictionary access for each event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from faultline.harness.results import write_whole
from faultline.harness.untrusted import DamagedInput, read_json

__all__ = ["EventPairs", "Signal", "read_signals", "write_signals"]


class EventPairs:
    """An observer of the nodes of one run, which collects the pairs of successive events at one node."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}
        self._pairs: set[tuple[str, str]] = set()

    def observe(self, node: str, event: str) -> None:
        """Take `event`, an event or mark that `node` reports."""
        last = self._last.get(node)
        self._last[node] = event
        if last is not None:
            self._pairs.add((last, event))

    def pairs(self) -> tuple[str, ...]:
        """Return the pairs as texts, `first > second`, sorted."""
        return tuple(sorted(f"{first} > {second}" for first, second in self._pairs))


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """One finished run: its `seed` and `run_id`, its `pairs` of events, the `features` it entered, its `options`, and
    the kind of its violation, empty without one. An `is_archivable` run may be the parent of others."""

    seed: int
    run_id: str
    pairs: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    options: dict[str, str] = {}
    violation: str = ""
    is_archivable: bool = True


class _Compact(msgspec.Struct, frozen=True, array_like=True):
    seed: int
    run_id: str
    pairs: tuple[int, ...]
    features: tuple[str, ...]
    options: dict[str, str]
    violation: str
    is_archivable: bool


class _File(msgspec.Struct, frozen=True):
    """The signals of one unit; pairs are places in `names`, as most runs have most pairs in common."""

    names: tuple[str, ...]
    runs: tuple[_Compact, ...]


def write_signals(path: Path, signals: Sequence[Signal]) -> None:
    """Write the signals of a unit."""
    names = sorted({pair for signal in signals for pair in signal.pairs})
    places = {name: place for place, name in enumerate(names)}
    runs = tuple(
        _Compact(
            each.seed,
            each.run_id,
            tuple(places[pair] for pair in each.pairs),
            each.features,
            each.options,
            each.violation,
            each.is_archivable,
        )
        for each in signals
    )
    write_whole(path, msgspec.json.encode(_File(tuple(names), runs)), durable=False)


def read_signals(paths: Iterable[Path]) -> list[Signal]:
    """Return the signals in the files `paths`, by seed. A file that is missing or damaged has none: its unit did not
    end."""
    found: list[Signal] = []
    for path in paths:
        try:
            file = read_json(path, _File)
            found += [_signal(run, file.names) for run in file.runs]
        except (DamagedInput, IndexError):
            continue
    return sorted(found, key=lambda each: each.seed)


def _signal(run: _Compact, names: Sequence[str]) -> Signal:
    return Signal(
        seed=run.seed,
        run_id=run.run_id,
        pairs=tuple(names[place] for place in run.pairs),
        features=run.features,
        options=run.options,
        violation=run.violation,
        is_archivable=run.is_archivable,
    )
