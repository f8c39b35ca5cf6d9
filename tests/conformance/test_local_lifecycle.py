"""After each end of a local run, its processes, sockets and threads are gone; a failed cluster says where to look."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from toy_run import fault, operation, parts, plan, run

from faultline.harness.errors import HarnessError
from faultline.harness.plan import PlannedFault
from faultline.harness.world.local.cluster import NodeCluster
from faultline.harness.world.local.world import run_local
from faultline.reports.node_logs import LogLine, node_logs_excerpt

pytestmark = pytest.mark.real

HARNESS = Path(__file__).with_name("run_until_stopped.py")
SHORT = plan(operation(0, "append", 1), heal_ms=50)


def exists(process_id: int) -> bool:
    """Return whether there is such a process; a zombie does not count."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(process_ids: list[int]) -> list[int]:
    """Wait for the processes to end; those that did not within ten seconds."""
    deadline_s = time.monotonic() + 10
    while any(map(exists, process_ids)) and time.monotonic() < deadline_s:
        threading.Event().wait(0.01)
    return [process_id for process_id in process_ids if exists(process_id)]


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A running harness of its own process, and the ids of its nodes, one of them paused."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", str(HARNESS), str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        text=True,
    ) as process:
        assert process.stdout is not None
        word, *nodes = process.stdout.readline().split()
        assert word == "ready"
        try:
            yield process, list(map(int, nodes))
        finally:
            process.kill()


def test_ctrl_c_once_ends_the_run_early_and_keeps_what_was_recorded(
    harness: tuple[subprocess.Popen[str], list[int]],
) -> None:
    process, nodes = harness
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    word, interrupted, operations, *rest = output.split()
    assert (word, interrupted, rest) == ("ended", "True", ["[]", "0"])
    assert 0 < int(operations) < 600
    assert process.returncode == 0
    assert wait_until_gone(nodes) == []


def test_nodes_die_with_a_harness_that_is_killed_even_when_they_are_paused(
    harness: tuple[subprocess.Popen[str], list[int]],
) -> None:
    process, nodes = harness
    assert len(nodes) == 3
    process.kill()
    process.wait(10)
    assert wait_until_gone(nodes) == []


def test_a_run_leaves_no_descriptors_and_no_threads_behind(tmp_path: Path) -> None:
    kill = fault("kill", 20, 60, "byzantium")
    busy = plan(*[operation(10 * n, "append", n, worker=n % 3) for n in range(10)], faults=(kill,), heal_ms=200,
                end_ms=900)  # fmt: skip
    run("local", SHORT, tmp_path / "warm-up")
    descriptors, threads = set(os.listdir("/proc/self/fd")), set(threading.enumerate())
    run("local", busy, tmp_path / "run")
    # What others left may end meanwhile; nothing may be added.
    assert set(os.listdir("/proc/self/fd")) <= descriptors
    assert set(threading.enumerate()) <= threads


def test_a_node_that_cannot_be_built_ends_the_run_with_its_reason_and_its_log(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="another planet") as caught:
        run_local(SHORT, parts("BrokenSystem"), folder=tmp_path)
    assert str(tmp_path / "nodes" / "athens" / "node.log") in caught.value.next_step


def test_a_cluster_without_a_leader_is_an_error_that_names_the_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NodeCluster, "serving_timeout_s", 0.2)
    with pytest.raises(HarnessError, match="No node became leader") as caught:
        run_local(SHORT, parts("LeaderlessSystem"), folder=tmp_path)
    assert all(f"nodes/{node}/node.log" in caught.value.next_step for node in SHORT.nodes)


def test_a_folder_that_cannot_be_made_is_an_error_with_a_next_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(HarnessError, match="cannot be made"):
        run_local(SHORT, parts(), folder=tmp_path / "file" / "run")


def test_a_history_that_cannot_be_written_costs_the_file_and_is_told_with_the_reason(tmp_path: Path) -> None:
    def full_disk(line: bytes) -> None:
        raise OSError("no space left on device")

    record = run_local(SHORT, parts(), folder=tmp_path, sink=full_disk)
    assert len(record.history) == len(SHORT.operations)
    assert [told for told in record.history.problems if "no space left on device" in told] != []


def test_a_fault_that_raises_is_an_error_of_the_run_and_stops_nothing(tmp_path: Path) -> None:
    nowhere = PlannedFault("kill", 20_000, 10_000, "atlantis")
    faulty = plan(operation(100, "append", 1), faults=(nowhere,), heal_ms=200, end_ms=900)
    record = run("local", faulty, tmp_path)
    assert any("atlantis" in error for error in record.errors)
    assert record.history.outcome == ["ok"]
    assert record.history.faults[-1].f == "heal"


def test_logs_and_traces_of_all_nodes_are_kept(tmp_path: Path) -> None:
    record = run("local", SHORT, tmp_path)
    assert [Path(log).read_text().count("listens on") for log in record.detail["node_logs"]] == [1, 1, 1]
    assert all((tmp_path / "nodes" / node / "trace.jsonl").exists() for node in SHORT.nodes)


def test_what_nodes_log_stands_in_the_time_of_the_run(tmp_path: Path) -> None:
    killed = plan(
        operation(0, "append", 1), faults=(PlannedFault("kill", 100_000, 100_000, "athens"),), heal_ms=400, end_ms=900
    )
    record = run("local", killed, tmp_path)
    excerpt = node_logs_excerpt(record, 0, 60_000_000)
    assert excerpt is not None
    again = [line for line in excerpt.lines if isinstance(line, LogLine) and line.time_us > 0]
    assert [line.node for line in again] == ["athens"]
    assert "listens on" in again[0].text
    assert again[0].time_us >= record.faults[0].start_us
