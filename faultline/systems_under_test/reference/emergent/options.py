"""The options of `emergent-leader`: how soon silence is noticed, who watches whom, and below which size to refuse."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.reference.shared.option_values import OptionValues

__all__ = ["OPTIONS", "EmergentSettings"]

OPTIONS: dict[str, OptionDescription] = {
    "seeds": OptionDescription(default="2", summary="how many of the members admit others; each knows their addresses"),
    "heartbeats": OptionDescription(
        default="all",
        choices=("all", "ring"),
        summary="who watches whom: everybody everybody, or each the two before it in a ring, reporting to all",
    ),
    "heartbeat_interval_ms": OptionDescription(default="50", summary="how long between two heartbeats"),
    "failure_timeout_ms": OptionDescription(default="300", summary="after how much silence a member counts as failed"),
    "join_timeout_ms": OptionDescription(default="100", summary="how long a joiner waits for an answer"),
    "join_attempts": OptionDescription(
        default="0",
        summary="how often a joiner tries before it gives up for good; 0 is without end, 5 the printed code's",
    ),
    "acknowledgement_ms": OptionDescription(
        default="200",
        summary="how long a joiner's answer waits for the members to know it; 2000 in the source, and less here because"
        " a run lasts seconds",
    ),
    "merge_interval_ms": OptionDescription(
        default="200",
        summary="how often a coordinator looks for those it believes failed; 1000 in the source, and less here for the"
        " same reason",
    ),
    "minimum": OptionDescription(
        default="0",
        summary="below how many live members clients are refused; 0 is a majority of the largest membership ever seen",
    ),
    "client_timeout_ms": OptionDescription(default="800", summary="after how long a client gives up"),
}
"""Every option with its default."""


class EmergentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    seeds: int
    heartbeats: str
    heartbeat_interval_us: int
    failure_timeout_us: int
    join_timeout_us: int
    join_attempts: int
    acknowledgement_us: int
    merge_interval_us: int
    minimum: int
    client_timeout_us: int

    @classmethod
    def read(cls, options: Mapping[str, str]) -> EmergentSettings:
        """The settings of `options`. Raises UsageError for one that cannot be used."""
        values = OptionValues("emergent-leader", OPTIONS, options)
        settings = cls(
            seeds=values.number("seeds"),
            heartbeats=values.choice("heartbeats"),
            heartbeat_interval_us=values.microseconds("heartbeat_interval_ms"),
            failure_timeout_us=values.microseconds("failure_timeout_ms"),
            join_timeout_us=values.microseconds("join_timeout_ms"),
            join_attempts=values.number("join_attempts", least=0),
            acknowledgement_us=values.microseconds("acknowledgement_ms"),
            merge_interval_us=values.microseconds("merge_interval_ms"),
            minimum=values.number("minimum", least=0),
            client_timeout_us=values.microseconds("client_timeout_ms"),
        )
        if settings.failure_timeout_us < 2 * settings.heartbeat_interval_us:
            raise UsageError(
                "A member would count as failed when one heartbeat is late: failure_timeout_ms is below twice"
                " heartbeat_interval_ms.",
                "Raise failure_timeout_ms.",
            )
        return settings
