"""A mark for tests of disks: hosts without disks of their own must refuse them, with the reason."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts


def with_disks(test: Callable[..., None]) -> Callable[..., None]:
    """Run the test where the hosts have disks of their own, else look at the refusal."""

    @functools.wraps(test)
    def run(hosts: NamespaceHosts, **others: object) -> None:
        reason = hosts.disks.refusal()
        if not reason:
            return test(hosts, **others)
        assert "failed" in reason or "Errno" in reason
        with pytest.raises(HarnessError):
            hosts.disks.attach("n1", hosts.hosts[0].folder)
        return None

    return run


def images_in_use(folder: Path) -> list[str]:
    """The images below `folder` that a loop device has open, as the kernel tells."""
    files = (Path("/sys/block") / name.name / "loop" / "backing_file" for name in Path("/sys/block").glob("loop*"))
    held = [file.read_text().strip() for file in files if file.exists()]
    return [image for image in held if image.startswith(f"{folder}/")]
