"""Hosts of namespaces for tests; a machine without any must refuse them by name, with a next step."""

from __future__ import annotations

import functools
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.namespaces.requirements import missing_requirements


def opened(count: int) -> NamespaceHosts | HarnessError:
    """Hosts, or the refusal to make them."""
    try:
        return NamespaceHosts(count)
    except HarnessError as refusal:
        if not missing_requirements():
            raise
        return refusal


def host_file_of(hosts: NamespaceHosts, path: Path) -> Path:
    """The same hosts, named by their addresses: `--hosts ssh:PATH`."""
    first = hosts.hosts[0]
    lines = ["[defaults]", f'key = "{first.key}"', f'known_hosts = ["{first.known_hosts[0]}"]']
    lines += [f'folder = "{first.folder}"', f'python = "{first.python}"', f'python_path = "{first.python_path}"']
    for host in hosts.hosts:
        lines += [f"[hosts.{host.name}]", f'address = "{host.address}"', f'ssh_address = "{host.ssh_address}"']
    path.write_text("\n".join(lines))
    return path


@dataclass(frozen=True)
class OtherHarness:
    """A process with hosts of its own, to be killed in place of this one; `said` is what its preparation told."""

    process: subprocess.Popen[str]
    supervisor: int
    folder: Path
    said: str

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Kill it, and wait until its supervisor has ended by itself."""
        ended = os.pidfd_open(self.supervisor)
        self.process.send_signal(number)
        self.process.wait(10)
        ready, _, _ = select.select([ended], [], [], 20)
        os.close(ended)
        assert ready, "the supervisor outlives its harness"

    def kill_with_its_supervisor(self) -> None:
        """Kill both, so that no process can clear up."""
        os.kill(self.supervisor, signal.SIGKILL)
        self.process.kill()
        self.process.wait(10)


@contextmanager
def other_harness(*preparation: str) -> Iterator[OtherHarness]:
    """A process that has made one host and carried out these statements about `hosts`; `said` may be a word."""
    lines = (
        "import sys",
        "from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts",
        "hosts, said = NamespaceHosts(1), '-'",
        *preparation,
        "print(hosts.supervisor.pid, hosts.supervisor.folder, said, flush=True)",
        "sys.stdin.read()",
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-c", "\n".join(lines)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        supervisor, folder, said = process.stdout.readline().split()
        yield OtherHarness(process, int(supervisor), Path(folder), said)


def groups_named(name: str) -> list[str]:
    """The control groups whose name begins so, of whatever version."""
    # Other groups come and go meanwhile, which a walk does not mind.
    found = [(folder, inner) for folder, below, _ in os.walk("/sys/fs/cgroup") for inner in below]
    return [f"{folder}/{inner}" for folder, inner in found if inner.startswith(name)]


def on_namespaces(test: Callable[..., None]) -> Callable[..., None]:
    """The test's argument `hosts` is what `opened` gave: with hosts run the test, with a refusal look at that."""

    @functools.wraps(test)
    def run(hosts: NamespaceHosts | HarnessError, **others: object) -> None:
        if isinstance(hosts, HarnessError):
            assert hosts.message and hosts.next_step and hosts.exit_code == 4
            assert all(missing.what in hosts.message for missing in missing_requirements())
        else:
            test(hosts, **others)

    return run
