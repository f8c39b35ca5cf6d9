"""One watch on etcd: a thread that reads the content below a path, then the stream of changes from there on.

`/v3/watch` answers with one line of JSON after the other, as long as the connection lives: events, all of a revision in
one line; and, since the watch asks for it, after a while without events the revision up to which all were told (etcd's
documentation, "Watch API" and "API guarantees": ordered, unique, reliable, atomic, resumable, bookmarkable). So a
stream that is silent for longer than `silence_s` is dead, and the next member is asked.

A stream that broke is taken up again at the revision after the last one that was told, at any member that answers; no
event is missed, so it is not reported. When etcd has compacted that revision it says so, and the content is read anew:
a gap, which is announced. A member that has no leader ends the stream by itself (`hasleader`, as Kubernetes asks for
it).

With `resumes_at_now` a stream that broke begins again with later events only, without a report: events in between are
missed. It shows the cost of that mistake of a client.

A path stands for itself and for the keys below it, by whole segments. In the order of keys `/` comes right before `0`,
so the range from `servers` to `servers0` has all of these, and not `servers2`. It also has `servers-old`, which is left
out here.
"""

from __future__ import annotations

import http.client
from typing import Any

import msgspec

from faultline.systems_under_test.patterns.cluster_management.state_watch import is_below
from faultline.systems_under_test.stores.etcd.gateway import (
    Connect,
    EtcdClient,
    EtcdRefusal,
    ask,
    decoded,
    encoded,
    key_of,
)
from faultline.systems_under_test.stores.followed_watch import FollowedWatch

__all__ = ["EVENTS_COMPACTED", "WatchStream", "content_of", "range_of"]

EVENTS_COMPACTED = "events-compacted"
_LEADER_REQUIRED = {"Content-Type": "application/json", "Grpc-Metadata-hasleader": "true"}


def range_of(path: str) -> dict[str, str]:
    """Return the range of a request that has `path` and all keys below it."""
    return {"key": encoded(path), "range_end": encoded(f"{path}0")}


def _is_meant(path: str, key: str) -> bool:
    """Return whether `key` was asked for; a key outside the range is passed on, so that the mistake is seen."""
    return is_below(path, key) or not path <= key < f"{path}0"


def content_of(answer: dict[str, Any], path: str) -> tuple[int, dict[str, Any]]:
    """Return the revision of the answer to a range, and the values below `path`."""
    found = {key_of(kv): decoded(kv["value"]) for kv in answer.get("kvs", ())}
    return int(answer["header"]["revision"]), {key: found[key] for key in found if _is_meant(path, key)}


class WatchStream(FollowedWatch):
    """A watch on `path` from its making to `close`."""

    failures = EtcdClient.failures

    def __init__(
        self, path: str, connect: Connect, first_member: int, *, silence_s: float, resumes_at_now: bool
    ) -> None:
        super().__init__(path, first_member)
        self._connect = connect
        self._silence_s = silence_s
        self._resumes_at_now = resumes_at_now
        self.start()

    def follow(self, member: int) -> None:
        """Read the content if necessary, then the stream as long as it lives."""
        connection = self._connect(member, self._silence_s)
        try:
            is_new = self.is_new
            if is_new:
                self.begin(*content_of(ask(connection, "/v3/kv/range", range_of(self.path)), self.path))
            answers = self._opened(connection, at_now=self._resumes_at_now and not is_new)
            while self.goes_on:
                self._take(_next_result(answers))
        finally:
            connection.close()

    def _opened(self, connection: http.client.HTTPConnection, *, at_now: bool) -> http.client.HTTPResponse:
        wanted: dict[str, Any] = {**range_of(self.path), "progress_notify": True}
        if not at_now:
            wanted["start_revision"] = str((self.log.upto or 0) + 1)
        connection.request("POST", "/v3/watch", msgspec.json.encode({"create_request": wanted}), _LEADER_REQUIRED)
        response = connection.getresponse()
        if response.status != 200:
            raise EtcdRefusal(f"http-{response.status}")
        return response

    def _take(self, result: dict[str, Any]) -> None:
        """Take events, a report of progress, or the news that the past is gone."""
        if result.get("canceled"):
            if "compact_revision" not in result:
                raise EtcdRefusal("canceled")
            self.gap = EVENTS_COMPACTED
        elif "events" in result:
            self._take_events(result["events"])
        elif not result.get("created"):
            self.log.told_upto(int(result["header"]["revision"]))

    def _take_events(self, events: list[dict[str, Any]]) -> None:
        """Log all events of one or more revisions, numbered within each."""
        ordinals: dict[int, int] = {}
        for event in events:
            kv, is_deleted = event["kv"], event.get("type") == "DELETE"
            key, revision = key_of(kv), int(kv["mod_revision"])
            if _is_meant(self.path, key):
                ordinal = ordinals[revision] = ordinals.get(revision, -1) + 1
                value = None if is_deleted else decoded(kv["value"])
                self.log.add(revision, ordinal, key, value, is_deleted=is_deleted)
        self.log.told_upto(int(events[-1]["kv"]["mod_revision"]))


def _next_result(answers: http.client.HTTPResponse) -> dict[str, Any]:
    """Return the next line of the stream. Raises EtcdRefusal for an error, or at the end."""
    line = answers.readline()
    result = msgspec.json.decode(line, type=dict).get("result") if line.endswith(b"\n") else None
    if not isinstance(result, dict):
        raise EtcdRefusal("stream-ended")
    return result
