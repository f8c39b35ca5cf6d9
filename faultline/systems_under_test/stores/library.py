"""Client libraries of stores: optional extras of this package, imported only when a run needs one."""

from __future__ import annotations

import importlib
from typing import Any

from faultline.harness.errors import UsageError

__all__ = ["client_library"]


def client_library(module: str, *, extra: str) -> Any:
    """The Python module `module`, which the extra `extra` installs. Raises UsageError that says how."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"The client library {error.name or module} is not installed where Faultline runs.",
            f"Run: pip install 'faultline[{extra}]'",
        ) from error
