"""The options of `paxos-kv`, and the combinations that are refused."""

from __future__ import annotations

from typing import Annotated, ClassVar

from faultline.harness.errors import UsageError
from faultline.systems_under_test.patterns.data_replication.paxos import PaxosQuorums
from faultline.systems_under_test.patterns.data_replication.paxos_proposer import ProposerTiming
from faultline.systems_under_test.reference.shared.settings import (
    Choice,
    Milliseconds,
    Number,
    Settings,
    Switch,
    options_of,
)

__all__ = ["OPTIONS", "PaxosKvSettings"]


class PaxosKvSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds. A quorum of 0 stands for a majority."""

    system: ClassVar[str] = "paxos-kv"

    read_mode: Annotated[
        str,
        Choice(("no-op", "prepare")),
        "a read gets a no-op decided (the book), or ends after a prepare phase that found nothing under way",
    ]
    rejections: Annotated[bool, Switch(), "acceptors answer a stale request with a rejection (on), or stay silent"]
    prepare_quorum: Annotated[int, Number(0, least=0), "promises an attempt needs; 0 is a majority"]
    accept_quorum: Annotated[int, Number(0, least=0), "acceptances that choose a value; 0 is a majority"]
    phase_timeout_us: Annotated[int, Milliseconds(50), "the time that a proposer waits for a quorum"]
    backoff_us: Annotated[
        int, Milliseconds(10), "the longest random wait before a second attempt; it doubles with each further one"
    ]
    attempts_max: Annotated[int, Number(5), "attempts without a quorum after which a node gives up"]
    segment_size_bytes: Annotated[int, Number(65536), "the size at which a log file is closed"]
    request_timeout_us: Annotated[int, Milliseconds(300), "the time after which a client asks another node"]
    client_timeout_us: Annotated[int, Milliseconds(1000), "the time after which a client gives up: outcome unknown"]

    def check(self) -> None:
        """Raise `UsageError` for clients that would give up before they ask a second node."""
        if self.request_timeout_us > self.client_timeout_us:
            raise UsageError(
                "Clients would give up before they ask a second node: request_timeout_ms is above client_timeout_ms.",
                "Lower request_timeout_ms.",
            )

    @property
    def prepares_only(self) -> bool:
        """True if reads end after a prepare phase that found nothing under way."""
        return self.read_mode == "prepare"

    @property
    def timing(self) -> ProposerTiming:
        """The times and attempts of a proposer."""
        return ProposerTiming(
            phase_us=self.phase_timeout_us, backoff_us=self.backoff_us, attempts_max=self.attempts_max
        )

    def quorums(self, members: int) -> PaxosQuorums:
        """Return the quorums among `members` nodes. Raise `UsageError` when two could miss each other."""
        usual = PaxosQuorums.majorities(members)
        quorums = PaxosQuorums(self.prepare_quorum or usual.prepare, self.accept_quorum or usual.accept)
        if max(quorums.prepare, quorums.accept) > members:
            raise UsageError(
                f"A quorum cannot be larger than the {members} nodes.",
                "Lower prepare_quorum or accept_quorum, or add nodes.",
            )
        if not quorums.intersect(members):
            raise UsageError(
                f"With {members} nodes, {quorums.prepare} promises and {quorums.accept} acceptances can come from"
                " different nodes, so two values could be chosen.",
                f"prepare_quorum and accept_quorum together must exceed {members}.",
            )
        return quorums


OPTIONS = options_of(PaxosKvSettings)
"""Every option with its default."""
