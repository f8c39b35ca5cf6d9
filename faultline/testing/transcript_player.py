"""Play transcripts on a hand-cranked cluster: how commands are found, how messages are told, how arguments are read.

Commands are methods, as in `cmd` of the standard library: `do_wall_clock` is the command `wall-clock`, and the first
line of its docstring is its usage. `TranscriptPlayer` in `faultline.testing.transcript_commands` has those that suit
every system; a system adds its own in a subclass.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from faultline.harness.invariant import Breach
from faultline.harness.system import NodeSystem
from faultline.testing.hand_cranked import HandCrankedCluster, Matcher
from faultline.testing.transcripts import CommandError

__all__ = ["LINK", "BarePlayer", "Item", "duration_us", "options_in"]

Item = tuple[str, str, Any]
"""A message on its way: source, target, message."""

LINK = re.compile(r"^(?P<source>\w*)(?P<arrow>->|--)(?P<target>\w*)$")
_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
_MESSAGES_MAX = 10_000
_COMMAND = "do_"


class BarePlayer:
    """A player without commands: its cluster, the messages it holds back, and the `lines` of the present command.

    `in_brief` is on while a command prints only what its caller must see; `deliver`, `step` and `release` print each
    message and what nodes do about it. `placed` chooses where the nodes of a cluster live: here, unless
    it is set.
    """

    def __init__(self, system: NodeSystem | None = None) -> None:
        self.system = system
        self.held: dict[str, list[Item]] = {}
        self.lines: list[str] = []
        self.in_brief = False
        self.breaches_shown = False
        self.placed: Callable[[type[Any]], type[Any]] = lambda kind: kind
        self._cluster: HandCrankedCluster | None = None
        self._events_told = 0

    def new_cluster(
        self, size: int | Sequence[str], planted_bugs: tuple[str, ...], options: dict[str, str]
    ) -> HandCrankedCluster:
        """Return the cluster that the command `cluster` asks for."""
        if self.system is None:
            raise CommandError("the player was given no system")
        cluster: HandCrankedCluster = self.placed(HandCrankedCluster)(self.system, size, planted_bugs, **options)
        return cluster

    def kinds_of(self, message: Any) -> set[str]:
        """Return the names under which a filter finds `message`: its tag."""
        return {str(type(message).__struct_config__.tag)}

    def extra_kinds(self) -> set[str]:
        """Return the names beside tags that `kinds_of` may give."""
        return set()

    def message_words(self, source: str, target: str, message: Any) -> str:
        """Return one line about a message on its way."""
        fields = " ".join(f"{name}={value}" for name, value in msgspec.structs.asdict(message).items())
        return f"{source} → {target}: {type(message).__struct_config__.tag} {fields}".rstrip()

    def event_words(self, node: str, event: Any, *, in_brief: bool) -> str | None:
        """Return one line about an event that `node` traced; None when it is not worth a line."""
        return None if in_brief else f"{node}: {event}"

    @property
    def cluster(self) -> Any:
        """The cluster that is played on. Raise CommandError before the first `cluster`."""
        if self._cluster is None:
            raise CommandError("there is no cluster yet; the first command is `cluster 3`")
        return self._cluster

    def execute(self, line: str) -> list[str]:
        """Carry out one command line and return what it prints."""
        verb, *words = shlex.split(line)
        carry_out = self._command(verb)
        self.lines = []
        self.in_brief = verb not in ("deliver", "release")
        carry_out(words)
        self.tell_events()
        return self.lines

    @classmethod
    def usages(cls) -> dict[str, str]:
        """Return the usage of each command, by verb."""
        commands = {
            name.removeprefix(_COMMAND).replace("_", "-"): name for name in dir(cls) if name.startswith(_COMMAND)
        }
        return {verb: (getattr(cls, name).__doc__ or verb).splitlines()[0] for verb, name in commands.items()}

    def _command(self, verb: str) -> Callable[[list[str]], None]:
        known = self.usages()
        if verb not in known:
            near = difflib.get_close_matches(verb, known, 1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise CommandError(f"there is no command {verb!r}. {hint}There are {', '.join(sorted(known))}.")
        found: Callable[[list[str]], None] = getattr(self, _COMMAND + verb.replace("-", "_"))
        return found

    def begin(self, cluster: HandCrankedCluster) -> None:
        """Play on `cluster` from now on, after `finish`."""
        self.finish()
        self.close()
        self._cluster = cluster
        self.held.clear()
        self.breaches_shown = False
        self._events_told = len(cluster.events)

    def finish(self) -> None:
        """Raise CommandError when an invariant was breached that the story did not show, planted bugs excepted."""
        cluster = self._cluster
        if cluster is not None and cluster.broken() and not (cluster.planted_bugs or self.breaches_shown):
            raise CommandError(f"{', '.join(cluster.broken())} broken; `show breaches` tells how")

    def close(self) -> None:
        """End what the nodes of the present cluster need outside of this process."""
        if self._cluster is not None:
            self._cluster.close()

    def breaches(self) -> list[Breach]:
        """Return the breaches of invariants on the present cluster so far; none before there is one."""
        return [] if self._cluster is None else self._cluster.breaches

    def tell_events(self) -> None:
        """Print what the nodes traced since the last time."""
        if self._cluster is None:
            return
        for node, event in self._cluster.events[self._events_told :]:
            words = self.event_words(node, event, in_brief=self.in_brief)
            if words is not None:
                self.lines.append(words if self.in_brief else f"  {words}")
        self._events_told = len(self._cluster.events)

    def hand(self, item: Item) -> None:
        """Deliver one message; print it (in brief: only when it is for a client), then what it led to."""
        if not self.in_brief or item[1] not in self.cluster.members:
            self.lines.append(self.message_words(*item))
        self.cluster.hand(*item)
        self.tell_events()

    def deliver(self, match: Matcher, *, once: bool = False) -> None:
        """Deliver the matching messages and those they cause, or only the first of them."""
        cluster = self.cluster
        for _ in range(_MESSAGES_MAX):
            item = next((item for item in cluster.queue if match(*item)), None)
            if item is None:
                return
            cluster.queue.remove(item)
            self.hand(item)
            if once:
                return
        raise CommandError("messages without end")

    def quietly(self, action: Callable[[], None]) -> None:
        """Do what delivers by itself, and print only what clients were told meanwhile."""
        told = {name: len(messages) for name, messages in self.cluster.inbox.items()}
        action()
        for name, messages in self.cluster.inbox.items():
            self.lines += [self.message_words(source, name, each) for source, each in messages[told.get(name, 0) :]]

    def node(self, name: str) -> str:
        """Return `name` when it is a member. Raise CommandError when it is not."""
        if name not in self.cluster.members:
            raise CommandError(f"there is no node {name!r}; there are {', '.join(self.cluster.members)}")
        return name

    def running(self, name: str) -> str:
        """Return `name` when it is a member that runs. Raise CommandError when it is not."""
        if self.node(name) not in self.cluster.nodes:
            raise CommandError(f"{name} is down; `restart {name}` starts it")
        return name

    def exactly(self, count: int, words: list[str], verb: str) -> list[str]:
        """Return `words` when there are `count` of them. Raise CommandError with the usage when not."""
        if len(words) != count:
            raise self.misused(verb)
        return words

    def misused(self, verb: str) -> CommandError:
        """Return the error that shows the usage of `verb`."""
        return CommandError(f"write `{self.usages()[verb]}`")

    def matcher(self, words: list[str]) -> Matcher:
        """Return what `words` match: links, kinds, and kinds behind `except`, which do not match."""
        links: list[tuple[str, str]] = []
        wanted: set[str] = set()
        unwanted: set[str] = set()
        kinds = wanted
        for word in words:
            found = LINK.match(word)
            if found:
                links.append((found["source"], found["target"]))
                links += [(found["target"], found["source"])] * (found["arrow"] == "--")
            elif word == "except":
                kinds = unwanted
            else:
                kinds.add(self._kind(word))

        def match(source: str, target: str, message: Any) -> bool:
            on_link = any(one in ("", source) and other in ("", target) for one, other in links) or not links
            names = self.kinds_of(message)
            return on_link and not names & unwanted and (not wanted or bool(names & wanted))

        return match

    def _kind(self, word: str) -> str:
        known = {str(message.__struct_config__.tag) for message in self.cluster.system.messages} | self.extra_kinds()
        if word not in known:
            raise CommandError(
                f"{word!r} is neither a link (athens->byzantium) nor a message: {', '.join(sorted(known))}"
            )
        return word


def options_in(words: list[str]) -> dict[str, str]:
    """Return the pairs `NAME=VALUE`. Raise CommandError for a word that is none."""
    pairs = [word.partition("=") for word in words]
    for name, equals, _ in pairs:
        if not equals:
            raise CommandError(f"{name!r} is not NAME=VALUE")
    return {name: value for name, _, value in pairs}


def duration_us(text: str) -> int:
    """Return the microseconds of `200ms`, `3s` or `50us`. Raise CommandError for anything else."""
    found = re.fullmatch(r"([+-]?\d+)(us|ms|s)", text)
    if found is None:
        raise CommandError(f"{text!r} is no duration; write 200ms, 3s or 50us")
    return int(found[1]) * _UNITS_US[found[2]]
