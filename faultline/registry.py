"""Names to objects: what ships with Faultline, and what other packages add by entry points.

Plug-ins declare entry points in the groups `faultline.systems` and `faultline.workloads`; they are loaded only when
named. A plug-in that cannot be imported is reported when it is asked for and never disturbs the rest.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from faultline.harness.errors import UsageError
from faultline.harness.parts import Parts
from faultline.harness.system import NodeSystem
from faultline.harness.workload import Workload

if TYPE_CHECKING:
    from faultline.nemesis import Package

__all__ = ["load_packages", "load_system", "load_workload", "resolve", "systems", "unknown_name", "workloads"]

_SYSTEMS = {
    "consistent-core": "faultline.systems_under_test.patterns.clusters.consistent_core:ConsistentCore",
    "paxos-kv": "faultline.systems_under_test.patterns.clusters.paxos_kv.system:PaxosKv",
    "quorum-register": "faultline.systems_under_test.patterns.clusters.quorum_register.system:QuorumRegister",
    "quorum-kv": "faultline.systems_under_test.patterns.clusters.quorum_kv.system:QuorumKeyValueStore",
    "gossip": "faultline.systems_under_test.patterns.clusters.gossip.system:Gossip",
    "emergent-leader": "faultline.systems_under_test.patterns.clusters.emergent.system:EmergentLeader",
    "timestamped-kv": "faultline.systems_under_test.patterns.clusters.timestamped_kv.system:TimestampedKv",
    "partitioned-kv": "faultline.systems_under_test.patterns.clusters.partitioned_kv.system:PartitionedKv",
    "transactional-kv": "faultline.systems_under_test.patterns.clusters.transactional_kv.system:TransactionalKv",
    "range-kv": "faultline.systems_under_test.patterns.clusters.range_kv.system:RangeKv",
}
_WORKLOADS = {
    "register": "faultline.workloads.register:Register",
    "read-write": "faultline.workloads.read_write:ReadWrite",
    "siblings": "faultline.workloads.siblings:SiblingWrites",
    "cart": "faultline.workloads.carts:Carts",
    "transfer": "faultline.workloads.transfer:Transfers",
    "append": "faultline.workloads.appends:Appends",
    "log-order": "faultline.workloads.appends:LogOrder",
    "set": "faultline.workloads.sets:Sets",
    "sequential": "faultline.workloads.sets:Sequential",
    "bank": "faultline.workloads.bank:Bank",
    "counter": "faultline.workloads.counters:Counters",
    "sessions": "faultline.workloads.counters:Sessions",
    "unique-ids": "faultline.workloads.counters:UniqueIds",
    "metadata": "faultline.workloads.metadata:Metadata",
    "membership": "faultline.workloads.membership:Memberships",
    "scans": "faultline.workloads.scans:Scans",
    "causal-pairs": "faultline.workloads.causal_pairs:CausalPairs",
    "follower-reads": "faultline.workloads.follower_reads:FollowerReads",
    "read-your-writes": "faultline.workloads.follower_reads:ReadYourWrites",
    "bounded-staleness": "faultline.workloads.follower_reads:BoundedStaleness",
}


class _Named(Protocol):
    """What a run request and a plan have in common."""

    @property
    def system(self) -> str: ...
    @property
    def workload(self) -> str: ...
    @property
    def fault_set(self) -> tuple[str, ...]: ...


def systems() -> dict[str, str]:
    """Every system by name, as `module:attribute`; Faultline's own cannot be replaced by a plug-in."""
    return _plugged_in("faultline.systems") | _SYSTEMS


def workloads() -> dict[str, str]:
    """Every workload by name, as `module:attribute`."""
    return _plugged_in("faultline.workloads") | _WORKLOADS


def load_system(name: str) -> NodeSystem:
    """The system called `name`. Raises UsageError with the nearest name when there is none."""
    system: NodeSystem = _load("system", name, systems())
    return system


def load_workload(name: str) -> Workload:
    """The workload called `name`. Raises UsageError with the nearest name when there is none."""
    workload: Workload = _load("workload", name, workloads())
    return workload


def load_packages(names: Sequence[str]) -> tuple[Package, ...]:
    """The fault packages called `names`, in order. Raises UsageError with the nearest name for an unknown one."""
    from faultline.nemesis import PACKAGES

    for name in names:
        if name not in PACKAGES:
            raise unknown_name("fault set", name, PACKAGES, "faults")
    return tuple(PACKAGES[name] for name in names)


def resolve(named: _Named) -> Parts:
    """The parts of a run request or a plan."""
    from faultline.checkers import InvariantChecker
    from faultline.nemesis import NEMESES, combined, heal_everything

    workload = load_workload(named.workload)
    return Parts(
        system=load_system(named.system),
        system_path=systems()[named.system],
        workload=workload,
        checkers=(*workload.checkers(), InvariantChecker()),
        nemeses=NEMESES,
        package=combined(load_packages(named.fault_set)),
        heal=heal_everything,
    )


def unknown_name(what: str, name: str, known: Iterable[str], listing: str) -> UsageError:
    """The error for a name that stands in no table, with the nearest one that does."""
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return UsageError(f"There is no {what} called {name!r}.", f"{hint}See them with `faultline list {listing}`.")


def _plugged_in(group: str) -> dict[str, str]:
    return {point.name: point.value for point in importlib.metadata.entry_points(group=group)}


def _load(what: str, name: str, table: Mapping[str, str]) -> Any:
    if name not in table:
        raise unknown_name(what, name, table, f"{what}s")
    module_name, _, attribute = table[name].partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)()
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"The {what} {name} ({table[name]}) cannot be loaded: {error}.", "Reinstall the package that provides it."
        ) from error
