"""A hand-cranked cluster: the test decides what is delivered, when, and whose timer rings.

Every node has a monotonic clock of its own, so that one can time out while the others see no time pass. Messages wait
in one queue until the test delivers them; fsyncs are instant, and a kill loses what was not fsynced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.invariant import Breach
from faultline.harness.plan import NODE_NAMES
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.reference.consistent_core.system import ConsistentCore
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    ClientResponse,
    Command,
    GetValue,
    RedirectToLeader,
    RegisterClientRequest,
    RegisterClientResponse,
    SetValue,
)

ELECTION_TIMEOUT_US = 250_000
HEARTBEAT_US = 50_000

Matcher = Callable[[str, str, Any], bool]


class ManualTimer:
    def __init__(self, due_us: int, interval_us: int, callback: Callable[[], None]) -> None:
        self.due_us = due_us
        self.interval_us = interval_us
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Disk:
    """Files that remember which of their bytes were fsynced."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.durable: dict[str, bytes] = {}
        self.fsyncs = 0

    def files(self) -> list[str]:
        return sorted(self.content)

    def read(self, file: str) -> bytes:
        return self.content.get(file, b"")

    def append(self, file: str, data: bytes) -> None:
        self.content[file] = self.read(file) + data

    def write(self, file: str, data: bytes) -> None:
        self.content[file] = data

    def truncate(self, file: str, size: int) -> None:
        self.content[file] = self.read(file)[:size]

    def rename(self, old: str, new: str) -> None:
        self.content[new] = self.content.pop(old)

    def delete(self, file: str) -> None:
        self.content.pop(file, None)

    def fsync(self, file: str) -> None:
        self.fsyncs += 1
        self.durable = {name: data for name, data in self.durable.items() if name in self.content}
        if file in self.content:
            self.durable[file] = self.content[file]

    def lose_power(self) -> None:
        self.content = dict(self.durable)


class ManualPorts:
    """All ports of one node; implements `Ports` with itself as most of them."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.node_id = NodeId(name)
        self.cluster = cluster
        self.clock = self
        self.network = self
        self.timers = self
        self.random = self
        self.trace = self
        self.storage = Disk()
        self.now_us = 1_000_000
        self.wall_offset_us = 0
        self.pending: list[ManualTimer] = []

    def monotonic_us(self) -> int:
        return self.now_us

    def wall_us(self) -> int:
        return 10_000_000_000 + self.now_us + self.wall_offset_us

    def send(self, to: NodeId, message: Any) -> None:
        self.cluster.post(self.node_id, to, message)

    send_ahead = send

    def after(self, delay_us: int, callback: Callable[[], None]) -> ManualTimer:
        self.pending.append(ManualTimer(self.now_us + delay_us, 0, callback))
        return self.pending[-1]

    def every(self, interval_us: int, callback: Callable[[], None]) -> ManualTimer:
        self.pending.append(ManualTimer(self.now_us + interval_us, interval_us, callback))
        return self.pending[-1]

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        return low_us + self.cluster.timeout_offset_us.get(self.node_id, 0)

    def emit(self, event: Any) -> None:
        self.cluster.observe(self.node_id, event)

    def sometimes(self, mark: str) -> None:
        self.cluster.marks.append(mark)

    def always(self, mark: str, condition: bool, detail: str = "") -> None:
        assert condition, f"{mark}: {detail}"

    def next_timer(self) -> ManualTimer | None:
        self.pending = [timer for timer in self.pending if timer.callback is not None]
        return min(self.pending, key=lambda timer: timer.due_us, default=None)

    def ring(self, timer: ManualTimer) -> None:
        """Let `timer` fire at the time it is due."""
        callback = timer.callback
        assert callback is not None
        self.now_us = max(self.now_us, timer.due_us)
        if timer.interval_us:
            timer.due_us = self.now_us + timer.interval_us
        else:
            timer.callback = None
        callback()


class Cluster:
    """Nodes, the queue of messages between them, and what they reported."""

    system_type: type[Any] = ConsistentCore
    ports_type = ManualPorts

    def __init__(self, size: int = 3, mutants: tuple[str, ...] = (), **options: str) -> None:
        self.system = self.system_type()
        self.members = tuple(map(NodeId, NODE_NAMES[:size]))
        forced = [self.system.mutants[name].options for name in mutants]
        self.options = {name: value for options_of_bug in [*forced, options] for name, value in options_of_bug.items()}
        self.mutants = frozenset(mutants)
        self.election_timeout_us = 1_000 * int(options.get("election_timeout_ms", ELECTION_TIMEOUT_US // 1_000))
        self.heartbeat_us = 1_000 * int(options.get("heartbeat_interval_ms", HEARTBEAT_US // 1_000))
        self.ports: dict[str, ManualPorts] = {name: self.ports_type(self, name) for name in self.members}
        self.timeout_offset_us = {name: 10_000 * number for number, name in enumerate(self.members)}
        self.nodes: dict[str, Any] = {}
        self.queue: list[tuple[str, str, Any]] = []
        self.cuts: set[tuple[str, str]] = set()
        self.events: list[tuple[str, Any]] = []
        self.marks: list[str] = []
        self.breaches: list[Breach] = []
        self.invariants = self.system.invariants()
        self.inbox: dict[str, list[tuple[str, Any]]] = {}
        for name in self.members:
            self.start(name)

    # -- life -----------------------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        self.nodes[name] = self.system.node(self.ports[name], self.members, self.options, self.mutants)
        self.nodes[name].start()

    def kill(self, name: str) -> None:
        """Lose the node's memory, its timers, its unsynced bytes, and the messages on their way to it."""
        del self.nodes[name]
        self.ports[name].storage.lose_power()
        self.ports[name].pending.clear()
        self.drop(lambda _, target, __: target == name)

    def restart(self, name: str) -> None:
        if name in self.nodes:
            self.kill(name)
        self.start(name)

    # -- network --------------------------------------------------------------------------------------------------

    def post(self, source: str, target: str, message: Any) -> None:
        if (source, target) not in self.cuts:
            self.queue.append((source, target, message))

    def cut(self, one: str, *others: str) -> None:
        """Cut `one` off from `others` (from all members by default), both ways, and lose what is under way."""
        for other in others or self.members:
            self.cuts |= {(one, other), (other, one)}
        self.drop(lambda source, target, _: (source, target) in self.cuts)

    def split(self, *group: str) -> None:
        """Cut `group` off from the rest."""
        rest = [name for name in self.members if name not in group]
        for one in group:
            self.cut(one, *rest)

    def heal(self) -> None:
        self.cuts.clear()

    def drop(self, match: Matcher) -> None:
        self.queue = [item for item in self.queue if not match(*item)]

    def take(self, match: Matcher) -> list[tuple[str, str, Any]]:
        """Remove the matching messages from the queue and return them, to be delivered later by `hand`."""
        taken = [item for item in self.queue if match(*item)]
        self.drop(match)
        return taken

    def hand(self, source: str, target: str, message: Any) -> None:
        """Deliver this message now."""
        if target in self.nodes:
            self.nodes[target].receive(NodeId(source), message)
        elif target not in self.members:
            self.inbox.setdefault(target, []).append((source, message))

    def step(self, match: Matcher) -> None:
        """Deliver the first matching message, and nothing else."""
        item = next(item for item in self.queue if match(*item))
        self.queue.remove(item)
        self.hand(*item)

    def deliver(self, match: Matcher = lambda *_: True) -> None:
        """Deliver the matching messages, and those they cause, until none is left."""
        for _ in range(10_000):
            item = next((item for item in self.queue if match(*item)), None)
            if item is None:
                return
            self.queue.remove(item)
            self.hand(*item)
        raise AssertionError("messages without end")

    # -- time -----------------------------------------------------------------------------------------------------

    def pass_time(self, duration_us: int) -> None:
        """Let time pass for all nodes alike, with timers, and messages delivered at once."""
        ends = {name: ports.now_us + duration_us for name, ports in self.ports.items()}
        while True:
            due = [
                (timer.due_us - ends[name], name, timer)
                for name, ports in self.ports.items()
                if name in self.nodes and (timer := ports.next_timer()) is not None and timer.due_us <= ends[name]
            ]
            if not due:
                break
            left_us, name, timer = min(due, key=lambda each: each[:2])
            for other, ports in self.ports.items():
                ports.now_us = max(ports.now_us, ends[other] + left_us)
            self.ports[name].ring(timer)
            self.deliver()
        for name, ports in self.ports.items():
            ports.now_us = ends[name]

    def go_silent(self, *names: str) -> None:
        """Let `names` have heard nothing for an election timeout, without their timers having rung."""
        for name in names or self.members:
            self.ports[name].now_us += self.election_timeout_us

    def time_out(self, name: str) -> None:
        """Let `name` wait until it stands for election; deliver nothing."""
        election = self.nodes[name].election
        for _ in range(50):
            timer = self.ports[name].next_timer()
            assert timer is not None
            self.ports[name].ring(timer)
            if election.role is ServerRole.LOOKING_FOR_LEADER and election._detector.silence_us() == 0:
                return
        raise AssertionError(f"{name} does not stand for election")

    def heartbeat(self, name: str) -> None:
        """Let the leader's next heartbeat tick ring; deliver nothing."""
        self.ports[name].next_timer()
        self.ports[name].ring(
            next(timer for timer in self.ports[name].pending if timer.interval_us == self.heartbeat_us)
        )

    def elect(self, name: str, match: Matcher = lambda *_: True) -> None:
        """Make `name` the leader of whoever can hear it, delivering only what matches."""
        self.go_silent()
        for _ in range(3):
            self.time_out(name)
            self.deliver(match)
            if self.leads(name):
                return
        raise AssertionError(f"{name} was not elected")

    # -- what can be seen -----------------------------------------------------------------------------------------

    def observe(self, node: str, event: Any) -> None:
        self.events.append((node, event))
        for invariant in self.invariants:
            if isinstance(event, invariant.events):
                invariant.observe(self.ports[node].now_us, node, event, self.breaches.append)

    def events_of(self, kind: type) -> list[tuple[str, Any]]:
        return [(node, event) for node, event in self.events if isinstance(event, kind)]

    def leads(self, name: str) -> bool:
        return bool(self.nodes[name].status().role == ServerRole.LEADING.value)

    def leaders(self) -> list[str]:
        return [name for name in self.nodes if self.leads(name)]

    def generation(self, name: str) -> int:
        return self.nodes[name].status().generation

    def mark(self, name: str) -> int:
        return self.nodes[name].log.high_water_mark.value

    def log(self, name: str) -> list[int]:
        """The generations of the entries that the node's log still holds, in order."""
        wal = self.nodes[name]._log
        return [entry.generation for entry in wal.entries(wal.compacted_index + 1, wal.last_index)]

    def values(self, name: str) -> dict[str, Any]:
        return dict(self.nodes[name].store.values)

    def broken(self) -> list[str]:
        return sorted({breach.invariant for breach in self.breaches})


class Client:
    """A client whose every attempt is the test's decision."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.client_id = 0
        self.number = 0

    def register(self, node: str) -> Client:
        self.cluster.hand(self.name, node, RegisterClientRequest(0))
        self.cluster.deliver()
        answer = self.answers()[-1]
        assert isinstance(answer, RegisterClientResponse), answer
        self.client_id = answer.client_id
        return self

    def ask(self, node: str, command: Command) -> int:
        """Send a new request to `node`; deliver nothing else. Its number."""
        self.number += 1
        self.ask_again(node, self.number, command)
        return self.number

    def ask_again(self, node: str, number: int, command: Command) -> None:
        self.cluster.hand(self.name, node, ClientRequest(self.client_id, number, command))

    def set(self, node: str, key: str, value: Any) -> int:
        return self.ask(node, SetValue(key, value))

    def get(self, node: str, key: str) -> int:
        return self.ask(node, GetValue(key))

    def answers(self) -> list[Any]:
        """Everything this client was told, answers still in the queue included."""
        self.cluster.deliver(lambda _, target, __: target == self.name)
        return [message for _, message in self.cluster.inbox.get(self.name, [])]

    def answers_to(self, number: int) -> list[ClientResponse]:
        return [
            answer
            for answer in self.answers()
            if isinstance(answer, ClientResponse) and answer.request_number == number
        ]

    def answer_to(self, number: int) -> ClientResponse | None:
        return next(iter(self.answers_to(number)), None)

    def redirects(self) -> list[RedirectToLeader]:
        return [answer for answer in self.answers() if isinstance(answer, RedirectToLeader)]
