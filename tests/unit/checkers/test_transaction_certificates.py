"""Certificates of transactions: what each kind shows, that levels forbid no more than the models do, and refusals."""

from __future__ import annotations

import copy
import itertools

import msgspec
import pytest
from transaction_histories import concurrent, one_after_another

from faultline.checkers import Operation, check
from faultline.checkers.porcupine.budget import UNLIMITED
from faultline.checkers.transactions.certificates import Contradiction, Edge, TransactionCertificate
from faultline.checkers.transactions.checker import check_transactions
from faultline.checkers.transactions.edges import EdgeKind
from faultline.checkers.transactions.levels import LEVELS
from faultline.checkers.transactions.models import canonical, ruled_out
from faultline.checkers.transactions.proof import TransactionProof, proof_of_transactions
from faultline.checkers.transactions.shapes import classify
from faultline.checkers.transactions.verify import fault_of
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Verdict

LISTS, REGISTERS = "list-append", "rw-register"
SKEW = ("rx- wy1", "ry- wx2")
TORN = ("wx1 wy2", "rx1 ry-")
OPEN_ORDER = ("wx1 wy2", "wx3 wy4", "rx1 ry4")
"""Whichever of the two writers is the later, the reader saw half of it."""


def proof_of(history, kind=LISTS, model="serializable"):
    return proof_of_transactions(history, kind, check_transactions(history, kind, model), "it", UNLIMITED)


def made(*args, **options):
    proof = proof_of(*args, **options)
    assert proof.certificate is not None, proof.missing
    assert fault_of(proof.kind, proof.model, proof.transactions, proof.certificate) == ""
    return proof.certificate


@pytest.mark.parametrize(
    ("kind", "model", "history", "rule", "because"),
    [
        (LISTS, "read-committed", concurrent("fail:ax1", "rx[1]"), "aborted-read", ((0, 0), (1, 0))),
        (REGISTERS, "read-committed", concurrent("fail:wx1", "rx1"), "aborted-read", ((0, 0), (1, 0))),
        (LISTS, "read-committed", concurrent("ax1 ax2", "rx[1]"), "intermediate-read", ((0, 0), (1, 0))),
        (REGISTERS, "read-committed", concurrent("wx1 wx2", "rx1"), "intermediate-read", ((0, 0), (1, 0))),
        (LISTS, "read-uncommitted", concurrent("ax1", "rx[7]"), "garbage-read", ((1, 0),)),
        (LISTS, "read-uncommitted", concurrent("ax1", "rx[1,1]"), "duplicate-elements", ((1, 0),)),
        (REGISTERS, "serializable", concurrent("wx1 rx2", "wx2"), "internal", ((0, 1),)),
        (LISTS, "serializable", concurrent("ax1 rx-", "ay2"), "internal", ((0, 1),)),
        (REGISTERS, "read-committed", concurrent("rx1 wx1"), "future-read", ((0, 1), (0, 0))),
        (LISTS, "read-committed", concurrent("ax1", "ax2", "rx[1]", "rx[2]"), "incompatible-order", ((2, 0), (3, 0))),
        (LISTS, "snapshot-isolation", concurrent("rx- ax1", "rx- ax2", "rx[1,2]"), "lost-update",
         ((0, 0), (0, 1), (1, 0), (1, 1))),
    ],
)  # fmt: skip
def test_a_contradiction_names_the_rule_and_the_steps_that_break_it(kind, model, history, rule, because):
    assert made(history, kind, model).contradiction == Contradiction(rule, because)


def test_a_cycle_names_the_steps_behind_each_edge():
    cycle = made(concurrent(*SKEW), REGISTERS).cycle
    assert set(cycle) == {Edge(0, "rw", ((0, 0), (1, 1))), Edge(1, "rw", ((1, 0), (0, 1)))}
    kinds = [edge.kind for edge in made(one_after_another("ax1", "rx-"), LISTS, "strict-serializable").cycle]
    assert sorted(kinds) == ["realtime", "rw"]
    kinds = [
        edge.kind for edge in made(one_after_another("p1:ax1", "p1:rx-"), LISTS, "strong-session-serializable").cycle
    ]
    assert sorted(kinds) == ["process", "rw"]


def test_a_version_follows_another_by_the_uses_that_come_one_after_the_other():
    history = one_after_another("wx1", "wx2", "rx1")
    cycle = made(history, REGISTERS, "strict-serializable").cycle
    assert set(cycle) == {Edge(0, "realtime"), Edge(1, "ww", ((1, 0), (0, 0), (1, 0), (2, 0)))}
    assert made(history, REGISTERS, "serializable").order is not None


def test_transactions_of_which_any_order_breaks_something_have_a_core():
    proof = proof_of(concurrent(*OPEN_ORDER), REGISTERS)
    core = TransactionCertificate(core=(0, 1, 2))
    assert fault_of(REGISTERS, "serializable", proof.transactions, core) == ""
    assert fault_of(REGISTERS, "snapshot-isolation", proof.transactions, core) == ""
    writers = TransactionCertificate(core=(0, 1))
    assert "can be put in order" in fault_of(REGISTERS, "serializable", proof.transactions, writers)


def test_a_skew_of_two_is_a_core_one_by_one_and_none_of_snapshots():
    transactions, core = proof_of(concurrent(*SKEW), REGISTERS).transactions, TransactionCertificate(core=(0, 1))
    assert fault_of(REGISTERS, "serializable", transactions, core) == ""
    assert "can be put in order" in fault_of(REGISTERS, "snapshot-isolation", transactions, core)


def test_an_order_keeps_the_real_time_of_its_level():
    history = one_after_another("ax1", "rx-")
    transactions, order = proof_of(history).transactions, TransactionCertificate(order=(1, 0))
    assert fault_of(LISTS, "serializable", transactions, order) == ""
    assert "had returned when it was called" in fault_of(LISTS, "strict-serializable", transactions, order)
    assert "did not read" in fault_of(LISTS, "serializable", transactions, TransactionCertificate(order=(0, 1)))


def test_an_unknown_transaction_is_in_an_order_when_it_was_seen_and_a_failed_one_never():
    seen = concurrent("info:ax1", "rx[1]", "info:ax2", "fail:ax3")
    assert made(seen).order == (0, 1)
    wrong = TransactionCertificate(order=(0, 1, 3))
    assert "one that failed" in fault_of(LISTS, "serializable", proof_of(seen).transactions, wrong)


def test_snapshots_that_have_no_order_are_not_proved_and_the_proof_says_so():
    proof = proof_of(concurrent(*SKEW), REGISTERS, "snapshot-isolation")
    assert (proof.certificate, proof.verify()) == (None, Verdict.UNKNOWN)
    assert proof.told() == proof.missing
    assert "snapshot-isolation without one has no certificate" in proof.missing


def test_a_vacuous_verdict_has_no_certificate():
    assert proof_of(concurrent("ax1")).missing == "The verdict on it is vacuous, which has no certificate."


def test_levels_forbid_no_cycle_that_the_models_allow():
    kinds = {"ww": EdgeKind.WW, "wr": EdgeKind.WR, "rw": EdgeKind.RW, "process": EdgeKind.PROCESS} | {
        "realtime": EdgeKind.REALTIME
    }
    for name, level in LEVELS.items():
        orders = {"": (), "process": ("process",), "realtime": ("process", "realtime")}[level.order]
        usable = ["ww", "wr", "rw", *orders]
        for size in (2, 3, 4):
            for cycle in itertools.product(usable, repeat=size):
                if not {*cycle} & {"ww", "wr", "rw"} or not level.forbids(cycle):
                    continue
                broken = ruled_out([classify([kinds[kind] for kind in cycle])])
                half_seen = ruled_out(["fractured-read"] if sorted(cycle) == ["rw", "wr"] else [])
                named = (*broken.weakest, *broken.also, *half_seen.weakest, *half_seen.also)
                assert canonical(name) in named, (name, cycle)


PROOFS = {
    "an order": (concurrent("ax1", "rx[1]"), LISTS, "serializable"),
    "a cycle": (concurrent(*TORN), REGISTERS, "serializable"),
    "a contradiction": (concurrent("fail:ax1", "rx[1]"), LISTS, "read-committed"),
}
OTHERS = (1 << 40, -5, 7, None, "x", [], {"a": 1})


def leaves(value, path=()):
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not children and not isinstance(value, dict | list):
        yield path
    for name, child in children:
        yield from leaves(child, (*path, name))


@pytest.mark.parametrize("name", PROOFS)
def test_a_certificate_with_a_changed_field_is_refused(name):
    proof = msgspec.json.decode(proof_of(*PROOFS[name]).json())
    for path in leaves(proof):
        for other in OTHERS:
            changed = copy.deepcopy(proof)
            at = changed
            for each in path[:-1]:
                at = at[each]
            at[path[-1]] = other
            encoded = msgspec.json.encode(changed)
            if path[0] == "certificate":
                with pytest.raises((UsageError, msgspec.ValidationError)):
                    msgspec.json.decode(encoded, type=TransactionProof).verify()
                continue
            # Another value, time or row may leave a proof of another history; then it is a proof like any other.
            try:
                msgspec.json.decode(encoded, type=TransactionProof).verify()
            except (UsageError, msgspec.ValidationError):
                continue


def test_a_certificate_of_transactions_comes_back_from_a_file(tmp_path):
    write, read = [("append", "x", 1)], [("r", "x", [])]
    operations = [Operation(0, write, 0, write, 1), Operation(1, read, 2, read, 3)]
    for model, verdict in (("serializable", Verdict.PASS), ("strict-serializable", Verdict.VIOLATION)):
        proof = check(model, operations).certificate
        assert (proof.verify(), TransactionProof.read(proof.write(tmp_path / "proof.json"))) == (verdict, proof)
