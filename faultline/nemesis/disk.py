"""Disks that refuse: `disk-full`, `disk-read-only`, `disk-stall`, `fsync-fail`; disks that damage data: `disk-corrupt`,
`disk-lost-write`, `disk-misdirect`, `disk-lying-fsync`.

A disk that is full, read-only or stalled takes no writes, each in a way that programs treat differently: ENOSPC may
pass, EROFS will not, and a write that hangs says nothing at all, so that only time-outs tell. A node may end by itself
then – many stores do, and rightly – and is started again when the disk is in order.

A disk turns read-only when its file system has found an error. Mending it is what an operator does: the node is
stopped, the disk checked and mounted again, the node started. A writer to a stalled disk hangs until the fault ends,
and then goes on as if nothing had been.

An fsync that fails is the error that programs handle worst. What it was to write down may be gone, and the next fsync
may say that all is well, since the kernel forgets what it could not write (Rebello et al., "Can Applications Recover
from fsync Failures?", USENIX ATC 2020). So a program that goes on as if nothing had been lies to its clients.

Only nodes that are up can be hit by these, as with `kill`, and nothing happens to the processes of a node while one of
them lasts: a process that hangs in a write cannot even be killed.

Damaged data is another matter: no call fails. A byte of a record changes, a unit was never written although the write
and its fsync were answered, or it was written in the place of another one; an fsync is answered before anything is
durable. Such a disk takes a copy away, so it is found only on nodes of the run's atlas (`faultline.nemesis.atlas`). The
process that runs has its pages in memory; the next one meets the damage, and may end by itself. When the fault ends,
what was written is put back, as an operator does from the mirror of a disk, and a node that has ended is started.
"""

from __future__ import annotations

from faultline.harness.world.faults import DiskState
from faultline.nemesis.standard import StandardNemesis, struck

__all__ = ["DISK_FAULTS"]


def _disk_fault(kind: str, state: DiskState, mark: str, summary: str) -> StandardNemesis[DiskState]:
    return StandardNemesis(
        kind=kind,
        summary=summary,
        mark=mark,
        setting=lambda _: state,
        description="made {setting} the disk of {nodes}{remark}",
        complaint="the disk of {target} is {seen} instead of {wanted}",
    )


FSYNC_FAIL = StandardNemesis(
    kind="fsync-fail",
    summary="lets fsync fail with EIO while everything else of the disk works",
    mark="fsyncs-failed",
    setting=struck,
    description="let fsync fail on {nodes}{remark}",
    complaint="no fsync failed on {missed}",
)


def _damage(kind: str, mark: str, summary: str, done: str) -> StandardNemesis[bool]:
    return StandardNemesis(
        kind=kind,
        summary=summary,
        mark=mark,
        setting=struck,
        description=f"{done} {{nodes}}{{remark}}",
        complaint="nothing was damaged on {missed}",
        aims_at_nodes_up=False,
        keeps_to_atlas=True,
    )


DISK_FAULTS = (
    _disk_fault("disk-full", "full", "disks-filled", "fills disks up: writes are answered with ENOSPC"),
    _disk_fault(
        "disk-read-only",
        "read-only",
        "disks-read-only",
        "lets disks turn read-only, as the kernel does after an error: writes are answered with EROFS",
    ),
    _disk_fault("disk-stall", "stalled", "disks-stalled", "lets disks stall: writers hang until it is over"),
    FSYNC_FAIL,
    _damage("disk-corrupt", "data-corrupted", "changes a byte of what is stored on disks", "changed a stored byte on"),
    _damage(
        "disk-lost-write",
        "writes-lost",
        "lets stored data vanish from disks, as a write that was answered and never carried out",
        "lost a write that was answered on",
    ),
    _damage(
        "disk-misdirect",
        "writes-misdirected",
        "lets a write that was answered stand in the place of other data",
        "misdirected a write on",
    ),
    _damage(
        "disk-lying-fsync",
        "fsyncs-lied",
        "lets disks answer fsyncs without syncing, so that a loss of power takes what was written since",
        "let fsync lie on",
    ),
)
"""Every fault of disks."""
