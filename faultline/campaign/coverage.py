"""The coverage of a campaign in drawn universes: option values and pairs of them, weather, and faults by role.

Most interactions need two things at once (Kuhn, Wallace and Gallo, "Software fault interactions and implications for
software testing", IEEE TSE 2004), so pairs are counted as well as values. Their total has all pairs of the domains,
also those that planning refuses, so that it is a bound that a campaign need not reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from faultline.campaign.matrix import CampaignPlan
from faultline.harness.run_record import RunRecord
from faultline.harness.universe import WEATHER, domains_of, option_values
from faultline.registry import load_system

__all__ = ["Coverage", "coverage", "coverage_sentences", "covered"]

_OPTION, _STRUCK = "option.", "struck."
_NEVER_TOLD = 6


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The values that the runs of one system had: options, pairs of them and weather, each reached of possible ones.

    `never` are the option values that no run had, `struck` the runs in which a kind of fault struck a role, such as
    `kill of leader`.
    """

    system: str
    runs: int
    values: int
    values_possible: int
    pairs: int
    pairs_possible: int
    weather: int
    weather_possible: int
    never: tuple[str, ...] = ()
    struck: dict[str, int] = {}


def covered(record: RunRecord) -> list[str]:
    """Return, as texts, the values drawn for a run, and the roles of nodes that each kind of fault struck in it."""
    struck = {f"{each.kind} of {role}" for each in record.faults if each.applied is None for role in each.roles if role}
    return [
        *(f"{name}={value}" for name, value in (record.plan.universe or {}).items()),
        *(f"{_STRUCK}{name}" for name in sorted(struck)),
    ]


def coverage(plan: CampaignPlan, runs: pa.Table) -> tuple[Coverage, ...]:
    """Return the coverage of each system of a campaign in drawn universes, from its table `runs`; of others none."""
    if not plan.universe:
        return ()
    rows = [(name, runs.filter(pc.equal(runs["system"], name))["covered"].to_pylist()) for name in plan.systems]
    return tuple(_of_system(name, plan, each) for name, each in rows if each)


def coverage_sentences(systems: Iterable[Coverage]) -> Iterator[str]:
    """Yield the coverage of each system: the values that its runs reached, of the possible ones."""
    for each in systems:
        told = ", ".join(each.never[:_NEVER_TOLD])
        more = f" and {len(each.never) - _NEVER_TOLD} more" if len(each.never) > _NEVER_TOLD else ""
        yield (
            f"Universes of {each.system}: {each.values} of {each.values_possible} values of options, {each.pairs:,} of "
            f"{each.pairs_possible:,} pairs of them and {each.weather} of {each.weather_possible} values of weather in "
            f"{each.runs:,} runs" + (f"; never {told}{more}." if told else ".")
        )
        if each.struck:
            yield f"Faults by role: {', '.join(f'{name} in {runs:,}' for name, runs in each.struck.items())} runs."


def _of_system(name: str, plan: CampaignPlan, rows: list[list[str]]) -> Coverage:
    system = load_system(name)
    domains = domains_of(system)
    options = {option: each for option, each in option_values(system, domains).items() if option not in plan.options}
    fields = [field for field in WEATHER if field not in (plan.weather or {})]
    weather = {f"weather.{field}={value}" for field in fields for value in domains.weather.get(field, WEATHER[field])}
    pairs, drawn, struck = set[tuple[tuple[str, str], tuple[str, str]]](), set[str](), dict[str, int]()
    seen: set[tuple[str, str]] = set()
    for row in rows:
        drawn |= set(row)
        own = dict(text.removeprefix(_OPTION).split("=", 1) for text in row if text.startswith(_OPTION))
        # An option that was not drawn had its default, the first of its values.
        settings = [(option, own.get(option, values[0])) for option, values in options.items()]
        seen |= set(settings)
        pairs |= set(combinations(settings, 2))
        for text in row:
            if text.startswith(_STRUCK):
                kind = text.removeprefix(_STRUCK)
                struck[kind] = struck.get(kind, 0) + 1
    possible = {(option, value) for option, values in options.items() for value in values}
    return Coverage(
        system=name,
        runs=len(rows),
        values=len(seen & possible),
        values_possible=len(possible),
        pairs=sum({one, other} <= possible for one, other in pairs),
        pairs_possible=sum(1 for one, other in combinations(options.values(), 2) for _ in product(one, other)),
        weather=len(weather & drawn),
        weather_possible=len(weather),
        never=tuple(f"{option}={value}" for option, value in sorted(possible - seen)),
        struck=dict(sorted(struck.items())),
    )
