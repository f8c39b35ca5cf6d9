"""The options of `follower-reads`: those of versions and reads, and the times of its Raft servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import msgspec

from faultline.harness.options import TUNING
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.reference.follower_reads.settings import FollowerReadSettings
from faultline.systems_under_test.reference.raft.settings import KERNEL_SETTINGS, RaftSettings, kernel_options
from faultline.systems_under_test.reference.shared.settings import options_of, refuse_others, tuning_option

__all__ = ["OPTIONS", "SETTINGS", "StoreSettings"]

_OF_READS = options_of(FollowerReadSettings)

SETTINGS: dict[str, OptionDescription] = {**KERNEL_SETTINGS, **kernel_options("snapshot_every_entries")}
"""The settings behind the option `tuning`."""

OPTIONS: dict[str, OptionDescription] = {
    **_OF_READS,
    **kernel_options("heartbeat_interval_ms", "election_timeout_ms", "client_timeout_ms"),
    TUNING: tuning_option(SETTINGS),
}
"""Every option with its default."""


class StoreSettings(RaftSettings, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds. What they leave out of `RaftSettings` has its default."""

    system: ClassVar[str] = "follower-reads"

    follower: FollowerReadSettings

    @classmethod
    def made(cls, given: Mapping[str, str]) -> Self:
        """Return new settings of the options `given`. Raise `UsageError`."""
        refuse_others(cls.system, given, OPTIONS | SETTINGS)
        raft = RaftSettings.read({name: value for name, value in given.items() if name not in _OF_READS})
        follower = FollowerReadSettings.read({name: value for name, value in given.items() if name in _OF_READS})
        return cls(**msgspec.structs.asdict(raft), follower=follower)
