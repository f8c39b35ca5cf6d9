"""Finding the native kernel, and saying why when there is none.

The kernel is optional: `build_kernel` compiles it when the package is installed, and where that was not possible the
same algorithms run in plain Python. Set FAULTLINE_ENGINE=python to do without it.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any, NamedTuple

__all__ = ["KERNEL_VERSION", "Engine", "engine_in_use", "kernel"]

KERNEL_VERSION = 2
"""What `native/kernel.c` must answer; it counts up with every change of the interface or of a verdict."""


class Engine(NamedTuple):
    """The engine that judges: `native` or `python`, and in the latter case why not the other."""

    name: str
    reason: str


@functools.cache
def kernel() -> tuple[Any, str]:
    """The extension module, or None with the reason why there is none."""
    if os.environ.get("FAULTLINE_ENGINE") == "python":
        return None, "FAULTLINE_ENGINE asks for plain Python"
    try:
        module = importlib.import_module("faultline.checkers.linearizability.engine._kernel")
    except ImportError as error:
        return None, f"the kernel is not built ({error}); install Faultline again where there is a C compiler"
    built = module.lib.faultline_kernel_version()
    if built != KERNEL_VERSION:
        return None, f"the kernel that was built is version {built}, not {KERNEL_VERSION}; install Faultline again"
    return module, ""


def engine_in_use() -> Engine:
    """Which engine judges in this process, for reports and `faultline doctor`."""
    module, reason = kernel()
    return Engine("python", reason) if module is None else Engine("native", "")
