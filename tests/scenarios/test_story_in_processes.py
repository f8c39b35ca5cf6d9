"""The story on processes: the same paragraphs, files that outlive a kill, and no process that outlives the telling."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faultline.harness.errors import HarnessError
from faultline.story.in_processes import Processes
from faultline.story.log_cluster import Cluster
from faultline.story.scenes import scene_called
from faultline.story.telling import Change, tell


def identity(node: object) -> int:
    """Return the number of the process in which `node` lives."""
    return os.getpid()


def end_yourself(node: object) -> None:
    """End the process in which `node` lives."""
    os._exit(7)


def is_alive(process: int) -> bool:
    """Return whether the kernel knows the process, as one that has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "name", ["two-files", "collecting-leader", "lost-response", "leases", "seed-node", "data-cluster"]
)
def test_a_scene_goes_on_processes_as_it_says(name: str) -> None:
    processes = Processes()
    assert [told.paragraph.number for told in tell(scene_called(name), processes=processes) if not told.holds] == []
    assert processes.started > 0 and processes.crashed > 0


def test_a_planted_bug_breaks_the_same_paragraph_on_processes() -> None:
    change = Change(planted_bug="no-duplicate-detection")
    numbers = [
        [told.paragraph.number for told in tell(scene_called("lost-response"), change, processes) if not told.holds]
        for processes in (None, Processes())
    ]
    assert numbers[0] == numbers[1] != []


def test_each_node_is_a_process_that_a_crash_kills_and_that_comes_back_with_what_it_synced() -> None:
    cluster = Processes().placed(Cluster)(("neptune", "jupiter", "saturn"))
    try:
        cluster.elect("neptune")
        before = {name: cluster.look(name, identity) for name in cluster.members}
        assert len({*before.values(), os.getpid()}) == 4
        cluster.kill("jupiter")
        assert not is_alive(before["jupiter"]) and is_alive(before["saturn"])
        cluster.start("jupiter")
        assert cluster.look("jupiter", identity) != before["jupiter"]
        assert cluster.log("jupiter") == [1]
    finally:
        cluster.close()
    assert not any(map(is_alive, before.values()))


def test_a_telling_that_is_given_up_leaves_no_process_behind() -> None:
    telling = tell(scene_called("lost-response"), processes=Processes())
    next(telling)
    seen = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and _hosts_a_node(path)]
    telling.close()
    assert seen and not any(map(is_alive, seen))


def _hosts_a_node(process: Path) -> bool:
    """Return whether a process holds a file of the story open."""
    try:
        return any("faultline-story-" in os.readlink(file) for file in (process / "fd").iterdir())
    except OSError:
        return False


def test_a_node_whose_process_ends_by_itself_is_an_error_of_the_harness_that_names_it() -> None:
    cluster = Processes().placed(Cluster)(("neptune", "jupiter", "saturn"))
    try:
        with pytest.raises(HarnessError, match=r"The process of saturn ended by itself, with code 7"):
            cluster.look("saturn", end_yourself)
    finally:
        cluster.close()
