"""Mutants put into modules that are imported already, by exchanging the code of their functions.

`faultline.power` imports modules with a mutant in them, which asks for a new process and all imports again. Here a
process that has imported everything is forked, and the child exchanges the code: that costs milliseconds. Mutants are
inside functions alone, so each of them can be put in that way.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from faultline.power.modules import SourceModule
from faultline.power.mutants import MARKER, SYSTEMS, Mutant, marked_tree, mutants_of, mutated_tree

__all__ = ["EMPTIED", "CannotChangeError", "changes_of", "imported_modules", "mark", "mutate"]


EMPTIED = "empty-function"
"""The operator of the coarsest change: a function that only returns. `faultline power` does not have it."""


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


def changes_of(source: str, module: str) -> list[Mutant]:
    """Return the mutants of a module, and last its functions, each of them emptied."""
    functions = _functions(ast.parse(source), source, module)
    return [*mutants_of(source, module), *(mutant for mutant, _function in functions)]


def mark(modules: list[SourceModule], reached: set[str]) -> None:
    """Let the functions of `modules` tell which mutants' places they execute: `reached` gets the ids."""
    _exchange({module.name: (module, _marked(module)) for module in modules}, reached)


def mutate(module: SourceModule, mutant: Mutant) -> None:
    """Put `mutant` into `module`.

    Raise `CannotChangeError` when no function has the place, or its code cannot be exchanged.
    """
    if not _exchange({module.name: (module, _mutated(module, mutant))}, set()):
        raise CannotChangeError(f"No function of {module.name} has the place of {mutant.id}.")


def _functions(tree: ast.Module, source: str, module: str) -> list[tuple[Mutant, ast.FunctionDef]]:
    """Return each function of the tree with the mutant that empties it."""
    found, seen = [], Counter[str]()
    waiting: list[tuple[ast.AST, tuple[str, ...]]] = [(tree, ())]
    while waiting:
        node, names = waiting.pop(0)
        inside = (*names, node.name) if isinstance(node, (ast.ClassDef, ast.FunctionDef)) else names
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.FunctionDef):
            text = "".join((ast.get_source_segment(source, node) or "").split())
            segment = hashlib.sha256(text.encode()).hexdigest()[:8]
            name = f"{module.removeprefix(SYSTEMS + '.')}:{'.'.join(inside)}:{EMPTIED}:{segment}"
            mutant = Mutant(
                id=f"{name}:{seen[name]}",
                module=module,
                place=".".join(inside),
                operator=EMPTIED,
                line=node.lineno,
                before=f"def {node.name}: …",
                after=f"def {node.name}: return",
            )
            seen[name] += 1
            found.append((mutant, node))
    return found


def _mutated(module: SourceModule, mutant: Mutant) -> ast.Module:
    if mutant.operator != EMPTIED:
        return mutated_tree(module.text, mutant)
    tree = ast.parse(module.text)
    function = next(node for one, node in _functions(tree, module.text, module.name) if one.id == mutant.id)
    function.body = [ast.copy_location(ast.Return(), function.body[0])]
    return tree


def _marked(module: SourceModule) -> ast.Module:
    """Return the tree with a call of the marker at the place of each mutant, and where each function begins."""
    tree = marked_tree(module.text, module.name)
    for mutant, function in _functions(tree, module.text, module.name):
        called = ast.Expr(ast.Call(ast.Name(MARKER, ast.Load()), [ast.Constant(mutant.id)], []))
        has_docstring = ast.get_docstring(function) is not None
        function.body.insert(int(has_docstring), ast.copy_location(called, function.body[0]))
    return ast.fix_missing_locations(tree)


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
