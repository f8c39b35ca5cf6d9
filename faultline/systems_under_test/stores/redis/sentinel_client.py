"""A client of Redis behind Sentinel: the member that it asks, and with which it stays.

It follows the protocol for Sentinel clients: ask a Sentinel for the master, ask the master for its role, stay with it
until the connection breaks or it answers with an error, then ask the next Sentinel. So clients of a deposed master stay
with it, as they do in production.
"""

from __future__ import annotations

from dataclasses import dataclass

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.systems_under_test.stores.redis.client import RedisClient
from faultline.systems_under_test.stores.redis.commands import execute
from faultline.systems_under_test.stores.redis.connection import RedisConnection, RedisRefusal, ask_once

__all__ = ["MASTER", "REDIS_PORT", "SENTINEL_PORT", "SentinelClient", "SentinelSession"]

REDIS_PORT = 6379
SENTINEL_PORT = 26379
MASTER = "faultline"
"""The name under which the Sentinels know the master."""


@dataclass(slots=True)
class SentinelSession:
    """The connections of one client: to the master, and to the member for reads; each with the member's name."""

    master: RedisConnection
    master_name: str
    reader: RedisConnection
    reader_name: str


class SentinelClient(RedisClient[SentinelSession]):
    """One client process; with `reads_replicas` it reads from its own member, and asks Sentinels only for writes."""

    def connect(self, address: str) -> SentinelSession:
        """Ask the Sentinel at `address` for the master, and the master whether it is one."""
        asked = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)
        found = ask_once(address, SENTINEL_PORT, *asked, timeout_s=self._timeout_s, password=self._password)
        if not found:
            raise RedisRefusal("NOMASTER", "the Sentinel knows none")
        master = RedisConnection(found[0], int(found[1]), self._timeout_s, self._password)
        try:
            # A Sentinel that is cut off still names the old master, which may have become a replica.
            if (role := master.ask("ROLE")[0]) != "master":
                raise RedisRefusal("NOMASTER", f"it is a {role}")
            reader = master
            if self._reads_replicas:
                reader = RedisConnection(address, REDIS_PORT, self._timeout_s, self._password)
        except BaseException:
            master.close()
            raise
        read_at = address if self._reads_replicas else found[0]
        return SentinelSession(master, self._names[found[0]], reader, self._names[read_at])

    def hang_up(self, connection: SentinelSession) -> None:
        """Close both connections."""
        connection.master.close()
        connection.reader.close()

    def is_open(self, connection: SentinelSession) -> bool:
        """Return whether both connections are open: a master that becomes a replica hangs up on its clients."""
        return connection.master.is_open() and connection.reader.is_open()

    def perform(self, connection: SentinelSession, operation: Operation, node: str) -> Outcome:
        """Perform changes on the master, and reads on the member for reads."""
        if operation.f in self.reads:
            return execute(connection.reader, operation, connection.reader_name, self._waiting)
        return execute(connection.master, operation, connection.master_name, self._waiting)

    def answering(self, connection: SentinelSession, operation: Operation, node: str) -> str:
        """Return the name of the master or of the member for reads, not of the Sentinel's member."""
        return connection.reader_name if operation.f in self.reads else connection.master_name
