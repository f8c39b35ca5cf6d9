"""The changes of a bucket's keys, message by message: the form of delivery that NATS calls an ordered consumer.

A push consumer without acknowledgements delivers the messages of the bucket's stream to an inbox: from the newest of
each key on (`start` is None), or from a revision on. Each message names its revision, its number in this delivery and
how many are still to come; without messages, a heartbeat names the number of the last one. So a message that was lost
on the way shows at the next one or at the next heartbeat, and silence means that the consumer is gone: it lives on one
server, in memory. Both end the feed, and its reader begins another one behind the last revision.

Source: NATS architecture decision record 17, "Ordered consumer".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from faultline.systems_under_test.stores.nats.bucket import Bucket

__all__ = ["HEARTBEAT_S", "Feed", "Revision", "content_of"]

HEARTBEAT_S = 0.2
_SILENCE_S = 4 * HEARTBEAT_S


@dataclass(frozen=True, slots=True)
class Revision:
    """One change: its revision, its key, and the number of messages of the feed that are still to come."""

    number: int
    key: str
    value: Any
    is_deleted: bool
    pending: int


class Feed:
    """The messages of `bucket` from the newest of each key on, or from the revision `start` on. Raises OSError."""

    def __init__(self, bucket: Bucket, start: int | None) -> None:
        self._bucket = bucket
        self._delivered = 0
        self._inbox, self.pending = bucket.consume(start, heartbeat_s=HEARTBEAT_S)

    def next(self) -> Revision | None:
        """Return the next message; None for a heartbeat.

        Raises OSError when a message is missing, or no more comes.
        """
        message = self._bucket.received(self._inbox, _SILENCE_S)
        if not message.reply.startswith("$JS.ACK."):
            told = (message.headers or {}).get("Nats-Last-Consumer")
            self._expect(self._delivered, told)
            return None
        _, _, _, _, _, revision, number, _, pending = message.reply.split(".")
        self._expect(self._delivered + 1, number)
        self._delivered += 1
        is_deleted = (message.headers or {}).get("KV-Operation") is not None
        value = None if is_deleted else msgspec.json.decode(message.data)
        return Revision(int(revision), self._bucket.key_of(message.subject), value, is_deleted, int(pending))

    def content(self) -> tuple[int, dict[str, Any]]:
        """Return the last revision and the values at it, for a feed without a `start`.

        A heartbeat ends it too: messages that the server still counts as pending may have been discarded meanwhile.
        """
        values: dict[str, Any] = {}
        revision, pending = 0, self.pending
        while pending and (change := self.next()) is not None:
            values.pop(change.key, None)
            if not change.is_deleted:
                values[change.key] = change.value
            revision, pending = change.number, change.pending
        return revision, values

    def close(self) -> None:
        """Stop listening; the server then forgets the consumer."""
        self._bucket.end(self._inbox)

    def _expect(self, number: int, told: str | None) -> None:
        if told != str(number):
            raise ConnectionError(f"message {number} of the feed is missing: heard of {told}")


def content_of(bucket: Bucket) -> tuple[int, dict[str, Any]]:
    """Return the revision of `bucket`, and the values of its keys at it."""
    feed = Feed(bucket, None)
    try:
        return feed.content()
    finally:
        feed.close()
