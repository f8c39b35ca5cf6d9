"""The parts of `consistent-core`: what its servers are made of, their class, and what is put before its clients."""

from __future__ import annotations

from dataclasses import dataclass

from faultline.systems_under_test.reference.raft.client import KeyValueClient
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.parts import Parts

__all__ = ["CoreParts"]


@dataclass(frozen=True, slots=True)
class CoreParts(Parts):
    """The classes that servers and clients are made of; only a planted bug puts something in front of clients."""

    node: type[KeyValueServer] = KeyValueServer
    client: type[KeyValueClient] | None = None
