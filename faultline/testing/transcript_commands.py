"""The player of transcripts, with the commands that suit every system; docs/how-to/test-a-node-by-hand.md lists them.

    player = TranscriptPlayer(MyStore())
    check_transcript(Path("stories/primary-crashes.txt"), player.execute)
    player.finish()

A system adds commands of its own, and may put messages into its own words:

    class StorePlayer(TranscriptPlayer):
        def do_write(self, words):
            '''write NODE KEY VALUE'''
            node, key, value = self.exactly(3, words, "write")
            self.hand(("client", self.running(node), Write(key, value)))

`LINK` is `athens->cyrene`, `athens->`, `->cyrene`, or `athens--cyrene` for both ways; `KIND` is the tag of a message.
"""

from __future__ import annotations

import itertools

from faultline.harness.world.ports import NodeId
from faultline.testing.transcript_player import BarePlayer, duration_us, options_in
from faultline.testing.transcripts import CommandError

__all__ = ["TranscriptPlayer"]


class TranscriptPlayer(BarePlayer):
    """Plays transcripts on clusters of one system."""

    def do_cluster(self, words: list[str]) -> None:
        """cluster SIZE|NODE … [OPTION=VALUE …] [bug=NAME]

        Start athens, byzantium, cyrene, …, or nodes of these names, with these options.
        """
        names = list(itertools.takewhile(lambda word: "=" not in word, words))
        size: int | list[str] = int(names[0]) if len(names) == 1 and names[0].isdigit() else names
        if not size or (isinstance(size, list) and any(not name.isidentifier() for name in size)):
            raise self.misused("cluster")
        options = options_in(words[len(names) :])
        bugs = tuple(filter(None, options.pop("bug", "").split(",")))
        self.begin(self.new_cluster(size, bugs, options))

    def do_cut(self, words: list[str]) -> None:
        """cut NODE [FROM …]

        Cut NODE off from others (all by default), both ways, and lose what is under way there.
        """
        self.cluster.cut(*map(self.node, words))

    def do_split(self, words: list[str]) -> None:
        """split NODE …

        Cut these off from the rest.
        """
        self.cluster.split(*map(self.node, words))

    def do_heal(self, words: list[str]) -> None:
        """heal

        Restore all links.
        """
        self.exactly(0, words, "heal")
        self.cluster.heal()

    def do_crash(self, words: list[str]) -> None:
        """crash NODE …

        Lose memory, timers, what was not fsynced, and the messages on their way to the node.
        """
        for name in words:
            self.cluster.kill(self.running(name))

    def do_restart(self, words: list[str]) -> None:
        """restart NODE …

        Start the node again from its disk.
        """
        for name in words:
            self.cluster.restart(self.node(name))

    def do_deliver(self, words: list[str]) -> None:
        """deliver [LINK] [KIND …] [except KIND …]

        Deliver these messages and those they cause; print all, with what the nodes do.
        """
        self.deliver(self.matcher(words))

    def do_settle(self, words: list[str]) -> None:
        """settle [LINK] [KIND …] [except KIND …]

        Do the same, and print only answers to clients and the events that matter most.
        """
        self.do_deliver(words)

    def do_step(self, words: list[str]) -> None:
        """step [LINK] [KIND …] [except KIND …]

        Deliver the first such message and nothing else.
        """
        self.in_brief = False
        match = self.matcher(words)
        if not any(match(*item) for item in self.cluster.queue):
            raise CommandError("no such message is on its way; `show messages` lists them")
        self.deliver(match, once=True)

    def do_drop(self, words: list[str]) -> None:
        """drop [LINK] [KIND …] [except KIND …]

        Lose these messages.
        """
        lost = self.cluster.take(self.matcher(words))
        self.lines += [f"lost: {self.message_words(*item)}" for item in lost]

    def do_repeat(self, words: list[str]) -> None:
        """repeat [LINK] [KIND …] [except KIND …]

        Put a second copy of them behind all others.
        """
        match = self.matcher(words)
        self.cluster.queue += [item for item in self.cluster.queue if match(*item)]

    def do_hold(self, words: list[str]) -> None:
        """hold NAME [LINK] [KIND …] [except KIND …]

        Take them off the network under a name, for `release`.
        """
        if not words:
            raise self.misused("hold")
        held = self.cluster.take(self.matcher(words[1:]))
        self.held[words[0]] = held
        self.lines += [f"held back: {self.message_words(*item)}" for item in held]

    def do_release(self, words: list[str]) -> None:
        """release NAME

        Deliver the messages that are held back under this name.
        """
        (name,) = self.exactly(1, words, "release")
        if name not in self.held:
            raise CommandError(f"nothing is held back as {name!r}")
        for item in self.held.pop(name):
            self.hand(item)

    def do_pass(self, words: list[str]) -> None:
        """pass DURATION

        Let time pass for all alike (`200ms`, `3s`): timers ring, messages arrive at once.
        """
        (text,) = self.exactly(1, words, "pass")
        self.quietly(lambda: self.cluster.pass_time(duration_us(text)))

    def do_clock(self, words: list[str]) -> None:
        """clock NODE DURATION

        Move NODE's monotonic clock alone; no timer rings.
        """
        name, text = self.exactly(2, words, "clock")
        self.cluster.ports[self.node(name)].now_us += duration_us(text)

    def do_wall_clock(self, words: list[str]) -> None:
        """wall-clock NODE DURATION

        Step NODE's wall clock, back with a minus.
        """
        name, text = self.exactly(2, words, "wall-clock")
        self.cluster.ports[self.node(name)].wall_offset_us += duration_us(text)

    def do_show(self, words: list[str]) -> None:
        """show status|messages|marks|breaches [NODE …]

        Print what nodes say of themselves, what is under way, which situations were reached, which invariants broke.
        """
        what, *names = words or [""]
        if what == "status":
            self.lines += [self._status(self.node(name)) for name in names or self.cluster.members]
        elif what == "messages":
            self.lines += [self.message_words(*item) for item in self.cluster.queue] or ["none"]
        elif what == "marks":
            self.lines.append(", ".join(dict.fromkeys(self.cluster.marks)) or "none")
        elif what == "breaches":
            self.breaches_shown = True
            self.lines += [f"{breach.invariant}: {breach.sentence}" for breach in self.cluster.breaches] or ["none"]
        else:
            raise self.misused("show")

    def _status(self, name: str) -> str:
        if name not in self.cluster.nodes:
            return f"{name}: down"
        status = self.cluster.nodes[NodeId(name)].status()
        leader = "" if status.leader is None else f", knows {status.leader} as the leader"
        return f"{name}: {status.role} in generation {status.generation}{leader}"
