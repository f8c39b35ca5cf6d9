"""`faultline list`: the systems, workloads, faults and other choices, taken from the registries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from faultline.cli.output import say
from faultline.cli.pattern_listing import pattern_entry, pattern_lines
from faultline.cli.serving import served, serving, serving_lines
from faultline.harness.errors import UsageError

__all__ = ["LISTINGS", "command"]

Entry = dict[str, Any]
Loaded = TypeVar("Loaded")

_ON_HOSTS = "on hosts only"


def _systems() -> list[Entry]:
    from faultline.registry import load_system, load_workload, stores, systems, workloads

    known = systems() | stores()
    loaded = [workload for _, workload in _loaded(load_workload, workloads())]
    return [_system(name, system, known[name], served(system, loaded)) for name, system in _loaded(load_system, known)]


def _loaded(load: Callable[[str], Loaded], names: Iterable[str]) -> Iterator[tuple[str, Loaded]]:
    """Return all entries that can be loaded; a broken plug-in is reported on standard error and left out."""
    for name in sorted(names):
        try:
            yield name, load(name)
        except UsageError as error:
            say(f"faultline: {error.message} {error.next_step}", err=True)


def _system(name: str, system: Any, path: str, workloads: list[str]) -> Entry:
    from faultline.harness.options import IsTuned
    from faultline.harness.system import HostedStore

    return {
        "name": name,
        "summary": system.summary,
        "runs": _ON_HOSTS if isinstance(system, HostedStore) else "in all worlds",
        "promise": system.promise,
        "functions": list(system.functions),
        "workloads": workloads,
        "patterns": list(system.patterns),
        "only_with": _functions_by_option(system),
        "options": _described(system.options),
        "tuning": _described(system.tuning if isinstance(system, IsTuned) else {}),
        "features": {feature.name: _feature(feature) for feature in getattr(system, "features", ())},
        "planted_bugs": list(system.planted_bugs),
        "provider": path,
    }


def _feature(feature: Any) -> Entry:
    essential = f"with {', '.join(feature.faults)}" if feature.faults else "always"
    return {
        "summary": feature.summary,
        "needs": [f"{name}={value}" for name, value in feature.needs.items()],
        "unless": [f"{name}={value}" for name, value in feature.unless.items()],
        "essential": essential if feature.essential else "",
    }


def _described(options: Mapping[str, Any]) -> Entry:
    return {
        name: {"default": one.default, "choices": one.choices, "summary": one.summary} for name, one in options.items()
    }


def _functions_by_option(system: Any) -> list[str]:
    """Return the functions that are served only under certain options, `leases=on: acquire, ...`."""
    from faultline.harness.system import ServesByOption

    found: dict[str, list[str]] = {}
    for function, needed in system.function_options.items() if isinstance(system, ServesByOption) else ():
        found.setdefault(" ".join(f"{name}={value}" for name, value in needed.items()), []).append(function)
    return [f"{needed}: {', '.join(functions)}" for needed, functions in found.items()]


def _workloads() -> list[Entry]:
    from faultline.registry import load_system, load_workload, stores, systems, workloads

    loaded = [system for _, system in _loaded(load_system, systems() | stores())]
    entries = []
    for name, workload in _loaded(load_workload, workloads()):
        checkers = [checker.name for checker in workload.checkers()]
        entries.append(
            {
                "name": name,
                "summary": workload.promise,
                "functions": list(workload.functions),
                "checkers": checkers,
                "systems": serving(workload, loaded),
                "provider": workloads()[name],
            }
        )
    return entries


def _faults() -> list[Entry]:
    from faultline.registry import fault_sets, load_nemeses, load_packages, nemesis_kinds

    packages = [
        {"name": name, "summary": f"Set: {package.summary}.", "sort": "fault set", "kinds": list(package.kinds)}
        for name, package in _in_order(fault_sets(), lambda name: load_packages([name])[0])
    ]
    kinds = [
        {"name": kind, "summary": f"Fault: {nemesis.summary}.", "sort": "fault", "needs": sorted(nemesis.needs)}
        for kind, nemesis in _in_order(nemesis_kinds(), lambda kind: load_nemeses([kind])[kind])
    ]
    return packages + kinds


def _in_order(names: Sequence[str], load: Callable[[str], Loaded]) -> list[tuple[str, Loaded]]:
    found = dict(_loaded(load, names))
    return [(name, found[name]) for name in names if name in found]


def _checkers() -> list[Entry]:
    from faultline.checkers import CHECKERS
    from faultline.harness.plugins import CHECKERS_GROUP, load, plugged_in

    plugged = {name: path for name, path in plugged_in(CHECKERS_GROUP).items() if name not in CHECKERS}
    own = [{"name": name, "summary": entry.summary} for name, entry in CHECKERS.items()]
    classes = _loaded(lambda name: load("checker", name, plugged[name]), plugged)
    return own + [
        {"name": name, "summary": _first_line(checker), "provider": plugged[name]} for name, checker in classes
    ]


def _anomalies() -> list[Entry]:
    from faultline.checkers.anomalies import listed

    return [{"name": one.name, "summary": one.meaning, "about": one.about} for one in listed()]


def _first_line(documented: Any) -> str:
    return (documented.__doc__ or "").strip().partition("\n")[0]


def _planted_bugs() -> list[Entry]:
    import msgspec

    from faultline.registry import load_system, systems

    return [
        {"system": name} | msgspec.to_builtins(planted_bug)
        for name, system in _loaded(load_system, systems())
        for planted_bug in system.planted_bugs.values()
    ]


def _patterns() -> list[Entry]:
    from faultline.registry import load_system, systems
    from faultline.systems_under_test.patterns.catalogue import PATTERNS

    loaded = dict(_loaded(load_system, systems()))
    return [pattern_entry(pattern, loaded) for pattern in PATTERNS]


def _plans() -> list[Entry]:
    from faultline.campaign.planfile import load_plan, shipped_plans

    plans = [load_plan(name) for name in shipped_plans()]
    return [
        {
            "name": plan.name,
            "summary": plan.summary,
            "systems": list(plan.systems),
            "workloads": list(plan.workloads),
            "fault_sets": ["+".join(names) or "none" for names in plan.fault_sets],
            "seeds": plan.seeds,
        }
        for plan in plans
    ]


LISTINGS: dict[str, Callable[[], list[Entry]]] = {
    "systems": _systems,
    "workloads": _workloads,
    "faults": _faults,
    "checkers": _checkers,
    "anomalies": _anomalies,
    "planted-bugs": _planted_bugs,
    "patterns": _patterns,
    "plans": _plans,
}
"""The listings by name: each gives plain dictionaries with at least `name` and `summary`."""

_FORMER_NAMES = {"mutants": "planted-bugs"}  # a former name, still taken


class _Listed(click.Choice[str]):
    """One of the listings, also by its former name."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(_FORMER_NAMES.get(value, value), param, ctx)


@click.command("list")
@click.argument("what", type=_Listed(list(LISTINGS)))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of objects.")
def command(what: str, as_json: bool) -> int:
    """List systems, workloads, faults and other choices."""
    entries = LISTINGS[what]()
    if as_json:
        import msgspec

        say(msgspec.json.encode(entries))
        return 0
    if what == "patterns":
        say("\n".join(line for entry in entries for line in pattern_lines(entry)))
        return 0
    width = max(len(entry["name"]) for entry in entries)
    owner = max(len(entry["system"]) for entry in entries) if what == "planted-bugs" else 0
    for entry in entries:
        system = f"{entry['system']:<{owner}}  " if owner else ""
        say(f"{entry['name']:<{width}}  {system}{entry['summary']}{_note(entry)}")
        for line in _below(what, entry):
            say(line)
    return 0


def _below(what: str, entry: Entry) -> list[str]:
    """Return the lines below an entry: the systems of a workload, or the workloads of a system."""
    if what == "workloads":
        return serving_lines("on", entry["systems"])
    return serving_lines("serves", entry["workloads"]) if what == "systems" else []


def _note(entry: Entry) -> str:
    """Return the worlds of a system when those are not all, and the package of a plug-in."""
    provider = entry.get("provider", "faultline.")
    where = f" [{_ON_HOSTS}]" if entry.get("runs") == _ON_HOSTS else ""
    return where if provider.startswith("faultline.") else f"{where} [{provider}]"
