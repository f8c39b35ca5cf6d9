"""One node as an operating-system process: `python -m faultline.harness.world.local.node_process CONFIG.json`.

Its standard input is the control channel to the harness (see `control`), which begins with the secret of the run; when
it carries one direction only, answers go to descriptor 3. The process has no life of its own: it ends when the harness
does, even when it is stopped at that moment. A handler that raises and a disk that refuses an fsync end it too, as they
would end a server that takes its own errors seriously; the reason is in its log.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import socket
import stat
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from faultline.harness.system import NodeSystem
from faultline.harness.world.framing import FrameDecoder
from faultline.harness.world.local.channel import HOST, Address
from faultline.harness.world.local.clock import ClockSetting, SkewedClock
from faultline.harness.world.local.control import (
    Answer,
    AskStatus,
    ClockReading,
    Question,
    SetClock,
    Started,
    StatusReply,
    decode_question,
    encode_control,
)
from faultline.harness.world.local.handshake import SECRET_BYTES, RunSecret
from faultline.harness.world.local.network import NodeNetwork
from faultline.harness.world.local.outbox import Outbox
from faultline.harness.world.local.ports import RealPorts
from faultline.harness.world.local.random_source import WeatherRandom
from faultline.harness.world.local.storage import BufferedStorage, Disk
from faultline.harness.world.local.timers import ClockTimers
from faultline.harness.world.local.trace import FileTrace
from faultline.harness.world.message_codec import MessageCodec
from faultline.harness.world.ports import Node, NodeId

__all__ = ["ANSWERS_DESCRIPTOR", "NodeConfig", "load_system", "main"]

ANSWERS_DESCRIPTOR = 3
"""The destination of answers on the control channel when standard input is no socket."""
EXIT_HARNESS_GONE = 71
EXIT_CRASHED = 70


class NodeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """All a node process is told at its start.

    `peers` are the addresses under which it reaches the other nodes, `fsync_us` the least and the longest time that
    its disk makes an fsync wait before it is carried out, `listen` is where others find it (port 0: any free one).
    `harness_pid` is the process it was started by and dies with; 0 on a host, where the control channel is its life.
    """

    node_id: str
    members: tuple[str, ...]
    peers: dict[str, Address]
    system_path: str
    options: dict[str, str]
    planted_bugs: tuple[str, ...]
    seed: int
    data_folder: str
    trace_file: str
    harness_pid: int
    clock: ClockSetting
    fsync_us: tuple[int, int] = (0, 0)
    listen: Address = (HOST, 0)


def load_system(path: str) -> NodeSystem:
    """Return the system at `module:attribute`; a class is instantiated, an instance taken as it is."""
    module, _, attribute = path.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    system: NodeSystem = found() if isinstance(found, type) else found
    return system


class _ControlProtocol(asyncio.Protocol):
    """The node's end of the control channel."""

    def __init__(self, node: Node, clock: SkewedClock, timers: ClockTimers) -> None:
        self._node = node
        self._clock = clock
        self._timers = timers
        self._decoder = FrameDecoder()
        self._answers: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            self.answer_through(transport)

    def answer_through(self, answers: asyncio.WriteTransport) -> None:
        self._answers = answers

    def data_received(self, data: bytes) -> None:
        for payload in self._decoder.feed(data):
            self.answer(decode_question(payload))

    def connection_lost(self, exc: Exception | None) -> None:
        _end(EXIT_HARNESS_GONE)

    def tell(self, message: Answer) -> None:
        assert self._answers is not None
        self._answers.write(encode_control(message))

    def answer(self, question: Question) -> None:
        if isinstance(question, AskStatus):
            self.tell(StatusReply(question.number, self._node.status()))
            return
        if isinstance(question, SetClock):
            self._clock.set(question.setting)
            self._timers.clock_changed()
        true_us = self._clock.true_us()
        self.tell(ClockReading(question.number, self._clock.wall_us(), true_us, self._clock.setting.rate_ppm))


async def _run(config: NodeConfig, secret: RunSecret) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_crash)
    system = load_system(config.system_path)
    node_id = NodeId(config.node_id)
    clock = SkewedClock(config.clock)
    random = WeatherRandom(config.seed, node_id, clock)
    disk = Disk(Path(config.data_folder), lambda: random.uniform_us("disk", *config.fsync_us))
    timers = ClockTimers(loop, clock)
    outbox = Outbox(loop, ThreadPoolExecutor(1, "disk"), disk.carry_out, _disk_failed)
    network = NodeNetwork(
        node_id,
        secret,
        {NodeId(peer): address for peer, address in config.peers.items()},
        MessageCodec(system.messages),
        outbox,
        lambda source, message: node.receive(source, message),
    )
    ports = RealPorts(
        node_id=node_id,
        clock=clock,
        network=network,
        timers=timers,
        storage=BufferedStorage(outbox.commit, disk.content()),
        random=random,
        trace=FileTrace(node_id, Path(config.trace_file)),
    )
    node = system.node(ports, tuple(map(NodeId, config.members)), config.options, frozenset(config.planted_bugs))
    network.connect()
    node.start()
    port = await _listen(network, *config.listen)
    control = _ControlProtocol(node, clock, timers)
    await _open_control(loop, control)
    control.tell(Started(port))
    _log(f"{node_id}: process {os.getpid()} listens on {config.listen[0]}:{port}")
    await loop.create_future()


async def _listen(network: NodeNetwork, host: str, port: int) -> int:
    try:
        return (await network.listen(host, port))[1]
    except OSError as error:
        _log(
            f"cannot listen on {host}:{port}: {error.strerror or error}. If that is no address of this machine, "
            "name one of its own as listen_address in the host file."
        )
        _end(EXIT_CRASHED)
        raise


async def _open_control(loop: asyncio.AbstractEventLoop, control: _ControlProtocol) -> None:
    if stat.S_ISSOCK(os.fstat(0).st_mode):
        await loop.connect_accepted_socket(lambda: control, socket.socket(fileno=os.dup(0)))
        return
    # Started over SSH: a pipe for each direction, and standard output is the log.
    answers, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(ANSWERS_DESCRIPTOR, "wb"))
    control.answer_through(answers)
    await loop.connect_read_pipe(lambda: control, os.fdopen(os.dup(0), "rb"))


def _crash(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    _log(f"crashed: {context.get('message')}")
    error = context.get("exception")
    if error is not None:
        traceback.print_exception(error)
    _end(EXIT_CRASHED)


def _disk_failed(error: BaseException) -> None:
    _log(f"crashed: the disk refused: {error}")
    _end(EXIT_CRASHED)


def _log(sentence: str) -> None:
    """Print a line of the node's log, with the machine's time: a report puts the logs of all nodes into one order."""
    print(f"{datetime.now(UTC).isoformat(timespec='microseconds')} {sentence}", flush=True)


def _end(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    # No clean-up of any kind: what is not fsynced is lost, as in any other crash.
    os._exit(code)


def _read_secret() -> RunSecret:
    """Return the secret of the run: the first bytes of standard input, which only the harness can write to."""
    key = b""
    while len(key) < SECRET_BYTES:
        part = os.read(0, SECRET_BYTES - len(key))
        if not part:
            _end(EXIT_HARNESS_GONE)
        key += part
    return RunSecret(key)


def _die_with(harness_pid: int) -> None:
    """Ask the kernel (Linux) to kill this process when the harness ends: the lifeline cannot wake a stopped process."""
    if harness_pid and sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != harness_pid:
            _end(EXIT_HARNESS_GONE)


def main(arguments: list[str]) -> None:
    """Run the node that the configuration file in `arguments` describes; never returns normally."""
    config = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=NodeConfig)
    _die_with(config.harness_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        asyncio.run(_run(config, _read_secret()))
    except BaseException:
        traceback.print_exc()
        _end(EXIT_CRASHED)


if __name__ == "__main__":
    main(sys.argv[1:])
