"""Consistency models: their order of strength, and the anomalies that each one forbids.

All of it is data with its source beside it; the functions only walk it. A history that shows an anomaly rules out each
model that forbids it (or an anomaly that follows from it), and each stronger model. The answer names the weakest models
ruled out first, because these say most.

Sources: *Adya*: Weak Consistency, MIT 1999. *ALO*: Adya, Liskov, O'Neil, Generalized Isolation Level Definitions, ICDE
2000. *Bailis*: Bailis et al., Highly Available Transactions, VLDB 2013. *RAMP*: Bailis et al., Scalable Atomic
Visibility with RAMP Transactions, SIGMOD 2014. *Berenson*: A Critique of ANSI SQL Isolation Levels, SIGMOD 1995.
*Bernstein*: Bernstein, Hadzilacos, Goodman, Concurrency Control and Recovery, 1987. *Cerone*: Cerone, Bernardi,
Gotsman, A Framework for Transactional Consistency Models with Atomic Visibility, CONCUR 2015. *Cerone-SI*: Analysing
Snapshot Isolation, PODC 2016. *Daudjee*: Daudjee, Salem, Lazy Database Replication with Ordering Guarantees, ICDE 2004,
and with Snapshot Isolation, VLDB 2006. *Zuikeviciute*: Zuikeviciute, Pedone, Correctness Criteria for Database
Replication, 2005. *Bouajjani*: Bouajjani et al., On Verifying Causal
Consistency, POPL 2017. *ROLA*: Liu et al., ROLA, FASE 2017. *Elle*: Kingsbury, Alvaro, Elle, VLDB 2020. *folds*:
follows from the two definitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from faultline.checkers.transactions.anomalies import implied
from faultline.harness.errors import UsageError

__all__ = [
    "ALIASES",
    "DECIDED",
    "FORBIDS",
    "FORBID_EVERY_CYCLE",
    "SNAPSHOTS",
    "STRONGER_THAN",
    "RuledOut",
    "Source",
    "canonical",
    "forbidden_by",
    "orders_for",
    "ruled_out",
    "weaker_models",
]


@dataclass(frozen=True, slots=True)
class Source:
    """A name (of a weaker model, or of a forbidden anomaly) and its source in the literature."""

    name: str
    citation: str


STRONGER_THAN: Mapping[str, tuple[Source, ...]] = {
    "strict-serializable": (
        Source("strong-session-serializable", "Daudjee 2004: real time includes each session's order"),
        Source("strong-snapshot-isolation", "Daudjee 2006: strong SI is SI in real time"),
        Source("linearizable", "Bailis, order of models"),
        Source("strong-read-committed", "folds: serializable in real time"),
    ),
    "strong-session-serializable": (
        Source("serializable", "Daudjee 2004"),
        Source("strong-session-snapshot-isolation", "Daudjee 2006"),
    ),
    "serializable": (
        Source("repeatable-read", "Adya, chapter 4"),
        Source("snapshot-isolation", "Cerone, order of models"),
        Source("update-serializable", "Adya, chapter 4"),
        Source("view-serializable", "Bernstein, chapter 2"),
        Source("session-1SR", "Zuikeviciute: without sessions in the history the two agree"),
    ),
    "update-serializable": (Source("forward-consistent-view", "Adya, chapter 4"),),
    "strong-snapshot-isolation": (
        Source("strong-session-snapshot-isolation", "Daudjee 2006"),
        Source("strong-read-committed", "folds: read committed in real time"),
    ),
    "strong-session-snapshot-isolation": (
        Source("snapshot-isolation", "Daudjee 2006"),
        Source("strong-session-read-committed", "folds: read committed in the session's order"),
    ),
    "snapshot-isolation": (
        Source("forward-consistent-view", "Adya, chapter 4"),
        Source("monotonic-snapshot-read", "Adya, chapter 4"),
        Source("monotonic-atomic-view", "Bailis, order of models"),
        Source("parallel-snapshot-isolation", "Cerone, order of models"),
        Source("prefix", "Cerone, order of models"),
    ),
    "forward-consistent-view": (Source("consistent-view", "Adya, chapter 4"),),
    "consistent-view": (
        Source("cursor-stability", "Adya, chapter 4"),
        Source("monotonic-view", "Adya, chapter 4"),
    ),
    "repeatable-read": (
        Source("cursor-stability", "Adya, chapter 4"),
        Source("monotonic-atomic-view", "Bailis, order of models"),
    ),
    "parallel-snapshot-isolation": (
        Source("causal-cerone", "Cerone, order of models"),
        Source("update-atomic", "ROLA"),
    ),
    "prefix": (Source("causal-cerone", "Cerone, order of models"),),
    "causal-cerone": (Source("read-atomic", "Cerone, order of models"),),
    "update-atomic": (Source("read-atomic", "ROLA"),),
    "read-atomic": (Source("monotonic-atomic-view", "RAMP: it also forbids what MAV forbids"),),
    "monotonic-atomic-view": (Source("read-committed", "Bailis, order of models"),),
    "monotonic-view": (Source("read-committed", "Adya, chapter 4"),),
    "monotonic-snapshot-read": (Source("read-committed", "Adya, chapter 4"),),
    "cursor-stability": (Source("read-committed", "Adya, chapter 4"),),
    "strong-read-committed": (
        Source("strong-session-read-committed", "folds: real time includes each session's order"),
        Source("strong-read-uncommitted", "folds: as the models without real time"),
    ),
    "strong-session-read-committed": (
        Source("read-committed", "folds: more edges, the same anomalies"),
        Source("strong-session-read-uncommitted", "folds: as the models without sessions"),
    ),
    "strong-read-uncommitted": (
        Source("strong-session-read-uncommitted", "folds: real time includes each session's order"),
    ),
    "strong-session-read-uncommitted": (Source("read-uncommitted", "folds: more edges, the same anomalies"),),
    "read-committed": (Source("read-uncommitted", "ALO, PL-1 and PL-2"),),
    "linearizable": (Source("sequential", "Bailis, order of models"),),
    "sequential": (
        Source("causal-memory", "Bailis, order of models"),
        Source("causal-convergence", "Bouajjani, section 3"),
    ),
    "causal-memory": (
        Source("writes-follow-reads", "Bailis, order of models"),
        Source("PRAM", "Bailis, order of models"),
        Source("weak-causal", "Bouajjani, section 3"),
    ),
    "causal-convergence": (Source("weak-causal", "Bouajjani, section 3"),),
    "PRAM": (
        Source("monotonic-reads", "Bailis, order of models"),
        Source("monotonic-writes", "Bailis, order of models"),
        Source("read-your-writes", "Bailis, order of models"),
    ),
}
"""Each model with the next weaker ones: a history of the former is one of the latter."""

FORBIDS: Mapping[str, tuple[Source, ...]] = {
    "read-uncommitted": (
        Source("G0", "Adya, PL-1"),
        Source("duplicate-elements", "Elle: no list of distinct appends holds an element twice"),
        Source("garbage-read", "Elle: every version read was written"),
        Source("predicate-mismatch", "Adya, chapter 3: what a predicate read returns are versions that match"),
    ),
    "read-committed": (
        Source("G1", "Adya, PL-2"),
        Source(
            "cyclic-versions", "Adya, chapter 3: versions are totally ordered; the order follows reads only without G1c"
        ),
    ),
    "cursor-stability": (Source("G-cursor", "Adya, PL-CS"), Source("lost-update", "Bailis, unachievable models")),
    "monotonic-view": (Source("G-monotonic", "Adya, PL-2L"),),
    "monotonic-snapshot-read": (Source("G-MSR", "Adya, PL-MSR"),),
    "consistent-view": (Source("G-single", "Adya, PL-2+"),),
    "forward-consistent-view": (Source("G-SIb", "Adya, PL-FCV"),),
    "snapshot-isolation": (
        Source("G-SI", "Adya, PL-SI"),
        Source("G-nonadjacent", "Cerone-SI: every cycle has two adjacent anti-dependencies"),
        Source("internal", "Cerone, INT"),
    ),
    "repeatable-read": (Source("G2-item", "Adya, PL-2.99"), Source("lost-update", "Bailis, unachievable models")),
    "update-serializable": (Source("G-update", "Adya, PL-3U"),),
    "serializable": (
        Source("G2", "Adya, PL-3"),
        Source("internal", "Cerone, INT"),
        Source("predicate-read-miss", "Adya, chapter 3: predicate reads depend on all versions of the relation"),
    ),
    "strict-serializable": (Source("G1-realtime", "Adya, PL-SS"), Source("G2-realtime", "Adya, PL-SS")),
    "strong-session-serializable": (
        Source("G1-process", "Daudjee 2004"),
        Source("G2-process", "Daudjee 2004"),
    ),
    "strong-session-snapshot-isolation": (
        Source("G1-process", "Daudjee 2006"),
        Source("G-nonadjacent-process", "Daudjee 2006, with Cerone-SI"),
    ),
    "strong-snapshot-isolation": (
        Source("G1-realtime", "Daudjee 2006"),
        Source("G-nonadjacent-realtime", "Daudjee 2006, with Cerone-SI"),
    ),
    "strong-session-read-uncommitted": (Source("G0-process", "folds: PL-1 with the session's order"),),
    "strong-session-read-committed": (Source("G1-process", "folds: PL-2 with the session's order"),),
    "strong-read-uncommitted": (Source("G0-realtime", "folds: PL-1 in real time"),),
    "strong-read-committed": (Source("G1-realtime", "folds: PL-2 in real time"),),
    "read-atomic": (
        Source("internal", "Cerone, INT"),
        Source("fractured-read", "RAMP"),
        Source("future-read", "Cerone, EXT: a value that is read was committed by another transaction"),
    ),
    "update-atomic": (Source("lost-update", "ROLA"),),
    "parallel-snapshot-isolation": (Source("lost-update", "Cerone, NOCONFLICT"),),
}
"""The anomalies that each model forbids in addition to those of weaker ones."""

ALIASES: Mapping[str, str] = {
    "PL-1": "read-uncommitted",
    "PL-2": "read-committed",
    "PL-CS": "cursor-stability",
    "PL-2L": "monotonic-view",
    "PL-MSR": "monotonic-snapshot-read",
    "PL-2+": "consistent-view",
    "PL-FCV": "forward-consistent-view",
    "PL-2.99": "repeatable-read",
    "PL-SI": "snapshot-isolation",
    "PL-3U": "update-serializable",
    "PL-3": "serializable",
    "PL-SS": "strict-serializable",
    "conflict-serializable": "serializable",
    "strong-serializable": "strict-serializable",
    "strict-1SR": "strict-serializable",
    "ROLA": "update-atomic",
    "1SR": "session-1SR",
}
"""Other names of the same models."""


FORBID_EVERY_CYCLE = frozenset(("serializable", "strong-session-serializable", "strict-serializable"))
"""The models that forbid every cycle of dependencies: any order without a cycle keeps them."""

SNAPSHOTS = frozenset(("snapshot-isolation", "strong-session-snapshot-isolation", "strong-snapshot-isolation"))
"""Snapshot isolation, alone, with sessions, and in real time."""

DECIDED = FORBID_EVERY_CYCLE | SNAPSHOTS | {"causal-cerone", "read-atomic", "read-committed"}
"""The models for which it can be decided whether a history of registers keeps them."""


@dataclass(frozen=True, slots=True)
class RuledOut:
    """The models that a set of anomalies rules out: the `weakest`, and those that are stronger than one of them."""

    weakest: tuple[str, ...]
    also: tuple[str, ...]


def canonical(model: str) -> str:
    """Return the name of a model in the tables; raise UsageError for an unknown one."""
    name = ALIASES.get(model, model)
    if name not in _everything():
        raise UsageError(
            f"There is no consistency model called `{model}`.", f"Choose one of {', '.join(_everything())}."
        )
    return name


@cache
def weaker_models(model: str) -> frozenset[str]:
    """Return all models that a history of `model` conforms to, itself included."""
    found, waiting = {model}, [model]
    while waiting:
        for weaker in STRONGER_THAN.get(waiting.pop(), ()):
            if weaker.name not in found:
                found.add(weaker.name)
                waiting.append(weaker.name)
    return frozenset(found)


def forbidden_by(model: str) -> set[str]:
    """Return the anomalies that `model` and everything weaker forbids, without those that would imply them."""
    return {source.name for name in weaker_models(canonical(model)) for source in FORBIDS.get(name, ())}


def orders_for(model: str) -> tuple[bool, bool]:
    """Return whether `model` includes the process order, and whether it includes the real-time order."""
    forbidden = forbidden_by(model)
    realtime = any(name.endswith("-realtime") for name in forbidden)
    return realtime or any(name.endswith("-process") for name in forbidden), realtime


def ruled_out(anomalies: Iterable[str], refuted: Iterable[str] = ()) -> RuledOut:
    """Return the models that `anomalies` contradict, and those that are no weaker than one of `refuted`."""
    present = implied(sorted(anomalies))
    direct = {model for model, sources in FORBIDS.items() if any(source.name in present for source in sources)}
    direct.update(refuted)
    everything = [model for model in _everything() if direct & weaker_models(model)]
    weakest = [model for model in everything if not (weaker_models(model) - {model}) & set(everything)]
    return RuledOut(tuple(weakest), tuple(model for model in everything if model not in weakest))


@cache
def _everything() -> tuple[str, ...]:
    """Return all models, weaker ones before stronger ones, and otherwise by name."""
    names = {*STRONGER_THAN, *(source.name for sources in STRONGER_THAN.values() for source in sources)}
    return tuple(sorted(names, key=lambda name: (len(weaker_models(name)), name)))
