"""Names that a package offers and imports only when they are asked for (PEP 562)."""

from __future__ import annotations

TYPE_CHECKING = False
"""Type checkers take it for true. `typing` itself would cost more time than all else that the command needs first."""

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["TYPE_CHECKING", "lazily"]


def lazily(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of `package`, whose names stand in these `modules`.

    So the package costs no start-up time, whatever it offers: `faultline --help` imports it and none of the modules.
    """

    def getattribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(modules[name]), name)

    def directory() -> list[str]:
        return sorted(modules)

    return getattribute, directory
