"""The invariants of `gossip`, checked on what its nodes report while a run goes on."""

from __future__ import annotations

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.reference.gossip.messages import (
    EntryLearned,
    EntrySaid,
    NodeStarted,
    RoundBegun,
)

__all__ = ["KnowledgeGrows", "NothingIsInvented", "RoundsAreSmall", "gossip_invariants"]


class KnowledgeGrows(ReportingInvariant):
    """A node's knowledge of a key never gets older while the node lives."""

    id = "GO-I1"
    statement = "The version of a key that a node knows never gets older, unless the node restarts."
    events = (EntryLearned, NodeStarted)

    def __init__(self) -> None:
        self._known: dict[str, dict[tuple[str, str], tuple[int, int]]] = {}

    def observe(self, time_us: int, node: str, event: EntryLearned | NodeStarted, report: Report) -> None:
        """Compare the learned version with the known one."""
        if isinstance(event, NodeStarted):
            self._known[node] = {}
            return
        known = self._known.setdefault(node, {})
        place, version = (event.owner, event.key), (event.generation, event.version)
        before = known.get(place, (0, 0))
        known[place] = version
        if version <= before:
            sentence = f"{node} replaced version {_words(before)} of {event.owner}'s {event.key} by {_words(version)}."
            self._breach(report, time_us, node, sentence)


class NothingIsInvented(ReportingInvariant):
    """A node learns only statements that their owner made, word for word."""

    id = "GO-I2"
    statement = "All that a node learns was said by its owner under that version, and each version has one value."
    events = (EntrySaid, EntryLearned)
    needs_order = True

    def __init__(self) -> None:
        self._said: dict[tuple[str, str, int, int], int] = {}

    def observe(self, time_us: int, node: str, event: EntrySaid | EntryLearned, report: Report) -> None:
        """Remember the statements of owners; compare the learned ones with them."""
        owner = node if isinstance(event, EntrySaid) else event.owner
        place = (owner, event.key, event.generation, event.version)
        if isinstance(event, EntrySaid) and place not in self._said:
            self._said[place] = event.checksum
        elif self._said.get(place) != event.checksum:
            words = f"{owner}'s {event.key} at version {_words((event.generation, event.version))}"
            did = (
                "said something else before of"
                if isinstance(event, EntrySaid)
                else "learned what its owner had not said of"
            )
            self._breach(report, time_us, node, f"{node} {did} {words}.")


class RoundsAreSmall(ReportingInvariant):
    """The traffic of a round has a bound, and goes to others."""

    id = "GO-I5"
    statement = "A round asks at most the permitted number of distinct peers, and never its own node."
    events = (RoundBegun,)

    def observe(self, time_us: int, node: str, event: RoundBegun, report: Report) -> None:
        """Count the peers of the round."""
        distinct = set(event.peers) - {node}
        if len(distinct) < len(event.peers) or len(event.peers) > event.most:
            sentence = f"{node} gossiped with {', '.join(event.peers)}; {event.most} others are permitted."
            self._breach(report, time_us, node, sentence)


def _words(version: tuple[int, int]) -> str:
    return f"{version[1]} of generation {version[0]}"


def gossip_invariants() -> list[Invariant]:
    """Return fresh instances of all invariants, for one run."""
    return [KnowledgeGrows(), NothingIsInvented(), RoundsAreSmall()]
