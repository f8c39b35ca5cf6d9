"""The local world: a run on processes of this machine, joined by loopback TCP through proxies."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.harness.history import EventSink
from faultline.harness.parts import Parts, refuse_what_cannot_run
from faultline.harness.plan import Plan
from faultline.harness.run_record import RunRecord
from faultline.harness.world.faults import LOCAL_CAPABILITIES
from faultline.harness.world.local.cluster import LocalCluster
from faultline.harness.world.local.fault_port import local_fault_port
from faultline.harness.world.local.run import RealRun

__all__ = ["make_nodes_folder", "run_local"]


def run_local(
    plan: Plan,
    parts: Parts,
    *,
    folder: Path,
    sink: EventSink | None = None,
    progress: Callable[[str], None] | None = None,
) -> RunRecord:
    """Carry out `plan` on processes of this machine, with node logs, traces and data under `folder`/nodes.

    `sink` receives the history's lines as they happen, `progress` a sentence now and then. Ctrl-C once ends the run
    early with `interrupted` set in the record. Raises UsageError for a plan this world cannot carry out, HarnessError
    when the cluster does not come up.
    """
    refuse_what_cannot_run(plan, parts, frozenset(LOCAL_CAPABILITIES), "local")
    make_nodes_folder(folder)
    cluster = LocalCluster(plan, parts.system_path, folder)
    run = RealRun(
        plan,
        parts,
        cluster,
        lambda loop: local_fault_port(cluster, loop),
        world="local",
        sink=sink,
        progress=progress,
    )
    return asyncio.run(run.carry_out())


def make_nodes_folder(folder: Path) -> None:
    """Make the run's `folder`, without anything that nodes of an earlier run left there. Raises HarnessError."""
    try:
        # A node that recovered the log of an earlier run would answer with values that no client of this one wrote.
        shutil.rmtree(folder / "nodes", ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HarnessError(f"The folder {folder} cannot be made: {error}.", "Choose another --output.") from error
