"""Hosts of namespaces for a user who is not root: the command goes on in a user namespace, and leaves nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from faultline.harness.world.hosts.namespaces.requirements import (
    Requirement,
    missing_requirements,
    missing_without_root,
)
from faultline.harness.world.hosts.namespaces.rootless import in_user_namespace

pytestmark = pytest.mark.real

USER = 54_321
# In a mount namespace of its own, in which the machine knows a further user with a range of numbers.
AS_USER = """
set -e
[ -e {folder}/etc ] || cp -a /etc {folder}/etc
mount --bind {folder}/etc /etc
echo 'faultline-test:x:{user}:{user}::{folder}:/bin/sh' >>/etc/passwd
echo 'faultline-test:1000000:65536' | tee -a /etc/subuid >>/etc/subgid
cd {folder}/home
# The shell in between: what setpriv itself starts is still looked up with root's rights.
exec setpriv --reuid={user} --regid={user} --clear-groups /bin/sh -c 'exec "$@"' sh "$@"
"""


def as_user(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run `command` as a user who is not root, in `folder`/home."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    os.chown(home, USER, USER)
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o011)
    script = AS_USER.format(folder=folder, user=USER)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        ["unshare", "--mount", "/bin/sh", "-c", script, "sh", *command],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )


def interpreter(folder: Path) -> str | None:
    """A Python that can import Faultline and that others than root may start."""
    version = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, version):
        if Path(candidate).exists() and not as_user(folder, candidate, "-c", "import faultline.cli.main").returncode:
            return candidate
    return None


@pytest.mark.slow
def test_an_ordinary_user_runs_on_hosts_of_namespaces_under_faults(tmp_path: Path) -> None:
    if (
        os.geteuid() != 0
        or missing_requirements()
        or shutil.which("newuidmap") is None
        or (python := interpreter(tmp_path)) is None
    ):
        # What this machine lacks for the test is what it would refuse such a user by.
        assert missing_without_root(lambda _: None)[0].next_step == "Run: apt-get install uidmap"
        return
    arguments = ("run", "--hosts", "namespaces:3", "--faults", "kill,partition", "--duration", "2", "--no-shrink")
    ended = as_user(tmp_path, python, "-m", "faultline", *arguments)
    assert ended.returncode == 0, ended.stderr
    (run,) = (tmp_path / "home" / "faultline-results" / "runs").iterdir()
    assert run.stat().st_uid == USER
    assert {path.name for path in (run / "nodes").iterdir()} == {"athens", "byzantium", "cyrene"}
    assert not [path for path in Path("/tmp").glob("faultline-hosts-*") if path.stat().st_uid == USER]


def test_what_a_user_lacks_is_told_with_the_command_that_brings_it() -> None:
    found = [missing.what for missing in missing_without_root(lambda _: None)]
    assert found[0] == "without root, the program newuidmap is needed"
    assert missing_requirements(
        "linux", lambda: 1000, lambda name: f"/usr/sbin/{name}", lambda: [Requirement("a", "b")]
    ) == [Requirement("a", "b")]
    (general,) = missing_requirements("linux", lambda: 1000, lambda name: f"/usr/sbin/{name}", list)
    assert general.what == "only root may make namespaces with links"


def test_a_user_namespace_is_known_by_its_map(tmp_path: Path) -> None:
    user_map = tmp_path / "uid_map"
    for text, inside in (("0 0 4294967295\n", False), ("0 1000 1\n1 100000 65536\n", True)):
        user_map.write_text(text)
        assert in_user_namespace(user_map) is inside
    assert not in_user_namespace(tmp_path / "none")
