"""The abilities of the agents on a set of hosts, found out once and only when a plan asks for them.

An agent on each host tries every fault on processes of its own (`agent/self_test.py`) and says what it could not do.
"""

from __future__ import annotations

import threading

from faultline.harness.world.hosts.clocks.clock_means import CLOCK_FAULTS, ClockMeans, chosen_means
from faultline.harness.world.hosts.machines.connection import Connection
from faultline.harness.world.hosts.machines.errors import HostError
from faultline.harness.world.hosts.machines.fleet import Fleet
from faultline.harness.world.hosts.processes.host_agent import HostAgent

__all__ = ["AGENT_FAULTS", "CLOCK_FAULTS", "LIMITS", "Abilities", "examined"]

LIMITS = frozenset({"freeze", "cpu-squeeze", "memory-squeeze"})
AGENT_FAULTS = LIMITS | CLOCK_FAULTS
_REAL = "its real clock is stepped, and that does not drift"


class Abilities:
    """The faults that agents can inject on the hosts of `fleet`. `set_name` names their control groups."""

    def __init__(self, fleet: Fleet, set_name: str) -> None:
        self.set_name = set_name
        self._fleet = fleet
        self._lock = threading.Lock()
        self._answers: dict[str, dict[str, str] | HostError] = {}

    def refusals(self, clock: str = "auto") -> dict[str, str]:
        """Return, for each of the `AGENT_FAULTS` that some host cannot inject, the first such host and the reason.

        `clock` is the means by which clocks are to be struck (`--host-option clock`).
        """
        found: dict[str, str] = {}
        for name, answer in self._examined().items():
            for fault, why in _refused(answer, clock).items():
                found.setdefault(fault, f"on {name}, {why}")
        return found

    def clock_means(self, host: str, clock: str) -> ClockMeans:
        """Return the means by which clocks of stores are struck on `host`, when `clock` is asked for."""
        answer = self._examined()[host]
        return ClockMeans("", answer.message) if isinstance(answer, HostError) else chosen_means(clock, answer)

    def _examined(self) -> dict[str, dict[str, str] | HostError]:
        with self._lock:
            if not self._answers:
                self._answers = self._fleet.attempt(self._ask)
            return self._answers

    def _ask(self, connection: Connection) -> dict[str, str]:
        return examined(connection, self.set_name)


def examined(connection: Connection, set_name: str) -> dict[str, str]:
    """Return the agent's words on a host: a reason against each fault and means, or none; and its means of freezing."""
    agent = HostAgent(connection, f"{connection.host.folder}/examination", "examination", set_name, is_store=True)
    try:
        answer: dict[str, str] = agent.ask("examine")
    finally:
        agent.close()
    return answer


def _refused(answer: dict[str, str] | HostError, clock: str) -> dict[str, str]:
    if isinstance(answer, HostError):
        return dict.fromkeys(AGENT_FAULTS, answer.message.rstrip("."))
    refused = {fault: answer[fault] for fault in sorted(LIMITS) if answer[fault]}
    means = chosen_means(clock, answer)
    if means.refusal:
        refused |= dict.fromkeys(CLOCK_FAULTS, means.refusal)
    elif means.name == "real":
        refused["clock-drift"] = _REAL
    return refused
