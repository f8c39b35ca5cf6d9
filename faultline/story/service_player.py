"""The player of stories about leases and watches: data nodes as clients of a core, on `coordination-service`."""

from __future__ import annotations

from typing import Any

from faultline.story.log_player import LogPlayer
from faultline.story.log_words import stock_words
from faultline.systems_under_test.patterns.cluster_management.state_watch import Position, WatchEvent
from faultline.systems_under_test.reference.leases_and_watches.messages import (
    LeaseRefreshed,
    RefreshLease,
    WatchBatch,
    WatchRefused,
    WatchRequest,
    WatchState,
)
from faultline.systems_under_test.reference.leases_and_watches.trace_events import LeaseEnded, LeaseGranted
from faultline.systems_under_test.reference.shared.key_commands import RegisterLease, RevokeLease, SetWithLease
from faultline.testing.hand_cranked import HandCrankedCluster
from faultline.testing.transcript_player import duration_us
from faultline.testing.transcripts import CommandError

__all__ = ["ServicePlayer"]

_OF_WATCHES = (WatchBatch, WatchState)


class ServicePlayer(LogPlayer):
    """One scene being played, with the requests by which clients asked for leases."""

    def begin(self, cluster: HandCrankedCluster) -> None:
        super().begin(cluster)
        self._requests: dict[tuple[str, str], int] = {}
        self._refreshes = 0

    def message_words(self, source: str, target: str, message: Any) -> str:
        words = _words(message)
        return f"{source} → {target}: {words}" if words else super().message_words(source, target, message)

    def event_words(self, node: str, event: Any, *, in_brief: bool) -> str | None:
        if isinstance(event, LeaseGranted) and event.leading:
            return f"{node} grants the lease {event.name}, as entry {event.index}"
        if isinstance(event, LeaseEnded):
            return f"{node} ends the lease {event.name}, {event.reason}, with {', '.join(event.keys) or 'no key'}"
        return super().event_words(node, event, in_brief=in_brief)

    def do_lease(self, words: list[str]) -> None:
        """lease CLIENT NODE NAME DURATION

        Ask for a lease; print what NODE answers at once, and deliver nothing else.
        """
        name, node, lease, text = self.exactly(4, words, "lease")
        number = self.client(name).ask(self.running(node), RegisterLease(lease, duration_us(text)))
        self._requests[name, lease] = number
        self.told(name)

    def do_attach(self, words: list[str]) -> None:
        """attach CLIENT NODE LEASE KEY VALUE

        Write a key that goes when the lease ends; do the same.
        """
        name, node, lease, key, value = self.exactly(5, words, "attach")
        self.client(name).ask(self.running(node), SetWithLease(key, value, lease))
        self.told(name)

    def do_refresh(self, words: list[str]) -> None:
        """refresh CLIENT NODE LEASE

        Send the heartbeat that keeps the lease alive; deliver nothing else.
        """
        name, node, lease = self.exactly(3, words, "refresh")
        self._refreshes += 1
        self.cluster.hand(name, self.running(node), RefreshLease(lease, self._token(name, lease), self._refreshes))
        self.told(name)

    def do_give_back(self, words: list[str]) -> None:
        """give-back CLIENT NODE LEASE

        End a lease that its owner needs no more; print what NODE answers at once.
        """
        name, node, lease = self.exactly(3, words, "give-back")
        self.client(name).ask(self.running(node), RevokeLease(lease, self._token(name, lease)))
        self.told(name)

    def do_watch(self, words: list[str]) -> None:
        """watch CLIENT NODE PATH

        Ask NODE for all that happens at and below PATH: from now on, or since the last event that CLIENT was told.
        """
        name, node, path = self.exactly(3, words, "watch")
        request = WatchRequest(path, 1, self._position(name, path), is_live=True)
        self.cluster.hand(name, self.running(node), request)
        self.told(name)

    def do_show(self, words: list[str]) -> None:
        """show leases|log|state|values|widgets|messages|marks|breaches [NODE …]

        Print the leases that nodes hold, or what every player of logs shows.
        """
        if words[:1] != ["leases"]:
            super().do_show(words)
            return
        for node in words[1:] or self.cluster.nodes:
            held = self.cluster.look(self.running(node), _leases)
            self.lines.append(f"{node}: {', '.join(held) or 'no lease'}")

    def _token(self, client: str, lease: str) -> int:
        answer = self.client(client).answer_to(self._requests.get((client, lease), 0))
        if answer is None or answer.error is not None:
            raise CommandError(f"{client} was granted no lease {lease}")
        return int(answer.value)

    def _position(self, client: str, path: str) -> Position | None:
        told = [
            message.upto
            for _, message in self.cluster.inbox.get(client, ())
            if isinstance(message, _OF_WATCHES) and message.path == path
        ]
        return max(told, default=None)


def _words(message: Any) -> str:
    """Return a message about leases or watches in words; empty for any other."""
    if isinstance(message, LeaseRefreshed):
        return f"the lease {message.name} {message.error or 'lives on'}"
    if isinstance(message, RefreshLease):
        return f"I am alive, keep {message.name}"
    if isinstance(message, WatchState):
        there = ", ".join(f"{each.key}={each.value}" for each in message.state) or "nothing"
        return f"you watch {message.path}, where there is {there}"
    if isinstance(message, WatchBatch):
        return ", ".join(map(_event_words, message.events)) or f"nothing new at {message.path}"
    if isinstance(message, WatchRefused):
        return f"no events of {message.path}: {message.error}"
    return ""


def _event_words(event: WatchEvent) -> str:
    if event.is_deleted:
        return f"deleted {event.key}"
    value = stock_words(event.value) if isinstance(event.value, dict) else event.value
    return f"set {event.key}={value}"


def _leases(node: Any) -> list[str]:
    return [lease.name for lease in node.store.leases.all()]
