"""The options of `consistent-core`: those of its Raft servers, of reads from followers, and of leases and watches."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.options import FormerOption
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.reference.consistent_core.follower_reads.options import FollowerReadSettings
from faultline.systems_under_test.reference.leases_and_watches.settings import SERVICE_OPTIONS, ServicedSettings
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.settings import options_of, tuning_of

__all__ = ["FORMER_OPTIONS", "OPTIONS", "SETTINGS", "CoreSettings"]

_OF_READS = options_of(FollowerReadSettings)

OPTIONS: dict[str, OptionDescription] = {**options_of(RaftSettings), **_OF_READS, **SERVICE_OPTIONS}
"""Every option with its default."""

SETTINGS: dict[str, OptionDescription] = tuning_of(RaftSettings)
"""The settings behind the option `tuning`."""

FORMER_OPTIONS: dict[str, FormerOption] = {
    "log_retention_ms": FormerOption("4233600000", "Leave it out: entries may go after seven weeks."),
    "saved_responses_max": FormerOption("5", "Leave it out: five answers are kept."),
}
"""Options that the system had once."""


class CoreSettings(ServicedSettings, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    follower: FollowerReadSettings

    @classmethod
    def read(cls, given: Mapping[str, str]) -> CoreSettings:
        """Return the settings of the options `given`, defaults for the rest. Raises UsageError."""
        serviced = ServicedSettings.read({name: value for name, value in given.items() if name not in _OF_READS})
        follower = FollowerReadSettings.read({name: value for name, value in given.items() if name in _OF_READS})
        if follower.from_followers and serviced.read_mode == "stale":
            raise UsageError(
                "read_mode stale answers from any server at once; read_from has nothing to add to it.",
                "Use read_from=follower with follower_reads=plain and another read_mode, for the leader's own reads.",
            )
        return cls(**msgspec.structs.asdict(serviced), follower=follower)
