"""The release of a host's disk, by the kernel's list of loop devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.namespaces import disk
from faultline.harness.world.hosts.namespaces.disk import HostDisk


@pytest.mark.parametrize("removed", ["", " (deleted)"])
def test_a_disk_is_not_released_while_a_loop_device_has_its_image_removed_or_not(
    removed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = tmp_path / "n1" / "disk.img"
    backing = tmp_path / "block" / "loop7" / "loop" / "backing_file"
    backing.parent.mkdir(parents=True)
    backing.write_text(f"{image}{removed}\n")
    monkeypatch.setattr(disk, "_BLOCK_DEVICES", tmp_path / "block")
    monkeypatch.setattr(disk, "_RELEASE_TIMEOUT_S", 0.0)
    held = HostDisk(image, "", lambda: Path("/proc/self"))
    with pytest.raises(HarnessError, match="does not come free"):
        held.wait_until_released()
    backing.write_text(f"{tmp_path}/n2/disk.img\n")
    held.wait_until_released()
