"""Many hosts at once: the connections to all of them, and the same thing done on each in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from faultline.harness.world.hosts.machines.connection import CommandResult, Connection, Patience
from faultline.harness.world.hosts.machines.errors import HostError, HostsFailed
from faultline.harness.world.hosts.machines.host import Host

__all__ = ["Fleet"]

Result = TypeVar("Result")
Subject = TypeVar("Subject")


class Fleet:
    """The pool of connections to `hosts`, one per host. Use it as a context manager, or close it."""

    def __init__(self, hosts: Iterable[Host], patience: Patience | None = None) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.connections = {name: Connection(host, patience) for name, host in self.hosts.items()}
        self._workers = ThreadPoolExecutor(max(len(self.hosts), 1), "fleet")

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __getitem__(self, name: str) -> Connection:
        return self.connections[name]

    def each(self, action: Callable[[Connection], Result]) -> dict[str, Result]:
        """Do `action` on every host at the same time.

        All are waited for. Raises the error of the host that failed, or HostsFailed when several did.
        """
        outcomes = self.attempt(action)
        errors = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, HostError)}
        if errors:
            raise next(iter(errors.values())) if len(errors) == 1 else HostsFailed(errors)
        return {name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, HostError)}

    def attempt(self, action: Callable[[Connection], Result]) -> dict[str, Result | HostError]:
        """Do `action` on every host at the same time; a host that fails answers with its error instead."""

        def guarded(connection: Connection) -> Result | HostError:
            try:
                return action(connection)
            except HostError as error:
                return error

        started = {name: self._workers.submit(guarded, link) for name, link in self.connections.items()}
        return {name: future.result() for name, future in started.items()}

    def at_once(self, action: Callable[[Subject], Result], subjects: Iterable[Subject]) -> list[Result]:
        """Do `action` on each of `subjects` at the same time; raises the first error."""
        return list(self._workers.map(action, subjects))

    def run(self, command: str, *, timeout_s: float | None = None, root: bool = False) -> dict[str, CommandResult]:
        """Run `command` on every host; errors as in `each`."""
        return self.each(lambda connection: connection.run(command, timeout_s=timeout_s, root=root))

    def close(self) -> None:
        """Hang up on all hosts."""
        for connection in self.connections.values():
            connection.close()
        self._workers.shutdown()
