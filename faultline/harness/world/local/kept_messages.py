"""The frames that cross the harness in a local run: between nodes at the proxies, those of clients at the clients.

They are kept with their times and fates, only the latest within fixed bounds, and decoded when a figure first asks
for the messages (`decoded_messages`).

A message between nodes is sent when the proxy takes it and received when the proxy passes it on. A client's request is
received when it is sent, and an answer is sent when it is received, as no proxy stands between the two. So no message
was sent later or received earlier than told, and a cause never stands after its effect. What a node that is paused or
killed never reads counts as received; what a node could not hand to a proxy, or sent to itself, is not there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from faultline.harness.world.ports import Link

__all__ = ["LOST_S", "KeptMessages", "Note"]

Note = Callable[[bytes, float, float], None]
"""Called with a frame, and the times of the event loop at which it was sent and received."""

LOST_S = -1.0
"""The time of receipt of a message that was lost."""

_MESSAGES_MAX = 100_000
_BYTES_MAX = 32 * 1024 * 1024


class KeptMessages:
    """The latest frames of all links. `dropped` counts the older ones, `dropped_s` is when the latest of them was
    sent."""

    def __init__(self, messages_max: int = _MESSAGES_MAX, bytes_max: int = _BYTES_MAX) -> None:
        self.frames: deque[tuple[Link, bytes, float, float]] = deque()
        self.dropped = 0
        self.dropped_s = 0.0
        self._messages_max = messages_max
        self._bytes_left = bytes_max

    def note(self, link: Link, frame: bytes, sent_s: float, received_s: float) -> None:
        """Keep a message whose fate is known; drop the oldest ones when there are too many."""
        self.frames.append((link, frame, sent_s, received_s))
        self._bytes_left -= len(frame)
        while len(self.frames) > self._messages_max or self._bytes_left < 0:
            _, oldest, oldest_s, _ = self.frames.popleft()
            self._bytes_left += len(oldest)
            self.dropped += 1
            self.dropped_s = max(self.dropped_s, oldest_s)
