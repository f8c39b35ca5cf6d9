"""Mutants put into modules that are imported already, by exchanging the code of their functions.

`faultline.power` imports modules with a mutant in them, which asks for a new process and all imports again. Here a
process that has imported everything is forked, and the child exchanges the code: that costs milliseconds. Mutants are
inside functions alone, so each of them can be put in that way.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from faultline.power.modules import SourceModule
from faultline.power.mutants import MARKER, Mutant, marked_tree, mutated_tree

__all__ = ["CannotChangeError", "imported_modules", "mark", "mutate"]


class CannotChangeError(Exception):
    """The code of a function cannot be exchanged, as where the mutant no longer uses a variable around it."""


def imported_modules(packages: tuple[str, ...]) -> list[SourceModule]:
    """Return the modules of these packages that are imported and have a source, by name."""
    files = {
        name: module.__file__
        for name, module in sorted(sys.modules.items())
        if any(name == package or name.startswith(f"{package}.") for package in packages)
    }
    # The kernel of the checkers is a module without a source.
    sources = {name: file for name, file in files.items() if file and file.endswith(".py")}
    return [SourceModule(name, file, Path(file).read_text("utf-8")) for name, file in sources.items()]


def mark(modules: list[SourceModule], reached: set[str]) -> None:
    """Let the functions of `modules` tell which mutants' places they execute: `reached` gets the ids."""
    marked = {module.name: (module, marked_tree(module.text, module.name, thorough=True)) for module in modules}
    _exchange(marked, reached)


def mutate(module: SourceModule, mutant: Mutant) -> None:
    """Put `mutant` into `module`.

    Raise `CannotChangeError` when no function has the place, or its code cannot be exchanged.
    """
    if not _exchange({module.name: (module, mutated_tree(module.text, mutant, thorough=True))}, set()):
        raise CannotChangeError(f"No function of {module.name} has the place of {mutant.id}.")


def _exchange(changed: dict[str, tuple[SourceModule, ast.Module]], reached: set[str]) -> int:
    """Exchange the code of the functions of each module for that of its tree; return how many now differ."""

    def marker(mutant_id: str, value: object = True) -> object:
        reached.add(mutant_id)
        return value

    codes = dict[tuple[str, str, int], CodeType]()
    for module, tree in changed.values():
        vars(sys.modules[module.name])[MARKER] = marker
        for code in _codes(compile(tree, module.file, "exec", dont_inherit=True)):
            codes[module.file, code.co_qualname, code.co_firstlineno] = code
    exchanged = 0
    # A function is found by its code and not by its name: a decorator may have wrapped it, or a class copied it.
    for function in [each for each in gc.get_objects() if type(each) is FunctionType]:
        old = function.__code__
        new = codes.get((old.co_filename, old.co_qualname, old.co_firstlineno))
        if new is None or new == old:
            continue
        try:
            function.__code__ = new
        except ValueError as why:
            raise CannotChangeError(f"{old.co_qualname}: {why}") from why
        exchanged += 1
    return exchanged


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of each function and class inside `code`."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
