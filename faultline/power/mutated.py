"""The import of modules with a mutant in one of them, or with marks in all.

No file is written: neither a source nor its compiled form changes.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType

from faultline.power.modules import SourceModule
from faultline.power.mutants import MARKER, Mutant, marked_tree, mutated_tree

__all__ = ["import_changed"]


def import_changed(modules: Sequence[SourceModule], mutant: Mutant | None) -> set[str]:
    """Let this process import `modules` with `mutant` in them; without one, with a mark at the place of each mutant.

    Return a set that gets the ids of the mutants whose places are executed. None of the modules must have been imported
    yet: others may hold the names of the unchanged ones.
    """
    reached = set[str]()

    def mark(mutant_id: str, value: object = True) -> object:
        reached.add(mutant_id)
        return value

    loaders = {}
    for module in modules:
        assert module.name not in sys.modules, f"{module.name} was imported before its mutants"
        if mutant is None:
            tree = marked_tree(module.text, module.name, module.system_class)
        else:
            tree = mutated_tree(module.text, mutant, module.system_class)
        loaders[module.name] = _Loader(module, tree, mark)
    sys.meta_path.insert(0, _Finder(loaders))
    return reached


class _Finder(MetaPathFinder):
    def __init__(self, loaders: Mapping[str, _Loader]) -> None:
        self._loaders = loaders

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module with its changes; None for all others, which are found as usual."""
        loader = self._loaders.get(fullname)
        return importlib.util.spec_from_file_location(fullname, loader.path, loader=loader) if loader else None


class _Loader(SourceFileLoader):
    def __init__(self, module: SourceModule, tree: ast.Module, mark: object) -> None:
        super().__init__(module.name, module.file)
        self._tree = tree
        self._mark = mark

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the tree. The usual loader would read and write the compiled file of the package."""
        return compile(self._tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, in which the marker is a global name."""
        vars(module)[MARKER] = self._mark
        super().exec_module(module)
