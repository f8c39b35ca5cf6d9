"""Install faults in the writing of results in every interpreter whose environment names their control folder.

Put this folder and `tools` on the PYTHONPATH: an interpreter imports a module of this name when it starts. This
reaches the processes of Spark, which cannot be reached otherwise before they import Faultline.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

_DOOR = "faultline.harness.results"


class _AfterTheDoor:
    """A finder of the results door that installs the faults once it is loaded."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name != _DOOR:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        load = spec.loader.exec_module

        def load_and_install(module: ModuleType) -> None:
            load(module)
            from results_faults import Control, install

            install(Control(Path(os.environ["FAULTLINE_RESULTS_FAULTS"])), module)

        spec.loader.exec_module = load_and_install  # type: ignore[method-assign]  # the loader of this one module
        return spec


if "FAULTLINE_RESULTS_FAULTS" in os.environ:
    sys.meta_path.insert(0, _AfterTheDoor())
