"""The anomalies: the meaning of each in words, and the implications among them.

Names are Adya's (*Weak Consistency: A Generalized Theory and Optimistic Implementations*, MIT 1999) and Elle's where
Adya has none, so that results can be compared. `IMPLIES` is the relation by which a finding rules out more than the
models that name it: where `a` leads to `b`, a history with `a` has `b` as well, or an anomaly as bad.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["IMPLIES", "MEANINGS", "implied", "meaning", "severity"]

MEANINGS: Mapping[str, str] = {
    "garbage-read": "a value was read that had never been written",
    "predicate-mismatch": "a condition selected an object that does not meet it",
    "duplicate-elements": "an element is twice in a list although it was appended once",
    "incompatible-order": "two reads of one object disagree about the order of its versions",
    "cyclic-versions": "the reads of one object put its versions in a circle",
    "dirty-update": "a committed write is on top of a write of a failed transaction",
    "G1a": "an aborted read: a transaction saw a write of a failed one",
    "G1b": "an intermediate read: a transaction saw a value that its writer went on to replace",
    "future-read": "a transaction read a value that it wrote only later",
    "internal": "a transaction did not see its own writes or its own earlier reads",
    "G0": "a write cycle: transactions overwrote each other in both directions",
    "G1c": "circular information flow: transactions saw or overwrote each other's writes in a circle",
    "lost-update": "two transactions read the same version and both overwrote it: one update is lost",
    "G-single": "read skew: a transaction saw part of another's effects and missed another part",
    "fractured-read": "a transaction saw one write of another, and an older version of another object that it wrote",
    "G-monotonic": "a transaction saw another's effects, and a later read of it did not",
    "G-cursor": "a lost update of one object: it was read, overwritten by another, and then overwritten again",
    "G-nonadjacent": "a cycle of missed writes that no snapshot explains: no two missed writes follow each other",
    "G2": "an anti-dependency cycle, of which write skew is one: each missed a write of the next",
    "write-skew": "two transactions each read a version that the other overwrote, on different objects",
    "G-update": "a missed write among transactions that write, with at most one that only reads",
    "predicate-read-miss": "a condition did not select an object of which every version meets it",
    "non-monotonic": "reads of a value that only grows cannot be put in any one order",
}
"""One clause for each anomaly, worst first, without its `-item`, `-process` or `-realtime`."""

_SUFFIXES = ("", "-process", "-realtime")


def _variants() -> dict[str, tuple[str, ...]]:
    """Return the rules of the cycle shapes, for each order. A process is sequential: its cycles are real-time
    cycles."""
    rules: dict[str, tuple[str, ...]] = {}
    for suffix, wider in zip(_SUFFIXES, (*_SUFFIXES[1:], None), strict=True):
        base = {
            "G0": ("G1c",),
            "G1c": ("G1",),
            "G1": (),
            "G-single-item": ("G-single", "G-nonadjacent-item"),
            "G-single": ("G-nonadjacent",),
            "G-nonadjacent-item": ("G-nonadjacent", "G2-item"),
            "G-nonadjacent": ("G2",),
            "G2-item": ("G2",),
            "G2": (),
        }
        for name, weaker in base.items():
            also = (name + wider,) if wider is not None else ()
            rules[name + suffix] = tuple(weak + suffix for weak in weaker) + also
    return rules


IMPLIES: Mapping[str, tuple[str, ...]] = {
    **_variants(),
    "G1a": ("G1",),  # Adya: G1 is G1a, G1b and G1c together
    "G1b": ("G1",),
    "G-single": ("G-nonadjacent", "G-single-process", "G-SIb"),  # Adya: a cycle of the DSG is one of the SSG
    "G-SIb": ("G-SI",),  # Adya: G-SI is G-SIa and G-SIb together
    "G-SIa": ("G-SI",),
    "G-monotonic": ("G-single",),  # Adya: such a cycle of the unfolded graph folds into one with a single rw
    "G-cursor": ("lost-update",),  # Adya: consistency of one labelled object
    "G-update": ("G2",),  # Adya
    "write-skew": ("G2",),  # Berenson et al. 1995, A5B
    "lost-update": ("G2-item", "G-cursor"),  # Berenson et al. 1995, P4
    "fractured-read": ("G-single",),  # Bailis et al. 2014: it sees and misses the same transaction
    "dirty-update": ("G1a",),  # Elle: a model that forbids reading aborted data forbids building on it
    "incompatible-order": ("G1a",),  # Elle: one of the two was never installed
    "future-read": ("G1c",),  # a circle of one transaction: it depends on itself
    "duplicate-elements": (),
    "garbage-read": (),
    "predicate-mismatch": (),
    # Elle, but only as far as the source of the order goes: order by process or real time is no promise of weak models.
    "cyclic-versions": (),
    "cyclic-versions-process": ("G2-process",),
    "cyclic-versions-realtime": ("G2-realtime",),
    "internal": (),
    "predicate-read-miss": ("G2",),  # it missed every write
    "non-monotonic": ("cyclic-versions",),
}
"""The direct implications of each anomaly; `implied` takes them transitively."""


def implied(names: list[str]) -> set[str]:
    """Return all anomalies that follow from `names`, themselves included."""
    found = set(names)
    waiting = list(names)
    while waiting:
        for weaker in IMPLIES.get(waiting.pop(), ()):
            if weaker not in found:
                found.add(weaker)
                waiting.append(weaker)
    return found


def severity(name: str) -> tuple[int, int]:
    """Return the sort key of an anomaly: the worst first, those that need process or real-time order after the
    others."""
    plain = name.removesuffix("-process").removesuffix("-realtime")
    order = 0 if plain == name else 1 if name.endswith("-process") else 2
    return order, list(MEANINGS).index(plain.removesuffix("-item"))


def meaning(name: str) -> str:
    """Return the meaning of the anomaly called `name`, in one clause."""
    base = name.removesuffix("-process").removesuffix("-realtime").removesuffix("-item")
    extra = "; part of it is the order of one client's operations" if name.endswith("-process") else ""
    extra = "; part of it is the order of real time" if name.endswith("-realtime") else extra
    return MEANINGS[base] + extra
