"""Campaigns as real processes that are ended from outside: nothing that finished is lost, and no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree as xml

import msgspec
import pytest
from process_table import descendants_of
from real_commands import COMMAND, ended, is_dead, until, worker_of

from faultline.campaign.conclude import conclude_folder
from faultline.campaign.summary import CampaignSummary

pytestmark = [pytest.mark.spark, pytest.mark.real, pytest.mark.slow]

CAMPAIGN = ("campaign", "--seeds", "0..4999", "--faults", "none", "--operations", "40", "--name", "c")
MASTER = ("--master", "local[2,4]")


def begun(folder: Path) -> subprocess.Popen[str]:
    """A campaign of which at least one unit has finished and most have not."""
    process = subprocess.Popen(
        [*COMMAND, *CAMPAIGN, *MASTER], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    rows = folder / "faultline-results" / "campaigns" / "c" / "rows"
    until(lambda: process.poll() is not None or any(rows.glob("part-*")), "no unit has finished")
    return process


def checked(folder: Path) -> CampaignSummary:
    """The summary, after a check that it counts every verdict and tells that the campaign is not whole."""
    root = folder / "faultline-results" / "campaigns" / "c"
    summary = msgspec.json.decode((root / "campaign.json").read_bytes(), type=CampaignSummary)
    assert summary.finished == len(list(root.glob("runs/*/verdict.json")))
    assert 0 < summary.finished < summary.scheduled == 5_000
    assert summary.verdict == "unknown"
    error = xml.fromstring((root / "junit.xml").read_bytes()).find("testsuite[@name='campaign']/testcase/error")
    assert error is not None
    assert "runs did not end" in str(error.text)
    assert (root / "index.html").is_file()
    return summary


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_campaign_that_is_told_to_end_summarises_what_has_finished(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = begun(tmp_path)
    below = descendants_of(process.pid)
    process.send_signal(number)
    status, out, _ = ended(process)
    assert (status, out.startswith("Campaign c (interrupted): unknown. ")) == (code, True)
    assert checked(tmp_path).interrupted
    assert [each for each in below if not is_dead(each)] == []


def test_a_campaign_whose_process_is_killed_is_concluded(tmp_path: Path) -> None:
    process = begun(tmp_path)
    os.kill(worker_of(process), signal.SIGKILL)
    status, out, err = ended(process)
    assert (status, out.startswith("Campaign c (not finished): unknown. ")) == (4, True)
    assert "was ended by signal 9" in err
    checked(tmp_path)


def test_a_campaign_that_is_killed_with_its_supervisor_is_concluded_from_outside(tmp_path: Path) -> None:
    process = begun(tmp_path)
    below = descendants_of(process.pid)
    for each in (process.pid, worker_of(process)):
        os.kill(each, signal.SIGKILL)
    process.communicate()
    until(lambda: all(map(is_dead, below)), "a process is left")
    conclude_folder(tmp_path / "faultline-results" / "campaigns" / "c")
    checked(tmp_path)
