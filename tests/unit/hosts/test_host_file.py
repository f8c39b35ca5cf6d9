"""The TOML of `--hosts ssh:FILE`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from faultline.harness.errors import UsageError
from faultline.harness.world.hosts.machines.host_file import read_host_file
from faultline.harness.world.hosts.machines.host_sets import parse_hosts

FILE = """
[defaults]
user = "admin"
key = "keys/id"
sudo = true
jump = "bastion"
known_hosts = ["known"]

[jumps.bastion]
address = "bastion.example.org"
user = "jumper"

[hosts.n1]
address = "10.0.0.11"

[hosts.n2]
address = "10.0.0.12"
port = 2222
sudo = false
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "hosts.toml"
    path.write_text(text)
    return path


def test_defaults_hold_for_every_host_that_does_not_say_otherwise(tmp_path: Path) -> None:
    first, second = read_host_file(written(tmp_path, FILE))
    assert (first.name, first.address, first.port, first.user, first.sudo) == ("n1", "10.0.0.11", 22, "admin", True)
    assert (second.name, second.port, second.sudo) == ("n2", 2222, False)
    assert first.check_host_key


def test_files_are_named_relative_to_the_host_file(tmp_path: Path) -> None:
    first, _ = read_host_file(written(tmp_path, FILE))
    assert (first.key, first.known_hosts) == (str(tmp_path / "keys/id"), (str(tmp_path / "known"),))


def test_a_jump_host_takes_the_defaults_but_needs_no_jump_itself(tmp_path: Path) -> None:
    first, _ = read_host_file(written(tmp_path, FILE))
    assert first.jump is not None and first.jump.jump is None
    assert (first.jump.address, first.jump.user, first.jump.key) == (
        "bastion.example.org",
        "jumper",
        str(tmp_path / "keys/id"),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "names no hosts"),
        ("[hosts.n1]\nport = 22\n", "the host n1: Object missing required field `address`"),
        ('[hosts.n1]\naddress = "a"\nuser_name = "b"\n', "the host n1: Object contains unknown field `user_name`"),
        ('[hosts.n1]\naddress = "a"\nport = "ssh"\n', r"Expected `int`, got `str` - at `\$.port`"),
        ('[hosts.n1]\naddress = "a"\njump = "b"\n', "reached through 'b', which is no jump host"),
        ('[host.n1]\naddress = "a"\n', r"a table \[host\], which means nothing"),
        ('[hosts]\nn1 = "10.0.0.1"\n', "hosts is not a table of hosts"),
        ("[hosts.n1\n", "not valid TOML"),
    ],
)
def test_a_mistake_is_named_with_the_file(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        read_host_file(written(tmp_path, text))
    assert "hosts.toml" in caught.value.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="absent.toml cannot be read: No such file"):
        read_host_file(tmp_path / "absent.toml")


RACKS = FILE + 'rack = "left"\n'


def test_hosts_say_in_which_rack_they_stand(tmp_path: Path) -> None:
    path = written(tmp_path, RACKS.replace("[hosts.n2]", 'rack = "right"\n[hosts.n2]'))
    hosts = parse_hosts(f"ssh:{path}")
    assert hosts.racks_instead_of(None) == ("right", "left")
    with pytest.raises(UsageError, match="--racks 2 contradicts the racks in"):
        hosts.racks_instead_of(2)


def test_a_host_without_a_rack_beside_hosts_with_one_is_told(tmp_path: Path) -> None:
    hosts = parse_hosts(f"ssh:{written(tmp_path, RACKS)}")
    with pytest.raises(UsageError, match="the host n1 has no rack, and others have one"):
        hosts.racks_instead_of(None)


def test_hosts_without_racks_stand_in_as_many_as_are_asked_for(tmp_path: Path) -> None:
    hosts = parse_hosts(f"ssh:{written(tmp_path, FILE)}")
    assert (hosts.racks_instead_of(2), hosts.racks_instead_of(None)) == (2, msgspec.UNSET)
