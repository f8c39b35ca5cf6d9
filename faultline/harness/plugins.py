"""Plug-ins: the entries that other packages add to Faultline's own tables, found by entry points and loaded when named.

| group                 | an entry point names                                       | its name is used as            |
|-----------------------|------------------------------------------------------------|--------------------------------|
| `faultline.systems`   | the class of a `NodeSystem`                                | `--system NAME`                |
| `faultline.workloads` | the class of a `Workload`                                  | `--workload NAME`              |
| `faultline.checkers`  | the class of a `Checker` that needs only the history       | `faultline check --model NAME` |
| `faultline.nemeses`   | the class of a `Nemesis`; the name is its kind             | a `Recipe`'s kind              |
| `faultline.faults`    | a `Package` of recipes, or a function that makes one       | `--faults NAME`                |

A name that Faultline ships cannot be replaced. A plug-in that cannot be loaded raises an error when it is asked for, in
one sentence that names its package, and never disturbs the rest.
"""

from __future__ import annotations

import importlib
from typing import Any

from faultline.harness.errors import UsageError

__all__ = [
    "CHECKERS_GROUP",
    "FAULTS_GROUP",
    "NEMESES_GROUP",
    "SYSTEMS_GROUP",
    "WORKLOADS_GROUP",
    "load",
    "plugged_in",
    "provider_of",
]

SYSTEMS_GROUP = "faultline.systems"
WORKLOADS_GROUP = "faultline.workloads"
CHECKERS_GROUP = "faultline.checkers"
NEMESES_GROUP = "faultline.nemeses"
FAULTS_GROUP = "faultline.faults"


def _entry_points(**selection: str) -> Any:
    import importlib.metadata  # Imported late: it takes longer than all else that a check of a small history needs.

    return importlib.metadata.entry_points(**selection)


def plugged_in(group: str) -> dict[str, str]:
    """Return the entry points of `group` by name, as `module:attribute`."""
    return {point.name: point.value for point in _entry_points(group=group)}


def provider_of(group: str, name: str) -> str:
    """Return the package and version that provide an entry point, such as `slate 1.0`; empty when no package does."""
    for point in _entry_points(group=group, name=name):
        if point.dist is not None:
            return f"{point.dist.name} {point.dist.version}"
    return ""


def load(what: str, name: str, path: str) -> Any:
    """Return the object at `path`. Raise UsageError with the cause when its import fails in any way."""
    module_name, _, attribute = path.partition(":")
    try:
        found = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
        return found
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"The {what} {name} ({path}) cannot be loaded: {type(error).__name__}: {error}.",
            "Reinstall or mend the package that provides it.",
        ) from error
