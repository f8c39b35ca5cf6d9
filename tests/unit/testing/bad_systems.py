"""The store of examples/slate with one mistake each, as authors of plug-ins make them; each breaks one claim."""

from __future__ import annotations

import itertools
import random
from typing import Any, ClassVar

import msgspec
from slate.client import SlateClient
from slate.messages import Answer, Copy, Request
from slate.node import SlateNode
from slate.system import NO_FLUSH, Slate

from faultline.harness.invariant import ReportingInvariant
from faultline.harness.outcome import fail, info, ok
from faultline.harness.system import OptionDescription
from faultline.harness.world.ports import NodeStatus


def with_node(node_class: type[SlateNode]) -> type[Slate]:
    """Slate with other nodes."""

    class WithNode(Slate):
        def node(self, ports: Any, members: Any, options: Any, planted_bugs: Any) -> SlateNode:
            return node_class(ports, members, flushes=NO_FLUSH.name not in planted_bugs)

    return WithNode


def with_client(client_class: type[SlateClient]) -> type[Slate]:
    """Slate with other clients."""

    class WithClient(Slate):
        def client(self, ports: Any, members: Any, node: Any, options: Any, planted_bugs: Any) -> SlateClient:
            return client_class(ports, members[0], members[0], 400_000)

    return WithClient


class NoPromise(Slate):
    promise = ""


def hidden_class() -> type[Slate]:
    """A system that only this process can reach."""

    class Hidden(Slate):
        pass

    return Hidden


class BadDefault(Slate):
    options = Slate.options | {"speed": OptionDescription(default="quick", choices=("fast", "slow"), summary="how")}


class NoSummary(Slate):
    options = Slate.options | {"speed": OptionDescription(default="fast", choices=("fast", "slow"))}


class NeedsAnOptionThatIsNot(Slate):
    function_options: ClassVar[dict[str, dict[str, str]]] = {"cas": {"compare": "on"}}


class NamesAFunctionThatIsNot(Slate):
    function_options: ClassVar[dict[str, dict[str, str]]] = {"swap": {}}


class DividesByAnOption(Slate):
    options = Slate.options | {"shards": OptionDescription(default="4", summary="parts of the log")}

    def node(self, ports: Any, members: Any, options: Any, planted_bugs: Any) -> SlateNode:
        assert 1_000 // int(options["shards"]) >= 0
        return super().node(ports, members, options, planted_bugs)


class BugWithoutCampaign(Slate):
    planted_bugs: ClassVar[dict[str, Any]] = {"no-flush": msgspec.structs.replace(NO_FLUSH, campaign="nowhere")}


class Changeable(msgspec.Struct, tag=True):
    numbers: list[int]


class ChangeableMessages(Slate):
    messages = (Request, Answer, Copy, Changeable)


class Remembers(ReportingInvariant):
    id = "X-I1"
    statement = "Nothing."
    events: ClassVar[tuple[type, ...]] = ()

    def observe(self, *_: Any) -> None:
        """Nothing."""


class SharedInvariant(Slate):
    shared: ClassVar[list[Any]] = [Remembers()]

    def invariants(self) -> list[Any]:
        return self.shared


class NeverLeadingNode(SlateNode):
    def status(self) -> NodeStatus:
        return NodeStatus(role="follower")


class IgnoresCasNode(SlateNode):
    def receive(self, source: Any, message: Any) -> None:
        if not (isinstance(message, Request) and message.f == "cas"):
            super().receive(source, message)


class SendsAnythingClient(SlateClient):
    def invoke(self, operation: Any, done: Any) -> None:
        self.number += 1
        self.done, number = done, self.number
        self.ports.network.send(self.primary, Request(number, operation.f, operation.key or ""))
        self.ports.timers.after(self.timeout_us, lambda: self.end(number, info("timeout")))


class EndsTwiceClient(SlateClient):
    def end(self, number: int, outcome: Any) -> None:
        if self.done is not None:
            self.done(outcome)


class NeverEndsClient(SlateClient):
    def end(self, number: int, outcome: Any) -> None:
        if outcome.error != "timeout":
            super().end(number, outcome)


class TimeoutIsFailureClient(SlateClient):
    def end(self, number: int, outcome: Any) -> None:
        super().end(number, fail("timeout") if outcome.error == "timeout" else outcome)


class TimeoutIsSuccessClient(SlateClient):
    def end(self, number: int, outcome: Any) -> None:
        super().end(number, ok() if outcome.error == "timeout" else outcome)


class RefusesLateNode(SlateNode):
    """Says that it did not do what it did, now and then."""

    def answer(self, request: Request) -> Answer:
        answer = super().answer(request)
        if request.f == "write" and request.number % 5 == 0:
            return Answer(request.number, error="not-primary")
        return answer


class DrawsItsOwnClient(SlateClient):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.timeout_us = random.randrange(1_000, 400_000)


class CountsForEverClient(SlateClient):
    numbers = itertools.count()

    def invoke(self, operation: Any, done: Any) -> None:
        late_us = 50 * next(self.numbers)
        self.ports.timers.after(late_us, lambda: super(CountsForEverClient, self).invoke(operation, done))


class HashesClient(SlateClient):
    def invoke(self, operation: Any, done: Any) -> None:
        late_us = abs(hash(operation.key)) % 2_000
        self.ports.timers.after(late_us, lambda: super(HashesClient, self).invoke(operation, done))


class HashesTexts(Slate):
    def client(self, ports: Any, members: Any, node: Any, options: Any, planted_bugs: Any) -> SlateClient:
        return HashesClient(ports, members[0], members[0], 400_000)


class StartsOnlyOnceNode(SlateNode):
    def start(self) -> None:
        if self.ports.storage.read("log"):
            raise ValueError("there is a log already")


class LooseAnswer(msgspec.Struct, frozen=True, tag=True):
    number: int
    value: Any = None
    error: str | None = None


class TuplesNode(SlateNode):
    def answer(self, request: Request) -> Any:
        answer = super().answer(request)
        return LooseAnswer(answer.number, (answer.value,), answer.error)


class TuplesClient(SlateClient):
    def receive(self, source: Any, message: Any) -> None:
        super().receive(source, Answer(message.number, message.value[0], message.error))


class LooseMessages(Slate):
    messages = (Request, LooseAnswer, Copy)

    def node(self, ports: Any, members: Any, options: Any, planted_bugs: Any) -> SlateNode:
        return TuplesNode(ports, members, flushes=True)

    def client(self, ports: Any, members: Any, node: Any, options: Any, planted_bugs: Any) -> SlateClient:
        return TuplesClient(ports, members[0], members[0], 400_000)


class UndeclaredMessages(LooseMessages):
    messages = Slate.messages


class ForgetsNode(SlateNode):
    def start(self) -> None:
        """Remembers nothing of what it wrote."""


class CrashingClient(SlateClient):
    def receive(self, source: Any, message: Any) -> None:
        raise KeyError(message.number)
