"""The connection to one host: opened when it is first needed, kept, and opened anew when it has broken.

A connection is tried several times, a command is sent at most once: a connection that does not come about has done
nothing, but a command that was cut off may have. The one case in which a command waits for a new connection is when
it had not been handed over yet.

TCP_NODELAY is set, since every command is a few small packets each way; with Nagle's algorithm each would wait for the
host's delayed acknowledgement, 40 ms.
"""

from __future__ import annotations

import io
import logging
import select
import shlex
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import paramiko

from faultline.harness.world.hosts.machines.errors import (
    CommandFailed,
    CommandLost,
    CommandTimedOut,
    HostError,
    HostKeyRefused,
    HostUnreachable,
    LoginRefused,
    TransferFailed,
    UnreadableAnswer,
)
from faultline.harness.world.hosts.machines.host import Host

__all__ = ["CommandResult", "Connection", "Patience"]

Result = TypeVar("Result")
_READ_BYTES = 65_536
OUTPUT_BYTES_MAX = 64 * 1024 * 1024
"""The bytes that a command may write; whatever a host sends, the harness keeps no more than that."""
_LOGIN_UNANSWERED = "Authentication timeout."
"""The words of paramiko, as if the login had been refused, when a busy host has not answered it yet."""

# Hosts that are powered off break connections; paramiko would tell standard error, but callers get a typed error.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """The time to wait: for a connection, between attempts and how many of them, and for a command by default."""

    connect_s: float = 5.0
    attempts: int = 3
    pause_s: float = 0.2
    command_s: float = 10.0


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """The exit code of a command and its output."""

    host: str
    command: str
    exit_code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output as text, without the white space around it."""
        return self.stdout.decode(errors="replace").strip()


class Connection:
    """The SSH connection to `host`. Any thread may use it; commands of several threads run side by side."""

    def __init__(self, host: Host, patience: Patience | None = None) -> None:
        self.host = host
        self.patience = patience or Patience()
        self._lock = threading.Lock()
        self._client: paramiko.SSHClient | None = None
        self._jump = Connection(host.jump, self.patience) if host.jump is not None else None
        self._sftp: paramiko.SFTPClient | None = None
        self._sftp_lock = threading.Lock()
        self._closed = False

    def run(
        self,
        command: str,
        *,
        stdin: bytes = b"",
        timeout_s: float | None = None,
        check: bool = True,
        root: bool = False,
    ) -> CommandResult:
        """Run `command` in the login shell and wait for its end.

        With `root`, it runs as root, through sudo where that is needed. Raises CommandFailed for a code other than 0
        unless `check` is off, CommandTimedOut, CommandLost, or one of the errors of connecting.
        """
        timeout_s = self.patience.command_s if timeout_s is None else timeout_s
        channel = self.open(self.as_root(command) if root else command)
        try:
            stdout, stderr = _talk(channel, stdin, timeout_s, self.host.name, command)
            exit_code = int(channel.recv_exit_status())
        finally:
            channel.close()
        if exit_code == -1:
            raise CommandLost(self.host.name, command, stdout, stderr)
        if check and exit_code != 0:
            raise CommandFailed(self.host.name, command, exit_code, stdout, stderr)
        return CommandResult(host=self.host.name, command=command, exit_code=exit_code, stdout=stdout, stderr=stderr)

    def open(self, command: str) -> Any:
        """Start `command` and return its channel, which is read from, written to and closed like a socket."""
        channel = self._channel()
        try:
            channel.exec_command(command)
        except (paramiko.SSHException, OSError, EOFError) as error:
            channel.close()
            raise CommandLost(self.host.name, command, b"", str(error).encode()) from error
        return channel

    def as_root(self, command: str) -> str:
        """Return `command` as root may run it on this host: through sudo where the host file says so."""
        return f"sudo -n sh -c {shlex.quote(command)}" if self.host.sudo else command

    def upload(self, content: bytes | Path, remote: str) -> None:
        """Write `content`, bytes or a file of ours, to the file `remote`. Raises TransferFailed."""

        def put(sftp: paramiko.SFTPClient) -> None:
            if isinstance(content, Path):
                sftp.put(str(content), remote)
            else:
                sftp.putfo(io.BytesIO(content), remote, file_size=len(content))

        self._transfer(put, f"be written to {remote}")

    def download(self, remote: str, local: Path) -> None:
        """Fetch the file `remote` into `local`. Raises TransferFailed."""
        self._transfer(lambda sftp: sftp.get(remote, str(local)), f"be fetched from {remote}")

    def _transfer(self, action: Callable[[paramiko.SFTPClient], Result], what: str) -> Result:
        with self._sftp_lock:
            try:
                if self._sftp is None or self._sftp.get_channel().closed:
                    self._sftp = paramiko.SFTPClient.from_transport(self._transport())
                    assert self._sftp is not None
                    self._sftp.get_channel().settimeout(self.patience.command_s)
                return action(self._sftp)
            except HostError:
                raise
            except (paramiko.SSHException, OSError, EOFError) as error:
                raise TransferFailed(
                    self.host.name,
                    f"On {self.host.name}, a file could not {what}: {error or type(error).__name__}.",
                    "Is there room, may this user write there, and does the server offer SFTP?",
                ) from error

    def close(self) -> None:
        """Hang up for good; harmless when it was never opened."""
        with self._lock:
            self._closed = True
            client, self._client, self._sftp = self._client, None, None
        if client is not None:
            client.close()
        if self._jump is not None:
            self._jump.close()

    def _channel(self) -> paramiko.Channel:
        """Return a fresh channel, over a fresh connection when the old one has broken: no command went over it yet."""
        try:
            return self._transport().open_session(timeout=self.patience.connect_s)
        except (paramiko.SSHException, OSError, EOFError):
            self.drop()
        try:
            return self._transport().open_session(timeout=self.patience.connect_s)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise self._unreachable(error) from error

    def drop(self) -> None:
        """Let go of a connection that has broken, or is about to; the next command makes a new one."""
        with self._lock:
            client, self._client, self._sftp = self._client, None, None
        if client is not None:
            client.close()

    def _transport(self) -> paramiko.Transport:
        with self._lock:
            transport = self._client.get_transport() if self._client is not None else None
            if transport is None or not transport.is_active():
                if self._closed:
                    raise HostUnreachable(self.host.name, f"The connection to {self.host.name} has been closed.")
                self._client = self._connect()
                transport = self._client.get_transport()
            assert transport is not None
            return transport

    def _connect(self) -> paramiko.SSHClient:
        error: Exception = OSError("no attempt was allowed")
        for attempt in range(self.patience.attempts):
            if attempt:
                time.sleep(self.patience.pause_s)
            try:
                return self._attempt()
            except HostError:
                raise
            except (paramiko.SSHException, OSError, EOFError) as failure:
                error = failure
        raise self._unreachable(error) from error

    def _attempt(self) -> paramiko.SSHClient:
        client, host = self._new_client(), self.host
        try:
            client.connect(
                host.way_in,
                port=host.port,
                username=host.user,
                pkey=self._key(),
                allow_agent=host.key is None,
                look_for_keys=host.key is None,
                timeout=self.patience.connect_s,
                banner_timeout=self.patience.connect_s,
                auth_timeout=self.patience.connect_s,
                sock=self._way_there(),
            )
        except paramiko.BadHostKeyException as error:
            client.close()
            raise self._key_refused("shows another key than the known one") from error
        except paramiko.AuthenticationException as error:
            client.close()
            if str(error) == _LOGIN_UNANSWERED:
                raise TimeoutError("the login was not answered in time") from error
            raise self._login_refused(str(error)) from error
        except BaseException:
            client.close()
            raise
        _send_at_once(client)
        return client

    def _key(self) -> Any:
        """Return the user's key, whatever its kind; None when the agent and the usual files are to be asked."""
        if self.host.key is None:
            return None
        try:
            return paramiko.PKey.from_path(self.host.key)
        except (OSError, paramiko.SSHException, ValueError) as error:
            raise self._login_refused(f"the key {self.host.key} cannot be read: {error}") from error

    def _new_client(self) -> paramiko.SSHClient:
        client = paramiko.SSHClient()
        if self.host.check_host_key:
            client.load_system_host_keys()
            for file in self.host.known_hosts:
                client.load_host_keys(file)
            client.set_missing_host_key_policy(_Refuse(self._key_refused))
        else:
            # The host file asks for it by name; without that, an unknown host is refused.
            client.set_missing_host_key_policy(_TakeAny())
        return client

    def _way_there(self) -> Any:
        if self._jump is None:
            return None
        there = (self.host.way_in, self.host.port)
        return self._jump._transport().open_channel("direct-tcpip", there, ("", 0), timeout=self.patience.connect_s)

    def _where(self) -> str:
        return f"{self.host.name} ({self.host.user}@{self.host.way_in}:{self.host.port})"

    def _unreachable(self, error: BaseException) -> HostUnreachable:
        attempts = self.patience.attempts
        reason = str(error) or type(error).__name__
        return HostUnreachable(
            self.host.name,
            f"The host {self._where()} cannot be reached in {attempts} attempts: {reason.rstrip('.')}.",
            f"Does its sshd run? Try: ssh -p {self.host.port} {self.host.user}@{self.host.way_in}",
        )

    def _key_refused(self, what: str) -> HostError:
        return HostKeyRefused(
            self.host.name,
            f"The host {self._where()} {what}.",
            f"Compare the key, then run: ssh-keyscan -p {self.host.port} {self.host.way_in} >> ~/.ssh/known_hosts",
        )

    def _login_refused(self, why: str) -> LoginRefused:
        return LoginRefused(
            self.host.name,
            f"The host {self._where()} does not let this user in: {why.rstrip('.')}.",
            f"Check user and key in the host file ({self.host.key or 'no key is named'}).",
        )


class _Refuse(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]  # paramiko has no types
    def __init__(self, refusal: Callable[[str], HostError]) -> None:
        self._refusal = refusal

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        raise self._refusal(f"shows a key that no known_hosts file has ({key.get_name()} {key.fingerprint})")


class _TakeAny(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]  # paramiko has no types
    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Accept any key."""


def _send_at_once(client: paramiko.SSHClient) -> None:
    transport = client.get_transport()
    connection = transport.sock if transport is not None else None
    if isinstance(connection, socket.socket):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _talk(channel: paramiko.Channel, stdin: bytes, timeout_s: float, host: str, command: str) -> tuple[bytes, bytes]:
    """Send `stdin` and read both streams to their ends."""
    deadline_s = time.monotonic() + timeout_s
    stdout, stderr = bytearray(), bytearray()
    try:
        channel.settimeout(timeout_s)
        if stdin:
            channel.sendall(stdin)
        channel.shutdown_write()
        while _drained(channel, stdout, stderr):
            if len(stdout) + len(stderr) > OUTPUT_BYTES_MAX:
                raise UnreadableAnswer(
                    host, f"`{command}`, which wrote more than {OUTPUT_BYTES_MAX} bytes,", bytes(stdout)
                )
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            select.select([channel], [], [], left_s)
        if not channel.status_event.wait(max(deadline_s - time.monotonic(), 0)):
            raise TimeoutError
    except TimeoutError as error:
        raise CommandTimedOut(host, command, timeout_s, bytes(stdout), bytes(stderr)) from error
    except OSError as error:
        raise CommandLost(host, command, bytes(stdout), bytes(stderr)) from error
    return bytes(stdout), bytes(stderr)


def _drained(channel: paramiko.Channel, stdout: bytearray, stderr: bytearray) -> bool:
    """Take the bytes that have arrived, and return whether more may come."""
    # Asked before the reads: what came before the end is then read for certain.
    ended = channel.eof_received or channel.closed
    if channel.recv_ready():
        stdout += channel.recv(_READ_BYTES)
    if channel.recv_stderr_ready():
        stderr += channel.recv_stderr(_READ_BYTES)
    return not ended or channel.recv_ready() or channel.recv_stderr_ready()
