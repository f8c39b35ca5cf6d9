"""The size of the code that a reader of a system's node has to read, and the systems that import each other.

The *closure* of a node is the set of files below `systems_under_test` that its module imports, directly or through
others. Imports that only a type checker sees do not count: the node runs without them. The ceilings of the table may
only get lower; new systems get one of at most `GOAL`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from tidy_sources import Source

__all__ = ["CEILINGS", "GOAL", "closure", "complaints_about_closures", "complaints_about_foreign_packages"]

GOAL = 25
"""The most files that the node of a system should import."""

SYSTEMS = "faultline.systems_under_test"
REFERENCE = f"{SYSTEMS}.reference"
LIBRARIES = frozenset({"leases_and_watches", "membership", "ranges", "raft", "shared", "transactions"})
"""The folders of `reference` that hold no system, but what several of them are made of."""

CEILINGS: dict[str, tuple[str, int]] = {
    "consistent_core": ("raft.key_value_server", 25),
    "coordinated_kv": ("coordinated_kv.node", 25),
    "coordination_service": ("leases_and_watches.extension", 25),
    "data_grid": ("data_grid.node", 25),
    "emergent": ("emergent.node", 15),
    "follower_reads": ("follower_reads.extension", 22),
    "gossip": ("gossip.node", 13),
    "partitioned_kv": ("partitioned_kv.node", 25),
    "logged_store": ("logged_store.node", 21),
    "paxos_kv": ("paxos_kv.node", 18),
    "quorum_kv": ("quorum_kv.node", 18),
    "quorum_register": ("quorum_register.node", 18),
    "range_kv": ("range_kv.node", 21),
    "range_transactions": ("range_transactions.node", 21),
    "timestamped_kv": ("timestamped_kv.node", 15),
    "transactional_kv": ("transactional_kv.node", 25),
}
"""For each folder of a system, below `reference`, the module of its node and the size of its closure today.

A node that is a Raft server with an extension is counted from the extension: the server is counted by itself, and the
extension knows it by an interface. What a node is given by the place that assembles it does not count either.
"""


def closure(module: str, sources: Mapping[str, Source]) -> frozenset[str]:
    """Return the modules below `systems_under_test` that `module` imports when it runs, itself included."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting += (each for each in _imported_at_run_time(sources[name].tree, sources) if each not in seen)
    return frozenset(seen)


def complaints_about_closures(sources: Iterable[Source]) -> list[str]:
    """Return systems without a ceiling, and nodes whose closure is not the size that the table has."""
    by_module = {source.module: source for source in sources if source.module.startswith(SYSTEMS)}
    complaints = [
        f"reference/{system}: give the closure of its node a ceiling of at most {GOAL} (tidy_closure.CEILINGS)"
        for system in sorted(_systems(by_module) - set(CEILINGS))
    ]
    for system, (node, ceiling) in CEILINGS.items():
        size = len(closure(f"{REFERENCE}.{node}", by_module))
        if size > ceiling:
            complaints.append(f"reference/{system}: its node imports {size} files, and the ceiling is {ceiling}")
        elif size < ceiling and ceiling > GOAL:
            complaints.append(f"reference/{system}: its node imports {size} files: lower its ceiling from {ceiling}")
    return complaints


def complaints_about_foreign_packages(sources: Iterable[Source]) -> list[str]:
    """Return the imports by which a system, or a library of systems, takes something from a system's own folder."""
    by_module = {source.module: source for source in sources if source.module.startswith(REFERENCE + ".")}
    systems = _systems(by_module)
    return [
        f"{source.path}: takes {imported} from another system; move it to one of {', '.join(sorted(LIBRARIES))}"
        for source in by_module.values()
        for imported in sorted(_imported_at_run_time(source.tree, by_module))
        if _folder(imported) in systems and _folder(imported) != _folder(source.module)
    ]


def _systems(by_module: Mapping[str, Source]) -> set[str]:
    folders = {_folder(module) for module in by_module if module.startswith(REFERENCE + ".")}
    return {folder for folder in folders if f"{REFERENCE}.{folder}.system" in by_module}


def _folder(module: str) -> str:
    return module.removeprefix(REFERENCE + ".").split(".")[0]


def _imported_at_run_time(tree: ast.AST, known: Mapping[str, Source]) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                # `from package import module` names a module; every other import names something inside one.
                name = f"{node.module}.{alias.name}"
                if name in known:
                    yield name
                elif node.module in known and not known[node.module].is_package:
                    yield node.module
        yield from _imported_at_run_time(node, known)
