"""The player of stories about `consistent-core` and other systems with a leader and a log.

It adds elections, clients, logs and the 183 widgets to the commands of `TranscriptPlayer`; tests/README.md explains
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.registry import load_system
from faultline.story.log_cluster import Client, Cluster
from faultline.story.log_words import entry_words, event_words, kinds_of, message_words, stock_words
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicationRequest
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import NO_OP, LogEntry
from faultline.systems_under_test.reference.shared.client_messages import CompareAndSet, GetValue, SetValue
from faultline.systems_under_test.reference.shared.key_commands import Transfer
from faultline.testing.hand_cranked import HandCrankedCluster
from faultline.testing.transcript_commands import TranscriptPlayer
from faultline.testing.transcript_player import LINK, options_in
from faultline.testing.transcripts import CommandError
from faultline.workloads.transfer import OPENING

WIDGETS = "widgets"
"""The key of the record that counts the widgets of each location."""


__all__ = ["DEFAULT_SYSTEM", "WIDGETS", "LogPlayer"]

DEFAULT_SYSTEM = "consistent-core"
"""The system of a cluster for which none is named."""


class LogPlayer(TranscriptPlayer):
    """One transcript being played, with its clients."""

    def __init__(self) -> None:
        super().__init__()
        self.clients: dict[str, Client] = {}

    def do_cluster(self, words: list[str]) -> None:
        """cluster SIZE|NODE … [OPTION=VALUE …] [bug=NAME] [system=NAME]

        Start athens, byzantium, cyrene, …, or nodes of these names, with these options.
        """
        super().do_cluster(words)

    def new_cluster(
        self, size: int | Sequence[str], planted_bugs: tuple[str, ...], options: dict[str, str]
    ) -> HandCrankedCluster:
        system = type(load_system(options.pop("system", DEFAULT_SYSTEM)))
        scripted: type[Cluster] = type("ScriptedCluster", (Cluster,), {"system_type": system})
        cluster: Cluster = self.placed(scripted)(size, planted_bugs, **options)
        return cluster

    def begin(self, cluster: HandCrankedCluster) -> None:
        super().begin(cluster)
        self.clients.clear()

    def client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client(self.cluster, name))

    def kinds_of(self, message: Any) -> set[str]:
        return kinds_of(message)

    def extra_kinds(self) -> set[str]:
        return {"entries", "heartbeat"}

    def message_words(self, source: str, target: str, message: Any) -> str:
        return message_words(source, target, message)

    def event_words(self, node: str, event: Any, *, in_brief: bool) -> str | None:
        return event_words(node, event, in_brief=in_brief)

    def do_replicate(self, words: list[str]) -> None:
        """replicate LEADER->FOLLOWER generation=G after=INDEX/GENERATION [mark=M] [INDEX/GENERATION …]

        Play a leader: hand the follower no-ops at these positions, and print its answer.
        """
        link = LINK.match(words[0]) if words else None
        if link is None:
            raise self.misused("replicate")
        options = options_in([word for word in words[1:] if "=" in word])
        entries = [LogEntry(*_position(word), NO_OP, b"") for word in words[1:] if "=" not in word]
        leader, follower = self.node(link["source"]), self.running(link["target"])
        prev_index, prev_generation = _position(options.get("after", "0/0"))
        generation, mark = int(options.get("generation", "1")), int(options.get("mark", "0"))
        request = ReplicationRequest(leader, generation, 1, 0, prev_index, prev_generation, mark, entries)
        self.in_brief = False
        self.hand((leader, follower, request))
        answers = self.cluster.take(lambda source, target, _: (source, target) == (follower, leader))
        self.lines += [self.message_words(*item) for item in answers]

    def do_silence(self, words: list[str]) -> None:
        """silence [NODE …]

        Let an election timeout without a word pass for these (all) nodes; no timer rings.
        """
        self.cluster.go_silent(*map(self.node, words))

    def do_time_out(self, words: list[str]) -> None:
        """time-out NODE

        Let NODE wait until it stands for election; deliver nothing.
        """
        (name,) = self.exactly(1, words, "time-out")
        self.cluster.time_out(self.running(name))

    def do_elect(self, words: list[str]) -> None:
        """elect NODE [LINK] [KIND …] [except KIND …]

        Make NODE the leader of those that hear it, and deliver only these messages.
        """
        name = self.running(self.exactly(1, words[:1], "elect")[0])
        match = self.matcher(words[1:])
        self.quietly(lambda: self.cluster.elect(name, match))

    def do_heartbeat(self, words: list[str]) -> None:
        """heartbeat NODE

        Let the leader's next heartbeat leave; deliver nothing.
        """
        (name,) = self.exactly(1, words, "heartbeat")
        self.cluster.heartbeat(self.running(name))

    def do_register(self, words: list[str]) -> None:
        """register CLIENT NODE

        Register a client; it needs that before it writes.
        """
        name, node = self.exactly(2, words, "register")
        client = self.client(name).register(self.running(node))
        self.lines.append(f"{name} is client {client.client_id}")

    def do_set(self, words: list[str]) -> None:
        """set CLIENT NODE KEY VALUE

        Send a write; print what NODE answers at once, and deliver nothing else.
        """
        name, node, key, value = self.exactly(4, words, "set")
        self.client(name).ask(self.running(node), SetValue(key, value))
        self.told(name)

    def do_get(self, words: list[str]) -> None:
        """get CLIENT NODE KEY

        Do the same for a read.
        """
        name, node, key = self.exactly(3, words, "get")
        self.client(name).ask(self.running(node), GetValue(key))
        self.told(name)

    def do_cas(self, words: list[str]) -> None:
        """cas CLIENT NODE KEY EXPECTED VALUE

        Do the same for a compare-and-set.
        """
        name, node, key, expected, value = self.exactly(5, words, "cas")
        self.client(name).ask(self.running(node), CompareAndSet(key, expected, value))
        self.told(name)

    def do_ask_again(self, words: list[str]) -> None:
        """ask-again CLIENT NODE NUMBER set KEY VALUE | transfer AMOUNT FROM TO

        Do the same for a write, or a transfer, under a number used before.
        """
        name, node, number, verb, *rest = words if len(words) > 5 else self.exactly(6, words, "ask-again")
        command = SetValue(*self.exactly(2, rest, "ask-again")) if verb == "set" else self._transfer(rest, "ask-again")
        self.client(name).ask_again(self.running(node), int(number), command)
        self.told(name)

    def do_stock(self, words: list[str]) -> None:
        """stock CLIENT NODE

        Write the 183 widgets of Boston, Philadelphia, London and Pune.
        """
        name, node = self.exactly(2, words, "stock")
        self.client(name).ask(self.running(node), SetValue(WIDGETS, OPENING))
        self.told(name)

    def do_transfer(self, words: list[str]) -> None:
        """transfer CLIENT NODE AMOUNT FROM TO

        Send a transfer of widgets; print what NODE answers at once, and deliver nothing else.
        """
        name, node, *rest = self.exactly(5, words, "transfer")
        self.client(name).ask(self.running(node), self._transfer(rest, "transfer"))
        self.told(name)

    def _transfer(self, words: list[str], verb: str) -> Transfer:
        amount, source, target = self.exactly(3, words, verb)
        if not amount.isdigit():
            raise self.misused(verb)
        return Transfer(WIDGETS, source, target, int(amount))

    def do_show(self, words: list[str]) -> None:
        """show log|state|values|widgets|messages|marks|breaches [NODE …]

        Print what nodes hold, what is under way, which situations were reached, which invariants broke.
        """
        views = {"log": self._log, "state": self._state, "values": self._values, "widgets": self._widgets}
        what, *names = words or [""]
        if what in views:
            self.lines += [views[what](self.node(name)) for name in names or self.cluster.members]
        else:
            super().do_show(words)

    def told(self, client: str) -> None:
        """Print what the node said at once, if anything: answers wait in the queue like all messages."""
        self.tell_events()
        self.deliver(lambda _, target, __: target == client)

    def _log(self, name: str) -> str:
        if name not in self.cluster.nodes:
            return f"{name}: down"
        compacted_index, entries = self.cluster.entries(name)
        discarded = [f"… {compacted_index}"] if compacted_index else []
        return f"{name}: {', '.join([*discarded, *map(entry_words, entries)]) or 'empty'}"

    def _state(self, name: str) -> str:
        if name not in self.cluster.nodes:
            return f"{name}: down"
        status = self.cluster.nodes[NodeId(name)].status()
        known = {None: "", NodeId(name): ""}.get(status.leader, f" of {status.leader}")
        detail = status.detail
        return (
            f"{name}: {status.role}{known} in generation {status.generation}, log ends at {detail['last_index']},"
            f" mark {detail['high_water_mark']}, applied {detail['applied']}"
        )

    def _values(self, name: str) -> str:
        if name not in self.cluster.nodes:
            return f"{name}: down"
        values = self.cluster.values(name)
        return f"{name}: {', '.join(f'{key}={value}' for key, value in sorted(values.items())) or 'nothing'}"

    def _widgets(self, name: str) -> str:
        if name not in self.cluster.nodes:
            return f"{name}: down"
        stock = self.cluster.values(name).get(WIDGETS)
        return f"{name}: {'no widgets yet' if stock is None else f'{stock_words(stock)}; {sum(stock.values())} in all'}"


def _position(text: str) -> tuple[int, int]:
    index, slash, generation = text.partition("/")
    if not (slash and index.isdigit() and generation.isdigit()):
        raise CommandError(f"{text!r} is not INDEX/GENERATION, like 3/1")
    return int(index), int(generation)
