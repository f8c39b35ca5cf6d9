"""A bug of the harness itself, and how it is planted: one edit of one function, in a process of its own.

The edit is made in the text of the function, as a person would make it. Only the function's code is replaced, so every
module that has imported the function runs the broken one. An edit whose text is not there any more, or is there twice,
is refused: the bug must then be planted anew, in the code as it is now.
"""

from __future__ import annotations

import ast
import builtins
import dis
import importlib
import inspect
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

__all__ = ["HarnessBug", "plant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessBug:
    """One planted bug.

    `breaks` says what is wrong with the harness then. In the function `place` (`module:qualified.name`) `before`, which
    stands there once, becomes `after`. `caught_by` names the scenario that fails with it, or a test of the suite
    (`tests/…::test_…`) where that needs more than a scenario. A bug that none finds is a *hole*, and `hole` says why.
    """

    name: str
    breaks: str
    place: str
    before: str
    after: str
    caught_by: str = ""
    hole: str = ""

    @property
    def room(self) -> str:
        """The module that is broken, without the package's name."""
        return self.place.partition(":")[0].removeprefix("faultline.")

    @property
    def told_as(self) -> str:
        """The name of the scenario or test that catches it, in words."""
        return self.caught_by.rpartition("::")[2].replace("_", " ")

    @property
    def by_test(self) -> bool:
        """True when a test of the suite catches it, and no scenario has to."""
        return "::" in self.caught_by


def plant(bug: HarnessBug) -> None:
    """Break the function of `bug` in this process. Raises ValueError when the edit does not fit the code."""
    module_name, _, qualified = bug.place.partition(":")
    module = importlib.import_module(module_name)
    source = inspect.getsource(module)
    node = _definition(ast.parse(source), qualified)
    lines = source.splitlines(keepends=True)
    text = "".join(lines[node.lineno - 1 : node.end_lineno])
    if text.count(bug.before) != 1:
        raise ValueError(f"{bug.place} holds {bug.before!r} {text.count(bug.before)} times, not once; plant it anew")
    edited = text.replace(bug.before, bug.after)
    whole = "".join([*lines[: node.lineno - 1], edited, *lines[node.end_lineno :]])
    tree = ast.parse(whole)
    function = _function(module, qualified)
    code = _code(compile(tree, f"{module.__file__} with {bug.name}", "exec"), qualified)
    unknown = [name for name in _globals(code) if name not in vars(module) and not hasattr(builtins, name)]
    if unknown:
        raise ValueError(f"{bug.name} uses {', '.join(unknown)}, which {module_name} does not know")
    function.__code__ = code
    _set_defaults(function, _definition(tree, qualified), module)


def _definition(tree: ast.AST, qualified: str) -> ast.FunctionDef:
    node: Any = tree
    for name in qualified.split("."):
        kinds = (ast.FunctionDef, ast.ClassDef)
        found = [each for each in node.body if isinstance(each, kinds) and each.name == name]
        if not found:
            raise ValueError(f"there is no {qualified} any more; plant it anew")
        node = found[-1]
    assert isinstance(node, ast.FunctionDef)
    return node


def _function(module: Any, qualified: str) -> FunctionType:
    """The function itself, whatever it is wrapped in: a property, a class method, a command, a context manager."""
    found: Any = module
    for name in qualified.split("."):
        found = vars(found)[name]
    while not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        found = next(
            getattr(found, name) for name in ("__wrapped__", "fget", "__func__", "callback") if hasattr(found, name)
        )
    return found


def _code(module: CodeType, qualified: str) -> CodeType:
    code = module
    for name in qualified.split("."):
        code = next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name)
    return code


def _globals(code: CodeType) -> set[str]:
    """The global names that `code` reads: a slip in a name would be a crash, and no bug of the kind that is meant."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_globals(each) for each in code.co_consts if isinstance(each, CodeType)))


def _set_defaults(function: FunctionType, node: ast.FunctionDef, module: Any) -> None:
    """A wrong default stands in the head of the function, and not in its code."""

    def value(expression: ast.expr) -> Any:
        return eval(compile(ast.Expression(expression), "default", "eval"), vars(module))

    if function.__defaults__:
        function.__defaults__ = tuple(value(each) for each in node.args.defaults)
    if function.__kwdefaults__:
        named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        function.__kwdefaults__ = {argument.arg: value(each) for argument, each in named if each is not None}
