"""The files of one host: its keys, the configuration of its sshd, and the two scripts that bring it up.

`wire.sh` runs in the host's new network namespace, still among the supervisor's processes: it makes the cable to the
bridge. `init.sh` then runs as process 1 of the host: own name, own processes, a copy-on-write layer over the system's
changeable folders, and sshd in the end.

Two things make commands fast: root's login shell is /bin/sh, and it reads no start-up file of this machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import paramiko

from faultline.harness.world.hosts.namespaces.rootless import in_user_namespace

__all__ = ["HostFiles", "Site", "write_host"]

_OWN_FOLDERS = ("etc", "var", "root", "home")
_OWN_FOLDERS_AS_USER = ("etc", "var", "home")


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """One host's place: its name, its address, all hosts' names and addresses, and the hardware address of its link.

    The management address is where SSH finds it, over a link of its own.
    """

    name: str
    address: str
    everyone: tuple[tuple[str, str], ...]
    link_address: str
    management_address: str
    management_link_address: str


class HostFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a host: the folder for its processes, and the line that it has in `known_hosts`."""

    work: Path
    known_hosts_line: str


def write_host(folder: Path, layers: Path, site: Site, user_key: str, sshd: str) -> HostFiles:
    """Write the files of the host at `site` into `folder`; `user_key` is the public key that may log in."""
    work = folder / "work"
    work.mkdir(parents=True)
    host_key = paramiko.ECDSAKey.generate()
    host_key.write_private_key_file(str(folder / "hostkey"))
    (folder / "authorized_keys").write_text(f"{user_key}\n")
    (folder / "sshd_config").write_text("\n".join(_sshd_config(folder, site)) + "\n")
    (folder / "hosts").write_text("".join(f"{address} {name}\n" for name, address in _named(site.everyone)))
    (folder / "wire.sh").write_text(_wire_script(folder, site))
    (folder / "init.sh").write_text(_init_script(folder, layers, site.name, sshd))
    line = f"{site.address},{site.management_address} {host_key.get_name()} {host_key.get_base64()}"
    return HostFiles(work=work, known_hosts_line=line)


def _named(everyone: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [("localhost", "127.0.0.1"), *everyone]


def _sshd_config(folder: Path, site: Site) -> list[str]:
    return [
        f"ListenAddress {site.address}",
        f"ListenAddress {site.management_address}",
        f"HostKey {folder}/hostkey",
        f"PidFile {folder}/sshd.pid",
        f"AuthorizedKeysFile {folder}/authorized_keys",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "PermitRootLogin prohibit-password",
        "UseDNS no",
        "MaxStartups 100",
        "MaxSessions 100",
        "Subsystem sftp internal-sftp",
        "LogLevel ERROR",
    ]


def _wire_script(folder: Path, site: Site) -> str:
    # Process 1 is the supervisor: the far ends of the cables are made in its namespace, under the host's name.
    return f"""\
set -e
ip -batch - <<END
link add eth0 address {site.link_address} type veth peer name {site.name} netns 1
link add eth1 address {site.management_link_address} type veth peer name {site.name}m netns 1
link set lo up
addr add {site.address}/24 dev eth0
addr add {site.management_address}/24 dev eth1
link set eth0 up
link set eth1 up
END
nsenter --net=/proc/1/ns/net ip -batch - <<END
link set {site.name} master br0 up
link set {site.name}m master br1 up
END
exec unshare --mount --pid --uts --ipc --fork --kill-child=SIGKILL --mount-proc /bin/sh {folder}/init.sh
"""


# The machine's /root is closed to all but the machine's root, and so is the file that says who may log in.
_AS_USER = """\
mount -t tmpfs tmpfs /root
rm -f /etc/shadow
echo 'root:*:19000:0:99999:7:::' >/etc/shadow
"""


def _init_script(folder: Path, layers: Path, name: str, sshd: str) -> str:
    layer, as_user = layers / name, in_user_namespace()
    return f"""\
set -e
hostname {name}
for own in {" ".join(_OWN_FOLDERS_AS_USER if as_user else _OWN_FOLDERS)}; do
  mkdir -p {layer}/upper/$own {layer}/work/$own
  layers=lowerdir=/$own,upperdir={layer}/upper/$own,workdir={layer}/work/$own
  mount -t overlay overlay -o {"userxattr," * as_user}$layers /$own
done
{_AS_USER * as_user}mount -t tmpfs tmpfs /run
mkdir -p /run/sshd /run/lock
rm -f /etc/hosts /etc/hostname
cp {folder}/hosts /etc/hosts
echo {name} >/etc/hostname
sed -i '1s#:/bin/[a-z]*$#:/bin/sh#' /etc/passwd
: >/root/.bashrc
: >/root/.profile
exec {sshd} -D -f {folder}/sshd_config -E {folder}/sshd.log
"""
