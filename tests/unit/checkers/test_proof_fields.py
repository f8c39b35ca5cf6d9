"""Each field of a proof in turn holds something else: certificates are refused, and nothing but a refusal is raised."""

from __future__ import annotations

import copy

import msgspec
import pytest

from faultline.checkers import Operation, Proof, check
from faultline.harness.errors import UsageError

WRITES = [Operation(0, ("write", 1), 0, None, 1), Operation(0, ("write", 2), 2, None, 3)]
ENQUEUES = [Operation(0, ("enqueue", 1), 0, None, 1), Operation(0, ("enqueue", 2), 2, None, 3)]
HISTORIES = {
    "an order of a register": ("register", [*WRITES, Operation(1, "read", 4, 2, 5)]),
    "a set of a register": ("register", [*WRITES, Operation(1, "read", 4, 1, 5)]),
    "an order of a queue": ("linearizable-queue", [*ENQUEUES, Operation(1, "dequeue", 4, 1, 5)]),
    "a contradiction in a queue": ("linearizable-queue", [*ENQUEUES, Operation(1, "dequeue", 4, 3, 5)]),
    "a set of a mutex": ("mutex", [Operation(0, "acquire", 0, None, 1), Operation(1, "acquire", 2, None, 3)]),
}
OTHERS = (1 << 40, -5, 7, None, "x", [], True, {"a": 1})
GROUNDS = {"order", "configurations", "steps", "contradiction"}


def leaves(value, path=()):
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not children and not isinstance(value, dict | list):
        yield path
    for name, child in children:
        yield from leaves(child, (*path, name))


def with_other(proof, path, other):
    changed = copy.deepcopy(proof)
    at = changed
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = other
    return changed


@pytest.mark.parametrize("name", HISTORIES)
def test_a_proof_with_a_changed_field_is_refused(name):
    model, operations = HISTORIES[name]
    proof = msgspec.json.decode(check(model, operations).certificate.json())
    assert GROUNDS & set(proof["keys"][0])
    for path in leaves(proof):
        for other in OTHERS:
            changed = msgspec.json.encode(with_other(proof, path, other))
            if GROUNDS & set(path):
                with pytest.raises((UsageError, msgspec.ValidationError)):
                    msgspec.json.decode(changed, type=Proof).verify()
                continue
            # Another value, time or row may leave a proof of another history; then it is a proof like any other.
            try:
                msgspec.json.decode(changed, type=Proof).verify()
            except (UsageError, msgspec.ValidationError):
                continue
