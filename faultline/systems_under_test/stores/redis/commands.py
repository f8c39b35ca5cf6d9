"""The operations of Redis clients, as commands on one connection, and the errors of Redis that are definite.

Each operation is one command, or one script where Redis has no command for it: no other command runs during a script,
which makes the compare-and-set atomic. Values are JSON. A read is a script too, since `read` means the whole content of
the key: a string, a set or a list.

**Definite errors**, after which a change certainly did not happen. Redis checks all of these before it executes a
command (`processCommand`), and inside a script before it executes the script's only write:

| error | why nothing happened |
|---|---|
| `READONLY` | the member is a replica, and takes no writes |
| `NOREPLICAS` | a master that has fewer replicas than `min_replicas_to_write` takes no writes |
| `MASTERDOWN` | a replica without its master serves no requests |
| `LOADING` | the member is still reading its files |
| `MISCONF` | a member that could not write its files takes no writes |
| `OOM` | nor does a member whose memory is used up |
| `CLUSTERDOWN` | a member of Redis Cluster that does not see a majority, or not all slots, serves no requests |
| `MOVED`, `ASK`, `TRYAGAIN` | another member has the key's slot; the command is not executed here |

Every other failure is `info`. So is a write that the master executed, but that too few replicas confirmed within
`wait_timeout_ms` (`too-few-replicas`): the master keeps it, and its successor may or may not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, NOT_CONNECTED, Outcome, OutcomeRegistry, ok
from faultline.systems_under_test.stores.client import ForeignAnswer
from faultline.systems_under_test.stores.redis.connection import RedisConnection, RedisRefusal

__all__ = ["FUNCTIONS", "Waiting", "execute", "outcomes"]

FUNCTIONS = ("read", "write", "cas", "add", "append", "increment", "generate", "enqueue", "dequeue", "drain")
TOO_FEW_REPLICAS = "too-few-replicas"
NO_ANSWER_TO_WAIT = "wait-unanswered"

outcomes = OutcomeRegistry(
    [
        NOT_CONNECTED,
        CAS_MISMATCH,
        "READONLY",
        "NOREPLICAS",
        "MASTERDOWN",
        "LOADING",
        "MISCONF",
        "OOM",
        "CLUSTERDOWN",
        "MOVED",
        "ASK",
        "TRYAGAIN",
    ]
)
"""The errors after which a change certainly did not happen."""

_READ = """
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'string' then return redis.call('GET', KEYS[1]) end
if kind == 'set' then return redis.call('SMEMBERS', KEYS[1]) end
if kind == 'list' then return redis.call('LRANGE', KEYS[1], 0, -1) end
return false
"""
_DRAIN = """
local elements = redis.call('LRANGE', KEYS[1], 0, -1)
redis.call('DEL', KEYS[1])
return elements
"""
_COMPARE_AND_SET = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _decoded(answer: Any) -> Any:
    if isinstance(answer, list):
        return [msgspec.json.decode(element) for element in answer]
    return None if answer is None else msgspec.json.decode(answer)


_COMMANDS: Mapping[str, Callable[[str, Any], tuple[object, ...]]] = {
    "read": lambda key, _: ("EVAL_RO", _READ, 1, key),
    "write": lambda key, value: ("SET", key, _json(value)),
    "cas": lambda key, value: ("EVAL", _COMPARE_AND_SET, 1, key, *map(_json, value)),
    "add": lambda key, value: ("SADD", key, _json(value)),
    "append": lambda key, value: ("RPUSH", key, _json(value)),
    "increment": lambda key, value: ("INCRBY", key, 1 if value is None else value),
    "generate": lambda key, _: ("INCR", key),
    "enqueue": lambda key, value: ("RPUSH", key, _json(value)),
    "dequeue": lambda key, _: ("LPOP", key),
    "drain": lambda key, _: ("EVAL", _DRAIN, 1, key),
}


_RESULTS: Mapping[str, Callable[[Any], Any]] = {
    "increment": int,
    "generate": int,
    "dequeue": _decoded,
    "drain": _decoded,
}
"""The results of the changes that have one."""


_ANSWERS: Mapping[str, tuple[type, ...]] = {
    "read": (str, list, type(None)),
    "dequeue": (str, type(None)),
    "drain": (list,),
    **dict.fromkeys(("cas", "add", "append", "increment", "generate", "enqueue"), (int,)),
}
"""The types of Redis's answers to each."""


def _is_answer(f: str, answer: Any) -> bool:
    """Return whether Redis answers `f` in this form."""
    if f == "write":
        return bool(answer == "OK")
    return type(answer) in _ANSWERS[f] and (f != "cas" or answer in (0, 1))


def execute(connection: RedisConnection, operation: Operation, node: str, waiting: Waiting) -> Outcome:
    """Perform `operation` on the member `node`, and let a change wait for replicas.

    Raises the same errors as the connection.
    """
    answer = connection.ask(*_COMMANDS[operation.f](str(operation.key), operation.value))
    if not _is_answer(operation.f, answer):
        raise ForeignAnswer(f"{operation.f} was answered with {answer!r:.80}")
    if operation.f == "read":
        return ok(_decoded(answer), node)
    if operation.f == "cas" and not answer:
        return outcomes.outcome(CAS_MISMATCH, node)
    missing = waiting.missing(connection)
    if missing is not None:
        return outcomes.outcome(missing, node)
    return ok(_RESULTS.get(operation.f, lambda _: operation.value)(answer), node)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The number of replicas that must have a change before it counts as done, and the longest wait for them."""

    replicas: int
    timeout_ms: int

    def missing(self, connection: RedisConnection) -> str | None:
        """Return why the write that was just made over `connection` does not count; None when it does.

        The write was executed in any case, so no error of this command is definite.
        """
        if not self.replicas:
            return None
        try:
            return None if connection.ask("WAIT", self.replicas, self.timeout_ms) >= self.replicas else TOO_FEW_REPLICAS
        except RedisRefusal:
            return NO_ANSWER_TO_WAIT
