"""From names to objects: those that ship with Faultline, and those that other packages add by entry points.

The groups of entry points are in `faultline.harness.plugins`. Plug-ins are loaded only when named; one that cannot be
loaded is reported when it is asked for and never disturbs the rest.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from faultline.harness.errors import UsageError
from faultline.harness.parts import Parts
from faultline.harness.plugins import FAULTS_GROUP, NEMESES_GROUP, SYSTEMS_GROUP, WORKLOADS_GROUP, load, plugged_in
from faultline.harness.system import NodeSystem
from faultline.harness.workload import Checker, Workload

if TYPE_CHECKING:
    from faultline.harness.nemesis import Nemesis
    from faultline.harness.sensitivity import Anomalies
    from faultline.nemesis import Package

__all__ = [
    "anomalies_of",
    "checkers_of",
    "fault_marks",
    "fault_sets",
    "load_nemeses",
    "load_packages",
    "load_system",
    "load_workload",
    "nemesis_kinds",
    "resolve",
    "stores",
    "systems",
    "unknown_name",
    "workloads",
]

_SYSTEMS = {
    "consistent-core": "faultline.systems_under_test.reference.consistent_core.system:ConsistentCore",
    "coordination-service": "faultline.systems_under_test.reference.coordination_service.system:CoordinationService",
    "follower-reads": "faultline.systems_under_test.reference.follower_reads.system:FollowerReadStore",
    "logged-store": "faultline.systems_under_test.reference.logged_store.system:LoggedStoreSystem",
    "paxos-kv": "faultline.systems_under_test.reference.paxos_kv.system:PaxosKv",
    "quorum-register": "faultline.systems_under_test.reference.quorum_register.system:QuorumRegister",
    "quorum-kv": "faultline.systems_under_test.reference.quorum_kv.system:QuorumKeyValueStore",
    "gossip": "faultline.systems_under_test.reference.gossip.system:Gossip",
    "emergent-leader": "faultline.systems_under_test.reference.emergent.system:EmergentLeader",
    "data-grid": "faultline.systems_under_test.reference.data_grid.system:DataGrid",
    "timestamped-kv": "faultline.systems_under_test.reference.timestamped_kv.system:TimestampedKv",
    "partitioned-kv": "faultline.systems_under_test.reference.partitioned_kv.system:PartitionedKv",
    "coordinated-kv": "faultline.systems_under_test.reference.coordinated_kv.system:CoordinatedKv",
    "transactional-kv": "faultline.systems_under_test.reference.transactional_kv.system:TransactionalKv",
    "range-kv": "faultline.systems_under_test.reference.range_kv.system:RangeKv",
    "range-transactions": "faultline.systems_under_test.reference.range_transactions.system:RangeTransactions",
}
_STORES = {
    "etcd": "faultline.systems_under_test.stores.etcd.system:Etcd",
    "galera": "faultline.systems_under_test.stores.galera.system:Galera",
    "nats": "faultline.systems_under_test.stores.nats.system:NatsJetStream",
    "patroni": "faultline.systems_under_test.stores.postgresql.patroni:Patroni",
    "postgresql": "faultline.systems_under_test.stores.postgresql.system:PostgreSQL",
    "rabbitmq": "faultline.systems_under_test.stores.rabbitmq.system:RabbitMQ",
    "redis-cluster": "faultline.systems_under_test.stores.redis.cluster:RedisCluster",
    "redis-sentinel": "faultline.systems_under_test.stores.redis.sentinel:RedisSentinel",
    "zookeeper": "faultline.systems_under_test.stores.zookeeper.system:ZooKeeper",
}
"""Real stores: programs of their own, which run on hosts only."""
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
    "booking": "faultline.workloads.booking:Bookings",
    "txn-append": "faultline.workloads.transactions:AppendTransactions",
    "txn-register": "faultline.workloads.transactions:RegisterTransactions",
    "lost-update": "faultline.workloads.transactions:LostUpdates",
    "write-skew": "faultline.workloads.transactions:WriteSkew",
    "long-fork": "faultline.workloads.transactions:LongFork",
    "predicates": "faultline.workloads.predicates:Predicates",
    "counter": "faultline.workloads.counters:Counters",
    "sessions": "faultline.workloads.counters:Sessions",
    "unique-ids": "faultline.workloads.counters:UniqueIds",
    "queue": "faultline.workloads.queues:Queues",
    "metadata": "faultline.workloads.metadata:Metadata",
    "membership": "faultline.workloads.membership:Memberships",
    "scans": "faultline.workloads.scans:Scans",
    "causal-pairs": "faultline.workloads.causal_pairs:CausalPairs",
    "causal-writes": "faultline.workloads.dependent_writes:CausalWrites",
    "dependent-writes": "faultline.workloads.dependent_writes:DependentWrites",
    "moved-sessions": "faultline.workloads.dependent_writes:MovedSessions",
    "follower-reads": "faultline.workloads.follower_reads:FollowerReads",
    "read-your-writes": "faultline.workloads.follower_reads:ReadYourWrites",
    "watches": "faultline.workloads.watches:Watches",
    "key-watches": "faultline.workloads.watches:KeyWatches",
    "locks": "faultline.workloads.locks:Locks",
    "bounded-staleness": "faultline.workloads.follower_reads:BoundedStaleness",
}


class _Named(Protocol):
    """The fields that a run request and a plan share."""

    @property
    def system(self) -> str: ...
    @property
    def workload(self) -> str: ...
    @property
    def fault_set(self) -> tuple[str, ...]: ...


def systems() -> dict[str, str]:
    """Return every system but the real `stores`, as `module:attribute`; Faultline's own cannot be replaced by a
    plug-in."""
    return plugged_in(SYSTEMS_GROUP) | _SYSTEMS


def stores() -> dict[str, str]:
    """Return every real store by name, as `module:attribute`: systems that run on hosts only."""
    return dict(_STORES)


def workloads() -> dict[str, str]:
    """Return every workload by name, as `module:attribute`."""
    return plugged_in(WORKLOADS_GROUP) | _WORKLOADS


def fault_sets() -> tuple[str, ...]:
    """Return the name of every fault set, Faultline's own first."""
    from faultline.nemesis import PACKAGES

    return tuple(dict.fromkeys([*PACKAGES, *sorted(plugged_in(FAULTS_GROUP))]))


def nemesis_kinds() -> tuple[str, ...]:
    """Return the kind of every nemesis, Faultline's own first."""
    from faultline.nemesis import NEMESES

    return tuple(dict.fromkeys([*NEMESES, *sorted(plugged_in(NEMESES_GROUP))]))


def load_system(name: str) -> NodeSystem:
    """Return the system called `name`. Raise UsageError with the nearest name when there is none."""
    system: NodeSystem = _made("system", name, _SYSTEMS | _STORES, lambda: systems() | _STORES)
    if hasattr(system, "mutants") and not hasattr(system, "planted_bugs"):  # a former name
        raise UsageError(
            f"The system {name} declares `mutants`, which is called `planted_bugs` now.",
            "Rename the attribute, and Mutant to PlantedBug.",
        )
    return system


def load_workload(name: str) -> Workload:
    """Return the workload called `name`. Raise UsageError with the nearest name when there is none."""
    workload: Workload = _made("workload", name, _WORKLOADS, workloads)
    return workload


def load_packages(names: Sequence[str]) -> tuple[Package, ...]:
    """Return the fault packages called `names`, in order. Raise UsageError with the nearest name for an unknown one."""
    from faultline.nemesis import PACKAGES

    return tuple(PACKAGES[name] if name in PACKAGES else _plugged_in_package(name) for name in names)


def load_nemeses(kinds: Iterable[str]) -> dict[str, Nemesis]:
    """Return, by kind, Faultline's own nemeses, and those of `kinds` that other packages provide."""
    from faultline.nemesis import NEMESES

    foreign = [kind for kind in kinds if kind not in NEMESES]
    return NEMESES | {kind: _plugged_in_nemesis(kind) for kind in foreign}


def fault_marks() -> frozenset[str]:
    """Return the marks of all nemeses, which show that a fault took effect. Those that cannot be loaded have none."""
    from faultline.nemesis import NEMESES

    marks = {nemesis.mark for nemesis in NEMESES.values()}
    for kind in nemesis_kinds():
        try:
            marks |= {load_nemeses([kind])[kind].mark}
        except UsageError:
            continue
    return frozenset(marks)


def resolve(named: _Named) -> Parts:
    """Return the parts of a run request or a plan."""
    from faultline.nemesis import combined, heal_everything

    workload = load_workload(named.workload)
    package = combined(load_packages(named.fault_set))
    return Parts(
        system=load_system(named.system),
        system_path=(_SYSTEMS | _STORES).get(named.system) or systems()[named.system],
        workload=workload,
        checkers=checkers_of(workload),
        nemeses=load_nemeses(package.kinds),
        package=package,
        heal=heal_everything,
        anomalies=anomalies_of(workload),
    )


def checkers_of(workload: Workload) -> tuple[Checker, ...]:
    """Return the judges of a run of `workload`, most important first: its checkers, and the system's invariants."""
    from faultline.checkers import InvariantChecker

    return (*workload.checkers(), InvariantChecker())


def anomalies_of(workload: Workload) -> Anomalies | None:
    """Return the anomalies that fit `workload`: its own method `anomalies` if it has one, else those that ship
    under its name, else None.
    """
    from faultline.sensitivity.families import ANOMALIES

    own: Anomalies | None = getattr(workload, "anomalies", None)
    return own or ANOMALIES.get(workload.name)


def unknown_name(what: str, name: str, known: Iterable[str], listing: str) -> UsageError:
    """Return the error for an unknown name, with the nearest known one."""
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return UsageError(f"There is no {what} called {name!r}.", f"{hint}See them with `faultline list {listing}`.")


def _made(what: str, name: str, shipped: Mapping[str, str], known: Callable[[], dict[str, str]]) -> Any:
    """Return the object called `name`, made by calling its class or function."""
    table = shipped if name in shipped else known()
    if name not in table:
        raise unknown_name(what, name, table, f"{what}s")
    return _called(what, name, load(what, name, table[name]))


def _called(what: str, name: str, make: Any) -> Any:
    try:
        return make()
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"The {what} {name} ({make!r}) cannot be made: {type(error).__name__}: {error}.",
            "An entry point names a class or function that is called without arguments.",
        ) from error


def _plugged_in_package(name: str) -> Package:
    from faultline.nemesis import Package

    table = plugged_in(FAULTS_GROUP)
    if name not in table:
        raise unknown_name("fault set", name, fault_sets(), "faults")
    found = load("fault set", name, table[name])
    package = found if isinstance(found, Package) else _called("fault set", name, found)
    if not isinstance(package, Package):
        raise UsageError(
            f"The fault set {name} ({table[name]}) is a {type(package).__name__}, not a Package.",
            "Make it of recipes: faultline.nemesis.Package(name, summary, (Recipe(kind), ...)).",
        )
    return package


def _plugged_in_nemesis(kind: str) -> Nemesis:
    table = plugged_in(NEMESES_GROUP)
    if kind not in table:
        raise unknown_name("kind of fault", kind, nemesis_kinds(), "faults")
    nemesis: Nemesis = _called("nemesis", kind, load("nemesis", kind, table[kind]))
    return nemesis
