"""A simulated host: carries one node (or client) through starts, crashes and pauses, and releases its effects in order.

The host is the *driver* of the node's ports. It keeps the outbox: messages sent after an fsync wait until that fsync is
done, fsyncs that are asked for while one is under way share the next one, and a crash drops what is still waiting. When
a crash falls into an fsync, the weather decides whether the fsync had just become durable and how many of the waiting
messages had already left: a crash can fall between any two effects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from faultline.harness.world.ports import Node, NodeId, Storage
from faultline.harness.world.simulated.clock import SimulatedClock
from faultline.harness.world.simulated.failing_disk import FailingDisk
from faultline.harness.world.simulated.latent_damage import Damage
from faultline.harness.world.simulated.network import SimulatedNetwork
from faultline.harness.world.simulated.scheduler import Scheduler
from faultline.harness.world.simulated.storage import Disk, DiskSync, SimulatedDisk
from faultline.harness.world.simulated.trace import SimulatedTrace
from faultline.harness.world.weather import draw, salt, uniform

__all__ = ["BuildNode", "SimulatedHost", "SimulatedTimer"]

BuildNode = Callable[["SimulatedHost"], Node]


class SimulatedTimer:
    """A timer of one incarnation of a node. A paused node's timer waits, a dead one's is forgotten."""

    __slots__ = ("callback", "host", "incarnation", "interval_us")

    def __init__(self, host: SimulatedHost, callback: Callable[[], None], interval_us: int) -> None:
        self.host = host
        self.callback: Callable[[], None] | None = callback
        self.incarnation = host.incarnation
        self.interval_us = interval_us

    def cancel(self) -> None:
        self.callback = None

    @property
    def is_due(self) -> bool:
        """True when a ring now would call the node."""
        host = self.host
        return self.callback is not None and self.incarnation == host.incarnation and not host.paused

    def skip(self) -> None:
        """Skip this ring; a timer that repeats rings again after its interval."""
        if self.interval_us:
            self.host.set_timer(self, self.interval_us)

    def fire(self) -> None:
        host, callback = self.host, self.callback
        if callback is None or self.incarnation != host.incarnation:
            return
        if host.paused:
            host.deferred.append((self.fire, ()))
            return
        host.guard(callback)
        if self.interval_us and self.callback is not None and self.incarnation == host.incarnation:
            host.set_timer(self, self.interval_us)


class SimulatedHost:
    """One machine with one process; implements all of the node's ports itself, each under the port's own name."""

    def __init__(
        self,
        name: str,
        *,
        scheduler: Scheduler,
        network: SimulatedNetwork,
        trace: SimulatedTrace,
        seed: int,
        drift_ppm: int = 0,
        fsync_us: tuple[int, int] = (0, 0),
        disk: Disk | None = None,
    ) -> None:
        self.node_id = NodeId(name)
        self.scheduler = scheduler
        self.clock = SimulatedClock(scheduler, drift_ppm)
        self.disk = FailingDisk(SimulatedDisk() if disk is None else disk, salt(seed, "full-disk", name))
        self.storage: Storage = _StoragePort(self)
        self.links = network.links_from(name)
        self.network = _NetworkPort(self)
        self.timers = _TimersPort(self)
        self.random = _RandomPort(self, seed)
        self.trace = trace.port(name)
        self.node: Node | None = None
        self.incarnation = 0
        self.ended_by_itself = False
        self.paused = False
        self.deferred: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self.on_crash: Callable[[str, BaseException], None] = _raise
        self._fsync_us = fsync_us
        self._disk_salt = salt(seed, "disk", name)
        self._syncs_wanted = 0
        self._syncs_done = 0
        self._sync: DiskSync | None = None
        self._sync_covers = 0
        self._sync_hangs = False
        self._waiting: deque[tuple[int, NodeId, Any]] = deque()
        network.register(name, self.deliver)

    def start(self, build: BuildNode) -> None:
        """Start the process: a node with empty memory over what the disk still holds."""
        assert self.node is None, f"{self.node_id} already runs"
        self.disk.begin_process()
        self.storage = _StoragePort(self)
        self.ended_by_itself = False
        self.node = build(self)
        self.guard(self.node.start)

    def kill(self, *, power_off: bool = False) -> None:
        """End the process at once; the disk keeps what was durable and, by the weather, a little more.

        Every other kill is a loss of power, as it always is where the disk does not tell the two apart.
        """
        if self.node is None:
            return
        now_us = self.scheduler.now_us
        if self._waiting and self._sync is not None and draw(self._disk_salt ^ 2, now_us) & 1:
            self._release_a_prefix(now_us)
        process_only = not power_off and draw(self._disk_salt ^ 64, now_us) & 1 == 0
        self.disk.crash(self._disk_salt, now_us, process_only=process_only)
        self.node = None
        self.incarnation += 1
        self.paused = False
        self.deferred.clear()
        self._waiting.clear()
        self._syncs_wanted = self._syncs_done = 0
        self._sync = None
        self._sync_hangs = False

    def pause(self) -> None:
        """Stop the process where it stands."""
        self.paused = self.node is not None

    def resume(self) -> None:
        """Go on: everything that came due meanwhile happens now, in its original order."""
        if self.paused:
            self.paused = False
            deferred, self.deferred = self.deferred, []
            for action, arguments in deferred:
                self.scheduler.at(0, action, *arguments)

    def deliver(self, source: NodeId, message: Any) -> None:
        """Hand a message that arrived to the node; a dead node's are lost, a paused one's wait."""
        node = self.node
        if node is None:
            return
        if self.paused:
            self.deferred.append((self._deliver_to, (self.incarnation, source, message)))
            return
        try:
            node.receive(source, message)
        except (Exception, SystemExit) as error:
            self._die_of(error)

    def guard(self, action: Callable[[], None]) -> None:
        """Call the node's code; an exception in it is a crash of the process, and so is a call of sys.exit."""
        try:
            action()
        except (Exception, SystemExit) as error:
            self._die_of(error)

    def _deliver_to(self, incarnation: int, source: NodeId, message: Any) -> None:
        if incarnation == self.incarnation:
            self.deliver(source, message)

    def _die_of(self, error: BaseException) -> None:
        self.kill()
        self.ended_by_itself = True
        self.on_crash(self.node_id, error)

    def send(self, to: NodeId, message: Any) -> None:
        if self._syncs_wanted == self._syncs_done:
            self.links[to].send(message)
        else:
            self._waiting.append((self._syncs_wanted, to, message))

    def fsync(self, file: str) -> None:
        self.disk.want_sync(file)
        self._wait_for_sync()

    def fsync_folder(self) -> None:
        if self.disk.want_folder_sync():
            self._wait_for_sync()

    def _wait_for_sync(self) -> None:
        self._syncs_wanted += 1
        if self._sync is None:
            self._begin_sync()

    def _begin_sync(self) -> None:
        now_us = self.scheduler.now_us
        self._sync = self.disk.begin_sync()
        self._sync_covers = self._syncs_wanted
        done_us = now_us + uniform(self._disk_salt ^ 4, now_us, *self._fsync_us)
        self.scheduler.at(done_us, self.end_sync, self.incarnation)

    def end_sync(self, incarnation: int) -> None:
        """End the fsync that `incarnation` began: its data are durable, and the messages behind it leave."""
        if incarnation != self.incarnation or self._sync is None:
            return
        if self.disk.state == "stalled":
            self._sync_hangs = True
            return
        if self.paused:
            self.deferred.append((self.end_sync, (incarnation,)))
            return
        self._sync.finish()
        self._sync = None
        self._syncs_done = covered = self._sync_covers
        waiting = self._waiting
        while waiting and waiting[0][0] <= covered:
            _, to, message = waiting.popleft()
            self.links[to].send(message)
        if self._syncs_wanted > covered:
            self._begin_sync()

    def mend_disk(self) -> None:
        """Serve every write again, and end the fsync that hung."""
        self.disk.state = "well"
        if self._sync_hangs:
            self._sync_hangs = False
            self.scheduler.at(self.scheduler.now_us, self.end_sync, self.incarnation)

    def damage_disk(self, damage: Damage) -> None:
        """Damage a place of what is durable on the disk."""
        self.disk.damage_data(damage, self._disk_salt, self.scheduler.now_us)

    def syncs_now(self, incarnation: int) -> bool:
        """Return whether the fsync that this incarnation began may end now."""
        return incarnation == self.incarnation and self._sync is not None and not self.paused

    def put_off_sync(self) -> None:
        """End the fsync under way without any effect: the next one makes its data durable and releases its messages."""
        assert self._sync is not None, "only an fsync under way is put off"
        self._sync.put_off()
        self._sync = None
        if self._syncs_wanted > self._sync_covers:
            self._begin_sync()

    def _release_a_prefix(self, now_us: int) -> None:
        """Let the fsync end and some of the messages behind it leave just before the crash."""
        assert self._sync is not None, "there is an fsync under way that can have ended"
        self._sync.finish()
        ready = [(to, message) for covers, to, message in self._waiting if covers <= self._sync_covers]
        for to, message in ready[: uniform(self._disk_salt ^ 8, now_us, 0, len(ready) + 1)]:
            self.links[to].send(message)

    def set_timer(self, timer: SimulatedTimer, delay_us: int) -> None:
        scheduler = self.scheduler
        scheduler.at(scheduler.now_us + self.clock.true_delay_us(delay_us), timer.fire)


class _NetworkPort:
    __slots__ = ("_links", "send")

    def __init__(self, host: SimulatedHost) -> None:
        self.send = host.send
        self._links = host.links

    def send_ahead(self, to: NodeId, message: Any) -> None:
        self._links[to].send(message)


class _TimersPort:
    __slots__ = ("_host",)

    def __init__(self, host: SimulatedHost) -> None:
        self._host = host

    def after(self, delay_us: int, callback: Callable[[], None]) -> SimulatedTimer:
        timer = SimulatedTimer(self._host, callback, 0)
        self._host.set_timer(timer, delay_us)
        return timer

    def every(self, interval_us: int, callback: Callable[[], None]) -> SimulatedTimer:
        timer = SimulatedTimer(self._host, callback, interval_us)
        self._host.set_timer(timer, interval_us)
        return timer


class _StoragePort:
    def __init__(self, host: SimulatedHost) -> None:
        disk = host.disk
        self.files = disk.files
        self.read = disk.read
        self.append = disk.append
        self.write = disk.write
        self.truncate = disk.truncate
        self.rename = disk.rename
        self.delete = disk.delete
        self.fsync = host.fsync
        self.fsync_folder = host.fsync_folder


class _RandomPort:
    __slots__ = ("_host", "_salts", "_seed")

    def __init__(self, host: SimulatedHost, seed: int) -> None:
        self._host = host
        self._seed = seed
        self._salts: dict[str, int] = {}

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        stream_salt = self._salts.get(stream)
        if stream_salt is None:
            stream_salt = self._salts[stream] = salt(self._seed, "node", self._host.node_id, stream)
        return uniform(stream_salt, self._host.scheduler.now_us, low_us, high_us)


def _raise(_node: str, error: BaseException) -> None:
    raise error
