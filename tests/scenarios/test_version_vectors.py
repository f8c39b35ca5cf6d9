"""Stories of the version vector, VVC-S2 to S14, told by a whole cluster of `quorum-kv`."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.world.ports import NodeId
from faultline.story.log_cluster import Cluster
from faultline.systems_under_test.patterns.data_replication.version_vector import (
    EMPTY_VECTOR,
    ConflictError,
    VersionVector,
    context_of,
    get_one,
)
from faultline.systems_under_test.reference.quorum_kv.messages import (
    FetchResponse,
    GetSiblings,
    PutValue,
    ReplicateRequest,
    SiblingsResponse,
)
from faultline.systems_under_test.reference.quorum_kv.node import (
    NO_QUORUM,
    NOT_ENOUGH_COPIES,
    OBSOLETE_VERSION,
)
from faultline.systems_under_test.reference.quorum_kv.options import replicas_of
from faultline.systems_under_test.reference.quorum_kv.system import QuorumKeyValueStore

KEY = "name"
EXPIRATION_US = 200_000


class Store(Cluster):
    """A store whose clients speak to it by hand."""

    system_type = QuorumKeyValueStore

    def __init__(self, size: int = 3, planted_bugs: tuple[str, ...] = (), **options: str) -> None:
        super().__init__(size, planted_bugs, **options)
        self.number = 0

    def ask_put(self, node: str, value: str, context: VersionVector = EMPTY_VECTOR, client: str = "alice") -> int:
        self.number += 1
        self.hand(client, node, PutValue(self.number, KEY, value, context, self.number))
        return self.number

    def ask_get(self, node: str, client: str = "alice") -> int:
        self.number += 1
        self.hand(client, node, GetSiblings(self.number, KEY))
        return self.number

    def answers(self, number: int) -> list[SiblingsResponse]:
        heard: list[Any] = [message for messages in self.inbox.values() for _, message in messages]
        return [message for message in heard if message.request_number == number]

    def put(self, node: str, value: str, context: VersionVector = EMPTY_VECTOR, client: str = "alice") -> str | None:
        """Write with everything delivered; the error, if any."""
        number = self.ask_put(node, value, context, client)
        self.deliver()
        [answer] = self.answers(number)
        return answer.error

    def get(self, node: str) -> SiblingsResponse:
        """Read with everything delivered."""
        number = self.ask_get(node)
        self.deliver()
        [answer] = self.answers(number)
        return answer

    def versions(self, node: str) -> dict[str, dict[str, int]]:
        """The vector of each sibling at `node`."""
        return {sibling.value: sibling.version.context().counters for sibling in self.nodes[node].store.get(KEY)}


@pytest.mark.rows("VVC-S2", "VVC-R6", "VVC-R1")
def test_the_first_node_counts_the_write_and_the_others_keep_copies() -> None:
    store = Store(versions="server-id")
    assert store.put("athens", "Ann") is None
    assert [store.versions(name) for name in store.members] == [{"Ann": {"athens": 1}}] * 3


@pytest.mark.rows("VVC-S3", "VVC-R5", "VVC-R17")
@pytest.mark.parametrize("versions", ["server-id", "dotted"])
def test_writes_on_two_sides_become_siblings_and_one_resolution_replaces_both(versions: str) -> None:
    """VVC-S3, with W = 1 so that each side can write alone."""
    store = Store(2, replicas="2", write_quorum="1", read_quorum="2", versions=versions)
    store.cut("athens", "byzantium")
    assert store.put("athens", "Ann") is None
    assert store.put("byzantium", "Bob", client="bob") is None
    store.heal()
    conflict = store.get("athens")
    assert sorted(conflict.values) == ["Ann", "Bob"]
    assert conflict.context.counters == {"athens": 1, "byzantium": 1}
    assert store.put("athens", "Ann+Bob", conflict.context) is None
    assert [store.versions(name) for name in store.members] == [{"Ann+Bob": {"athens": 2, "byzantium": 1}}] * 2
    assert store.get("byzantium").values == ("Ann+Bob",)


def test_a_resolution_with_the_context_of_one_sibling_leaves_the_other() -> None:
    store = Store(planted_bugs=("one-sibling-context",))
    store.put("athens", "Ann")
    store.put("athens", "Bob", client="bob")
    conflict = store.get("athens")
    assert len(conflict.values) == 2
    store.put("athens", "both", conflict.context)
    assert len(store.get("athens").values) == 2


def left_behind(*planted_bugs: str) -> Store:
    """VVC-S4: cyrene misses the second write, then byzantium reads from cyrene."""
    store = Store(planted_bugs=planted_bugs)
    store.put("athens", "old")
    context = store.get("athens").context
    store.cut("cyrene")
    store.put("athens", "new", context)
    store.heal()
    assert set(store.versions("cyrene")) == {"old"}
    assert store.get("byzantium").values == ("new",)
    return store


@pytest.mark.rows("VVC-S4", "VVC-R19")
def test_a_read_repairs_the_replica_that_was_left_behind() -> None:
    assert set(left_behind().versions("cyrene")) == {"new"}


def test_the_planted_bug_no_read_repair_leaves_it_behind() -> None:
    assert set(left_behind("no-read-repair").versions("cyrene")) == {"old"}


@pytest.mark.rows("VVC-R19")
def test_late_answers_are_repaired_too() -> None:
    store = Store()
    store.put("athens", "old")
    context = store.get("athens").context
    store.cut("cyrene")
    store.put("athens", "new", context)
    store.heal()
    number = store.ask_get("athens")
    late = store.take(lambda source, target, _: "cyrene" in (source, target))
    store.deliver()
    assert [answer.values for answer in store.answers(number)] == [("new",)]
    for item in late:
        store.hand(*item)
    store.deliver()
    assert set(store.versions("cyrene")) == {"new"}


@pytest.mark.rows("VVC-S5", "VVC-R21")
def test_server_ids_refuse_the_second_write_until_its_client_reads_again() -> None:
    store = Store(versions="server-id")
    assert store.put("athens", "Ann") is None
    assert store.put("athens", "Bob", client="bob") == OBSOLETE_VERSION
    assert store.put("athens", "Bob", store.get("athens").context, client="bob") is None
    assert store.versions("cyrene") == {"Bob": {"athens": 2}}


@pytest.mark.rows("VVC-S6", "VVC-R22")
def test_client_ids_keep_both_as_siblings() -> None:
    store = Store(versions="client-id")
    store.put("athens", "Ann")
    assert store.put("athens", "Bob", client="bob") is None
    assert store.versions("cyrene") == {"Ann": {"alice": 1}, "Bob": {"bob": 2}}


@pytest.mark.rows("VVC-S7", "VVC-R23")
def test_dots_keep_both_in_one_entry_of_the_node() -> None:
    store = Store()
    store.put("athens", "Ann")
    assert store.put("athens", "Bob", client="bob") is None
    answer = store.get("byzantium")
    assert (sorted(answer.values), answer.context.counters) == (["Ann", "Bob"], {"athens": 2})


@pytest.mark.rows("VVC-S8", "VVC-R18")
@pytest.mark.parametrize(("versions", "values"), [("last-write-wins", ("A",)), ("dotted", ("B",))])
def test_a_clock_that_is_ahead_hides_later_writes_where_the_last_writer_wins(
    versions: str, values: tuple[str, ...]
) -> None:
    store = Store(versions=versions)
    store.ports["athens"].wall_offset_us = 5_000_000
    store.put("athens", "A")
    store.put("byzantium", "B", store.get("byzantium").context)
    assert store.get("cyrene").values == values


@pytest.mark.rows("VVC-S9", "VVC-S10", "VVC-R12")
def test_a_copy_that_comes_twice_or_too_late_changes_nothing() -> None:
    store = Store()
    number = store.ask_put("athens", "old")
    late = store.take(lambda _, target, message: target == "cyrene" and isinstance(message, ReplicateRequest))
    store.deliver()
    assert [answer.error for answer in store.answers(number)] == [None]
    assert store.put("athens", "new", store.get("athens").context) is None
    before = store.versions("cyrene")
    for item in (*late, *late):
        store.hand(*item)
    store.deliver()
    assert store.versions("cyrene") == before == {"new": {"athens": 2}}


@pytest.mark.rows("VVC-S11", "VVC-R10")
def test_a_write_whose_only_replica_crashes_is_unknown_and_comes_back_with_it() -> None:
    store = Store()
    store.cut("athens")
    number = store.ask_put("athens", "lonely")
    store.pass_time(3 * EXPIRATION_US)
    assert [answer.error for answer in store.answers(number)] == [NOT_ENOUGH_COPIES]
    store.kill("athens")
    store.heal()
    assert store.get("byzantium").values == ()
    store.start("athens")
    assert store.get("athens").values == ("lonely",)
    assert set(store.versions("cyrene")) == {"lonely"}


@pytest.mark.rows("VVC-R20", "VVC-R19")
@pytest.mark.parametrize("versions", ["dotted", "client-id", "server-id"])
@pytest.mark.parametrize("reader", ["athens", "byzantium", "cyrene"])
def test_one_read_after_the_last_write_makes_all_replicas_equal_whatever_they_missed(
    versions: str, reader: str
) -> None:
    store = Store(versions=versions, write_quorum="1")
    for number, name in enumerate(store.members):
        store.cut(name)
        store.put(name, f"written at {name}", client=f"client-{number}")
    store.heal()
    assert len({str(store.versions(name)) for name in store.members}) == 3
    assert len(store.get(reader).values) >= 2
    assert len(store.get(reader).values) == 3
    assert len({str(sorted(store.versions(name).items())) for name in store.members}) == 1
    assert len(store.versions("athens")) == 3


@pytest.mark.rows("VVC-R14", "VVC-R16", "VVC-R17")
def test_an_application_resolves_with_the_context_of_all_siblings_it_was_given() -> None:
    store = Store()
    store.put("athens", "Ann")
    store.put("byzantium", "Bob", client="bob")
    siblings = store.nodes["cyrene"].store.get(KEY)
    with pytest.raises(ConflictError):
        get_one(siblings)
    both = get_one(siblings, lambda several: "+".join(sorted(sibling.value for sibling in several)))
    assert store.put("cyrene", both, context_of(siblings)) is None
    assert [set(store.versions(name)) for name in store.members] == [{"Ann+Bob"}] * 3


def test_a_read_without_a_quorum_is_an_error() -> None:
    store = Store()
    store.cut("athens")
    number = store.ask_get("athens")
    store.pass_time(3 * EXPIRATION_US)
    assert [answer.error for answer in store.answers(number)] == [NO_QUORUM]


def after_a_restart(*planted_bugs: str) -> Store:
    """VVC-S14: athens numbers a write, crashes, and numbers another that knows nothing of the first."""
    store = Store(planted_bugs=planted_bugs)
    store.put("athens", "first")
    store.restart("athens")
    store.put("athens", "second")
    return store


@pytest.mark.rows("VVC-S14", "VVC-R24")
def test_a_restarted_node_does_not_use_a_dot_again() -> None:
    assert sorted(after_a_restart().get("byzantium").values) == ["first", "second"]


def test_the_planted_bug_counter_lost_at_restart_loses_a_write_in_silence() -> None:
    assert after_a_restart("counter-lost-at-restart").get("byzantium").values == ("first",)


@pytest.mark.rows("VVC-R9")
def test_replicas_of_a_key_are_the_same_for_all_nodes_and_differ_between_keys() -> None:
    members = tuple(map(NodeId, ("athens", "byzantium", "cyrene", "delphi", "ephesus")))
    assert replicas_of("k1", members, 3) == replicas_of("k1", members, 3)
    assert len(set(replicas_of("k1", members, 3))) == 3
    assert {replicas_of(f"k{number}", members, 3)[0] for number in range(40)} == set(members)


@pytest.mark.rows("VVC-R9")
def test_only_the_replicas_of_a_key_are_asked() -> None:
    store = Store(5)
    first, *_ = replicas_of(KEY, store.members, 3)
    store.put(first, "Ann")
    holders = [name for name in store.members if store.versions(name)]
    assert sorted(holders) == sorted(replicas_of(KEY, store.members, 3))
    store.ask_get(first)
    store.deliver(lambda _, target, message: not isinstance(message, FetchResponse))
    assert {source for source, _, message in store.queue if isinstance(message, FetchResponse)} < set(holders)
