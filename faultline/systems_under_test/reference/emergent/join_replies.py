"""Answers to joiners, which wait until the other members know them, or have had time enough to.

A joiner that is answered before the others know it would be taken for a stranger by them. But a member that is down and
not noticed yet must not hold everybody up: so the answer goes out after a while in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from faultline.harness.world.ports import Ports

__all__ = ["JoinReplies"]


class JoinReplies:
    """The joiners that are not answered yet, and whose acknowledgements each waits for."""

    def __init__(self, ports: Ports, limit_us: int, welcome: Callable[[str, int], None]) -> None:
        self._ports = ports
        self._limit_us = limit_us
        self._welcome = welcome
        self._waiting: dict[tuple[str, int], tuple[int, set[str]]] = {}

    def expect(self, joiner: str, instance: int, version: int, others: Iterable[str]) -> None:
        """Answer `joiner` once all `others` have acknowledged `version`, at the latest after the limit."""
        place = (joiner, instance)
        self._waiting[place] = (version, set(others))
        self._ports.timers.after(self._limit_us, lambda: self._answer(place))
        self._answer_if_complete(place)

    def acknowledged(self, member: str, version: int) -> None:
        """`member` has come to `version`."""
        for place, (wanted, missing) in list(self._waiting.items()):
            if version >= wanted:
                missing.discard(member)
                self._answer_if_complete(place)

    def clear(self) -> None:
        """This node coordinates no more; who waits will ask again."""
        self._waiting.clear()

    def _answer_if_complete(self, place: tuple[str, int]) -> None:
        if not self._waiting[place][1]:
            self._answer(place)

    def _answer(self, place: tuple[str, int]) -> None:
        if self._waiting.pop(place, None) is not None:
            self._welcome(*place)
