"""`--hosts` of run and doctor: what it prints, and how it ends."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from faultline.cli.main import cli, perform
from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.world.hosts.machines import leftovers
from faultline.harness.world.hosts.machines.host_sets import open_hosts, parse_hosts
from faultline.systems_under_test.stores.postgresql.options import BINARIES


def why_refused() -> str:
    """Return the reason why this machine makes no hosts of namespaces; empty when it does."""
    try:
        open_hosts(parse_hosts("namespaces:1")).close()
    except HarnessError as refusal:
        return refusal.message
    return ""


def test_what_an_aborted_run_left_is_told_of_and_is_nothing_that_the_machine_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = leftovers.Leftover("the folder /tmp/faultline-hosts-1-x", lambda: None)
    monkeypatch.setattr(leftovers, "leftovers_here", lambda: [left])
    perform(["doctor", "--json"])
    seen = {examination["name"]: examination for examination in json.loads(capsys.readouterr().out)}["Leftovers"]
    assert seen["healthy"]
    assert left.what in seen["seen"]
    assert "faultline doctor --clean" in seen["seen"]


def test_hosts_that_mean_nothing_end_with_a_usage_error() -> None:
    with pytest.raises(UsageError, match="--hosts docker:3 names no hosts"):
        perform(["run", "--hosts", "docker:3"])
    with pytest.raises(UsageError, match="names no hosts"):
        perform(["doctor", "--hosts", "3"])


def test_hosts_and_a_world_contradict_each_other() -> None:
    with pytest.raises(UsageError, match="cannot go with --world"):
        perform(["run", "--hosts", "namespaces:3", "--world", "local"])


@pytest.mark.parametrize(
    ("arguments", "complaint", "next_step"),
    [
        (["--host-option", "fsync=lies"], "there are none", "--hosts namespaces:3"),
        (["--hosts", "namespaces:3", "--host-option", "fsnyc=lies"], "no option called 'fsnyc'", "Did you mean fsync"),
        (["--hosts", "namespaces:3", "--host-option", "fsync=never"], "cannot be 'never'", "honest, lies, fails"),
        (["--hosts", "namespaces:3", "--host-option", "fsync"], "--host-option fsync has no value", "NAME=VALUE"),
    ],
)
def test_an_option_that_hosts_do_not_have_is_a_usage_error(
    arguments: list[str], complaint: str, next_step: str
) -> None:
    with pytest.raises(UsageError, match=complaint) as refused:
        perform(["run", *arguments])
    assert next_step in refused.value.next_step


def test_evidence_is_listed_and_an_unknown_one_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert perform(["evidence"]) == 0
    listed = capsys.readouterr().out
    assert "etcd-lying-fsync: " in listed and "faultline evidence etcd-honest-fsync" in listed
    assert perform(["evidence", "--json"]) == 0
    cases = {case["name"]: case for case in json.loads(capsys.readouterr().out)}
    assert cases["etcd-lying-fsync"]["host_options"] == {"fsync": "lies"}
    with pytest.raises(UsageError, match="no evidence called 'etcd-is-perfect'"):
        perform(["evidence", "etcd-is-perfect"])


def test_more_nodes_than_hosts_are_refused_before_any_host_is_made() -> None:
    with pytest.raises(UsageError, match="5 nodes need as many hosts, but namespaces:3 has 3"):
        perform(["run", "--hosts", "namespaces:3", "--nodes", "5"])


@pytest.mark.real
@pytest.mark.slow
def test_a_run_on_hosts_is_recorded_judged_and_replayed_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--hosts", "namespaces:3", "--faults", "none", "--duration", "1", "--operations", "100"]
    refusal = why_refused()
    if refusal:
        with pytest.raises(HarnessError, match="namespaces"):
            perform([*arguments, "--output", str(tmp_path)])
        return
    assert perform([*arguments, "--output", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["world"] == "hosts"
    (folder,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"consistent-core\.register\.calm\.0\.[0-9a-f]{8}\.hosts", folder.name)
    assert json.loads((folder / "run.json").read_bytes())["hosts"] == "namespaces:3"
    replay = f"faultline replay {folder} --hosts namespaces:3"
    assert json.loads((folder / "verdict.json").read_bytes())["replay"] == replay
    assert perform(["replay", str(folder), "--hosts", "namespaces:3"]) == 0
    assert "Reproduced 1 of 1" in capsys.readouterr().out
    assert perform(["replay", str(folder), "--as-happened", "--keep", "--times", "2", "--hosts", "namespaces:3"]) == 0
    assert "Reproduced 2 of 2" in capsys.readouterr().out
    for number in ("1", "2"):
        assert (folder / "replays" / number / "report.html").exists()
        assert json.loads((folder / "replays" / number / "verdict.json").read_bytes())["verdict"] == "pass"


@pytest.mark.real
def test_doctor_says_of_each_host_what_it_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = why_refused()
    code = perform(["doctor", "--hosts", "namespaces:2", "--json"])
    findings = json.loads(capsys.readouterr().out)
    if refusal:
        assert code == 4 and findings == [{**findings[0], "name": "namespaces:2", "healthy": False, "seen": refusal}]
        return
    seen = {finding["name"]: finding for finding in findings}
    assert {
        "n1: connection",
        "n1: nodes",
        "n1: kill, pause",
        "n2: partition",
        "n2: packet faults",
        "n1: fsync=lies, fsync=fails",
        "disks: power-off, disk faults",
    } <= set(seen)
    assert {"n2: link-down", "n1: connection-kill", "n2: connection-reset"} <= set(seen)
    assert {"n1: clocks of stores", "n2: freeze", "n1: cpu-squeeze", "n2: memory-squeeze"} <= set(seen)
    assert seen["n1: nodes"]["seen"].endswith("runs them")
    assert code == (0 if all(finding["healthy"] for finding in findings) else 4)
    assert all(finding["healthy"] or finding["next_step"] for finding in findings)


def test_doctor_names_hosts_that_cannot_be_reached(tmp_path: Path) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text('[hosts.n1]\naddress = "127.0.0.1"\nport = 1\n')
    ended = CliRunner().invoke(cli, ["doctor", "--hosts", f"ssh:{file}"], standalone_mode=False)
    assert ended.return_value == 4
    assert "missing  n1: connection: The host n1 (root@127.0.0.1:1) cannot be reached in 3 attempts" in ended.output
    assert "ssh -p 1 root@127.0.0.1" in ended.output


def test_commands_without_ssh_do_not_import_it() -> None:
    script = (
        "import sys, faultline.cli.main, faultline.cli.run, faultline.cli.doctor; sys.exit('paramiko' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_campaign_on_hosts_names_them_instead_of_a_world() -> None:
    with pytest.raises(UsageError, match="cannot go with --world"):
        perform(["campaign", "--hosts", "namespaces:3", "--world", "local"])
    with pytest.raises(UsageError, match="names no hosts"):
        perform(["campaign", "--hosts", "docker:3", "--seeds", "0..0"])


STORES = {"etcd": ("etcd", "etcd-server"), "postgresql": (f"{BINARIES}/postgres", "postgresql-15")}
"""Stores in which these faults show no known defect: now and then ZooKeeper 3.8.0 loses acknowledged writes."""
CELL = "{}/register/partition+kill+clock"


@pytest.mark.real
@pytest.mark.slow
def test_a_campaign_of_real_stores_under_partition_kill_and_clock_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seed 53 has faults of all three families. A store that is not installed costs its own runs and no others."""
    arguments = ["campaign", "--hosts", "namespaces:3", "--system", "etcd", "--system", "postgresql"]
    arguments += ["--faults", "partition,kill,clock", "--seeds", "53..53", "--duration", "6", "--master", "local[1]"]
    arguments += ["--output", str(tmp_path), "--name", "real", "--json"]
    refusal = why_refused()
    if refusal:
        with pytest.raises(HarnessError, match="namespaces"):
            perform(arguments)
        return
    if platform.machine() != "x86_64":
        with pytest.raises(UsageError, match="cannot inject clock"):
            perform(arguments)
        return
    code = perform(arguments)
    told = json.loads(capsys.readouterr().out)
    there = {name: shutil.which(program) is not None for name, (program, _) in STORES.items()}
    assert code == (0 if all(there.values()) else 4), told["sentences"]
    counts = {cell["cell"]: cell["counts"] for cell in told["cells"]}
    assert all(counts[CELL.format(name)]["pass" if there[name] else "harness-error"] == 1 for name in STORES)
    if any(there.values()):
        assert {"links-cut", "nodes-killed", "clocks-drifted"} <= set(told["marks"])
    for name, (_, package) in STORES.items():
        (folder,) = (tmp_path / "campaigns/real/runs").glob(f"{name}.register.partition+kill+clock.53.*")
        verdict = json.loads((folder / "verdict.json").read_bytes())
        assert verdict["world"] == "hosts" and (f"apt-get install {package}" in verdict["sentence"]) is not there[name]
