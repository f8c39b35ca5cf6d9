"""Setting up by `make` on a machine that lacks something, with stand-ins for the machine's own commands."""

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
BASE_COMMANDS = (
    *("bash", "cat", "chmod", "cut", "dirname", "env", "grep", "head", "mkdir", "rm", "sed", "sh", "sha256sum"),
    *("touch", "true"),
)

# What hosts need, by what shows that it is there: a command on the PATH, or a file of the machine.
PACKAGES_FOR_HOSTS = {
    "sshd": "openssh-server",
    "nft": "nftables",
    "iptables-legacy-restore": "iptables",
    "ip": "iproute2",
    "newuidmap": "uidmap",
    "etcd": "etcd-server",
    "mkfs.ext4": "e2fsprogs",
    "redis-server": "redis-server",
    "nats-server": "nats-server",
    "/usr/share/zookeeper/bin/zkServer.sh": "zookeeper",
    "/usr/lib/postgresql/15/bin/postgres": "postgresql-15",
    "patroni": "patroni",
    "/usr/sbin/mariadbd": "mariadb-server",
    "/usr/lib/galera/libgalera_smm.so": "galera-4",
    "rsync": "rsync",
    "/usr/lib/rabbitmq/bin/rabbitmq-server": "rabbitmq-server",
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1": "libfaketime",
}
ALL_FOR_HOSTS = " ".join(PACKAGES_FOR_HOSTS.values())
JAVA = 'echo "openjdk version \\"{version}\\" 2025-04-15" >&2'
APT_GET = """
echo "apt-get $*" >> {log}
if [ "$1" = install ]; then
  cat {machine}/usr/sbin/policy-rc.d > {policy} 2>/dev/null
  printf '%s\\n' '#!/bin/bash' 'echo "openjdk version \\"17.0.15\\"" >&2' > {folder}/java
  chmod +x {folder}/java
fi
"""


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A folder to serve as the whole PATH: the base commands, an apt-get that makes a java, and a root user.

    Beside it stands an empty folder that serves as the machine's own files.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    machine = machine_of(folder)
    (machine / "usr" / "sbin").mkdir(parents=True)
    for name in BASE_COMMANDS:
        (real,) = [path for path in (Path("/usr/bin", name), Path("/bin", name)) if path.exists()][:1]
        (folder / name).symlink_to(real)
    add(
        folder,
        "apt-get",
        APT_GET.format(log=tmp_path / "apt.log", folder=folder, machine=machine, policy=tmp_path / "policy-rc.d"),
    )
    add(folder, "apt-cache", '[ "$2" = openjdk-17-jre-headless ]')
    add(folder, "id", "echo 0")
    return folder


def add(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{script}\n")
    (folder / name).chmod(0o755)


def machine_of(commands: Path) -> Path:
    return commands.parent / "machine"


def provide(commands: Path, sign: str) -> None:
    """Put what shows that a package is there onto the stand-in for the machine."""
    path = machine_of(commands) / sign.lstrip("/") if sign.startswith("/") else commands / sign
    path.parent.mkdir(parents=True, exist_ok=True)
    add(path.parent, path.name, "true")


def set_up(commands: Path, what: str, extra: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(commands), "SET_UP_MACHINE": str(machine_of(commands)), **(extra or {})}
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


# An interpreter that says what it is told, and makes itself anew where an environment is asked for.
PYTHON = """
echo "python $*" >> {log}
case "$*" in
  *--version) echo "Python 3.11.2" ;;
  "-m venv .venv") mkdir -p .venv/bin && cat {folder}/python3 > .venv/bin/python && chmod +x .venv/bin/python ;;
  {failing}) exit 1 ;;
esac
"""


def python_calls(commands: Path) -> list[str]:
    return (commands.parent / "python.log").read_text().splitlines()


def add_python(commands: Path, failing: str = "none") -> None:
    log = commands.parent / "python.log"
    add(commands, "python3", PYTHON.format(log=log, folder=commands, failing=failing))


def test_nothing_is_installed_whose_hash_is_not_locked(commands: Path) -> None:
    add_python(commands)
    done = set_up(commands, "python")
    assert (done.returncode, done.stderr) == (0, "")
    locked, own = [call for call in python_calls(commands) if " -m pip install " in call]
    assert locked.endswith(" --require-hashes --requirement requirements.lock")
    assert own.endswith(" --no-deps --no-build-isolation --editable .")


def test_an_environment_that_is_up_to_date_is_left_alone_and_one_of_another_lock_file_is_not(commands: Path) -> None:
    add_python(commands)
    set_up(commands, "python")
    (commands.parent / "python.log").unlink()
    assert set_up(commands, "python").stdout == ""
    assert python_calls(commands) == ["python -c import faultline"]
    (stamp,) = (commands.parent / "repository" / ".venv").glob(".installed-*")
    stamp.rename(stamp.with_name(".installed-another"))
    assert "installing the locked dependencies" in set_up(commands, "python").stdout


def test_an_environment_that_could_not_be_filled_is_not_taken_for_a_whole_one(commands: Path) -> None:
    add_python(commands, failing='*"--requirement requirements.lock"')
    done = set_up(commands, "python")
    assert done.returncode == 4 and "pip could not install" in done.stderr
    add_python(commands)
    assert "installing the locked dependencies" in set_up(commands, "python").stdout


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


def test_packages_for_hosts_are_named_and_not_installed_on_the_machine_of_a_user(commands: Path) -> None:
    done = set_up(commands, "hosts")
    assert done.returncode == 0 and f"as root: apt-get install {ALL_FOR_HOSTS}\n" in done.stdout
    assert apt_log(commands) == []


def test_packages_for_hosts_are_installed_in_ci(commands: Path) -> None:
    add(commands, "apt-cache", "exit 0")
    done = set_up(commands, "hosts", {"CI": "true"})
    assert (done.returncode, done.stderr) == (0, "")
    assert apt_log(commands)[-1] == f"apt-get install -y -qq --no-install-recommends {ALL_FOR_HOSTS}"


@pytest.mark.parametrize("sign", PACKAGES_FOR_HOSTS)
def test_a_package_for_hosts_that_is_there_is_not_asked_for(commands: Path, sign: str) -> None:
    provide(commands, sign)
    others = [package for package in PACKAGES_FOR_HOSTS.values() if package != PACKAGES_FOR_HOSTS[sign]]
    assert f"as root: apt-get install {' '.join(others)}\n" in set_up(commands, "hosts").stdout


@pytest.mark.parametrize("name", ["iptables-legacy-restore", "mkfs.ext4"])
def test_a_program_for_root_counts_where_it_is_not_on_the_path(commands: Path, name: str) -> None:
    provide(commands, f"/usr/sbin/{name}")
    assert PACKAGES_FOR_HOSTS[name] not in set_up(commands, "hosts").stdout.split()


def test_a_machine_that_has_all_that_hosts_need_is_left_alone_without_a_word(commands: Path) -> None:
    for sign in PACKAGES_FOR_HOSTS:
        provide(commands, sign)
    done = set_up(commands, "hosts", {"CI": "true"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert apt_log(commands) == []


def test_packages_start_no_daemons_while_they_are_installed_and_may_afterwards(commands: Path) -> None:
    add(commands, "apt-cache", "exit 0")
    assert set_up(commands, "hosts", {"CI": "true"}).returncode == 0
    assert (commands.parent / "policy-rc.d").read_text() == "#!/bin/sh\nexit 101\n"
    assert not (machine_of(commands) / "usr/sbin/policy-rc.d").exists()
    databases = machine_of(commands) / "etc/postgresql-common/createcluster.conf"
    assert databases.read_text() == "create_main_cluster = false\n"


def test_a_machine_s_own_word_on_daemons_is_kept(commands: Path) -> None:
    add(commands, "apt-cache", "exit 0")
    add(machine_of(commands) / "usr/sbin", "policy-rc.d", "exit 0")
    assert set_up(commands, "hosts", {"CI": "true"}).returncode == 0
    assert (machine_of(commands) / "usr/sbin/policy-rc.d").read_text() == "#!/bin/bash\nexit 0\n"


def test_a_machine_whose_packages_cannot_be_installed_is_set_up_all_the_same(commands: Path) -> None:
    add(commands, "apt-get", "exit 100")
    add(commands, "apt-cache", "exit 0")
    ended = set_up(commands, "hosts", {"CI": "true"})
    assert ended.returncode == 0 and f"apt-get could not install {ALL_FOR_HOSTS};" in ended.stdout
    assert not (machine_of(commands) / "usr/sbin/policy-rc.d").exists()


def test_a_package_that_is_not_on_offer_is_named_and_keeps_no_other_from_being_installed(commands: Path) -> None:
    add(commands, "apt-cache", '[ "$2" != etcd-server ]')
    done = set_up(commands, "hosts", {"CI": "true"})
    assert done.returncode == 0 and "set-up: not on offer here: etcd-server;" in done.stdout
    installed = (commands.parent / "apt.log").read_text()
    assert "nftables" in installed and "etcd-server" not in installed
