"""What the agents on a set of hosts can do there, found out once and only when a plan asks for it.

An agent on each host tries every fault on processes of its own (`faultline.hosts.agent`) and says what it could not do.
"""

from __future__ import annotations

import threading

from faultline.hosts.connection import Connection
from faultline.hosts.errors import HostError
from faultline.hosts.fleet import Fleet
from faultline.hosts.host_agent import HostAgent

__all__ = ["AGENT_FAULTS", "CLOCK_FAULTS", "LIMITS", "Abilities", "examined"]

LIMITS = frozenset({"freeze", "cpu-squeeze", "memory-squeeze"})
CLOCK_FAULTS = frozenset({"clock-step", "clock-drift"})
AGENT_FAULTS = LIMITS | CLOCK_FAULTS
_REAL = "its real clock is stepped, and that does not drift"


class Abilities:
    """What can be done on the hosts of `fleet`. `set_name` names their control groups: `faultline-...`."""

    def __init__(self, fleet: Fleet, set_name: str) -> None:
        self.set_name = set_name
        self._fleet = fleet
        self._lock = threading.Lock()
        self._refusals: dict[str, str] | None = None

    def refusals(self) -> dict[str, str]:
        """For each of the `AGENT_FAULTS` that some host cannot inject, the first host that cannot, and why."""
        with self._lock:
            if self._refusals is None:
                found: dict[str, str] = {}
                for name, answer in self._fleet.attempt(self._ask).items():
                    for fault, why in _refused(answer).items():
                        found.setdefault(fault, f"on {name}, {why}")
                self._refusals = found
            return self._refusals

    def _ask(self, connection: Connection) -> dict[str, str]:
        return examined(connection, self.set_name)


def examined(connection: Connection, set_name: str) -> dict[str, str]:
    """The agent's own words on a host: a reason against each fault, or nothing; and its means of freezing."""
    agent = HostAgent(connection, f"{connection.host.folder}/examination", "examination", set_name, is_store=True)
    try:
        answer: dict[str, str] = agent.ask("examine")
    finally:
        agent.close()
    return answer


def _refused(answer: dict[str, str] | HostError) -> dict[str, str]:
    if isinstance(answer, HostError):
        return dict.fromkeys(AGENT_FAULTS, answer.message.rstrip("."))
    refused = {fault: answer[fault] for fault in sorted(LIMITS) if answer[fault]}
    if answer["clock"]:
        refused |= dict.fromkeys(CLOCK_FAULTS, answer["clock"])
    elif answer["kind"] == "real":
        refused["clock-drift"] = _REAL
    return refused
