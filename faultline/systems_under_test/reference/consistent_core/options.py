"""The options of `consistent-core`: those of its Raft servers, of reads from followers, and of leases and watches."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.reference.consistent_core.follower_reads.options import FollowerReadSettings
from faultline.systems_under_test.reference.consistent_core.services.options import ServiceSettings
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.settings import Settings, options_of

__all__ = ["OPTIONS", "CoreSettings"]

OPTIONS: dict[str, OptionDescription] = {
    **options_of(RaftSettings),
    **options_of(FollowerReadSettings),
    **options_of(ServiceSettings),
}
"""Every option with its default."""


class CoreSettings(RaftSettings, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    follower: FollowerReadSettings
    service: ServiceSettings

    @classmethod
    def read(cls, given: Mapping[str, str]) -> CoreSettings:
        """Return the settings of the options `given`, defaults for the rest. Raises UsageError."""
        for name in given:
            if name not in OPTIONS:
                raise UsageError(f"{cls.system} has no option {name!r}.", f"It has {', '.join(OPTIONS)}.")
        settings = cls(
            **msgspec.structs.asdict(RaftSettings.read(_those_of(RaftSettings, given))),
            follower=FollowerReadSettings.read(_those_of(FollowerReadSettings, given)),
            service=ServiceSettings.read(_those_of(ServiceSettings, given)),
        )
        if settings.follower.from_followers and settings.read_mode == "stale":
            raise UsageError(
                "read_mode stale answers from any server at once; read_from has nothing to add to it.",
                "Use read_from=follower with follower_reads=plain and another read_mode, for the leader's own reads.",
            )
        return settings


def _those_of(settings: type[Settings], given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name in options_of(settings)}
