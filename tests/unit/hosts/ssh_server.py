"""An SSH server inside the test's own process, on loopback: it runs commands with /bin/sh and serves files by SFTP."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import paramiko

HOST = "127.0.0.1"


class Files(paramiko.SFTPServerInterface):
    """Files by their absolute paths, as the server's user may read and write them."""

    def stat(self, path):
        try:
            return paramiko.SFTPAttributes.from_stat(os.stat(path))
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)

    def open(self, path, flags, attr):
        try:
            file = os.fdopen(os.open(path, flags, 0o600), "r+b" if flags & (os.O_WRONLY | os.O_RDWR) else "rb")
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)
        handle = paramiko.SFTPHandle(flags)
        handle.filename, handle.readfile, handle.writefile = path, file, file
        handle.stat = lambda: paramiko.SFTPAttributes.from_stat(os.fstat(file.fileno()))
        return handle


class Session(paramiko.ServerInterface):
    def __init__(self, server: SshServer) -> None:
        self.server = server

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED if kind == "session" else paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def get_allowed_auths(self, username):
        return "publickey"

    def check_auth_publickey(self, username, key):
        self.server.answers_logins.wait()
        known = username == "root" and key == self.server.user_key
        return paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED

    def check_channel_exec_request(self, channel, command):
        self.server.commands.append(command.decode())
        self.server.spawn(lambda: self.server.carry_out(channel, command.decode()))
        return True

    def check_channel_direct_tcpip_request(self, chanid, origin, destination):
        self.server.forwarded.append(destination)
        self.server.destinations[chanid] = destination
        return paramiko.OPEN_SUCCEEDED


class SshServer:
    """Listens on a free port until closed. `refuse` greets that many callers by hanging up."""

    def __init__(self, folder: Path, *, refuse: int = 0) -> None:
        self.folder = folder
        self.refuse = refuse
        self.host_key = paramiko.ECDSAKey.generate()
        self.user_key = paramiko.ECDSAKey.generate()
        self.key_file = folder / "id"
        self.user_key.write_private_key_file(str(self.key_file))
        self.answers_logins = threading.Event()
        self.answers_logins.set()
        self.commands: list[str] = []
        self.forwarded: list[tuple[str, int]] = []
        self.destinations: dict[int, tuple[str, int]] = {}
        self.callers = 0
        self.called = threading.Semaphore(0)
        """Released for each of them."""
        self.transports: list[paramiko.Transport] = []
        self.channels: list[paramiko.Channel] = []
        """All that were ever opened: paramiko closes a channel without references, even before its command comes."""
        self.threads: list[threading.Thread] = []
        self.listener = socket.create_server((HOST, 0))
        self.port = self.listener.getsockname()[1]
        self.closed = False
        self.spawn(self.accept)

    @property
    def known_hosts(self) -> Path:
        file = self.folder / "known_hosts"
        file.write_text(f"[{HOST}]:{self.port} {self.host_key.get_name()} {self.host_key.get_base64()}\n")
        return file

    def spawn(self, action) -> None:
        def guarded() -> None:
            # Clients under test hang up whenever it pleases them.
            with suppress(OSError, EOFError, paramiko.SSHException):
                action()

        thread = threading.Thread(target=guarded, daemon=True)
        self.threads.append(thread)
        thread.start()

    def accept(self) -> None:
        while not self.closed:
            connection, _ = self.listener.accept()
            self.callers += 1
            self.called.release()
            if self.callers <= self.refuse:
                connection.close()
            else:
                self.serve(connection)

    def serve(self, connection: socket.socket) -> None:
        transport = paramiko.Transport(connection)
        transport.add_server_key(self.host_key)
        transport.set_subsystem_handler("sftp", paramiko.SFTPServer, Files)
        self.transports.append(transport)
        self.spawn(lambda: self.take_channels(transport))

    def take_channels(self, transport: paramiko.Transport) -> None:
        transport.start_server(server=Session(self))
        while transport.is_active():
            channel = transport.accept(0.05)
            if channel is None:
                continue
            self.channels.append(channel)
            destination = self.destinations.pop(channel.chanid, None)
            if destination is not None:
                self.spawn(lambda channel=channel, destination=destination: pump(channel, destination))

    def carry_out(self, channel: paramiko.Channel, command: str) -> None:
        if command == "hang up":
            channel.get_transport().close()
            return
        stdin = channel.makefile("rb").read()
        done = subprocess.run(["/bin/sh", "-c", command], input=stdin, capture_output=True, check=False)
        channel.sendall(done.stdout)
        channel.sendall_stderr(done.stderr)
        channel.send_exit_status(done.returncode)
        channel.close()

    def hang_up(self) -> None:
        """Drop all connections, as a server that is started anew does."""
        for transport in self.transports:
            transport.close()
        self.transports.clear()

    def close(self) -> None:
        self.closed = True
        self.answers_logins.set()
        # A blocked accept does not notice that its listener was closed; a last caller wakes it.
        with socket.create_connection((HOST, self.port)):
            pass
        self.listener.close()
        self.hang_up()
        for thread in self.threads:
            thread.join(30)


def pump(channel: paramiko.Channel, destination: tuple[str, int]) -> None:
    with socket.create_connection(destination) as other:
        back = threading.Thread(target=copy, args=(other.recv, channel.sendall), daemon=True)
        back.start()
        copy(channel.recv, other.sendall)


def copy(read, write) -> None:
    try:
        while data := read(65_536):
            write(data)
    except OSError:
        return
