"""The package's build hook: compiles the native kernel of the linearizability engine where that is possible.

It is optional. Without a C compiler, Python's headers or cffi the package installs just the same, and judges with the
same algorithms in plain Python; `engine_in_use` in `engine/native.py` says which engine is in use and why.
FAULTLINE_KERNEL=required makes a failing build fail, for those who make wheels; FAULTLINE_KERNEL=off does without.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

__all__ = ["KernelBuildHook"]

ENGINE = Path("faultline") / "checkers" / "linearizability" / "engine"


class KernelBuildHook(BuildHookInterface[Any]):
    """Puts the kernel beside its sources, and into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernel before the wheel is put together; `version` is `editable` or `standard`."""
        wish = os.environ.get("FAULTLINE_KERNEL", "optional")
        if wish == "off":
            return
        builder = self._builder()
        try:
            module = builder.build()
        except builder.KernelBuildError as error:
            if wish == "required":
                raise
            self.app.display_warning(f"The native kernel was not built ({error}); plain Python will do its work.")
            return
        build_data["artifacts"].append(f"/{ENGINE.as_posix()}/{module.name}")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{self._platform()}"

    def clean(self, versions: list[str]) -> None:
        """Remove what was compiled."""
        for module in (Path(self.root) / ENGINE).glob("_kernel.*.so"):
            module.unlink()

    def _builder(self) -> ModuleType:
        """The module that knows how; it is loaded by its path, because nothing is installed yet."""
        path = Path(self.root) / ENGINE / "build_kernel.py"
        specification = importlib.util.spec_from_file_location("build_kernel", path)
        assert specification is not None and specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return module

    @staticmethod
    def _platform() -> str:
        from packaging.tags import sys_tags

        return next(tag.platform for tag in sys_tags())
