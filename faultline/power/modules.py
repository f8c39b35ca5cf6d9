"""The modules of a system whose code runs in its nodes and clients: the ones that are mutated.

They are found by walking the imports from the module of the system, inside its own package and the patterns. Modules
that declare rather than act are left out by their names: planted bugs, invariants, features, limits, options.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import HostedStore, NodeSystem
from faultline.power.mutants import SYSTEMS
from faultline.systems_under_test.patterns.catalogue import PATTERNS

__all__ = ["SourceModule", "group_of", "modules_of"]

_LEFT_OUT = re.compile(r"(.*_)?(planted_bugs|invariants|features|limits|options|settings)")


class SourceModule(msgspec.Struct, frozen=True):
    """A module and its text; `system_class` is the name of the class of the system, if it is in there."""

    name: str
    file: str
    text: str
    system_class: str = ""


def modules_of(system: NodeSystem, path: str) -> tuple[SourceModule, ...]:
    """Return the modules of the nodes and clients of `system`, by name. `path` is `module:attribute` of the system.

    Raise `UsageError` for a system without Python source.
    """
    if isinstance(system, HostedStore):
        raise UsageError(
            f"{system.name} is a program of its own, and has no source that could be mutated.",
            "Name a system whose nodes are written in Python: `faultline list systems`.",
        )
    # The module of the entry point may only re-export the class.
    root, names = type(system).__module__, {path.partition(":")[0], type(system).__module__}
    top = root.partition(".")[0]
    inside = (SYSTEMS,) if top == "faultline" else (top, SYSTEMS)
    found, waiting = dict[str, SourceModule](), sorted(names)
    while waiting:
        name = waiting.pop()
        if name in found or _is_left_out(name):
            continue
        source = _source_of(name)
        if source is None:
            if name == root:
                raise UsageError(
                    f"The system {system.name} has no source: its module {name} is not a Python file.",
                    "Install the package with its .py files.",
                )
            continue
        found[name] = SourceModule(
            name, str(source), source.read_text("utf-8"), type(system).__name__ if name == root else ""
        )
        waiting += (each for each in _imported(found[name]) if _is_inside(each, inside))
    return tuple(found[name] for name in sorted(found))


def group_of(module: str) -> str:
    """Return the name under which results of `module` are counted: the pattern that it contains or extends, as
    `paxos_store` extends `paxos`; else its own name among the patterns, or its system."""
    inside = module.removeprefix(f"{SYSTEMS}.")
    for pattern in PATTERNS:
        if pattern.module and inside.startswith(pattern.module):
            return pattern.slug
    parts = inside.split(".")
    name = parts[-1] if parts[0] == "patterns" else parts[1] if parts[0] == "reference" else parts[0]
    return name.replace("_", "-")


def _is_left_out(module: str) -> bool:
    return any(_LEFT_OUT.fullmatch(part) for part in module.split("."))


def _is_inside(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _source_of(module: str) -> Path | None:
    """Return the file of `module`; None where there is no such module, or no text of it."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    origin = spec.origin if spec is not None else None
    return Path(origin) if origin and origin.endswith(".py") and Path(origin).is_file() else None


def _imported(module: SourceModule) -> Iterator[str]:
    """Return the modules that `module` imports when it runs, and the imported names, which may be modules too."""
    is_package = module.file.endswith("__init__.py")
    waiting: list[ast.AST] = [ast.parse(module.text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = module.name.split(".")
            parents = parents[: len(parents) - node.level + is_package] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        else:
            waiting += ast.iter_child_nodes(node)
