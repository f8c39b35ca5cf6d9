"""One member of the store: `python server.py [--journal FILE] OWN_ADDRESS ADDRESS…`, clients on CLIENT_PORT.

This is the program under test. It runs on the hosts, needs PySyncObj there and does not use Faultline. A request
is a line of JSON, `["write", "k", 7]`, and so is its answer, `{"value": null}` or `{"error": "leader-changed"}`.
"""

from __future__ import annotations

import argparse
import json
import socketserver

from pysyncobj import FAIL_REASON, SyncObj, SyncObjConf, SyncObjConsumer, SyncObjException, replicated

PEER_PORT, CLIENT_PORT, ANSWER_S = 4321, 4322, 2.0
LEADER = 2  # PySyncObj's number for success
REFUSALS = {code: name.lower().replace("_", "-") for name, code in vars(FAIL_REASON).items() if isinstance(code, int)}


class Registers(SyncObjConsumer):
    """The state machine. A read goes through the log as well, so it is as linearizable as a write."""

    def __init__(self):
        super().__init__()
        self.values = {}

    @replicated
    def read(self, key):
        return self.values.get(key)

    @replicated
    def write(self, key, value):
        self.values[key] = value

    @replicated
    def cas(self, key, expected, new):
        matches = self.values.get(key) == expected
        if matches:
            self.values[key] = new
        return matches


class Client(socketserver.StreamRequestHandler):
    """One connection of a client: one request at a time."""

    def handle(self):
        for line in self.rfile:
            self.wfile.write(json.dumps(self.answer(*json.loads(line))).encode() + b"\n")

    def answer(self, function, *arguments):
        if function == "status":
            told = self.server.raft.getStatus()
            return {"value": ["leader" if told["state"] == LEADER else "follower", told["raft_term"]]}
        try:
            return {"value": getattr(self.server.registers, function)(*arguments, sync=True, timeout=ANSWER_S)}
        except SyncObjException as refusal:
            return {"error": REFUSALS.get(refusal.errorCode, "timeout")}


class Server(socketserver.ThreadingTCPServer):
    """A server of clients at `address`, each in a thread of its own."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, address, registers, raft):
        super().__init__(address, Client)
        self.registers, self.raft = registers, raft


def main():
    """Run a member until it is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal")
    parser.add_argument("addresses", nargs="+")
    asked = parser.parse_args()
    own, *others = (f"{address}:{PEER_PORT}" for address in asked.addresses)
    settings = SyncObjConf(
        journalFile=asked.journal,
        fullDumpFile=asked.journal and asked.journal + ".dump",
        appendEntriesUseBatch=False,  # A command is sent on at once.
        connectionRetryTime=0.5,
    )
    registers = Registers()
    raft = SyncObj(own, others, settings, consumers=[registers])
    Server((asked.addresses[0], CLIENT_PORT), registers, raft).serve_forever()


if __name__ == "__main__":
    main()
