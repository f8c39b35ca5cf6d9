"""The objects that operations read and write, and final reads of those that a workload's own leave out."""

from __future__ import annotations

from faultline.harness.access import FINAL_OBJECTS_MAX, Access, reads_of_the_rest
from faultline.harness.plan import PlannedOperation

REGISTER = Access(final_read="read")
TRANSACTIONS = Access(reads=("txn",), final_read="txn")


def writes(*keys: str) -> list[PlannedOperation]:
    return [PlannedOperation(0, place, "write", key, place) for place, key in enumerate(keys)]


def rest(access: Access, written: list[PlannedOperation], final: list[PlannedOperation], workers: int = 2) -> list:
    return list(reads_of_the_rest(access, written, final, workers, 1_000))


def test_reads_show_and_all_else_writes_unless_it_is_said() -> None:
    assert list(REGISTER.read_set("read", "k", None)) == ["k"]
    assert list(REGISTER.write_set("read", "k", None)) == []
    assert list(REGISTER.write_set("cas", "k", [1, 2])) == ["k"]
    queue = Access(reads=("drain",), writes=("enqueue",))
    assert list(queue.write_set("dequeue", "q", None)) == [] == list(queue.read_set("dequeue", "q", None))


def test_a_transaction_names_its_objects_in_its_steps() -> None:
    steps = [["r", "a", None], ["append", "b", 1], ["w", "c", 2]]
    assert list(TRANSACTIONS.read_set("txn", None, steps)) == ["a"]
    assert list(TRANSACTIONS.write_set("txn", None, steps)) == ["b", "c"]
    assert list(TRANSACTIONS.write_set("txn", None, None)) == []


def test_a_transaction_with_a_key_reads_and_writes_the_table_of_that_name() -> None:
    steps = [["rp", "true", None], ["insert", "a", 1], ["delete", "b"]]
    assert list(TRANSACTIONS.read_set("txn", "t0", steps)) == ["t0"] == list(TRANSACTIONS.write_set("txn", "t0", steps))
    assert (
        list(TRANSACTIONS.write_set("txn", "t0", steps[:1]))
        == []
        == list(TRANSACTIONS.read_set("txn", "t0", steps[1:]))
    )


def test_all_keys_of_a_whole_are_one_object() -> None:
    scans = Access(reads=("scan",), whole=True)
    assert list(scans.write_set("write", "k1", 1)) == list(scans.read_set("scan", None, ["", None])) == [None]


def test_what_is_written_and_not_read_at_the_end_is_read_by_two_workers() -> None:
    final = [PlannedOperation(0, 900, "read", "b")]
    found = rest(REGISTER, writes("a", "b", "a", "c"), final)
    assert [(one.worker, one.f, one.key) for one in found] == [
        *((0, "read", "a"), (1, "read", "a"), (0, "read", "c"), (1, "read", "c"))
    ]
    assert all(one.at_us >= 1_000 for one in found)


def test_where_answers_depend_on_the_node_every_worker_reads_each_object() -> None:
    final = [PlannedOperation(0, 900, "view")]
    found = rest(Access(final_read="read", final_readers=None), writes("a", "b"), final, workers=3)
    assert sorted((one.key, one.worker) for one in found) == [(key, worker) for key in "ab" for worker in range(3)]


def test_a_single_worker_reads_each_object_once() -> None:
    assert [one.key for one in rest(REGISTER, writes("a", "b"), [], workers=1)] == ["a", "b"]


def test_transactions_read_several_objects_at_once() -> None:
    written = [PlannedOperation(0, 0, "txn", None, [["append", f"k{number}", 1]]) for number in range(11)]
    found = rest(TRANSACTIONS, written, [], workers=1)
    assert [len(one.value) for one in found] == [8, 3]
    assert {step[1] for one in found for step in one.value} == {f"k{number}" for number in range(11)}


def test_of_very_many_objects_an_even_sample_is_read() -> None:
    found = rest(REGISTER, writes(*(f"k{number}" for number in range(3 * FINAL_OBJECTS_MAX))), [], workers=1)
    assert len(found) == FINAL_OBJECTS_MAX
    assert (found[0].key, found[-1].key) == ("k0", f"k{3 * FINAL_OBJECTS_MAX - 3}")


def test_a_workload_whose_own_operations_read_everything_gets_no_more() -> None:
    assert rest(Access(), writes("a"), []) == []
