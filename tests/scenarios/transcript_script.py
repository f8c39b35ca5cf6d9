"""A transcript being played: the cluster it plays on, the table of commands, and how their arguments are read."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable
from typing import Any

from cluster_driver import Client, Cluster, Matcher
from transcript_format import CommandError
from transcript_words import event_words, kinds_of, message_words

Item = tuple[str, str, Any]

_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
LINK = re.compile(r"^(?P<source>\w*)(?P<arrow>->|--)(?P<target>\w*)$")


class Script:
    """One transcript being played: its cluster, its clients, the messages it holds back."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self.clients: dict[str, Client] = {}
        self.held: dict[str, list[Item]] = {}
        self.lines: list[str] = []
        self.in_brief = False
        self.breaches_shown = False
        self._events_told = 0

    @property
    def cluster(self) -> Cluster:
        if self._cluster is None:
            raise CommandError("there is no cluster yet; the first command is `cluster 3`")
        return self._cluster

    def execute(self, line: str) -> list[str]:
        """Carry out one command line; what it prints."""
        verb, *words = shlex.split(line)
        if verb not in COMMANDS:
            near = difflib.get_close_matches(verb, COMMANDS, 1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise CommandError(f"there is no command {verb!r}. {hint}There are {', '.join(sorted(COMMANDS))}.")
        self.lines = []
        self.in_brief = verb not in ("deliver", "release")
        COMMANDS[verb](self, words)
        self.tell_events()
        return self.lines

    def tell_events(self) -> None:
        """Print what the nodes reported since the last time."""
        if self._cluster is None:
            return
        for node, event in self._cluster.events[self._events_told :]:
            words = event_words(node, event, in_brief=self.in_brief)
            if words is not None:
                self.lines.append(words if self.in_brief else f"  {words}")
        self._events_told = len(self._cluster.events)

    def begin(self, cluster: Cluster) -> None:
        """Play on `cluster` from now on."""
        self.finish()
        self._cluster = cluster
        self.clients.clear()
        self.held.clear()
        self.breaches_shown = False
        self._events_told = len(cluster.events)

    def finish(self) -> None:
        """Raise CommandError when an invariant was broken that the story did not show, planted bugs excepted."""
        cluster = self._cluster
        if cluster is not None and cluster.broken() and not (cluster.planted_bugs or self.breaches_shown):
            raise CommandError(f"{', '.join(cluster.broken())} broken; `show breaches` tells how")

    def hand(self, item: Item) -> None:
        """Deliver one message; print it (in brief: only when it is for a client), then what it led to."""
        if not self.in_brief or item[1] not in self.cluster.members:
            self.lines.append(message_words(*item))
        self.cluster.hand(*item)
        self.tell_events()

    def deliver(self, match: Matcher, *, once: bool = False) -> None:
        """Deliver the matching messages and those they cause, or only the first of them."""
        cluster = self.cluster
        for _ in range(10_000):
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
            self.lines += [message_words(source, name, each) for source, each in messages[told.get(name, 0) :]]

    def node(self, name: str) -> str:
        """`name`, when it is a member. Raises CommandError."""
        if name not in self.cluster.members:
            raise CommandError(f"there is no node {name!r}; there are {', '.join(self.cluster.members)}")
        return name

    def running(self, name: str) -> str:
        """`name`, when it is a member that runs. Raises CommandError."""
        if self.node(name) not in self.cluster.nodes:
            raise CommandError(f"{name} is down; `restart {name}` starts it")
        return name

    def client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client(self.cluster, name))


Command = Callable[[Script, list[str]], None]
COMMANDS: dict[str, Command] = {}
HELP: dict[str, str] = {}


def command(usage: str) -> Callable[[Command], Command]:
    """Makes a function a command; `usage` is its name and its arguments."""

    def named(function: Command) -> Command:
        verb = usage.split()[0]
        COMMANDS[verb] = function
        HELP[verb] = usage
        return function

    return named


def exactly(count: int, words: list[str], verb: str) -> list[str]:
    if len(words) != count:
        raise CommandError(f"write `{HELP[verb]}`")
    return words


def options_in(words: list[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for name, equals, _ in pairs:
        if not equals:
            raise CommandError(f"{name!r} is not NAME=VALUE")
    return {name: value for name, _, value in pairs}


def duration_us(text: str) -> int:
    found = re.fullmatch(r"([+-]?\d+)(us|ms|s)", text)
    if found is None:
        raise CommandError(f"{text!r} is no duration; write 200ms, 3s or 50us")
    return int(found[1]) * _UNITS_US[found[2]]


def matcher(script: Script, words: list[str]) -> Matcher:
    """`athens->byzantium`, `athens->`, `->byzantium`, `athens--byzantium` (both ways); kinds; `except` kinds."""
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
            kinds.add(_kind(script, word))

    def match(source: str, target: str, message: Any) -> bool:
        on_link = any(one in ("", source) and other in ("", target) for one, other in links) or not links
        names = kinds_of(message)
        return on_link and not names & unwanted and (not wanted or bool(names & wanted))

    return match


def _kind(script: Script, word: str) -> str:
    known = {str(message.__struct_config__.tag) for message in script.cluster.system.messages}
    known |= {"entries", "heartbeat"}
    if word not in known:
        raise CommandError(f"{word!r} is neither a link (athens->byzantium) nor a message: {', '.join(sorted(known))}")
    return word
