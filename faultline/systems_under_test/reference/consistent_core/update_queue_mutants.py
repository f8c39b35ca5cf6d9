"""The planted bug of `consistent-core` that concerns its singular update queue.

The other bugs of that pattern need threads, or callers that wait, which a node of the harness has not; they are planted
in tests/mutants/test_update_queue_bugs.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from faultline.harness.system import Mutant
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    ClientResponse,
    SetValue,
)

__all__ = ["UPDATE_QUEUE_CHANGES", "UPDATE_QUEUE_MUTANTS"]

UPDATE_QUEUE_MUTANTS = (
    Mutant(
        name="answered-when-queued",
        pattern="singular-update-queue",
        id="SUQ-M3",
        summary="a leader acknowledges a write when it has taken it into its queue, before anything was done",
        shows_as="an acknowledged write is not there yet, or never comes because the leader lost its office",
        campaign="leadership",
        caught_by=("linearizability",),
    ),
)
"""The records of these bugs."""


class _AnswersWhenQueued(KeyValueServer):
    def receive(self, source: NodeId, message: Any) -> None:
        is_write = type(message) is ClientRequest and type(message.command) is SetValue
        if is_write and self.election.role is ServerRole.LEADING:
            self.ports.network.send(source, ClientResponse(message.request_number))
        super().receive(source, message)


UPDATE_QUEUE_CHANGES: dict[str, Callable[[Any], Any]] = {
    "answered-when-queued": lambda parts: replace(parts, node=_AnswersWhenQueued),
}
"""The change that plants each of them."""
