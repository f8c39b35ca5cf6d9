"""Who leads a real cluster, when several members may say that they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from faultline.harness.world.ports import NodeStatus

__all__ = ["leader_of"]

Name = TypeVar("Name", bound=str)


def leader_of(statuses: Mapping[Name, NodeStatus | None]) -> Name | None:
    """The member that says it leads in the highest generation; of two such, the one that more members name as leader.

    A deposed leader goes on saying so until it hears of its successor. Where members tell no generation, what the
    others say is all that tells the two apart. None when nobody leads; a status is None when a member did not answer.
    """
    known = {name: status for name, status in statuses.items() if status is not None}
    named = [status.leader for status in known.values()]
    leaders = [(s.generation, named.count(name), name) for name, s in known.items() if s.role == "leader"]
    return max(leaders)[2] if leaders else None
