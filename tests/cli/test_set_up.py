"""What `make` does on a machine that lacks something, with stand-ins for the machine's own commands."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINE = Path("faultline/checkers/linearizability/engine")
KERNEL = [
    str(ENGINE / "build_kernel.py"),
    *(str(ENGINE / "native" / path.name) for path in (ROOT / ENGINE / "native").iterdir()),
]
BASE_COMMANDS = ("bash", "cat", "dirname", "env", "grep", "head", "mkdir", "sed", "sha256sum", "cut", "chmod", "true")

PACKAGES_FOR_HOSTS = "openssh-server nftables iproute2 uidmap etcd-server redis-server nats-server"
JAVA = 'echo "openjdk version \\"{version}\\" 2025-04-15" >&2'
APT_GET = """
echo "apt-get $*" >> {log}
if [ "$1" = install ]; then
  printf '%s\\n' '#!/bin/bash' 'echo "openjdk version \\"17.0.15\\"" >&2' > {folder}/java
  chmod +x {folder}/java
fi
"""


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A folder to serve as the whole PATH: the base commands, an apt-get that makes a java, and a root user."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in BASE_COMMANDS:
        (real,) = [path for path in (Path("/usr/bin", name), Path("/bin", name)) if path.exists()][:1]
        (folder / name).symlink_to(real)
    add(folder, "apt-get", APT_GET.format(log=tmp_path / "apt.log", folder=folder))
    add(folder, "apt-cache", '[ "$2" = openjdk-17-jre-headless ]')
    add(folder, "id", "echo 0")
    return folder


def add(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{script}\n")
    (folder / name).chmod(0o755)


def set_up(commands: Path, what: str, extra: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(commands), **(extra or {})}
    # In a copy of the repository's outline, so that the environment these tests run in is not taken for the machine's.
    outline = commands.parent / "repository"
    (outline / "tools").mkdir(parents=True, exist_ok=True)
    for file in ("tools/set_up.sh", "requirements.lock", "pyproject.toml", "hatch_build.py", *KERNEL):
        (outline / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, outline / file)
    command = ["/bin/bash", str(outline / "tools" / "set_up.sh"), what]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)


def apt_log(commands: Path) -> list[str]:
    log = commands.parent / "apt.log"
    return log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.1"])
def test_a_new_enough_java_is_taken_without_a_word(commands: Path, version: str) -> None:
    add(commands, "java", JAVA.format(version=version))
    done = set_up(commands, "java")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert apt_log(commands) == []


def test_a_missing_java_is_installed_from_debian_and_announced(commands: Path) -> None:
    done = set_up(commands, "java")
    assert done.returncode == 0, done.stderr
    assert "installing the Debian package openjdk-17-jre-headless" in done.stdout
    assert apt_log(commands)[0] == "apt-get update -qq"
    assert apt_log(commands)[1].endswith("openjdk-17-jre-headless")


@pytest.mark.parametrize("version", ["1.8.0_412", "11.0.2"])
def test_a_java_that_is_too_old_for_spark_is_replaced(commands: Path, version: str) -> None:
    add(commands, "java", JAVA.format(version=version))
    assert set_up(commands, "java").returncode == 0
    assert len(apt_log(commands)) == 2


def test_a_java_home_without_a_usable_java_is_named_rather_than_worked_around(commands: Path, tmp_path: Path) -> None:
    done = set_up(commands, "java", {"JAVA_HOME": str(tmp_path / "old-java")})
    assert done.returncode == 4
    assert f"JAVA_HOME={tmp_path / 'old-java'}" in done.stderr
    assert apt_log(commands) == []


def test_without_root_or_sudo_the_missing_package_is_named(commands: Path) -> None:
    add(commands, "id", "echo 1000")
    done = set_up(commands, "java")
    assert done.returncode == 4
    assert "sudo apt-get install openjdk-17-jre-headless" in done.stderr
    assert apt_log(commands) == []


def test_sudo_that_asks_for_no_password_is_used(commands: Path) -> None:
    add(commands, "id", "echo 1000")
    add(commands, "sudo", '[ "$1" = -n ] && shift && exec "$@"')
    assert set_up(commands, "java").returncode == 0
    assert len(apt_log(commands)) == 2


def test_a_package_that_is_not_on_offer_ends_with_a_sentence(commands: Path) -> None:
    add(commands, "apt-cache", "exit 100")
    done = set_up(commands, "java")
    assert done.returncode == 4
    assert "on offer" in done.stderr


def test_a_machine_that_is_not_debian_is_told_what_to_install(commands: Path) -> None:
    (commands / "apt-get").unlink()
    done = set_up(commands, "java")
    assert done.returncode == 4
    assert "not a Debian machine" in done.stderr


PYTHON_WITHOUT_VENV = """
case "$2" in
  *version_info.minor*) echo 12 ;;
  *ensurepip*) exit 1 ;;
esac
"""


def test_a_python_that_cannot_make_environments_names_the_package_it_lacks(commands: Path) -> None:
    add(commands, "python3", PYTHON_WITHOUT_VENV)
    add(commands, "id", "echo 1000")
    done = set_up(commands, "python")
    assert done.returncode == 4
    assert "Python's venv module is missing" in done.stderr
    assert "sudo apt-get install python3.12-venv" in done.stderr


def test_a_python_that_is_too_old_counts_as_missing(commands: Path) -> None:
    add(commands, "python3", "exit 1")
    add(commands, "id", "echo 1000")
    done = set_up(commands, "python")
    assert done.returncode == 4
    assert "Python 3.11 or newer is missing" in done.stderr


def test_an_unknown_word_is_a_usage_error(commands: Path) -> None:
    done = set_up(commands, "ruby")
    assert done.returncode == 2
    assert "usage: tools/set_up.sh python|java" in done.stderr


def test_packages_for_hosts_are_installed_in_ci_only(commands: Path) -> None:
    log = commands.parent / "apt.log"
    unasked = set_up(commands, "hosts")
    assert unasked.returncode == 0 and f"as root: apt-get install {PACKAGES_FOR_HOSTS}" in unasked.stdout
    assert not log.exists()
    add(commands, "apt-cache", "exit 0")
    in_ci = set_up(commands, "hosts", {"CI": "true"})
    assert in_ci.returncode == 0
    assert f"install -y -qq --no-install-recommends {PACKAGES_FOR_HOSTS}" in log.read_text()


def test_a_machine_without_packages_for_hosts_is_set_up_all_the_same(commands: Path) -> None:
    add(commands, "apt-get", "exit 100")
    add(commands, "apt-cache", "exit 0")
    ended = set_up(commands, "hosts", {"CI": "true"})
    assert ended.returncode == 0 and f"apt-get could not install {PACKAGES_FOR_HOSTS}" in ended.stdout


def test_a_package_that_is_not_on_offer_is_named_and_keeps_no_other_from_being_installed(commands: Path) -> None:
    add(commands, "apt-cache", '[ "$2" != etcd-server ]')
    done = set_up(commands, "hosts", {"CI": "true"})
    assert done.returncode == 0 and "set-up: not on offer here: etcd-server;" in done.stdout
    installed = (commands.parent / "apt.log").read_text()
    assert "nftables" in installed and "etcd-server" not in installed
