"""A run folder may be shown: neither the secret of the run, nor what the host file says of keys, is in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from namespace_fixtures import host_file_of, on_namespaces

from faultline.cli.main import perform
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.local.handshake import RunSecret

pytestmark = [pytest.mark.real, pytest.mark.slow]

WORDS = ["run", "--faults", "none", "--duration", "1", "--operations", "60", "--json"]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[RunSecret]:
    """The secrets of the runs that are begun meanwhile."""
    secrets: list[RunSecret] = []
    draw = RunSecret.drawn

    def noted() -> RunSecret:
        secrets.append(draw())
        return secrets[-1]

    monkeypatch.setattr(RunSecret, "drawn", noted)
    return secrets


def assert_nothing_tells(folder: Path, output: str, *secrets: bytes) -> None:
    """No file below `folder`, and nothing that was printed, has one of these in it."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert {"run.json", "verdict.json", "history.jsonl", "node.log"} <= {file.name for file in files}
    for secret in secrets:
        assert [file for file in files if secret in file.read_bytes()] == []
        assert secret.decode(errors="replace") not in output


def forms(secret: RunSecret) -> list[bytes]:
    """Return the forms in which a secret might be written down."""
    key = secret.reveal()
    return [key, key.hex().encode(), repr(key)[2:-1].encode(), secret.password().encode()]


def test_a_local_run_keeps_its_secret_to_itself(
    drawn: list[RunSecret], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert perform([*WORDS, "--world", "local", "--output", str(tmp_path)]) == 0
    said = capfd.readouterr()
    (secret,) = drawn
    assert_nothing_tells(tmp_path, said.out + said.err, *forms(secret))


@on_namespaces
def test_a_run_over_ssh_keeps_its_secret_and_the_host_files_key_to_itself(
    hosts: NamespaceHosts, drawn: list[RunSecret], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key, known_hosts = hosts.hosts[0].key, hosts.hosts[0].known_hosts[0]
    assert key is not None
    host_file = host_file_of(hosts, tmp_path / "hosts.toml")
    store = tmp_path / "store"
    perform([*WORDS, "--hosts", f"ssh:{host_file}", "--output", str(store)])
    said = capfd.readouterr()
    (secret,) = drawn
    told = [Path(key).read_bytes().split(b"\n")[1], key.encode(), known_hosts.encode()]
    assert_nothing_tells(store, said.out + said.err, *forms(secret), *told)
    (run,) = store.glob("runs/*/run.json")
    assert json.loads(run.read_bytes())["hosts"] == f"ssh:{host_file}", "the file is named, and not copied"
