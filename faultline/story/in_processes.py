"""Clusters whose nodes are processes of the operating system: real files, TCP over loopback, and SIGKILL for a crash.

The scenes of the story are the same: which message arrives when, which timer rings and what clocks show is decided by
the scene, and this process is the network between the nodes. So every paragraph can be told, those with an exact order
of messages and those with clocks five minutes apart, too. What a node does between two messages is done in its process,
on its disk: a crash loses exactly what was not synced.

What it does not show: timers and clocks of the machine, and messages that cross without the scene. The local world of
runs has both (`harness/world/local`).
"""

from __future__ import annotations

import multiprocessing
import secrets
import tempfile
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection, Listener
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from faultline.harness.errors import HarnessError
from faultline.harness.world.message_codec import MessageCodec
from faultline.harness.world.ports import NodeId, NodeStatus
from faultline.story import node_process
from faultline.story.node_process import Answer, Asked, Order, coded
from faultline.testing.fake_ports import FakeTimer
from faultline.testing.hand_cranked import HandCrankedCluster

__all__ = ["InProcesses", "Processes"]

_HOST = "127.0.0.1"
_PRELOADED = ["faultline.story.node_process", "faultline.story.telling"]
_END_S = 5.0


class Processes:
    """The processes of a telling: how many were started, and how many of them a crash of the scene killed."""

    def __init__(self) -> None:
        self.started = 0
        self.crashed = 0

    def placed(self, kind: type[Any]) -> type[Any]:
        """Return the class of clusters of this kind whose nodes are processes."""
        return type(f"{kind.__name__}InProcesses", (InProcesses, kind), {"processes": self})


class _NodeInProcess:
    """A node as the cluster holds it: each step is carried out in the node's process."""

    def __init__(self, cluster: InProcesses, order: Order, listener: Listener) -> None:
        self._cluster = cluster
        self._name = order.name
        self._ports = cluster.ports[NodeId(order.name)]
        self._codec = MessageCodec(order.system.messages)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        self._process: BaseProcess = context.Process(target=node_process.serve, args=(order,), daemon=True)
        self._process.start()
        cluster.processes.started += 1
        self._line: Connection = listener.accept()

    def start(self) -> None:
        """Start the node."""
        self._ask(node_process.start)

    def receive(self, source: NodeId, message: Any) -> None:
        """Deliver a message."""
        self._ask(node_process.receive, source, coded(self._codec, message))

    def status(self) -> NodeStatus:
        """Return what the node says of itself."""
        status: NodeStatus = self.look(_status)
        return status

    def look(self, view: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `view` sees of the node, in its process."""
        return self._ask(node_process.look, view, *arguments)

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process is gone."""
        self._line.close()
        self._process.kill()
        self._process.join(_END_S)

    def _ask(self, act: Callable[..., Any], *arguments: Any) -> Any:
        ports = self._ports
        try:
            self._line.send(Asked(act, arguments, ports.now_us, ports.wall_offset_us))
            answer: Answer = self._line.recv()
        except (EOFError, OSError) as error:
            self._process.join(_END_S)
            raise HarnessError(
                f"The process of {self._name} ended by itself, with code {self._process.exitcode} ({error!r}).",
                "Its traceback stands above, if it left one; tell the scene without --world local to see the same node"
                " in one process.",
            ) from error
        for kind, what in answer.effects:
            self._take(kind, what)
        ports.waiting = [
            FakeTimer(timer.due_us, timer.interval_us, partial(self._ask, node_process.ring, timer.number))
            for timer in answer.timers
        ]
        if answer.error is not None:
            raise answer.error
        return answer.result

    def _take(self, kind: str, what: Any) -> None:
        if kind == "post":
            target, message = what
            self._cluster.post(self._name, target, self._codec.decode(message))
        elif kind == "observe":
            self._cluster.observe(self._name, what)
        else:
            self._cluster.marks.append(what)


class InProcesses(HandCrankedCluster):
    """The part of a cluster that differs when its nodes are processes; `Processes.placed` puts it in front of one."""

    processes: Processes

    def start(self, name: str) -> None:
        """Start a process for the node, over the files in its folder."""
        if "_folder" not in self.__dict__:
            self._folder = tempfile.TemporaryDirectory(prefix="faultline-story-")
            self._key = secrets.token_bytes(32)
            self._listener = Listener((_HOST, 0), authkey=self._key)
        offsets: dict[str, int] = getattr(self, "timeout_offset_us", {})
        order = Order(
            address=self._listener.address,
            key=self._key,
            system=self.system,
            name=name,
            members=self.members,
            options=self.options,
            planted_bugs=self.planted_bugs,
            ports_type=self.ports_type,
            timeout_offset_us=offsets.get(name, 0),
            folder=Path(self._folder.name) / name,
        )
        self.nodes[name] = node = _NodeInProcess(self, order, self._listener)
        node.start()

    def kill(self, name: str) -> None:
        """Kill the process of the node, and lose its timers and the messages on their way to it."""
        self.processes.crashed += 1
        self.nodes.pop(name).kill()
        self.ports[NodeId(name)].forget_timers()
        self.drop(lambda _, target, __: target == name)

    def look(self, name: str, view: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `view` sees of the node."""
        return self.nodes[name].look(view, *arguments)

    def close(self) -> None:
        """End all processes, and remove their files."""
        for node in self.nodes.values():
            if isinstance(node, _NodeInProcess):
                node.kill()
        self.nodes.clear()
        self._listener.close()
        self._folder.cleanup()


def _status(node: Any) -> NodeStatus:
    status: NodeStatus = node.status()
    return status
