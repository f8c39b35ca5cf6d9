"""The paramiko layer, against a server in this very process."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import paramiko
import pytest
from ssh_server import HOST, SshServer

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.machines import connection as connection_module
from faultline.harness.world.hosts.machines.connection import Connection, Patience
from faultline.harness.world.hosts.machines.errors import (
    CommandFailed,
    CommandLost,
    CommandTimedOut,
    HostKeyRefused,
    HostsFailed,
    HostUnreachable,
    LoginRefused,
    TransferFailed,
    UnreadableAnswer,
)
from faultline.harness.world.hosts.machines.fleet import Fleet
from faultline.harness.world.hosts.machines.host import Host

QUICK = Patience(connect_s=30.0, attempts=2, pause_s=0.01, command_s=30.0)
"""Tries again soon; a busy machine has time enough for each try."""


def changed(host: Host, **fields: object) -> Host:
    return msgspec.structs.replace(host, **fields)


def test_a_command_gives_both_streams_and_its_code(connection: Connection) -> None:
    result = connection.run("echo out; echo err >&2; exit 3", check=False)
    assert (result.stdout, result.stderr, result.exit_code) == (b"out\n", b"err\n", 3)
    assert (result.host, result.command, result.text) == ("n1", "echo out; echo err >&2; exit 3", "out")


def test_a_failure_is_an_error_with_host_command_code_and_both_streams(connection: Connection) -> None:
    with pytest.raises(CommandFailed, match="On n1, `echo out; echo err >&2; exit 3` ended with code 3: err") as caught:
        connection.run("echo out; echo err >&2; exit 3")
    error = caught.value
    assert (error.host, error.exit_code, error.stdout, error.stderr) == ("n1", 3, b"out\n", b"err\n")
    assert isinstance(error, HarnessError) and error.exit_code != 0


def test_a_command_reads_what_it_is_given(connection: Connection) -> None:
    assert connection.run("tr a-z A-Z", stdin=b"hello").stdout == b"HELLO"


def test_more_than_a_window_of_both_streams_comes_through(connection: Connection) -> None:
    result = connection.run("head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero")
    assert (len(result.stdout), len(result.stderr)) == (3_000_000, 3_000_000)


def test_a_command_that_writes_without_end_is_given_up(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "OUTPUT_BYTES_MAX", 100_000)
    with pytest.raises(UnreadableAnswer, match="which wrote more than 100000 bytes, answered what is no answer"):
        connection.run("head -c 3000000 /dev/zero")


def test_a_command_that_takes_too_long_is_given_up_with_its_name(connection: Connection, tmp_path: Path) -> None:
    command = f"until test -e {tmp_path}/over; do sleep 0.01; done"
    with pytest.raises(CommandTimedOut, match="had not ended after 0.1 s") as caught:
        connection.run(command, timeout_s=0.1)
    assert caught.value.command == command
    (tmp_path / "over").touch()


def test_commands_share_one_connection_and_no_small_packet_waits(connection: Connection, server: SshServer) -> None:
    for _ in range(3):
        connection.run("true")
    transport = connection._transport()
    assert server.callers == 1
    assert transport.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_broken_connection_is_opened_anew(connection: Connection, server: SshServer) -> None:
    connection.run("true")
    server.hang_up()
    assert connection.run("echo again").text == "again"
    assert server.callers == 2


def test_a_command_that_was_cut_off_is_not_sent_again(connection: Connection, server: SshServer) -> None:
    with pytest.raises(CommandLost):
        connection.run("hang up")
    assert server.commands == ["hang up"]


def test_a_closed_connection_stays_closed(connection: Connection) -> None:
    connection.close()
    with pytest.raises(HostUnreachable, match="closed"):
        connection.run("true")


def test_a_server_that_hangs_up_at_first_is_tried_again(tmp_path: Path) -> None:
    server = SshServer(tmp_path, refuse=1)
    host = Host(
        name="n1", address=HOST, port=server.port, key=str(server.key_file), known_hosts=(str(server.known_hosts),)
    )
    try:
        with Fleet([host], QUICK) as fleet:
            assert fleet.run("echo in")["n1"].text == "in"
        assert server.callers == 2
    finally:
        server.close()


def test_a_closed_port_is_named_with_the_attempts() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    connection = Connection(Host(name="n9", address=HOST, port=port), QUICK)
    with pytest.raises(HostUnreachable, match=f"n9 .root@{HOST}:{port}. cannot be reached in 2 attempts") as caught:
        connection.run("true")
    assert "ssh -p" in caught.value.next_step


def test_an_unknown_host_key_is_refused_unless_switched_off(host: Host) -> None:
    unknown = changed(host, known_hosts=())
    with pytest.raises(HostKeyRefused, match="no known_hosts file has"):
        Connection(unknown, QUICK).run("true")
    trusting = Connection(changed(unknown, check_host_key=False), QUICK)
    assert trusting.run("echo in").text == "in"
    trusting.close()


def test_another_host_key_than_the_known_one_is_refused(host: Host, server: SshServer, tmp_path: Path) -> None:
    other = paramiko.ECDSAKey.generate()
    known = tmp_path / "other_known_hosts"
    known.write_text(f"[{HOST}]:{server.port} {other.get_name()} {other.get_base64()}\n")
    with pytest.raises(HostKeyRefused, match="another key"):
        Connection(changed(host, known_hosts=(str(known),)), QUICK).run("true")


def test_the_wrong_key_of_a_user_is_refused_by_name_and_not_tried_again(
    host: Host, server: SshServer, tmp_path: Path
) -> None:
    paramiko.ECDSAKey.generate().write_private_key_file(str(tmp_path / "wrong"))
    with pytest.raises(LoginRefused, match="does not let this user in"):
        Connection(changed(host, key=str(tmp_path / "wrong")), QUICK).run("true")
    assert server.callers == 1


def test_a_login_that_is_not_answered_in_time_is_no_refusal_and_is_tried_again(host: Host, server: SshServer) -> None:
    server.answers_logins.clear()
    busy = Connection(host, Patience(connect_s=0.5, attempts=2, pause_s=0.01))
    with pytest.raises(HostUnreachable, match="cannot be reached in 2 attempts"):
        busy.run("true")
    assert all(server.called.acquire(timeout=30) for _ in range(2))


def test_a_key_file_that_is_not_there_is_named(host: Host, tmp_path: Path) -> None:
    with pytest.raises(LoginRefused, match="absent"):
        Connection(changed(host, key=str(tmp_path / "absent")), QUICK).run("true")


def test_root_goes_through_sudo_only_where_the_host_asks_for_it(host: Host) -> None:
    assert Connection(host).as_root("nft list ruleset") == "nft list ruleset"
    assert Connection(changed(host, sudo=True)).as_root("echo 'a b'") == "sudo -n sh -c 'echo '\"'\"'a b'\"'\"''"


def test_files_go_there_and_back(connection: Connection, tmp_path: Path) -> None:
    there, back, large = tmp_path / "there", tmp_path / "back", tmp_path / "large"
    connection.upload(b"content", str(there))
    connection.download(str(there), back)
    assert back.read_bytes() == b"content"
    large.write_bytes(bytes(300_000))
    connection.upload(large, str(there))
    assert there.stat().st_size == 300_000


def test_a_file_that_is_not_there_is_named(connection: Connection, tmp_path: Path) -> None:
    with pytest.raises(TransferFailed, match="be fetched from /no/such/file"):
        connection.download("/no/such/file", tmp_path / "back")
    assert connection.run("echo still here").text == "still here"


def test_a_host_behind_another_is_reached_through_it(host: Host, server: SshServer, tmp_path: Path) -> None:
    inner_folder = tmp_path / "inner"
    inner_folder.mkdir()
    inner = SshServer(inner_folder)
    behind = Host(
        name="n2",
        address=HOST,
        port=inner.port,
        key=str(inner.key_file),
        known_hosts=(str(inner.known_hosts),),
        jump=host,
    )
    try:
        with Fleet([behind], QUICK) as fleet:
            assert fleet.run("echo inside")["n2"].text == "inside"
        assert server.forwarded == [(HOST, inner.port)] and inner.commands == ["echo inside"]
    finally:
        inner.close()


def test_a_fan_out_runs_on_all_hosts_at_the_same_time(host: Host, tmp_path: Path) -> None:
    # Each command waits until the other has begun: one after the other they would never end.
    for name in ("a", "b"):
        (tmp_path / f"{name}.other").write_text(str(tmp_path / ("b" if name == "a" else "a")))
    meet = "touch {folder}/{own}; until test -e {folder}/{other}; do sleep 0.01; done; echo {own}"
    with Fleet([changed(host, name="a"), changed(host, name="b")], QUICK) as fleet:
        met = fleet.each(
            lambda connection: (
                connection.run(
                    meet.format(
                        folder=tmp_path, own=connection.host.name, other="b" if connection.host.name == "a" else "a"
                    )
                ).text
            )
        )
    assert met == {"a": "a", "b": "b"}


def test_a_fan_out_names_every_host_that_failed_and_waits_for_the_rest(host: Host, server: SshServer) -> None:
    lost = changed(host, known_hosts=())
    with Fleet([host, changed(lost, name="n2"), changed(lost, name="n3")], QUICK) as fleet:
        with pytest.raises(HostsFailed, match="2 hosts failed .n2, n3.") as caught:
            fleet.run("echo in")
        outcomes = fleet.attempt(lambda connection: connection.run("echo in").text)
    assert set(caught.value.errors) == {"n2", "n3"}
    assert outcomes["n1"] == "in" and isinstance(outcomes["n3"], HostKeyRefused)
