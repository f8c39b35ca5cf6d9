"""The options of `gossip`: how often and with whom, what is exchanged, and who judges who is up."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.patterns.data_replication.phi_accrual import PhiParameters
from faultline.systems_under_test.reference.shared.option_values import OptionValues

__all__ = ["OPTIONS", "GossipSettings"]

OPTIONS: dict[str, OptionDescription] = {
    "gossip_interval_ms": OptionDescription(
        default="100",
        summary="how long between two rounds of a node; 1000 in the source, and less here because a run lasts seconds",
    ),
    "fanout": OptionDescription(default="3", summary="with how many peers a node gossips in a round"),
    "exchange": OptionDescription(
        default="three-way",
        choices=("three-way", "digest", "full", "checksum"),
        summary="digest and values both ways; a digest answered with values; everything every time; or a checksum"
        " first, and a three-way exchange only where it differs",
    ),
    "entries_max": OptionDescription(default="1000", summary="how many entries a message holds at most"),
    "seeds": OptionDescription(default="1", summary="how many of the members are known to all at the start"),
    "seed_every": OptionDescription(
        default="5",
        summary="every how many rounds a seed is asked beside the peers, so that islands meet; 0 is never",
    ),
    "peers": OptionDescription(
        default="random", choices=("random", "least-contacted"), summary="how peers are chosen among the known nodes"
    ),
    "detector": OptionDescription(
        default="fixed",
        choices=("none", "fixed", "phi-accrual", "swim"),
        summary="who is up: nobody judges; whose heartbeat grew within down_after_ms; whose silence is not suspicious;"
        " or who answers when asked",
    ),
    "down_after_ms": OptionDescription(
        default="1000", summary="after how long without a new heartbeat a node is taken for down (detector=fixed)"
    ),
    "phi_threshold": OptionDescription(default="8", summary="the suspicion from which a node is taken for down"),
    "request_timeout_ms": OptionDescription(default="300", summary="after how long a client asks again"),
    "client_timeout_ms": OptionDescription(default="1000", summary="after how long a client gives up"),
}
"""Every option with its default."""


class GossipSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    gossip_interval_us: int
    fanout: int
    exchange: str
    entries_max: int
    seeds: int
    seed_every: int
    peers: str
    detector: str
    down_after_us: int
    phi_threshold: int
    request_timeout_us: int
    client_timeout_us: int

    @classmethod
    def read(cls, options: Mapping[str, str]) -> GossipSettings:
        """The settings of `options`. Raises UsageError for one that cannot be used."""
        values = OptionValues("gossip", OPTIONS, options)
        settings = cls(
            gossip_interval_us=values.microseconds("gossip_interval_ms"),
            fanout=values.number("fanout"),
            exchange=values.choice("exchange"),
            entries_max=values.number("entries_max"),
            seeds=values.number("seeds"),
            seed_every=values.number("seed_every", least=0),
            peers=values.choice("peers"),
            detector=values.choice("detector"),
            down_after_us=values.microseconds("down_after_ms"),
            phi_threshold=values.number("phi_threshold"),
            request_timeout_us=values.microseconds("request_timeout_ms"),
            client_timeout_us=values.microseconds("client_timeout_ms"),
        )
        PhiParameters.of(settings.gossip_interval_us, settings.phi_threshold)
        if settings.detector == "fixed" and settings.down_after_us < 2 * settings.gossip_interval_us:
            raise UsageError(
                "A node would be taken for down when the news of one round are late: down_after_ms is below twice"
                " gossip_interval_ms.",
                "Raise down_after_ms.",
            )
        return settings
