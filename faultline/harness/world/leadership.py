"""The leader of a real cluster, when several members may say that they lead, and whether that lasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from faultline.harness.world.ports import NodeStatus

__all__ = ["Steadiness", "leader_of"]

Name = TypeVar("Name", bound=str)


def leader_of(statuses: Mapping[Name, NodeStatus | None]) -> Name | None:
    """Return the member that claims to lead in the highest generation; of two, the one that more members name.

    A deposed leader goes on saying so until it hears of its successor. Where members tell no generation, what the
    others say is all that tells the two apart. None when no member leads; the status of a silent member is None.
    """
    known = {name: status for name, status in statuses.items() if status is not None}
    named = [status.leader for status in known.values()]
    leaders = [(s.generation, named.count(name), name) for name, s in known.items() if s.role == "leader"]
    return max(leaders)[2] if leaders else None


class Steadiness:
    """An answer that counts once it has been given without a break for `steady_s` seconds.

    A leader may say that all is well in the moment before it hears that a follower which was cut off has voted for
    itself meanwhile, and steps down: a store in which that happens counts as serving only when it goes on serving.
    """

    def __init__(self, steady_s: float) -> None:
        self._steady_s = steady_s
        self._answer: str | None = None
        self._since_s = 0.0

    def is_reached(self, answer: str | None, now_s: float) -> bool:
        """Take note of `answer`, where None is none, and return whether it has been the same for long enough."""
        if answer != self._answer:
            self._answer, self._since_s = answer, now_s
        return answer is not None and now_s - self._since_s >= self._steady_s
