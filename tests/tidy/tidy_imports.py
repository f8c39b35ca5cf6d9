"""Import direction: the table in ARCHITECTURE.md against the imports in the code.

A *room* is a package or module of the table: a module is in the room with the longest name that it is, or is below.
Imports inside functions and under TYPE_CHECKING count like any other: they are dependencies too, only later or only in
the reader's head.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from tidy_sources import Source

__all__ = ["complaints_about_cycles", "complaints_about_direction", "imported_modules", "read_import_table", "room_of"]

PACKAGE = "faultline"
TABLE_HEADER = re.compile(r"^\|\s*room\s*\|\s*may import\s*\|", re.IGNORECASE)


def room_of(module: str, table: Iterable[str] = ()) -> str | None:
    """Return the room that `module` is in: the longest name of `table` that holds it, else the one below `faultline`.

    None for other packages and for `faultline` itself, which every room may import.
    """
    parts = module.split(".")
    if parts[0] != PACKAGE or len(parts) == 1:
        return None
    holding = [room for room in table if parts[1 : 1 + room.count(".") + 1] == room.split(".")]
    return max(holding, key=len, default=parts[1])


def read_import_table(markdown: str) -> dict[str, frozenset[str]]:
    """The table with the header `| room | may import |`: for each room the rooms it may import."""
    lines = markdown.splitlines()
    start = next((number for number, line in enumerate(lines) if TABLE_HEADER.match(line)), None)
    if start is None:
        raise AssertionError("ARCHITECTURE.md has no table with the header `| room | may import |`")
    table = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        first, second = line.split("|")[1:3]
        (room,) = re.findall(r"`([\w.]+)`", first)
        table[room] = frozenset(re.findall(r"`([\w.]+)`", second))
    return table


def imported_modules(source: Source, known: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Line and module of every import of the project's own modules in `source`; `known` are all module names."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _base_of(node, source)
            names = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == PACKAGE)


def _base_of(node: ast.ImportFrom, source: Source) -> str:
    if node.level == 0:
        return node.module or ""
    parts = source.module.split(".")
    package = parts if source.is_package else parts[:-1]
    above = package[: len(package) - (node.level - 1)]
    return ".".join([*above, node.module] if node.module else above)


def complaints_about_direction(sources: Iterable[Source], table: Mapping[str, frozenset[str]]) -> list[str]:
    """Imports that the table does not allow, and rooms that it does not know."""
    sources = list(sources)
    known = frozenset(source.module for source in sources)
    complaints = []
    for source in sources:
        room = room_of(source.module, table)
        if room is None:
            continue
        if room not in table:
            complaints.append(f"{source.path}: the room `{room}` is not in the import table of ARCHITECTURE.md")
            continue
        for line, module in imported_modules(source, known):
            target = room_of(module, table)
            if target is not None and target != room and target not in table[room]:
                allowed = ", ".join(sorted(table[room])) or "no other room"
                complaints.append(f"{source.path}:{line}: `{room}` imports {module}; it may import {allowed}")
    return complaints


def complaints_about_cycles(sources: Iterable[Source]) -> list[str]:
    """The first circle of imports that there is, as one sentence."""
    sources = list(sources)
    known = frozenset(source.module for source in sources)
    graph = {
        source.module: sorted({module for _, module in imported_modules(source, known)} - {source.module, PACKAGE})
        for source in sources
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return ["imports run in a circle: " + " <- ".join(error.args[1])]
    return []
