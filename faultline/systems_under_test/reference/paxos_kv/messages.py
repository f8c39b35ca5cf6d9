"""The messages of clients and nodes of `paxos-kv`; `PAXOS_KV_MESSAGES` lists all that cross the network.

Commands and the answer are those of `consistent-core`. A client names itself: it needs no session, because every key
remembers the last request of each client together with its value.
"""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.patterns.data_replication.paxos_store import (
    AcceptRequest,
    AcceptResponse,
    CommitNotice,
    PrepareRequest,
    PrepareResponse,
)
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse, Command

__all__ = ["PAXOS_KV_MESSAGES", "OutcomeUnknown", "PaxosClientRequest"]


class PaxosClientRequest(msgspec.Struct, frozen=True, tag="paxos-client-request"):
    """One request; a retry, to any node, carries the same number."""

    client: str
    request_number: int
    command: Command


class OutcomeUnknown(msgspec.Struct, frozen=True, tag="outcome-unknown"):
    """The node gave up (the book's `WriteTimeoutException`): the request may have been, or may yet be, executed."""

    request_number: int


PAXOS_KV_MESSAGES: tuple[type[msgspec.Struct], ...] = (
    PaxosClientRequest,
    ClientResponse,
    OutcomeUnknown,
    PrepareRequest,
    PrepareResponse,
    AcceptRequest,
    AcceptResponse,
    CommitNotice,
)
"""Every message that crosses the network."""
