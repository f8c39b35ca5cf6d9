"""The messages of `transactional-kv`: those of its timestamp oracle; `MESSAGES` lists all that cross the network."""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import PROTOCOL_MESSAGES
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.reference.transactions.messages import REQUESTS, Reply

__all__ = ["MESSAGES", "OracleTime", "OracleTimeRequest"]


class OracleTimeRequest(msgspec.Struct, frozen=True, tag="oracle-time-request"):
    """Ask the timestamp oracle, from a server, for a time above that one."""

    number: int
    above: int = 0


class OracleTime(msgspec.Struct, frozen=True, tag="oracle-time"):
    """A time that is given out once."""

    number: int
    time: HybridTimestamp


MESSAGES: tuple[type[msgspec.Struct], ...] = (
    *REQUESTS.values(),
    Reply,
    OracleTimeRequest,
    OracleTime,
    *PROTOCOL_MESSAGES,
)
"""Every message that crosses the network."""
