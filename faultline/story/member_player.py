"""The player of stories about a group that its oldest member leads, on `emergent-leader`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faultline.story.library_cluster import LibraryCluster
from faultline.systems_under_test.reference.emergent.messages import ViewRequest, ViewResponse
from faultline.systems_under_test.reference.emergent.system import EmergentLeader
from faultline.testing.hand_cranked import HandCrankedCluster
from faultline.testing.transcript_commands import TranscriptPlayer

__all__ = ["MemberPlayer"]


class _MemberCluster(LibraryCluster):
    """Nodes of emergent-leader, which find each other through their seeds."""

    system_type = EmergentLeader


class MemberPlayer(TranscriptPlayer):
    """One scene being played."""

    def new_cluster(
        self, size: int | Sequence[str], planted_bugs: tuple[str, ...], options: dict[str, str]
    ) -> HandCrankedCluster:
        options.pop("system", None)
        cluster: _MemberCluster = self.placed(_MemberCluster)(size, planted_bugs, **options)
        return cluster

    def event_words(self, node: str, event: Any, *, in_brief: bool) -> str | None:
        return None

    def do_wait(self, words: list[str]) -> None:
        """wait MILLISECONDS

        Let time pass for all alike; nodes talk.
        """
        (text,) = self.exactly(1, words, "wait")
        self.cluster.wait(int(text))

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
