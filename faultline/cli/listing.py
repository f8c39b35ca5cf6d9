"""`faultline list`: what there is to choose from, made from the registries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["LISTINGS", "command"]

Entry = dict[str, Any]


def _systems() -> list[Entry]:
    from faultline.registry import load_system, systems

    return [_system(load_system(name), path) for name, path in sorted(systems().items())]


def _system(system: Any, path: str) -> Entry:
    options = {
        name: {"default": o.default, "choices": o.choices, "summary": o.summary} for name, o in system.options.items()
    }
    return {
        "name": system.name,
        "summary": system.summary,
        "promise": system.promise,
        "patterns": list(system.patterns),
        "options": options,
        "mutants": list(system.mutants),
        "provider": path,
    }


def _workloads() -> list[Entry]:
    from faultline.registry import load_workload, workloads

    entries = []
    for name, path in sorted(workloads().items()):
        workload = load_workload(name)
        checkers = [checker.name for checker in workload.checkers()]
        entries.append(
            {
                "name": name,
                "summary": workload.promise,
                "functions": list(workload.functions),
                "checkers": checkers,
                "provider": path,
            }
        )
    return entries


def _faults() -> list[Entry]:
    from faultline.nemesis import NEMESES, PACKAGES

    packages = [
        {"name": package.name, "summary": f"Set: {package.summary}.", "sort": "fault set", "kinds": list(package.kinds)}
        for package in PACKAGES.values()
    ]
    kinds = [
        {"name": kind, "summary": f"Fault: {nemesis.summary}.", "sort": "fault", "needs": sorted(nemesis.needs)}
        for kind, nemesis in NEMESES.items()
    ]
    return packages + kinds


def _checkers() -> list[Entry]:
    from faultline.checkers import CHECKERS

    return [{"name": name, "summary": entry.summary} for name, entry in CHECKERS.items()]


def _mutants() -> list[Entry]:
    import msgspec

    from faultline.registry import load_system, systems

    return [
        {"system": name} | msgspec.to_builtins(mutant)
        for name in sorted(systems())
        for mutant in load_system(name).mutants.values()
    ]


def _patterns() -> list[Entry]:
    import msgspec

    from faultline.systems_under_test.patterns.catalogue import PATTERNS

    return [
        msgspec.to_builtins(pattern)
        | {"status": pattern.status, "summary": f"{pattern.part}, chapter {pattern.chapter}: {pattern.status}."}
        for pattern in PATTERNS
    ]


LISTINGS: dict[str, Callable[[], list[Entry]]] = {
    "systems": _systems,
    "workloads": _workloads,
    "faults": _faults,
    "checkers": _checkers,
    "mutants": _mutants,
    "patterns": _patterns,
}
"""What can be listed, by name: each gives plain dictionaries with at least `name` and `summary`."""


@click.command("list")
@click.argument("what", type=click.Choice(list(LISTINGS)))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of objects.")
def command(what: str, as_json: bool) -> int:
    """List what there is to choose from."""
    entries = LISTINGS[what]()
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(entries))
        return 0
    width = max(len(entry["name"]) for entry in entries)
    for entry in entries:
        click.echo(f"{entry['name']:<{width}}  {entry['summary']}")
    return 0
