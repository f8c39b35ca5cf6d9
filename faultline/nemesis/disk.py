"""Power and disks: `power-off`, `disk-full`, `disk-read-only`, `disk-stall` and `fsync-fail`.

`power-off` is what `kill` only looks like on a real machine: not the processes end but the host, and what was not
synced is gone. Several hosts lose it in the same moment, as in one rack; a store that acknowledges only what a majority
has synced must survive even the loss of all. (The question of durability has been Jepsen's last since 2020, with
LazyFS; here the kernel's own file system forgets, see `faultline.harness.world.hosts.namespaces.disk`.)

A disk that is full, read-only or stalled takes no writes, each in a way that programs treat differently: ENOSPC may
pass, EROFS will not, and a write that hangs says nothing at all, so that only time-outs tell. A node may end by itself
then – many stores do, and rightly – and is started again when the disk is in order.

An fsync that fails is the error that programs handle worst. What it was to write down may be gone, and the next fsync
may say that all is well, since the kernel forgets what it could not write (Rebello et al., "Can Applications Recover
from fsync Failures?", USENIX ATC 2020); so whoever goes on as if nothing had been lies to its clients.

Only nodes that are up can be hit, as with `kill`, and nothing happens to the processes of a node while one of these
lasts: who hangs in a write cannot even be killed.
"""

from __future__ import annotations

from faultline.harness.nemesis import Injection
from faultline.harness.plan import PlannedFault
from faultline.harness.world.disk_faults import DiskState
from faultline.harness.world.faults import FaultPort
from faultline.harness.world.ports import NodeId
from faultline.nemesis.process import described, resolved

__all__ = ["DiskFull", "DiskReadOnly", "DiskStall", "FsyncFail", "PowerOff"]


class PowerOff:
    """The nemesis `power-off`: hosts lose power, and boot when the fault ends."""

    kind = "power-off"
    summary = "takes power from hosts: processes end at once, and what was not synced is lost"
    mark = "power-lost"
    needs = frozenset({"power-off"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Take the power from the hosts of the target."""
        resolution = resolved(port, fault, seed)
        if resolution.nodes:
            port.power_off([NodeId(node) for node in resolution.nodes])
        return Injection(nodes=resolution.nodes, description=described("took the power from", resolution))

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe hosts and processes; that the unsynced is lost shows when power is back, and is looked at then."""
        running = [node for node in injection.nodes if port.has_power(NodeId(node)) or port.is_alive(NodeId(node))]
        return f"still running: {' '.join(running)}" if running else None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """Without power nothing happens."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Boot the hosts and start their nodes."""
        for node in injection.nodes:
            if not port.has_power(NodeId(node)):
                port.power_on(NodeId(node))


class _DiskFault:
    """What the faults of disks have in common."""

    kind: str
    state: DiskState
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Strike the disks of the target."""
        resolution = resolved(port, fault, seed)
        for node in resolution.nodes:
            port.strike_disk(NodeId(node), self.state)
        return Injection(nodes=resolution.nodes, description=described(f"made {self.state} the disk of", resolution))

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe each disk with a write."""
        for node in injection.nodes:
            found = port.disk_state(NodeId(node))
            if found != self.state:
                return f"the disk of {node} is {found} instead of {self.state}"
        return None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """The disk stays as it is."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Mend the disks, and start the nodes that ended meanwhile."""
        for node in injection.nodes:
            port.mend_disk(NodeId(node))


class DiskFull(_DiskFault):
    """The nemesis `disk-full`: no room is left until the fault ends."""

    kind = "disk-full"
    state: DiskState = "full"
    summary = "fills disks up: writes are answered with ENOSPC"
    mark = "disks-filled"
    needs = frozenset({"disk-full"})


class DiskReadOnly(_DiskFault):
    """The nemesis `disk-read-only`: the file system found an error, and takes no more writes until it is mended.

    Mending is what an operator does: the node is stopped, the disk checked and mounted again, the node started.
    """

    kind = "disk-read-only"
    state: DiskState = "read-only"
    summary = "lets disks turn read-only, as the kernel does after an error: writes are answered with EROFS"
    mark = "disks-read-only"
    needs = frozenset({"disk-read-only"})


class DiskStall(_DiskFault):
    """The nemesis `disk-stall`: whoever writes hangs until the fault ends, and then goes on as if nothing had been."""

    kind = "disk-stall"
    state: DiskState = "stalled"
    summary = "lets disks stall: writers hang until it is over"
    mark = "disks-stalled"
    needs = frozenset({"disk-stall"})


class FsyncFail:
    """The nemesis `fsync-fail`: every fsync is answered with an error until the fault ends."""

    kind = "fsync-fail"
    summary = "lets fsync fail with EIO while everything else of the disk works"
    mark = "fsyncs-failed"
    needs = frozenset({"fsync-fail"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Let the fsyncs of the target fail."""
        resolution = resolved(port, fault, seed)
        for node in resolution.nodes:
            port.fail_syncs(NodeId(node))
        return Injection(nodes=resolution.nodes, description=described("let fsync fail on", resolution))

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe whether an fsync of each was answered so."""
        missed = [node for node in injection.nodes if not port.syncs_fail(NodeId(node))]
        return f"no fsync failed on {' '.join(missed)}" if missed else None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """They go on failing."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Let fsyncs be carried out, and start the nodes that ended meanwhile."""
        for node in injection.nodes:
            port.allow_syncs(NodeId(node))
