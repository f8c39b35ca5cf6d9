"""Universes: for each seed other weather, other sizes, other options of the system and other fault packages.

Situations are what a campaign runs out of first: in one universe every run has the same latency, the same three nodes
and the same options. A *drawn* universe takes each from a domain, some of them at a time, as swarm testing does with
faults (Groce et al., "Swarm testing", ISSTA 2012). The *calm* universe is the one of the defaults.

A draw is a pure function of the request and the number of the attempt. The plan holds the drawn values, each in its own
place, and lists them in `Plan.universe`, so that a plan can be printed, replayed, and shrunk towards the calm universe.

A system needs to declare nothing: the domains follow from the descriptions of its options. It narrows or widens them
with an attribute `domains`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec
from msgspec.structs import replace

from faultline.harness.conditions import weather_of
from faultline.harness.errors import UsageError
from faultline.harness.generator.chance import chance_of_text
from faultline.harness.options import all_options, effective_options, flat_options
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan, Weather
from faultline.harness.racks import RACKS_USUAL
from faultline.harness.request import DRAWN_NUMBERS, RunRequest
from faultline.harness.system import (
    HasUsualTest,
    NodeSystem,
    OptionDescription,
    functions_options,
    planted_options,
)
from faultline.harness.triggers import event_names, unknown_event

__all__ = [
    "AIMED",
    "DRAWS_MAX",
    "WEATHER",
    "DeclaresDomains",
    "Domains",
    "Drawn",
    "calm_options",
    "calm_universe",
    "domains_of",
    "draws",
    "kept_options",
    "option_values",
    "usual_nodes_of",
    "weather_value",
]

DRAWS_MAX = 1_000
"""The number of universes drawn for one seed before planning gives up: each may be refused."""

WEATHER: dict[str, tuple[int | float | str, ...]] = {
    "latency_us_max": (600, 5_000, 10_000, 20_000),
    "fsync_us_max": (200, 5_000, 10_000, 40_000),
    "loss": (0.01, 0.02, 0.05),
    "duplicate": (0.02, 0.1),
    "drift_ppm_max": (0, 500, 1_000),
    "client_distance_us_max": (5_000, 20_000),
    "stale": (0.001, 0.01),
    "reset": (0.001, 0.01),
    "disk": ("journaled", "page-cache"),
}
"""The values from which each field of `Weather` is drawn, apart from its calm one, which is always possible."""

AIMED = "aimed"
"""The name of the drawn value that lets faults strike at events as well. It came later, with draws of its own."""

_AIMED_SHARE = 0.25
_RACKS = "racks"
_SIZES = "small-sizes"
_STREAMS = ("stale", "reset", "disk", AIMED, _RACKS, _SIZES)
"""The draws that came later: they have streams of their own, and move none of those that universes had before."""

_NODES = (3, 3, 3, 4, 5, 5, 6, 7, 9)
_WORKERS = (2, 3, 5, 5, 8, 10)
_OPERATIONS = (30, 60, 100, 200)
_RACKS_AT_ONCE = (2, 3, 3, 4, 5)
_SHARES = (0.0, 0.1, 0.25, 0.5)
"""The shares of options that are drawn, of which a seed has one: a few changes show what many would hide."""
_SHARES_OF_WEATHER = (0.0, 0.25, 0.5, 1.0)
_PACKAGES_AT_ONCE = (1, 1, 2, 2, 3)

_FACTORS = (0.25, 0.5, 2, 4)
_FACTORS_OF_SIZES = (1 / 256, 1 / 64, 1 / 16, *_FACTORS)
"""Sizes are drawn small as well: a snapshot after 2,000 entries is never taken in a run of 200 operations."""
_SMALL_SIZES_SHARE = 0.5
_SMALL_SIZE_SHARE = 0.7
"""The share of the seeds with small sizes, and that of the sizes which are small in such a seed. Steps that wait for a
size hang together: a log is cleaned where snapshots *and* log files are small."""
_SIZE_MIN = 64
_SMALL_DIVISOR = 8
"""A number that is this large by default is a size, and small where it is less than an eighth of that."""
_LONG_MS = 5_000
_WITHIN_A_RUN_MS = (150, 500, 1_500)
"""Times for a setting that is longer than a run by default, so that what it times happens in some runs."""
_SMALL = (1, 2, 5)
_SHORT_MS = (5, 20, 100)
"""Times for a setting that is 0 by default, which usually means never or at once."""


class Domains(msgspec.Struct, frozen=True, kw_only=True):
    """The values from which a system's universes are drawn; a value that stands twice is twice as likely.

    `options` and `weather` replace the default domains of those that they name: an empty domain keeps the option or
    the field as it is in the calm universe. `events` are those at which faults may be aimed; None stands for all that
    the system can report.
    """

    nodes: tuple[int, ...] = _NODES
    workers: tuple[int, ...] = _WORKERS
    operations: tuple[int, ...] = _OPERATIONS
    options: Mapping[str, tuple[str, ...]] = {}
    weather: Mapping[str, tuple[int | float | str, ...]] = {}
    events: tuple[str, ...] | None = None


@runtime_checkable
class DeclaresDomains(Protocol):
    """A system that declares the domains of its universes."""

    domains: Domains


class Drawn(NamedTuple):
    """One universe: the request with its values in place, its weather, and every drawn value by name, as text.

    `aimed` says that faults of its packages strike at events as well. `racks` are as many as there are at most where
    faults strike racks.
    """

    request: RunRequest
    weather: Weather
    values: dict[str, str]
    aimed: bool
    racks: int


def draws(request: RunRequest, system: NodeSystem, functions: tuple[str, ...]) -> Iterator[Drawn]:
    """Yield at most DRAWS_MAX universes for `request`, whose workload uses `functions`, in the order to try them.

    What the request gives is kept: its options, those that its planted bugs and functions need, its weather, and the
    numbers that it holds. The weather may contradict what is drawn beside it. Raise `UsageError` for domains that
    contradict each other or the system.
    """
    domains = domains_of(system)
    kept = kept_options(request, system, functions)
    values = option_values(system, domains)
    for attempt in range(DRAWS_MAX):
        name = ("universe", request.cell, request.seed, attempt)
        streams = {each: Random(chance_of_text(*name, each)) for each in _STREAMS}
        yield _draw(replace(request, options=kept), domains, values, Random(chance_of_text(*name)), streams)


def calm_options(request: RunRequest, parts: Parts) -> dict[str, str]:
    """Return the options of the calm universe of a request for drawn ones."""
    kept = kept_options(request, parts.system, parts.workload.functions)
    return effective_options(parts.system, kept, request.planted_bugs)


def calm_universe(plan: Plan, system: NodeSystem) -> dict[str, str]:
    """Return the calm value, as text, of each value that was drawn for `plan`, by name."""
    drawn, usual = plan.universe or {}, RunRequest(system=plan.system)
    calm = {name: str(getattr(usual, name)) for name in DRAWN_NUMBERS} | {"faults": "+".join(plan.fault_set)}
    calm |= {"nodes": str(usual_nodes_of(system)), AIMED: "off", _RACKS: str(RACKS_USUAL)}
    calm |= {f"option.{name}": description.default for name, description in all_options(system).items()}
    for field in WEATHER:
        name, value = f"weather.{field}", weather_value(Weather(), field)
        # A domain may have 0 where the weather has 0.0: they are the same value.
        is_same = not isinstance(value, str) and drawn.get(name) == f"{value:g}"
        calm[name] = drawn[name] if is_same else str(value)
    return {name: calm[name] for name in drawn if name in calm}


def weather_value(weather: Weather, field: str) -> int | float | str:
    """Return the value of a field; of one that is unset the value that it stands for."""
    value: int | float | str | msgspec.UnsetType = getattr(weather, field)
    if value is msgspec.UNSET:
        return "journaled" if field == "disk" else 0.0
    return value


def kept_options(request: RunRequest, system: NodeSystem, functions: Iterable[str]) -> dict[str, str]:
    """Return the options that no universe of `request` draws: its own, and those that its planted bugs and the
    `functions` of its workload need."""
    return planted_options(system, request.planted_bugs) | functions_options(system, functions) | request.options


def usual_nodes_of(system: NodeSystem) -> int:
    """Return the number of nodes of the calm universe of `system`."""
    return system.usual_nodes if isinstance(system, HasUsualTest) else min(_NODES)


def domains_of(system: NodeSystem) -> Domains:
    """Return the domains of `system`, with its usual number of nodes as the least where it declares none.

    Raise `UsageError` for domains that are empty or name what does not exist.
    """
    if not isinstance(system, DeclaresDomains):
        return Domains(nodes=tuple(max(count, usual_nodes_of(system)) for count in _NODES))
    for complaint in (*_complaints(system, system.domains), *_unknown_events(system, system.domains)):
        raise UsageError(f"The domains of {system.name} contradict themselves: {complaint}.", "Mend `domains` there.")
    return system.domains


def option_values(system: NodeSystem, domains: Domains) -> dict[str, tuple[str, ...]]:
    """Return, for each option of `system` that can be drawn, the values to draw from, its default among them."""
    known = all_options(system)
    values = {
        name: domains.options[name] if name in domains.options else _values(name, description)
        for name, description in known.items()
    }
    return {name: tuple(dict.fromkeys((known[name].default, *each))) for name, each in values.items() if each}


def _draw(
    request: RunRequest,
    domains: Domains,
    values: Mapping[str, tuple[str, ...]],
    rng: Random,
    streams: Mapping[str, Random],
) -> Drawn:
    """Return one universe. Every choice is drawn whether it is used or not, so that holding one moves no other.

    Fields of the weather that have one of the `streams` are drawn from it, all else from `rng`.
    """
    numbers = {name: rng.choice(getattr(domains, name)) for name in DRAWN_NUMBERS}
    numbers = {name: number for name, number in numbers.items() if name not in (request.held or ())}
    faults = _some_packages(request.faults, rng)
    given = request.weather or {}
    weather = {name: value for name, value in _weather(domains, rng, streams).items() if name not in given}
    kept = flat_options(request.options)
    chosen = _options(values, rng) | _small_sizes(values, streams[_SIZES])
    options = {name: value for name, value in chosen.items() if name not in kept}
    drawn = {name: str(number) for name, number in numbers.items()}
    if len(request.faults) > 1:
        drawn["faults"] = "+".join(faults)
    drawn |= {f"weather.{name}": str(value) for name, value in weather.items()}
    drawn |= {f"option.{name}": value for name, value in options.items()}
    changed = replace(request, faults=faults, options=request.options | options, **numbers)
    aimed = streams[AIMED].random() < _AIMED_SHARE
    racks = streams[_RACKS].choice(_RACKS_AT_ONCE)
    return Drawn(changed, weather_of(given, replace(Weather(), **weather)), drawn, aimed, racks)


def _some_packages(names: tuple[str, ...], rng: Random) -> tuple[str, ...]:
    """Return one to three of the fault packages, in their order: with all at once they mask one another."""
    count = min(rng.choice(_PACKAGES_AT_ONCE), len(names))
    chosen = set(rng.sample(names, count))
    return tuple(name for name in names if name in chosen)


def _weather(domains: Domains, rng: Random, streams: Mapping[str, Random]) -> dict[str, int | float | str]:
    share = rng.choice(_SHARES_OF_WEATHER)
    fields = {name: (domains.weather.get(name, values), streams.get(name, rng)) for name, values in WEATHER.items()}
    return {name: own.choice(values) for name, (values, own) in fields.items() if values and own.random() < share}


def _options(values: Mapping[str, tuple[str, ...]], rng: Random) -> dict[str, str]:
    """Return the options that are drawn otherwise than their defaults, which come first among their values."""
    share = rng.choice(_SHARES)
    drawn = {name: rng.choice(each) for name, each in values.items() if rng.random() < share}
    return {name: value for name, value in drawn.items() if value != values[name][0]}


def _small_sizes(values: Mapping[str, tuple[str, ...]], rng: Random) -> dict[str, str]:
    """Return small values of sizes: in half of the universes most of them are small, in the others none."""
    if rng.random() >= _SMALL_SIZES_SHARE:
        return {}
    drawn = {}
    for name, (default, *others) in values.items():
        if name.endswith("_ms") or not default.isdigit() or int(default) < _SIZE_MIN:
            continue
        small = [value for value in others if int(value) * _SMALL_DIVISOR < int(default)]
        if small and rng.random() < _SMALL_SIZE_SHARE:
            drawn[name] = rng.choice(small)
    return drawn


def _values(name: str, description: OptionDescription) -> tuple[str, ...]:
    """Return the values of an option that follow from its description; none for a text, of which nothing is known."""
    if description.choices or description.is_text:
        return description.choices
    default, is_time = int(description.default), name.endswith("_ms")
    if not default:
        return tuple(map(str, _SHORT_MS if is_time else _SMALL))
    if is_time and default > _LONG_MS:
        return tuple(map(str, _WITHIN_A_RUN_MS))
    return tuple(str(max(1, int(default * factor))) for factor in (_FACTORS if is_time else _FACTORS_OF_SIZES))


def _complaints(system: NodeSystem, domains: Domains) -> Iterator[str]:
    """Yield, as clauses, what is wrong with `domains`."""
    known, calm = all_options(system), Weather()
    for name in DRAWN_NUMBERS:
        if not getattr(domains, name) or min(getattr(domains, name)) < 1:
            yield f"{name} needs numbers from 1"
    for name, values in domains.options.items():
        if name not in known:
            yield f"there is no option {name}"
        elif known[name].choices and not set(values) <= set(known[name].choices):
            yield f"{name} cannot be {', '.join(sorted(set(values) - set(known[name].choices)))}"
    for name, numbers in domains.weather.items():
        if name not in WEATHER:
            yield f"weather has no field {name}; it has {', '.join(WEATHER)}"
        elif name.endswith("_max") and any(float(each) < getattr(calm, f"{name[:-4]}_min", 0) for each in numbers):
            yield f"{name} has a value below {name[:-4]}_min, {getattr(calm, f'{name[:-4]}_min')}"


def _unknown_events(system: NodeSystem, domains: Domains) -> Iterator[str]:
    """Yield, as clauses, the events that `domains` names and `system` does not have."""
    for event in domains.events or ():
        if event not in event_names(system):
            yield f"there is no event {event}. {unknown_event(event, system)}".rstrip(".")
