"""The options of `consistent-core` about versions and reads from followers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.reference.shared.option_values import OptionValues

__all__ = ["FOLLOWER_READ_OPTIONS", "REGIONS", "FollowerReadSettings"]

REGIONS = ("us-west", "us-east", "eu-west")
"""The regions that nodes are spread over, in turn."""

_MODES = ("plain", "bounded", "stamped", "session", "at-stamp", "no-wait", "read-index")

FOLLOWER_READ_OPTIONS: dict[str, OptionDescription] = {
    "store": OptionDescription(
        default="single",
        choices=("single", "versioned"),
        summary="keep the last value of each key, or all of them under the index of their entry",
    ),
    "versions_kept": OptionDescription(
        default="0", summary="how many indexes back the past stays readable (store versioned); 0 keeps everything"
    ),
    "read_from": OptionDescription(
        default="leader",
        choices=("leader", "follower", "nearest"),
        summary="who is asked first: the leader, the client's own server, or the nearest by region and latency",
    ),
    "follower_reads": OptionDescription(
        default="session",
        choices=_MODES,
        summary="what a follower's answer is worth: plain (a prefix of the log), bounded (by max_staleness_ms), stamped"
        " (read your writes), session (and monotonic), at-stamp (a snapshot), no-wait (refused instead of delayed),"
        " read-index (linearizable)",
    ),
    "follower_wait_timeout_ms": OptionDescription(
        default="200", summary="after how long a follower gives up a read whose stamp it has not applied"
    ),
    "follower_silence_ms": OptionDescription(
        default="500", summary="after how long without its leader a follower stops serving reads"
    ),
    "max_staleness_ms": OptionDescription(
        default="300", summary="how old an answer of a follower may be (follower_reads bounded)"
    ),
    "regions": OptionDescription(
        default="3", choices=("1", "2", "3"), summary="over how many regions the servers are spread, in turn"
    ),
}
"""Every option with its default."""


class FollowerReadSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    versioned: bool
    versions_kept: int
    read_from: str
    mode: str
    wait_timeout_us: int
    silence_us: int
    max_staleness_us: int
    regions: int

    @classmethod
    def read(cls, options: Mapping[str, str]) -> FollowerReadSettings:
        """The settings of `options`, where others may stand too. Raises UsageError."""
        given = {name: value for name, value in options.items() if name in FOLLOWER_READ_OPTIONS}
        values = OptionValues("consistent-core", FOLLOWER_READ_OPTIONS, given)
        settings = cls(
            versioned=values.choice("store") == "versioned",
            versions_kept=values.number("versions_kept", least=0),
            read_from=values.choice("read_from"),
            mode=values.choice("follower_reads"),
            wait_timeout_us=values.microseconds("follower_wait_timeout_ms"),
            silence_us=values.microseconds("follower_silence_ms"),
            max_staleness_us=values.microseconds("max_staleness_ms"),
            regions=int(values.choice("regions")),
        )
        settings._refuse_contradictions()
        return settings

    @property
    def is_off(self) -> bool:
        """Whether the plain node and client will do."""
        return not self.versioned and not self.from_followers

    @property
    def from_followers(self) -> bool:
        """Whether followers answer reads at all."""
        return self.read_from != "leader"

    @property
    def bound_us(self) -> int:
        """How old an answer may be; 0 where nothing is promised."""
        return self.max_staleness_us if self.mode == "bounded" else 0

    def region_of(self, number: int) -> str:
        """The region of the server of that number."""
        return REGIONS[number % self.regions]

    def _refuse_contradictions(self) -> None:
        if self.from_followers and self.mode == "at-stamp" and not self.versioned:
            raise UsageError(
                "A store that keeps one value per key cannot be read at a stamp (follower_reads at-stamp).",
                "Add --option store=versioned.",
            )
        if self.versions_kept and not self.versioned:
            raise UsageError("versions_kept says nothing for store single.", "Add --option store=versioned.")
