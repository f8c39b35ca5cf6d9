"""A gateway of the tests' own: one member of etcd with keys, revisions, leases and watches, and moods to fail in."""

from __future__ import annotations

import base64
import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["HOST", "Gateway", "text"]

HOST = "127.0.0.1"


def text(encoded: str) -> str:
    return base64.b64decode(encoded).decode()


class Gateway:
    """Keeps a dictionary and answers as etcd does; `mood` says what happens to the next request instead."""

    def __init__(self) -> None:
        self.revision = 1
        self.stored: dict[str, dict[str, Any]] = {}
        """The entry of each key in answers, by the key in clear."""
        self.events: list[dict[str, Any]] = []
        self.leases: set[str] = set()
        self.asked: list[tuple[str, Any]] = []
        self.mood = ""
        self.says: bytes | None = None
        """The answer to every request, with status 200, if there is one."""
        self.moods: dict[str, str] = {}
        """The moods of single paths, which go before `mood`."""
        self.compacted = 0
        """Changes up to this revision are not told any more."""
        self.least_ttl_s = 1
        """The shortest life of a granted lease; a shorter request gets it too."""
        self.streams_end_after: int | None = None
        """The number of answers after which a watch's stream breaks off; None: never."""
        self.silent = threading.Event()
        self.changed = threading.Condition()
        self.server = ThreadingHTTPServer((HOST, 0), handler_for(self))
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    # -- keys and leases -------------------------------------------------------------------------------------------

    def answer(self, path: str, body: Any) -> Any:
        """Return etcd's answer to one request."""
        name = path.removeprefix("/v3/").replace("/", "_")
        answer: dict[str, Any] = getattr(self, f"_{name}")(body)
        # A stream, which the keep-alive is, wraps each of its answers.
        answer.get("result", answer).setdefault("header", {"revision": str(self.revision)})
        return answer

    def change(self, *changes: tuple[str, str | None], lease: str = "0") -> None:
        """One revision in which all these keys change, as if another client had done it; values in base 64."""
        self.revision += 1
        for key, value in changes:
            kv = {"key": base64.b64encode(key.encode()).decode(), "mod_revision": str(self.revision)}
            if value is None:
                del self.stored[key]
                self.events.append({"type": "DELETE", "kv": kv})
            else:
                made = self.stored[key]["create_revision"] if key in self.stored else str(self.revision)
                self.stored[key] = {**kv, "value": value, "lease": lease, "create_revision": made}
                self.events.append({"kv": self.stored[key]})

    def end_lease(self, number: str) -> None:
        """Delete its keys in one revision."""
        with self.changed:
            self.leases.discard(number)
            gone = sorted(key for key, kv in self.stored.items() if kv["lease"] == number)
            if gone:
                self.change(*((key, None) for key in gone))
            self.changed.notify_all()

    def keys_in(self, body: Any) -> list[str]:
        first, end = text(body["key"]), text(body.get("range_end", ""))
        return sorted(key for key in self.stored if (first <= key < end if end else key == first))

    def _kv_put(self, body: Any) -> dict[str, Any]:
        lease = str(body.get("lease", "0"))
        if lease not in {"0", *self.leases}:
            return {"error": "etcdserver: requested lease not found", "code": 5}
        self.change((text(body["key"]), body["value"]), lease=lease)
        return {}

    def _kv_range(self, body: Any) -> dict[str, Any]:
        found = [self.stored[key] for key in self.keys_in(body)]
        return {"kvs": found} if found else {}

    def _kv_deleterange(self, body: Any) -> dict[str, Any]:
        gone = self.keys_in(body)
        if gone:
            self.change(*((key, None) for key in gone))
        return {"deleted": str(len(gone))} if gone else {}

    def _kv_txn(self, body: Any) -> dict[str, Any]:
        [compare] = body["compare"]
        held = self.stored.get(text(compare["key"]))
        if compare["target"] == "CREATE":
            is_met = (held["create_revision"] if held else "0") == str(compare["create_revision"])
        else:
            is_met = held is not None and held["value"] == compare["value"]
        if is_met:
            for step in body["success"]:
                self._kv_put(step["request_put"])
        return {"succeeded": True} if is_met else {}

    def _lease_grant(self, body: Any) -> dict[str, Any]:
        number = str(7_000 + len(self.asked))
        self.leases.add(number)
        return {"ID": number, "TTL": str(max(int(body["TTL"]), self.least_ttl_s))}

    def _lease_keepalive(self, body: Any) -> dict[str, Any]:
        alive = {"TTL": "2"} if str(body["ID"]) in self.leases else {}
        return {"result": {"ID": body["ID"], **alive}}

    def _lease_revoke(self, body: Any) -> dict[str, Any]:
        if str(body["ID"]) not in self.leases:
            return {"error": "etcdserver: requested lease not found", "code": 5}
        self.end_lease(str(body["ID"]))
        return {}

    # -- watches ---------------------------------------------------------------------------------------------------

    def told(self, wanted: dict[str, Any]) -> Any:
        """The answers of one watch, without end: events by revision, and a word about progress when there are none."""
        first, end = text(wanted["key"]), text(wanted["range_end"])
        after = int(wanted.get("start_revision", self.revision + 1)) - 1
        yield {"header": {"revision": str(self.revision)}, "created": True}
        if after < self.compacted:
            yield {"header": {}, "canceled": True, "compact_revision": str(self.compacted)}
            self.silent.wait()
        while not self.silent.is_set():
            with self.changed:
                if not any(int(event["kv"]["mod_revision"]) > after for event in self.events):
                    self.changed.wait(0.05)
                upto = max(self.revision, after)
                news = [event for event in self.events if after < int(event["kv"]["mod_revision"]) <= upto]
            events = [event for event in news if first <= text(event["kv"]["key"]) < end]
            after = upto
            yield {"header": {"revision": str(upto)}, **({"events": events} if events else {})}

    def close(self) -> None:
        self.silent.set()
        with self.changed:
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def handler_for(gateway: Gateway) -> type[BaseHTTPRequestHandler]:
    """Return the class of the handlers that answer the requests to `gateway`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            gateway.asked.append((self.path, body))
            mood = gateway.moods.get(self.path, gateway.mood)
            if mood == "hang up":
                self.close_connection = True
            elif mood == "silence":
                gateway.silent.wait()
                self.close_connection = True
            elif mood == "503":
                self.say(503, {"error": "no leader"})
            elif mood == "garbage" or gateway.says is not None:
                self.say(200, b"{" if gateway.says is None else gateway.says)
            elif self.path == "/v3/watch":
                with suppress(ConnectionError):
                    self.stream(body["create_request"])
            else:
                with gateway.changed:
                    answer = gateway.answer(self.path, body)
                    gateway.changed.notify_all()
                self.say(404 if "error" in answer else 200, answer)

        def say(self, status: int, answer: Any) -> None:
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def stream(self, wanted: dict[str, Any]) -> None:
            self.close_connection = True
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for number, answer in enumerate(gateway.told(wanted)):
                if gateway.streams_end_after is not None and number >= gateway.streams_end_after:
                    return
                line = json.dumps({"result": answer}).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()

        def log_message(self, *arguments: object) -> None:
            """Discard the line."""

    return Handler
