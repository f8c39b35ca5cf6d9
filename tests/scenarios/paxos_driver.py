"""The hand-cranked cluster with nodes of paxos-kv: who hears whom, message by message, and what each node holds."""

from __future__ import annotations

from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.story.log_cluster import Cluster, Matcher
from faultline.systems_under_test.patterns.data_replication.paxos_proposer import ValueChosen
from faultline.systems_under_test.patterns.data_replication.paxos_store import (
    AcceptRequest,
    AcceptResponse,
    Commit,
    CommitNotice,
    PrepareRequest,
    PrepareResponse,
)
from faultline.systems_under_test.reference.paxos_kv.messages import OutcomeUnknown, PaxosClientRequest
from faultline.systems_under_test.reference.paxos_kv.register import register_in
from faultline.systems_under_test.reference.paxos_kv.system import PaxosKv
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientResponse,
    Command,
    CompareAndSet,
    GetValue,
    SetValue,
)

KEY = "name"
PHASE_US = 50_000
PREPARE = (PrepareRequest, PrepareResponse)
ACCEPT = (AcceptRequest, AcceptResponse)
COMMIT = (CommitNotice,)

WRITE = "write"
READ = "read"


def between(one: str, others: tuple[str, ...], kinds: tuple[type, ...]) -> Matcher:
    """Messages of these kinds between `one` and any of `others`, both ways."""

    def match(source: str, target: str, message: Any) -> bool:
        pair = (source == one and target in others) or (target == one and source in others)
        return pair and isinstance(message, kinds)

    return match


class PaxosCluster(Cluster):
    """Nodes of paxos-kv; every client operation is a request of a client of its own unless told otherwise."""

    system_type = PaxosKv

    # -- clients --------------------------------------------------------------------------------------------------

    def ask(self, client: str, node: str, command: Command, number: int = 1) -> None:
        """Give `node` a request; deliver nothing else."""
        self.hand(client, node, PaxosClientRequest(client, number, command))

    def put(self, client: str, node: str, value: Any, number: int = 1) -> None:
        self.ask(client, node, SetValue(KEY, value), number)

    def get(self, client: str, node: str, number: int = 1) -> None:
        self.ask(client, node, GetValue(KEY), number)

    def cas(self, client: str, node: str, expected: Any, value: Any, number: int = 1) -> None:
        self.ask(client, node, CompareAndSet(KEY, expected, value), number)

    def answers(self, client: str) -> list[ClientResponse | OutcomeUnknown]:
        """Everything this client was told, answers still in the queue included."""
        self.deliver(lambda _, target, __: target == client)
        return [message for _, message in self.inbox.get(client, [])]

    def answer(self, client: str) -> ClientResponse | OutcomeUnknown | None:
        """The first answer to this client, if there is one."""
        return next(iter(self.answers(client)), None)

    def read(self, node: str, client: str = "reader") -> Any:
        """A read at `node` with all nodes that can hear it, to its end."""
        self.get(client, node)
        self.deliver()
        answer = self.answer(client)
        assert isinstance(answer, ClientResponse) and answer.error is None, answer
        return answer.value

    # -- the phases of one proposer ------------------------------------------------------------------------------------

    def let(self, proposer: str, kinds: tuple[type, ...], *acceptors: str) -> None:
        """Deliver these requests of `proposer` to `acceptors`, and their answers; nothing else."""
        self.deliver(between(proposer, acceptors, kinds))

    def lose(self, proposer: str) -> None:
        """Everything still on its way from or to `proposer` is lost."""
        self.drop(lambda source, target, _: proposer in (source, target))

    def try_again(self, name: str) -> None:
        """Let the phase of `name` time out if it is in one, and its random wait pass; deliver nothing."""
        attempts = self.nodes[name].ids.round
        for _ in range(3):
            timer = self.ports[name].next_timer()
            assert timer is not None
            self.ports[name].ring(timer)
            if self.nodes[name].ids.round > attempts:
                return
        raise AssertionError(f"{name} does not try again")

    # -- what can be seen -----------------------------------------------------------------------------------------

    def commit(self, name: str) -> Commit | None:
        commit: Commit | None = self.nodes[name].store.committed(KEY)
        return commit

    def value(self, name: str) -> Any:
        """The newest value `name` knows to be committed."""
        return register_in(self.commit(name)).value

    def version(self, name: str) -> int:
        commit = self.commit(name)
        return 0 if commit is None else commit.version

    def accepted(self, name: str) -> Any:
        """The value the acceptor `name` has accepted for its open version; None when there is none."""
        proposal = self.nodes[NodeId(name)].store.acceptor(KEY).accepted
        return None if proposal is None else register_in(Commit(0, proposal.generation, proposal.value)).value

    def promised(self, name: str) -> str:
        return str(self.nodes[name].store.acceptor(KEY).promised)

    def versions_chosen(self) -> list[int]:
        """The versions of the key that some proposer saw chosen, in that order."""
        return [event.version for _, event in self.events_of(ValueChosen)]
