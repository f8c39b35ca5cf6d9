"""The classes a node of `transactional-kv` is built from; a planted bug is a subclass put in place of one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from faultline.systems_under_test.patterns.data_partitioning.transaction_participant import Participant
from faultline.systems_under_test.patterns.data_partitioning.two_phase_commit import Coordinator
from faultline.systems_under_test.reference.transactional_kv.group_ports import Outbox
from faultline.systems_under_test.reference.transactional_kv.groups import GroupRoutes

__all__ = ["Parts"]


@dataclass(frozen=True, slots=True)
class Parts:
    """Those of every node, and those that only replicated groups have; `replica` is the group's member if not usual."""

    coordinator: type[Coordinator] = Coordinator
    participant: type[Participant] = Participant
    outbox: type[Outbox] = Outbox
    routes: type[GroupRoutes] = GroupRoutes
    replica: type[Any] | None = None
