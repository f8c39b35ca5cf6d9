"""The options of `data-grid`: those of members, the copies of partitions, the minimum size and the lease."""

from __future__ import annotations

from typing import Annotated, ClassVar

from faultline.harness.errors import UsageError
from faultline.systems_under_test.reference.membership.settings import MemberSettings
from faultline.systems_under_test.reference.shared.settings import Choice, Milliseconds, Number, options_of

__all__ = ["OPTIONS", "GridSettings"]

_WAIT_PERCENT = 125
_RENEWALS_PER_LEASE = 3
_PARTITIONS_MAX = 1_024
_TABLE_REFRESH_US = 5_000_000


class GridSettings(MemberSettings, frozen=True):
    """The options, read and checked; times in microseconds."""

    system: ClassVar[str] = "data-grid"

    partitions: Annotated[int, Number(12), "the number of partitions, fixed for the life of the cluster"]
    backups: Annotated[int, Number(2, least=0), "the copies of each partition beside its owner's"]
    minimum_size: Annotated[
        str,
        Choice(("majority", "none")),
        "the members below which a group stops: a majority of all nodes, or none, so that both halves of a split go on"
        " and one half's data are dropped at the merge",
    ]
    lease_us: Annotated[
        int, Milliseconds(300), "the time for which an owner serves after the members acknowledged its table"
    ]
    balance_interval_us: Annotated[
        int, Milliseconds(500), "how often the coordinator looks whether the members' loads are even"
    ]
    request_timeout_us: Annotated[int, Milliseconds(300), "the time after which a client asks again"]
    client_timeout_us: Annotated[int, Milliseconds(1000), "the time after which a client gives up: outcome unknown"]

    @property
    def table_refresh_us(self) -> int:
        """The time after which a client asks for the table again, unless a refusal or silence comes first."""
        return _TABLE_REFRESH_US

    @property
    def renewal_us(self) -> int:
        """The time between two renewals of a lease."""
        return self.lease_us // _RENEWALS_PER_LEASE

    @property
    def silence_us(self) -> int:
        """The time in which the lease of an owner that does not answer runs out, also by a clock that is slow."""
        return self.lease_us * _WAIT_PERCENT // 100

    def check(self) -> None:
        """Raise `UsageError` for a lease that one late acknowledgement ends, and for too many partitions."""
        super().check()
        if self.partitions > _PARTITIONS_MAX:
            raise UsageError(
                f"The table has an entry for each partition and goes to all nodes: partitions={self.partitions} is"
                f" above {_PARTITIONS_MAX}.",
                "Lower partitions.",
            )
        if self.lease_us < 2 * self.heartbeat_interval_us:
            raise UsageError(
                "An owner would lose its lease when one acknowledgement is late: lease_ms is below twice"
                " heartbeat_interval_ms.",
                "Raise lease_ms.",
            )


OPTIONS = options_of(GridSettings)
"""Every option with its default."""
