"""The import of a module with a mutant in it. No file is written: neither the source nor its compiled form changes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from faultline.power.mutants import MARKER, Mutant, mutated_tree

__all__ = ["Reached", "import_mutated"]


class Reached:
    """The marker of a mutated place: the number of times that the place was executed."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, value: object = None) -> object:
        """Count, and return `value`: the marker stands around an expression."""
        self.times += 1
        return value


def import_mutated(mutant: Mutant, file: str, system_class: str) -> Reached:
    """Let this process import the module of `mutant` with the mutant in it, and return the marker of the place.

    The module must not have been imported yet: others may hold the names of the unchanged one.
    """
    assert mutant.module not in sys.modules, f"{mutant.module} was imported before its mutant"
    reached = Reached()
    sys.meta_path.insert(0, _Finder(mutant, file, system_class, reached))
    return reached


class _Finder(MetaPathFinder):
    def __init__(self, mutant: Mutant, file: str, system_class: str, reached: Reached) -> None:
        self._mutant = mutant
        self._file = file
        self._loader = _Loader(mutant, file, system_class, reached)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module with the mutant; None for all others, which are found as usual."""
        if fullname != self._mutant.module:
            return None
        return importlib.util.spec_from_file_location(fullname, self._file, loader=self._loader)


class _Loader(SourceFileLoader):
    def __init__(self, mutant: Mutant, file: str, system_class: str, reached: Reached) -> None:
        super().__init__(mutant.module, file)
        self._mutant = mutant
        self._system_class = system_class
        self._reached = reached

    def get_code(self, fullname: str) -> CodeType:
        """Return the code with the mutant. The usual loader would read and write the compiled file of the package."""
        source = Path(self.path).read_text("utf-8")
        return compile(mutated_tree(source, self._mutant, self._system_class), self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, in which the marker is a global name."""
        vars(module)[MARKER] = self._reached
        super().exec_module(module)
