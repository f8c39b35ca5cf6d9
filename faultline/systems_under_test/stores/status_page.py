"""The status page of a store's member: its own report over HTTP, as JSON."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

__all__ = ["StatusPage", "status_page"]


class StatusPage(NamedTuple):
    """HTTP's status code, and the body."""

    code: int
    body: bytes

    @property
    def told(self) -> Any:
        """The decoded body. Raises OSError when it is not JSON."""
        try:
            return msgspec.json.decode(self.body)
        except msgspec.DecodeError as error:
            raise OSError(f"no status: {error!r}") from error


def status_page(
    address: str, port: int, path: str, timeout_s: float, headers: Mapping[str, str] | None = None
) -> StatusPage:
    """Return the answer to GET `path` at `address` and `port`, over a connection of its own. Raises OSError."""
    connection = http.client.HTTPConnection(address, port, timeout=timeout_s)
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        answer = connection.getresponse()
        return StatusPage(answer.status, answer.read())
    except http.client.HTTPException as error:
        raise OSError(f"no status: {error!r}") from error
    finally:
        connection.close()
