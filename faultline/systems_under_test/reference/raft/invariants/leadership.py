"""Invariants of leadership: who may be followed, who may answer, who may be suspected, and in which generation.

They hold for each style of election alike; what only the votes of a cluster show stands in
`invariants`. Each looks at one server's own reports, in their order.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.invariant import Breach, Report
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    BecameLeader,
    GenerationAdopted,
    LeaderSuspected,
    OldGenerationFollowed,
)
from faultline.systems_under_test.reference.shared.trace_events import (
    AnsweredWithoutLeading,
    EntryApplied,
    NodeStarted,
)

__all__ = [
    "LEADERSHIP_INVARIANTS",
    "EntriesAreNotFromTheFuture",
    "LeadersAnswer",
    "OldLeadersAreNotFollowed",
    "ServersAreNotSuspectedEarly",
    "ServersLeadInNewGenerations",
]


class LeadersAnswer:
    """LDR-I5, for what goes through the log: reads have modes of their own."""

    id = "LDR-I5"
    statement = "Only a leader tells a client that its command was executed."
    needs_order = False
    events = (AnsweredWithoutLeading,)

    def observe(self, time_us: int, node: str, event: AnsweredWithoutLeading, report: Report) -> None:
        """Any such answer is one too many."""
        sentence = f"{node} answered the client of entry {event.index} although it did not lead."
        report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))


class ServersAreNotSuspectedEarly:
    """HB-I3, by the monotonic clock of the server that suspects, whatever clock its detector reads."""

    id = "HB-I3"
    statement = "A leader is suspected only after the whole timeout since its last message was processed."
    needs_order = False
    events = (LeaderSuspected,)

    def observe(self, time_us: int, node: str, event: LeaderSuspected, report: Report) -> None:
        """Compare the silence with the shortest timeout."""
        if event.silence_us < event.timeout_us:
            sentence = (
                f"{node} suspected its leader after {event.silence_us / 1_000:g} ms of silence;"
                f" the shortest timeout is {event.timeout_us / 1_000:g} ms."
            )
            report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))


class OldLeadersAreNotFollowed:
    """GEN-I3: no server does what a leader of before says."""

    id = "GEN-I3"
    statement = "No request of a generation below the receiver's own is accepted."
    needs_order = False
    events = (OldGenerationFollowed,)

    def observe(self, time_us: int, node: str, event: OldGenerationFollowed, report: Report) -> None:
        """Any such acceptance is one too many."""
        sentence = (
            f"{node}, living in generation {event.own_generation}, followed a leader of generation {event.generation}."
        )
        report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))


class EntriesAreNotFromTheFuture:
    """GEN-I4, on the entries as each server applies them."""

    id = "GEN-I4"
    statement = "A server holds no entry of a generation above its own."
    needs_order = False
    events = (NodeStarted, GenerationAdopted, EntryApplied)

    def __init__(self) -> None:
        self._generations: dict[str, int] = {}

    def observe(
        self, time_us: int, node: str, event: NodeStarted | GenerationAdopted | EntryApplied, report: Report
    ) -> None:
        """Compare each entry with the generation its server reported last."""
        if type(event) is not EntryApplied:
            self._generations[node] = event.generation
        elif event.generation > self._generations.get(node, event.generation):
            sentence = (
                f"{node} applied entry {event.index} of generation {event.generation}"
                f" while it lived in generation {self._generations[node]}."
            )
            report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))


class ServersLeadInNewGenerations:
    """GEN-I5, for each server, its restarts included; that two servers never share a generation is LDR-I1.

    Over all servers the order in time may be another: a candidate can learn that it won after a later one has.
    """

    id = "GEN-I5"
    statement = "A server that becomes leader again does so in a higher generation."
    needs_order = False
    events = (BecameLeader,)

    def __init__(self) -> None:
        self._led: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: BecameLeader, report: Report) -> None:
        """Compare with the last generation this server led."""
        before = self._led.get(node, -1)
        if event.generation <= before:
            sentence = f"{node} became leader of generation {event.generation} after it had led generation {before}."
            report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))
        self._led[node] = event.generation


LEADERSHIP_INVARIANTS: tuple[Any, ...] = (
    LeadersAnswer,
    ServersAreNotSuspectedEarly,
    OldLeadersAreNotFollowed,
    EntriesAreNotFromTheFuture,
    ServersLeadInNewGenerations,
)
"""The classes; a run needs fresh instances."""
