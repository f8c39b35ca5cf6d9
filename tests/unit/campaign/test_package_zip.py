"""The package as executors of a cluster have it: a zip file that stands in sys.path by a relative name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from faultline.campaign.spark import package_zip

pytestmark = pytest.mark.slow

CARRY_OUT = """
import sys
from pathlib import Path

if len(sys.argv) > 2:
    sys.path.insert(0, sys.argv[2])

import faultline
from faultline.campaign.engine import default_engine
from faultline.campaign.explain import explain_run
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.simulate import SimulationJob, run_unit

plan = CampaignPlan(fault_sets=(("leadership",),), planted_bugs=(("stale-read",),), seeds="6..9")
folder = CampaignFolder(Path(sys.argv[1]).absolute())
folder.make()
job = SimulationJob(plan, folder, Path("shown"), default_engine("simulated"))
run_unit(job, plan.units()[0])
for path in sorted(folder.root.glob("runs/*/history.jsonl")):
    print(path.parent.name, explain_run(job, path.parent.name, True))
print(Path(faultline.__file__).parts[-3])
"""


def carried_out(folder: Path, *arguments: str) -> tuple[list[str], dict[str, bytes]]:
    """Carry out and explain a unit in a process; return the lines that it prints and the files that it leaves."""
    ran = subprocess.run(
        [sys.executable, "-c", CARRY_OUT, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    root = folder / arguments[0]
    files = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    return ran.stdout.splitlines(), {name: content(path) for name, path in files.items() if "work" not in name}


def content(path: Path) -> bytes:
    """The bytes of a file; a verdict says which engine searched, and there is no native one in a zip file."""
    return path.read_bytes().replace(b'"engine": "native"', b'"engine": "python"')


def test_runs_shrinks_and_pages_are_the_same_from_a_zip_file(tmp_path: Path) -> None:
    package_zip(tmp_path / "faultline.zip")
    (*told, here), expected = carried_out(tmp_path, "ours")
    (*told_from_zip, there), files = carried_out(tmp_path, "theirs", "./faultline.zip")
    assert (here != "faultline.zip", there) == (True, "faultline.zip")
    assert told_from_zip == told
    assert [line.split(" ", 1)[1] for line in told] == [""] * len(told) != []
    assert files == expected
    assert any(name.endswith("minimal/report.html") for name in files)
