"""Calls that must not stand in code which has to be deterministic, each with what to use instead.

One seed must be one execution, on every machine and in every process. So code that runs inside a world, or that plans
what happens in one, may not ask the machine for the time, for randomness or for an identity, and may not depend on the
order of a set, which changes with `PYTHONHASHSEED`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tidy_sources import Source

__all__ = [
    "BANNED_EVERYWHERE",
    "BANNED_IN_PLANS",
    "BANNED_IN_WORLDS",
    "complaints_about_names",
    "complaints_about_sets",
]

_CLOCK = "the clock port (`ports.clock`) or the time the caller passes in"
_TIMER = "a timer of the timers port (`ports.timers`)"
_RANDOM = "the random port (`ports.random`) or `faultline.harness.world.weather`"
_PLANNED_RANDOM = "`random.Random(seed)` and its `.random()` only, or a hash of the seed"
_IDENTITY = "a name or number derived from the seed, the node or a counter"
_HANDLER = "a handler, called by the world"
_HASH = "a key that does not change between processes (the value itself, or hashlib)"

BANNED_IN_PLANS = {
    "time": _CLOCK,
    "datetime.datetime.now": _CLOCK,
    "datetime.datetime.utcnow": _CLOCK,
    "datetime.datetime.today": _CLOCK,
    "datetime.date.today": _CLOCK,
    "random.SystemRandom": _PLANNED_RANDOM,
    "random.betavariate": _PLANNED_RANDOM,
    "random.choice": _PLANNED_RANDOM,
    "random.choices": _PLANNED_RANDOM,
    "random.expovariate": _PLANNED_RANDOM,
    "random.gauss": _PLANNED_RANDOM,
    "random.getrandbits": _PLANNED_RANDOM,
    "random.randbytes": _PLANNED_RANDOM,
    "random.randint": _PLANNED_RANDOM,
    "random.random": _PLANNED_RANDOM,
    "random.randrange": _PLANNED_RANDOM,
    "random.sample": _PLANNED_RANDOM,
    "random.seed": _PLANNED_RANDOM,
    "random.shuffle": _PLANNED_RANDOM,
    "random.uniform": _PLANNED_RANDOM,
    "os.urandom": _PLANNED_RANDOM,
    "secrets": _PLANNED_RANDOM,
    "uuid": _IDENTITY,
    "asyncio": _HANDLER,
    "threading": _HANDLER,
    "builtins.hash": _HASH,
    "builtins.id": _IDENTITY,
}
"""For code that plans runs: generators, workloads, nemeses."""

BANNED_IN_WORLDS = BANNED_IN_PLANS | {"random": _RANDOM, "asyncio.sleep": _TIMER, "socket": "the network port"}
"""For node code and the simulated world itself: nothing sequential either, because weather is a pure function."""

BANNED_EVERYWHERE = {
    "builtins.print": "a returned value, an error, or a callback; programs alone write to the terminal"
}
"""For all library code but programs."""

ORDER_BLIND = frozenset({"sorted", "set", "frozenset", "len", "any", "all", "sum", "min", "max"})
ORDERED_BY_SOURCE = frozenset({"list", "tuple", "iter", "enumerate", "map", "filter", "zip", "reversed", "dict"})
SET_ANNOTATIONS = frozenset({"set", "frozenset", "Set", "MutableSet", "AbstractSet"})
SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference"})


def complaints_about_names(source: Source, banned: dict[str, str]) -> list[str]:
    """Imports and uses of banned names, whatever they were imported as."""
    aliases = _aliases(source.tree)
    complaints = []
    for node in ast.walk(source.tree):
        for name in _imported(node) or _dotted(node, aliases):
            match = _longest_prefix(name, banned)
            if match:
                complaints.append(f"{source.path}:{_line(node)}: {name} is banned here; use {banned[match]}")
    return list(dict.fromkeys(complaints))


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _longest_prefix(name: str, banned: dict[str, str]) -> str | None:
    parts = name.split(".")
    prefixes = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in banned), None)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Return the meaning of each name: `{"now": "time.monotonic"}`. A redefined name is no longer the built-in."""
    redefined = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    redefined |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    aliases = {name: f"builtins.{name}" for name in ("print", "hash", "id") if name not in redefined}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                local = alias.asname or alias.name.split(".")[0]
                aliases[local] = alias.name if alias.asname else local
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return aliases


def _dotted(node: ast.AST, aliases: dict[str, str]) -> list[str]:
    """The full dotted name that a loaded name or attribute stands for, when it comes from an import or is built in."""
    if isinstance(node, ast.Name):
        return [aliases[node.id]] if isinstance(node.ctx, ast.Load) and node.id in aliases else []
    if isinstance(node, ast.Attribute):
        return [f"{base}.{node.attr}" for base in _dotted(node.value, aliases)]
    return []


# -- sets -----------------------------------------------------------------------------------------------------------


def complaints_about_sets(source: Source) -> list[str]:
    """Places where the order of a set decides something: loops, comprehensions and conversions over one."""
    names = _names_of_sets(source.tree)
    blind = _generators_given_to_order_blind_functions(source.tree)
    places = (place for node in ast.walk(source.tree) for place in _iterated(node, blind) if _is_set(place, names))
    return [
        f"{source.path}:{_line(place)}: the order of a set decides here; iterate over sorted(...)" for place in places
    ]


def _iterated(node: ast.AST, blind: frozenset[ast.AST]) -> Iterator[ast.expr]:
    """The expressions that `node` iterates over in an order that matters."""
    if isinstance(node, ast.For | ast.AsyncFor):
        yield node.iter
    elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp) and node not in blind:
        yield from (generator.iter for generator in node.generators)
    elif isinstance(node, ast.Starred):
        yield node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ORDERED_BY_SOURCE:
        yield from node.args
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "join":
            yield from node.args
        elif node.func.attr == "pop" and not node.args:
            yield node.func.value


def _generators_given_to_order_blind_functions(tree: ast.Module) -> frozenset[ast.AST]:
    arguments: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ORDER_BLIND:
            arguments += node.args
    return frozenset(arguments)


def _names_of_sets(tree: ast.Module) -> frozenset[str]:
    """Names and attributes that are annotated as sets or assigned one, anywhere in the module."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and _is_set_annotation(node.annotation):
            names.add(_name(node.target))
        elif isinstance(node, ast.arg) and node.annotation is not None and _is_set_annotation(node.annotation):
            names.add(node.arg)
        elif isinstance(node, ast.Assign) and _is_set(node.value, frozenset()):
            names.update(_name(target) for target in node.targets)
    return frozenset(name for name in names if name)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    return ""


def _is_set_annotation(annotation: ast.expr) -> bool:
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return isinstance(base, ast.Name) and base.id in SET_ANNOTATIONS


def _is_set(node: ast.expr, names: frozenset[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id in ("set", "frozenset")
        return isinstance(node.func, ast.Attribute) and node.func.attr in SET_METHODS
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.BitAnd | ast.BitOr | ast.BitXor):
        return any(_is_set(side, names) or _is_keys_view(side) for side in (node.left, node.right))
    return bool(_name(node)) and _name(node) in names


def _is_keys_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"
