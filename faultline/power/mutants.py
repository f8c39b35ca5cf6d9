"""Mutants: single small changes of a module's syntax tree at the places where distributed systems go wrong.

An operator changes a place that persists, sends, resets, assigns, compares, counts or refuses. DeMillo, Lipton and
Sayward ("Hints on Test Data Selection", Computer 1978) gave the reason why small changes suffice: most bugs are near
to correct programs. Operators follow Ammann and Offutt, "Introduction to Software Testing", ch. 9, and the call
deletion of Deng, Offutt and Li (ICSTW 2013).

Code that only reports or declares is left as it is: trace events, messages of errors, assertions, constructors,
invariants, planted bugs, the class of the system. The search for counter-witnesses asks for a *thorough* choice, which
changes invariants as well, and empties whole functions.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

__all__ = ["EMPTY_FUNCTION", "MARKER", "OPERATORS", "SYSTEMS", "Mutant", "marked_tree", "mutants_of", "mutated_tree"]

SYSTEMS = "faultline.systems_under_test"
"""The package of the systems that ship, whose name the ids leave out."""

MARKER = "__faultline_reached__"
"""The function that a place calls with the id of its mutant: it notes the id, and returns its second argument, or
True."""

EMPTY_FUNCTION = "empty-function"
"""The coarsest operator: a function that only returns. Only a thorough choice has it."""

_PERSISTING = frozenset(
    {"append", "flush", "fsync", "persist", "record", "rename", "save", "store", "sync", "truncate", "write"}
)
_SENDING = frozenset(
    {"answer", "ask", "broadcast", "forward", "notify", "propagate", "publish", "reply", "request", "respond", "send"}
)
_RESETTING = frozenset(
    {
        "abandon",
        "cancel",
        "clear",
        "close",
        "delete",
        "discard",
        "expire",
        "forget",
        "pop",
        "popleft",
        "remove",
        "reset",
        "restart",
    }
)
_SHIFTED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_INVERTED = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_GUARD_STATEMENTS_MAX = 3
_FUNCTIONS_LEFT_OUT = frozenset({"__init__", "__post_init__", "__repr__", "__str__"})
_LEFT_OUT = (ast.Assert, ast.Raise, ast.JoinedStr, ast.arguments)
_FIELDS_LEFT_OUT = frozenset({"annotation", "returns", "decorator_list", "bases", "type_params", "pattern"})
_PLANTING = frozenset({"plant", "also"})
_SHOWN_MAX = 100


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """One change: the operator, the `place` (the qualified name of the function), and the code `before` and `after`.

    The `id` has neither line nor column: it stays the same when the code around the place moves. `line` is where the
    place is now.
    """

    id: str
    module: str
    place: str
    operator: str
    line: int
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The change in one line."""
        return f"{self.before} → {self.after or '(nothing)'}"


@dataclass(frozen=True, slots=True)
class _Change:
    """A change that can be carried out: `field` of `owner` (its entry `index`, if it is a list) becomes `new`."""

    owner: ast.AST
    field: str
    index: int | None
    place: str
    operator: str
    old: ast.stmt | ast.expr
    new: ast.stmt | ast.expr | None

    @property
    def before(self) -> str:
        """The code before the change; of an emptied function its head alone."""
        return f"def {self.old.name}: …" if isinstance(self.old, ast.FunctionDef) else ast.unparse(self.old)

    @property
    def after(self) -> str:
        """The code after the change; empty where a statement is left out."""
        if isinstance(self.old, ast.FunctionDef):
            return f"def {self.old.name}: return"
        return ast.unparse(self.new) if self.new is not None else ""

    def carry_out(self, mutant_id: str) -> None:
        """Change the tree: the changed place calls the marker as well."""
        if isinstance(self.old, ast.FunctionDef):
            first = self.old.body[0]
            self.old.body = [ast.copy_location(each, first) for each in (ast.Expr(_call(mutant_id)), ast.Return())]
        elif isinstance(self.new, ast.expr):
            self._put(_call(mutant_id, self.new))
        else:
            called = ast.Expr(_call(mutant_id))
            self._put(ast.If(self.new.test, [called], []) if isinstance(self.new, ast.If) else called)

    def mark(self, mutant_id: str) -> None:
        """Let the place call the marker, and behave as before. It may be marked already, for another change of it."""
        if isinstance(self.old, ast.FunctionDef):
            after_docstring = int(ast.get_docstring(self.old) is not None)
            called = ast.copy_location(ast.Expr(_call(mutant_id)), self.old.body[0])
            self.old.body.insert(after_docstring, called)
            return
        if isinstance(self.old, ast.If):
            # The change is in the body alone, so a false condition does not reach it.
            self.old.test = ast.BoolOp(ast.And(), [self.old.test, _call(mutant_id)])
            return
        entries = getattr(self.owner, self.field)
        now = entries if self.index is None else entries[self.index]
        self._put(ast.If(_call(mutant_id), [now], []) if isinstance(now, ast.stmt) else _call(mutant_id, now))

    def _put(self, new: ast.AST) -> None:
        ast.copy_location(new, self.old)
        if self.index is None:
            setattr(self.owner, self.field, new)
        else:
            getattr(self.owner, self.field)[self.index] = new


def _call(mutant_id: str, *value: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(MARKER, ast.Load()), [ast.Constant(mutant_id), *value], [])


def mutants_of(source: str, module: str, system_class: str = "", *, thorough: bool = False) -> list[Mutant]:
    """Return the mutants of a module, in the order of its text. The class `system_class` is left as it is.

    A `thorough` choice changes invariants too, and empties each function that is neither a constructor nor planted.
    """
    return [mutant for mutant, _change in _all(source, ast.parse(source), module, _Scope(system_class, thorough))]


def mutated_tree(source: str, mutant: Mutant, system_class: str = "", *, thorough: bool = False) -> ast.Module:
    """Return the tree of the module with `mutant` in it. Raise `KeyError` when the source has no such place."""
    tree = ast.parse(source)
    changes = {found.id: change for found, change in _all(source, tree, mutant.module, _Scope(system_class, thorough))}
    changes[mutant.id].carry_out(mutant.id)
    return ast.fix_missing_locations(tree)


def marked_tree(source: str, module: str, system_class: str = "", *, thorough: bool = False) -> ast.Module:
    """Return the tree of the module, unchanged but for a call of the marker at the place of each mutant."""
    tree = ast.parse(source)
    for mutant, change in _all(source, tree, module, _Scope(system_class, thorough)):
        change.mark(mutant.id)
    return ast.fix_missing_locations(tree)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The choice of the code that is changed."""

    system_class: str
    thorough: bool


def _all(source: str, tree: ast.Module, module: str, scope: _Scope) -> list[tuple[Mutant, _Change]]:
    seen = Counter[str]()
    found = []
    for change in _changes(tree, (), False, scope):
        # Of the text without its layout: unlike the tree, it is the same for every version of Python.
        text = "".join(_code_of(source, change.old).split())
        segment = hashlib.sha256(text.encode()).hexdigest()[:8]
        name = f"{module.removeprefix(SYSTEMS + '.')}:{change.place}:{change.operator}:{segment}"
        mutant = Mutant(
            id=f"{name}:{seen[name]}",
            module=module,
            place=change.place,
            operator=change.operator,
            line=change.old.lineno,
            before=_in_a_line(change.before),
            after=_in_a_line(change.after),
        )
        seen[name] += 1
        found.append((mutant, change))
    return found


def _code_of(source: str, node: ast.stmt | ast.expr) -> str:
    """Return the text of `node`; of a function the text without its docstring, which may be reworded."""
    text = ast.get_source_segment(source, node) or ""
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
        text = text.replace(ast.get_source_segment(source, node.body[0]) or "", "", 1)
    return text


def _in_a_line(code: str) -> str:
    text = " ".join(code.split())
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"


def _changes(node: ast.AST, names: tuple[str, ...], inside: bool, scope: _Scope) -> Iterator[_Change]:
    for field, index, child in _children(node):
        if isinstance(child, _LEFT_OUT) or _reports(child) or _declares(child, scope):
            continue
        below, is_code = names, inside
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            below, is_code = (*names, child.name), not isinstance(child, ast.ClassDef)
        elif inside and isinstance(child, (ast.stmt, ast.expr)):
            for operator, change in OPERATORS.items():
                for new in change(child):
                    yield _Change(node, field, index, ".".join(names), operator, child, new)
        yield from _changes(child, below, is_code, scope)
        # After the places inside: its mark is a statement more, which moves those behind it.
        if scope.thorough and isinstance(child, ast.FunctionDef):
            yield _Change(node, field, index, ".".join(below), EMPTY_FUNCTION, child, None)


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field in _FIELDS_LEFT_OUT:
            continue
        if isinstance(value, ast.AST):
            yield field, None, value
        elif isinstance(value, list):
            yield from ((field, index, child) for index, child in enumerate(value) if isinstance(child, ast.AST))


def _declares(node: ast.AST, scope: _Scope) -> bool:
    """Return whether `node` is left as it is: the system, a planted bug, a constructor; an invariant, unless the choice
    is thorough."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name in _FUNCTIONS_LEFT_OUT or _is_planted(node.decorator_list)
    if isinstance(node, ast.ClassDef):
        members = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        is_invariant = "observe" in members and not scope.thorough
        return node.name == scope.system_class or is_invariant or _is_planted(node.decorator_list)
    return False


def _is_planted(decorators: Iterable[ast.expr]) -> bool:
    calls = (each.func for each in decorators if isinstance(each, ast.Call))
    return any(isinstance(each, ast.Attribute) and each.attr in _PLANTING for each in calls)


def _reports(node: ast.AST) -> bool:
    """Return whether `node` is a call of the trace, as in `self.ports.trace.emit(...)`."""
    if isinstance(node, ast.Expr):
        node = node.value
    owner = node.func if isinstance(node, ast.Call) else None
    while isinstance(owner, ast.Attribute):
        owner = owner.value
        name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
        if name.lstrip("_") == "trace":
            return True
    return False


# The operators: each returns the possible replacements of a node; None is for a statement that is left out.

_New = Iterable[ast.stmt | ast.expr | None]


def _without_call(words: frozenset[str]) -> Callable[[ast.AST], _New]:
    def change(node: ast.AST) -> _New:
        return [None] if isinstance(node, ast.Expr) and _first_word(node.value) in words else []

    return change


def _first_word(node: ast.expr) -> str:
    """Return the first word of the name of the function that `node` calls: `send` of `self._send_all(...)`."""
    if not isinstance(node, ast.Call):
        return ""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return str(name).lstrip("_").partition("_")[0]


def _without_reset(node: ast.AST) -> _New:
    is_empty = isinstance(node, ast.Assign) and _is_of_field(node) and _is_initial(node.value)
    return [None] if is_empty or isinstance(node, ast.Delete) else _without_call(_RESETTING)(node)


def _without_assignment(node: ast.AST) -> _New:
    if isinstance(node, ast.AugAssign):
        return [None] if isinstance(node.target, (ast.Attribute, ast.Subscript)) else []
    return [None] if isinstance(node, ast.Assign) and _is_of_field(node) and not _is_initial(node.value) else []


def _is_of_field(node: ast.Assign) -> bool:
    return all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets)


def _is_initial(node: ast.expr) -> bool:
    """Return whether `node` is a constant or an empty collection."""
    if isinstance(node, ast.Call):
        return not node.args and not node.keywords and isinstance(node.func, (ast.Name, ast.Subscript))
    return isinstance(node, ast.Constant) or ast.unparse(node) in ("[]", "{}", "()")


def _with_operator(table: dict[type[ast.cmpop], type[ast.cmpop]]) -> Callable[[ast.AST], _New]:
    def change(node: ast.AST) -> _New:
        # Comparisons with None test a type: inverted, nearly all of them only raise AttributeError.
        if not isinstance(node, ast.Compare) or len(node.ops) > 1 or ast.unparse(node.comparators[0]) == "None":
            return []
        other = table.get(type(node.ops[0]))
        return [ast.Compare(node.left, [other()], node.comparators)] if other else []

    return change


def _without_operand(node: ast.AST) -> _New:
    if not isinstance(node, ast.BoolOp):
        return []
    rests = [[*node.values[:number], *node.values[number + 1 :]] for number in range(len(node.values))]
    return [rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest) for rest in rests]


def _without_one(node: ast.AST) -> _New:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub)):
        return []
    return [node.left] if isinstance(node.right, ast.Constant) and node.right.value == 1 else []


def _without_guard(node: ast.AST) -> _New:
    """Keep the condition of a guard, one that ends in `return` or the like, and replace its body by `pass`."""
    if not isinstance(node, ast.If) or node.orelse or len(node.body) > _GUARD_STATEMENTS_MAX:
        return []
    return [ast.If(node.test, [ast.Pass()], [])] if isinstance(node.body[-1], _EXITS) else []


def _other_extremum(node: ast.AST) -> _New:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in ("min", "max"):
        return []
    other = "max" if node.func.id == "min" else "min"
    return [ast.Call(ast.Name(other, ast.Load()), node.args, node.keywords)]


OPERATORS: dict[str, Callable[[ast.AST], _New]] = {
    "drop-persist": _without_call(_PERSISTING),
    "drop-send": _without_call(_SENDING),
    "drop-reset": _without_reset,
    "drop-assignment": _without_assignment,
    "shift-comparison": _with_operator(_SHIFTED),
    "invert-comparison": _with_operator(_INVERTED),
    "drop-operand": _without_operand,
    "off-by-one": _without_one,
    "drop-guard": _without_guard,
    "swap-extremum": _other_extremum,
}
"""The operators by name; each returns the possible replacements of a node."""
