"""A store of one primary. Some of its mutants are known: found, equivalent, never reached, without an end, raising."""

import json
from typing import ClassVar

import msgspec

from faultline import NodeStatus, OutcomeRegistry, ok

OUTCOMES = OutcomeRegistry(["not-primary"])


class Request(msgspec.Struct, frozen=True, tag=True):
    number: int
    f: str
    key: str
    value: int | None = None


class Answer(msgspec.Struct, frozen=True, tag=True):
    number: int
    value: int | None = None
    error: str | None = None


class ToyNode:
    def __init__(self, ports, members):
        self.ports = ports
        self.members = members
        self.values = {}
        self.is_ready = False
        self.served = 0

    def start(self):
        self.recover()
        self.is_ready = True

    def recover(self):
        content, size = self.ports.storage.read("log"), 0
        for line in content.splitlines(keepends=True):
            if b"\0" in line or not line.endswith(b"\n"):
                self.ports.storage.truncate("log", size)
                break
            key, value = json.loads(line)
            self.values[key] = value
            size += len(line)
        if content:
            self.ports.storage.fsync("log")
            self.ports.storage.fsync_folder()

    def status(self):
        is_primary = self.ports.node_id == self.members[0]
        return NodeStatus(role="leader" if is_primary else "follower", generation=1, leader=self.members[0])

    def receive(self, source, message):
        if not self.is_ready:
            raise RuntimeError("not ready")
        self.count()
        self.wait_for_a_turn()
        if message.f == "forget-all":
            self.forget_all()
        self.ports.network.send(source, self.answer(message))

    def count(self):
        self.served += 1

    def wait_for_a_turn(self):
        self.left = 3
        while self.left:
            self.left -= 1

    def forget_all(self):
        self.values.clear()

    def answer(self, request):
        if self.ports.node_id != self.members[0]:
            return Answer(request.number, error="not-primary")
        if request.f == "write":
            self.keep(request.key, request.value)
            return Answer(request.number)
        return Answer(request.number, self.values.get(request.key))

    def keep(self, key, value):
        self.ports.storage.append("log", json.dumps([key, value]).encode() + b"\n")
        self.ports.storage.fsync("log")
        self.ports.storage.fsync_folder()
        self.values[key] = value


class ToyClient:
    def __init__(self, ports, primary):
        self.ports = ports
        self.primary = primary
        self.number = 0
        self.done = None

    def start(self):
        pass

    def invoke(self, operation, done):
        self.number += 1
        self.done, number = done, self.number
        self.ports.network.send(self.primary, Request(number, operation.f, operation.key or "", operation.value))
        self.ports.timers.after(400_000, lambda: self.end(number, OUTCOMES.outcome("timeout")))

    def receive(self, source, message):
        outcome = ok(message.value, source) if message.error is None else OUTCOMES.outcome(message.error, source)
        self.end(message.number, outcome)

    def end(self, number, outcome):
        if number == self.number and self.done is not None:
            done, self.done = self.done, None
            done(outcome)


class Toy:
    name = "toy"
    promise = "every key is a linearizable register"
    summary = "one primary with a log"
    patterns = ()
    functions = ("read", "write")
    options: ClassVar = {}
    planted_bugs: ClassVar = {}
    messages = (Request, Answer)

    def node(self, ports, members, options, planted_bugs):
        return ToyNode(ports, members)

    def client(self, ports, members, node, options, planted_bugs):
        return ToyClient(ports, members[0])

    def invariants(self):
        return []


class Forgetful(Toy):
    """The same store, which answers each third read with nothing: it is accused as it is."""

    name = "forgetful"

    def node(self, ports, members, options, planted_bugs):
        return ForgetfulNode(ports, members)


class ForgetfulNode(ToyNode):
    def answer(self, request):
        answer = super().answer(request)
        return Answer(request.number) if request.f == "read" and self.served % 3 == 0 else answer
