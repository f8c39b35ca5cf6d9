"""The folder of a campaign, and the commands that lead back to its runs."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec
import pytest
from campaign_fakes import fake_engine, fake_plan

from faultline.campaign.layout import create_campaign_folder
from faultline.campaign.pipeline import run_campaign
from faultline.campaign.spark import refuse_unusable_master
from faultline.harness.commands import replay_command, run_command
from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.planning import RunRequest


def test_a_campaign_is_named_by_its_plan_and_counted(tmp_path: Path) -> None:
    plan = fake_plan()
    first = f"fake-{plan.digest()[:8]}"
    names = [create_campaign_folder(tmp_path, plan, None).root.name for _ in range(3)]
    assert names == [first, f"{first}-2", f"{first}-3"]


def test_a_given_name_is_used_once_and_a_second_campaign_of_it_is_refused(tmp_path: Path) -> None:
    assert create_campaign_folder(tmp_path, fake_plan(), "nightly").root == tmp_path / "campaigns" / "nightly"
    with pytest.raises(UsageError, match="has a campaign called nightly already") as refused:
        create_campaign_folder(tmp_path, fake_plan(), "nightly")
    assert f"faultline campaign conclude {tmp_path}/campaigns/nightly" in refused.value.next_step
    assert [path.name for path in (tmp_path / "campaigns").iterdir()] == ["nightly"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../up", "a\0b", "a:b"])
def test_a_name_that_is_no_plain_one_is_refused_as_option_and_in_a_plan(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be called"):
        create_campaign_folder(tmp_path, fake_plan(), name)
    with pytest.raises(UsageError, match="cannot be called"):
        create_campaign_folder(tmp_path, msgspec.structs.replace(fake_plan(), name=name), None)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_written_is_refused_with_the_cause(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file, not a folder")
    with pytest.raises(HarnessError, match="Cannot write to the store"):
        create_campaign_folder(tmp_path / "store", fake_plan(), None)


@pytest.mark.parametrize("master", ["", "remote", "sc://host:15002", "http://host"])
def test_a_master_that_is_none_is_refused_before_anything_is_written(tmp_path: Path, master: str) -> None:
    with pytest.raises(UsageError, match="not a Spark master"):
        run_campaign(fake_plan(), store=tmp_path / "store", master=master, engine=fake_engine())
    assert not (tmp_path / "store").exists()


def test_a_cluster_whose_secret_is_not_known_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    with pytest.raises(UsageError, match="at spark://host:7077 is not known on this machine") as refused:
        refuse_unusable_master("spark://host:7077")
    assert "spark.authenticate.secret" in refused.value.next_step
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with pytest.raises(UsageError, match="is not known on this machine"):
        refuse_unusable_master("spark://host:7077")
    (tmp_path / "spark-defaults.conf").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"spark-defaults\.conf cannot be read"):
        refuse_unusable_master("spark://host:7077")


@pytest.mark.parametrize(
    "settings",
    ["spark.authenticate.secret s3cret", "# open\n\nspark.authenticate = false\n", "spark.authenticate:false"],
)
def test_a_cluster_is_used_with_its_secret_or_when_it_is_said_to_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(settings)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    refuse_unusable_master("spark://host:7077")


def test_without_java_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(HarnessError, match="no Java runtime"):
        run_campaign(fake_plan(), store=tmp_path / "store", engine=fake_engine())
    assert not (tmp_path / "store").exists()


def test_commands_survive_a_shell_whatever_the_folder_is_called() -> None:
    folder = Path("my store/it's $HOME/runs/a+b.c.3")
    assert shlex.split(replay_command(folder)) == ["faultline", "replay", str(folder)]


def test_a_run_command_spells_out_what_is_not_a_default() -> None:
    request = RunRequest(system="s", faults=(), seed=4, nodes=5, options={"read_mode": "log"}, planted_bugs=("a", "b"))
    assert run_command(request) == (
        "faultline run --system s --workload register --faults none --planted-bug a,b"
        " --option read_mode=log --nodes 5 --seed 4"
    )
