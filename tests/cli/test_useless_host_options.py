"""A host option that would change nothing is refused by name, before anything is written or any host is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.cli.main import perform
from faultline.harness.errors import UsageError
from faultline.harness.parts import Parts
from faultline.harness.planning import RunRequest
from faultline.harness.world.hosts.machines.host_options import refuse_without_effect
from faultline.registry import resolve

ON_HOSTS = ("--hosts", "namespaces:3", "--host-option")


@pytest.mark.parametrize("means", ["auto", "vdso", "libfaketime"])
@pytest.mark.parametrize("faults", ["clock", "leadership"])
def test_a_means_for_clocks_is_refused_where_nodes_read_the_time_through_a_port(
    means: str, faults: str, tmp_path: Path
) -> None:
    arguments = [*ON_HOSTS, f"clock={means}", "--faults", faults, "--output", str(tmp_path / "store")]
    with pytest.raises(UsageError, match=r"host option clock has no effect on consistent-core.* through a port") as no:
        perform(["run", *arguments])
    assert "Leave --host-option clock out" in no.value.next_step and "--system etcd" in no.value.next_step
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("means", ["auto", "vdso", "libfaketime"])
def test_a_means_for_clocks_is_refused_where_no_fault_strikes_one(means: str, tmp_path: Path) -> None:
    arguments = [*ON_HOSTS, f"clock={means}", "--faults", "kill", "--output", str(tmp_path / "store")]
    with pytest.raises(UsageError, match="host option clock has no effect: no fault of this run moves") as no:
        perform(["run", "--system", "etcd", *arguments])
    assert "--faults clock" in no.value.next_step
    assert not (tmp_path / "store").exists()


def test_a_campaign_is_refused_an_option_only_where_none_of_its_cells_has_a_use_for_it() -> None:
    def cell(system: str, *faults: str) -> Parts:
        return resolve(RunRequest(system=system, faults=faults))

    refuse_without_effect({"clock": "vdso"}, [cell("etcd", "kill"), cell("etcd", "partition", "clock")])
    refuse_without_effect({"fsync": "lies"}, [cell("consistent-core"), cell("etcd")])
    with pytest.raises(UsageError, match="no effect on consistent-core"):
        refuse_without_effect({"clock": "vdso"}, [cell("etcd", "clock"), cell("consistent-core", "clock")])
    with pytest.raises(UsageError, match="no fault"):
        refuse_without_effect({"clock": "vdso"}, [cell("etcd", "kill"), cell("etcd", "partition")])


def test_a_campaign_says_so_before_anything_is_written(tmp_path: Path) -> None:
    arguments = ["--system", "consistent-core", *ON_HOSTS, "clock=vdso", "--faults", "clock", "--seeds", "0..0"]
    with pytest.raises(UsageError, match="no effect on consistent-core"):
        perform(["campaign", *arguments, "--master", "local[1]", "--output", str(tmp_path / "store")])
    assert not (tmp_path / "store").exists()


def test_fsync_that_lies_all_the_time_cannot_fail_for_a_while(tmp_path: Path) -> None:
    arguments = [*ON_HOSTS, "fsync=lies", "--faults", "fsync", "--output", str(tmp_path / "store")]
    with pytest.raises(UsageError, match="Where fsync lies all the time, it cannot be made to fail") as no:
        perform(["run", "--system", "etcd", *arguments])
    assert "--host-option fsync" in no.value.next_step
    assert not (tmp_path / "store").exists()
