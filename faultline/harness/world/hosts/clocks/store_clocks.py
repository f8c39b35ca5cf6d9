"""The clocks of a store's members over a run: the means is chosen, brought before they start, and proved thereafter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.machines.abilities import Abilities
from faultline.harness.world.hosts.processes.host_agent import AgentRefusal, HostAgent
from faultline.harness.world.hosts.processes.remote_process import RemoteProcess
from faultline.harness.world.ports import NodeId

__all__ = ["StoreClocks"]

_PRELOADED = "libfaketime"
_NEXT_STEP = (
    "Leave clock faults out; or use --host-option clock=vdso where that works (x86-64), which reaches any program, "
    'or clock = "real" in the host file of machines that do nothing else.'
)


class StoreClocks:
    """The clocks of the members of `store`, where faults strike them.

    Only libfaketime has to be there before a program starts, and does not do for every program: one that it harms, or
    that does not take its time from it, is refused by name, since the faults would do nothing or something else.
    """

    def __init__(
        self, store: str, agents: Mapping[NodeId, HostAgent], processes: Mapping[NodeId, RemoteProcess]
    ) -> None:
        self._store = store
        self._agents = agents
        self._processes = processes

    def choose(self, abilities: Abilities, host_of: Callable[[NodeId], str], asked: str) -> None:
        """Give each agent the means of its host, before the agents start."""
        for node, agent in self._agents.items():
            agent.clock = abilities.clock_means(host_of(node), asked).name or agent.clock

    async def bring(self) -> None:
        """Put the library in front of the members' commands, before the members start."""
        await asyncio.gather(*(asyncio.to_thread(self._bring, node) for node in self._preloaded()))

    async def refuse_unfit(self, nodes: Iterable[NodeId]) -> None:
        """Refuse, once `nodes` were started, programs that libfaketime harms or is not in. Raises HarnessError."""
        chosen = set(self._preloaded()) & set(nodes)
        await asyncio.gather(*(asyncio.to_thread(self._ask, node, "preloading") for node in chosen))

    async def prove(self, answers: Callable[[NodeId], bool]) -> None:
        """Prove that the members follow, once they serve. Raises HarnessError.

        Each is asked something in between (`answers`), so that it has a reason to ask for the time.
        """
        await asyncio.gather(*(asyncio.to_thread(self._prove, node, answers) for node in self._preloaded()))

    def explained(self, error: HarnessError) -> HarnessError:
        """Return a start that failed, with what may be to blame for it."""
        if not self._preloaded():
            return error
        return HarnessError(
            f"{error.message} It was started with libfaketime loaded, for the clock faults, which not every program "
            "bears.",
            f"{error.next_step} {_NEXT_STEP}",
        )

    def _preloaded(self) -> list[NodeId]:
        return [node for node, agent in self._agents.items() if agent.clock == _PRELOADED]

    def _bring(self, node: NodeId) -> None:
        process = self._processes[node]
        process.launcher = (*process.launcher, *self._agents[node].ask("preload"))

    def _prove(self, node: NodeId, answers: Callable[[NodeId], bool]) -> None:
        # Once more: some members start programs of theirs later.
        self._ask(node, "preloading")
        self._ask(node, "rewrite")
        answers(node)
        self._ask(node, "clock", has_answered=True)

    def _ask(self, node: NodeId, question: str, **arguments: bool) -> None:
        try:
            self._agents[node].ask(question, **arguments)
        except AgentRefusal as refusal:
            raise HarnessError(
                f"The clocks of {self._store} cannot be struck by libfaketime: {refusal.message}", _NEXT_STEP
            ) from refusal
