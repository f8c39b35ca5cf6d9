"""The options of `gossip`: the pace and the partners of a round, the exchange, and the judge of which nodes are up."""

from __future__ import annotations

from typing import Annotated, ClassVar

from faultline.harness.errors import UsageError
from faultline.systems_under_test.patterns.data_replication.phi_accrual import PhiParameters
from faultline.systems_under_test.reference.shared.settings import Choice, Milliseconds, Number, Settings, options_of

__all__ = ["DETECTORS", "OPTIONS", "GossipSettings"]

_EXCHANGES = ("three-way", "digest", "full", "checksum")
DETECTORS = ("none", "fixed", "phi-accrual", "swim", "heartbeats", "lifeguard")


class GossipSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds."""

    system: ClassVar[str] = "gossip"

    gossip_interval_us: Annotated[
        int,
        Milliseconds(100),
        "the time between two rounds of a node; 1000 in the source, and less here because a run lasts seconds",
    ]
    fanout: Annotated[int, Number(3), "the number of peers that a node gossips with in a round"]
    exchange: Annotated[
        str,
        Choice(_EXCHANGES),
        "digest and values both ways; a digest that is answered with values; all entries every time; or a checksum"
        " first, and a three-way exchange only where it differs",
    ]
    entries_max: Annotated[int, Number(1000), "the most entries that a message holds"]
    seeds: Annotated[int, Number(1), "the number of members that all nodes know at the start"]
    seed_every: Annotated[
        int,
        Number(5, least=0),
        "the rounds from one question to a seed to the next, beside the peers, so that islands meet; 0 is never",
    ]
    peers: Annotated[str, Choice(("random", "least-contacted")), "how peers are chosen among the known nodes"]
    detector: Annotated[
        str,
        Choice(DETECTORS, default="fixed"),
        "the nodes that count as up: all (none); those whose heartbeat grew within down_after_ms; those whose"
        " silence is not suspicious; those that answer a probe; those whose heartbeats, in messages of their own, are"
        " not suspiciously late; or those that refute a suspicion in time",
    ]
    down_after_us: Annotated[
        int,
        Milliseconds(1000),
        "the time without a new heartbeat (detector=fixed), or without an answer to a suspicion (lifeguard), after"
        " which a node is taken for down",
    ]
    phi_threshold: Annotated[int, Number(8), "the suspicion from which a node is taken for down"]
    request_timeout_us: Annotated[int, Milliseconds(300), "the time after which a client asks again"]
    client_timeout_us: Annotated[int, Milliseconds(1000), "the time after which a client gives up"]

    def check(self) -> None:
        """Raise `UsageError` for a detector that would take nodes for down after one late round."""
        PhiParameters.of(self.gossip_interval_us, self.phi_threshold)
        if self.detector in ("fixed", "lifeguard") and self.down_after_us < 2 * self.gossip_interval_us:
            raise UsageError(
                "A node would be taken for down when the news of one round is late: down_after_ms is below twice"
                " gossip_interval_ms.",
                "Raise down_after_ms.",
            )


OPTIONS = options_of(GossipSettings)
"""Every option with its default."""
