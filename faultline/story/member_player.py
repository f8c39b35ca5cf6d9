"""The player of stories about a group that its oldest member leads, on `emergent-leader`."""

from __future__ import annotations

from typing import Any

from faultline.story.library_cluster import LibraryCluster
from faultline.story.story_player import LibraryPlayer
from faultline.systems_under_test.reference.emergent.messages import ViewRequest, ViewResponse
from faultline.systems_under_test.reference.emergent.system import EmergentLeader

__all__ = ["MemberPlayer"]


class _MemberCluster(LibraryCluster):
    """Nodes of emergent-leader, which find each other through their seeds."""

    system_type = EmergentLeader


class MemberPlayer(LibraryPlayer):
    """One scene being played."""

    cluster_type = _MemberCluster

    def do_ask(self, words: list[str]) -> None:
        """ask CLIENT NODE …

        Ask each node who belongs to the group, and which member leads it.
        """
        client, *nodes = words if len(words) > 1 else self.exactly(2, words, "ask")
        for node in nodes:
            number = len(self.cluster.inbox.get(client, ())) + 1
            self.cluster.hand(client, self.running(node), ViewRequest(number))
            self.cluster.deliver(lambda _, target, __: target == client)
            self.lines.append(f"{node} → {client}: {_view_words(self.cluster.inbox[client][-1][1])}")

    def do_show(self, words: list[str]) -> None:
        """show members|messages|breaches [NODE …]

        Print the live members with their ages, oldest first, as nodes see them, or what every player shows.
        """
        if words[:1] != ["members"]:
            super().do_show(words)
            return
        for name in words[1:] or self.cluster.nodes:
            members = self.cluster.look(self.running(name), _members)
            self.lines.append(f"{name}: {', '.join(members) or 'belongs to no group'}")


def _view_words(answer: ViewResponse) -> str:
    if answer.view is None:
        return str(answer.error)
    return f"{answer.view['coordinator']} leads {', '.join(sorted(answer.view['live']))}"


def _members(node: Any) -> list[str]:
    membership = node.membership
    live = () if membership is None else sorted(membership.live, key=lambda member: member.age)
    return [f"{member.address} {member.age}" for member in live]
