"""Modules of the book that no system, store or workload imports: no campaign would ever run them."""

from __future__ import annotations

from collections.abc import Iterable

from tidy_imports import imported_modules
from tidy_sources import Source

__all__ = ["complaints_about_undriven_modules", "undriven_modules"]


def undriven_modules(sources: Iterable[Source], roots: Iterable[str], rooms: Iterable[str]) -> list[str]:
    """Return the modules in `rooms` that are in the import closure of none of `roots`, sorted.

    Roots and rooms are module names; a root or a room stands for all that lies below it too. The `__init__` of a
    package holds no code of its own and does not count. An import inside a function counts like any other.
    """
    by_module = {source.module: source for source in sources}
    known = frozenset(by_module)
    reached: set[str] = set()
    waiting = [module for module in by_module if _is_in(module, roots)]
    while waiting:
        module = waiting.pop()
        if module in reached or module not in by_module:
            continue
        reached.add(module)
        waiting.extend(name for _, name in imported_modules(by_module[module], known))
    return sorted(
        module
        for module, source in by_module.items()
        if module not in reached and not source.is_package and _is_in(module, rooms)
    )


def complaints_about_undriven_modules(undriven: Iterable[str]) -> list[str]:
    """Complain about each of the `undriven` modules."""
    return [
        f"{module}: no system, store or workload imports it; make it a part or an option of one, or an example"
        for module in sorted(undriven)
    ]


def _is_in(module: str, names: Iterable[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)
