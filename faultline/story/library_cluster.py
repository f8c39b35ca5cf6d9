"""The hand-cranked cluster of a store whose client libraries keep a table, and perform whole operations."""

from __future__ import annotations

from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.story.log_cluster import Cluster

__all__ = ["LibraryCluster"]

_WAITS_MAX = 150


class LibraryCluster(Cluster):
    """Nodes, and clients that live in the process of the story; time passes in milliseconds."""

    def wait(self, duration_ms: int = 1_500) -> None:
        self.pass_time(1_000 * duration_ms)

    def client(self, name: str = "client-1") -> Any:
        """Return the client library of this name, started when it is asked for the first time."""
        if name not in self.nodes:
            self.ports[name] = self.ports_type(self, name)
            self.ports[name].now_us = self.ports[self.members[0]].now_us
            self.nodes[name] = self.system.client(
                self.ports[name], self.members, self.members[0], self.options, self.planted_bugs
            )
            self.nodes[name].start()
            self.deliver(lambda source, target, _: name in (source, target))
        return self.nodes[name]

    def begin(self, f: str, key: str | None, value: Any = None, client: str = "client-1") -> list[Outcome]:
        """Let the client begin; the list has the outcome once there is one."""
        outcomes: list[Outcome] = []
        self.client(client).invoke(Operation(process=0, f=f, key=key, value=value), outcomes.append)
        return outcomes

    def ended(self, outcomes: list[Outcome]) -> Outcome:
        """Return the outcome of an operation that has begun, after as much time as it takes."""
        for _ in range(_WAITS_MAX):
            self.deliver()
            if outcomes:
                return outcomes[0]
            self.wait(10)
        raise AssertionError("the client never ended its operation")

    def ask(self, f: str, key: str | None, value: Any = None, client: str = "client-1") -> Outcome:
        """Let the client perform it, and time pass until it is over."""
        return self.ended(self.begin(f, key, value, client))
