"""The planted bugs of `transactional-kv`: each a record, and a subclass that overrides the one step the bug is about.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from faultline.harness.system import Mutant
from faultline.systems_under_test.patterns.clusters.planted_bugs import with_bugs
from faultline.systems_under_test.patterns.clusters.transactional_kv.node import Parts

__all__ = ["MUTANTS", "mutated_parts"]

MUTANTS: dict[str, Mutant] = {}
"""Every planted bug by name."""

_CHANGES: dict[str, Callable[[Parts], Parts]] = {}


def mutated_parts(names: Iterable[str]) -> Parts:
    """The parts of a node with the planted bugs `names`, the correct ones with none. Raises UsageError."""
    return with_bugs("transactional-kv", names, Parts(), _CHANGES)
