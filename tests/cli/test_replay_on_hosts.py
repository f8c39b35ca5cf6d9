"""A run is repeated on hosts that the user names: its folder, perhaps a stranger's, never decides where SSH logs in."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from faultline.cli.main import perform
from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run_record import WorldName
from faultline.harness.store import prepare_run
from faultline.harness.world.hosts.machines import host_sets
from faultline.registry import resolve

EVIL = """[hosts.evil]
address = "127.0.0.1"
port = 1
user = "mallory"
check_host_key = false
"""


def stored(folder: Path, world: WorldName, hosts: str = "") -> Path:
    """A run folder of a run that ended before its first operation."""
    request = RunRequest(system="consistent-core", faults=(), operations=3)
    prepare_run(folder, "stored", make_plan(request, resolve(request)), world, hosts)
    return folder


@pytest.fixture
def nothing_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test fails when anything asks for hosts."""

    def refuse(hosts: object) -> None:
        pytest.fail(f"{hosts} was asked for")

    monkeypatch.setattr(host_sets, "parse_hosts", refuse)
    monkeypatch.setattr(host_sets, "open_hosts", refuse)


@pytest.mark.usefixtures("nothing_is_reached")
@pytest.mark.parametrize("options", [[], ["--times", "3"], ["--as-happened"], ["--keep"], ["--json"]])
def test_a_stored_run_over_ssh_is_not_repeated_where_it_says(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "evil.toml").write_text(EVIL)
    folder = stored(tmp_path / "a run", "hosts", f"ssh:{tmp_path}/evil.toml")
    with pytest.raises(UsageError, match="machines over SSH") as refused:
        perform(["replay", str(folder), *options])
    assert f"faultline replay '{folder}' --hosts namespaces:3" in refused.value.next_step
    assert "evil" not in refused.value.message + refused.value.next_step


@pytest.mark.usefixtures("nothing_is_reached")
@pytest.mark.parametrize("hosts", ["namespaces:3", "", "\x1b[2Jdocker:3"])
def test_hosts_of_every_kind_have_to_be_named_anew(tmp_path: Path, hosts: str) -> None:
    folder = stored(tmp_path / "run", "hosts", hosts)
    with pytest.raises(UsageError, match="does not decide where to log in") as refused:
        perform(["replay", str(folder)])
    assert "\x1b" not in refused.value.message


@pytest.mark.usefixtures("nothing_is_reached")
@pytest.mark.parametrize("verb", [["check"], ["shrink"], ["replay"], ["campaign", "--plan"]])
def test_no_verb_follows_the_hosts_of_a_stored_run(tmp_path: Path, verb: list[str]) -> None:
    folder = stored(tmp_path / "run", "hosts", f"ssh:{tmp_path}/evil.toml")
    (folder / "history.jsonl").touch()
    with contextlib.suppress(UsageError):
        assert perform([*verb, str(folder)]) != 0


def test_the_hosts_of_the_command_line_are_the_ones_reached(tmp_path: Path) -> None:
    (tmp_path / "evil.toml").write_text(EVIL)
    mine = [f'[hosts.mine{number}]\naddress = "127.0.0.1"\nport = 1\n' for number in range(3)]
    (tmp_path / "mine.toml").write_text("".join(mine))
    folder = stored(tmp_path / "run", "hosts", f"ssh:{tmp_path}/evil.toml")
    with pytest.raises(HarnessError, match=r"The host mine[012] \(root@127.0.0.1:1\) cannot be reached"):
        perform(["replay", str(folder), "--hosts", f"ssh:{tmp_path}/mine.toml"])


@pytest.mark.parametrize("world", ["simulated", "local"])
def test_hosts_mean_nothing_to_a_run_of_another_world(tmp_path: Path, world: WorldName) -> None:
    folder = stored(tmp_path / "run", world)
    with pytest.raises(UsageError, match="not a run on hosts"):
        perform(["replay", str(folder), "--hosts", f"ssh:{tmp_path}/hosts.toml"])
