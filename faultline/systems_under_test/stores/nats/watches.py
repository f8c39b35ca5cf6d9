"""A client of a bucket that changes keys below paths, lists them, and watches them.

The answer to a change is its revision. A watch is a thread with a connection and a `Feed` of its own, of the whole
bucket, so that every revision is expected: a missing revision was discarded, since the bucket keeps no more than
`history` values of a key. With `tells_skips` that is a gap, which is announced with the present content; without, as in
the key-value watch of NATS's own clients, it is not reported. A feed that ends is taken up behind its last revision.

NATS 2.9 has no leases: keys live until they are deleted, or all of them equally long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, ok
from faultline.systems_under_test.patterns.cluster_management.state_watch import is_below
from faultline.systems_under_test.stores.followed_watch import FollowedWatch
from faultline.systems_under_test.stores.nats.bucket import Bucket, BucketClient
from faultline.systems_under_test.stores.nats.feed import Feed, Revision, content_of
from faultline.systems_under_test.stores.watch_keeping import WatchKeeping

__all__ = ["REVISIONS_DISCARDED", "WATCH_FUNCTIONS", "BucketWatch", "WatchingBucketClient"]

WATCH_FUNCTIONS = ("put", "delete", "list", "watch", "drain")
REVISIONS_DISCARDED = "revisions-discarded"


class BucketWatch(FollowedWatch):
    """A watch on `path` from its making to `close`; `connect` connects to the server of a number, round and round."""

    failures = BucketClient.failures

    def __init__(self, path: str, connect: Callable[[int], Bucket], first_member: int, *, tells_skips: bool) -> None:
        super().__init__(path, first_member)
        self._connect = connect
        self._tells_skips = tells_skips
        self.start()

    def follow(self, member: int) -> None:
        """Read one feed after the other over one connection."""
        bucket = self._connect(member)
        try:
            while not self.is_over:
                self._read_feed(bucket)
        finally:
            bucket.close()

    def _read_feed(self, bucket: Bucket) -> None:
        """Read one feed until it ends, or there is a gap."""
        is_new = self.is_new
        feed = Feed(bucket, None if is_new else (self.log.upto or 0) + 1)
        try:
            if is_new:
                revision, values = feed.content()
                self.begin(revision, _below(self.path, values))
            while self.goes_on:
                change = feed.next()
                if change is not None:
                    self._take(change)
        finally:
            feed.close()

    def _take(self, change: Revision) -> None:
        if self._tells_skips and change.number > (self.log.upto or 0) + 1:
            self.gap = REVISIONS_DISCARDED
            return
        if is_below(self.path, change.key):
            self.log.add(change.number, 0, change.key, change.value, is_deleted=change.is_deleted)
        self.log.told_upto(change.number)


class WatchingBucketClient(BucketClient):
    """A client with watches of its own, each a thread."""

    reads: ClassVar[frozenset[str]] = frozenset({"read", "list"})

    def __init__(
        self,
        address_of: Callable[[str], str],
        members: Sequence[str],
        node: str,
        *,
        direct: bool,
        timeout_s: float,
        tells_skips: bool,
        password: str = "",
    ) -> None:
        super().__init__(address_of, members, node, direct=direct, timeout_s=timeout_s, password=password)
        self._tells_skips = tells_skips
        self._watches = WatchKeeping(self._watch)

    def invoke(self, operation: Operation) -> Outcome:
        """Watch and drain without waiting for the store; perform any other operation as usual."""
        return self._watches.serve(operation) or super().invoke(operation)

    def perform(self, connection: Bucket, operation: Operation, node: str) -> Outcome:
        """Change a key, list a path, or perform any other operation."""
        key = str(operation.key)
        if operation.f == "put":
            return ok(connection.put(key, operation.value), node)
        if operation.f == "delete":
            return ok(connection.delete(key), node)
        if operation.f == "list":
            revision, values = content_of(connection)
            return ok({"index": revision, "values": _below(key, values)}, node)
        return super().perform(connection, operation, node)

    def close(self) -> None:
        """End all watches, and hang up."""
        self._watches.close()
        super().close()

    def _watch(self, path: str) -> BucketWatch:
        return BucketWatch(path, self.connect_to, self._node, tells_skips=self._tells_skips)


def _below(path: str, values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if is_below(path, key)}
