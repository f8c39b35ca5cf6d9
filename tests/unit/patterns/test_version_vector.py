"""Version vectors: the golden comparisons, dots, siblings, contexts and resolvers (VVC-S1, S6, S7, S15)."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from faultline.systems_under_test.patterns.data_replication.version_vector import (
    EMPTY_VECTOR,
    ConflictError,
    DottedVersion,
    ObsoleteVersion,
    Ordering,
    VersionedValue,
    VersionVector,
    compare,
    context_of,
    get_one,
    last_write_wins,
    merge,
    prune,
)
from faultline.systems_under_test.reference.quorum_kv.sibling_store import (
    ClientIds,
    Dotted,
    LastWriteWins,
    ServerIds,
    Siblings,
    Update,
    Versioning,
)


def vector(**counters: int) -> VersionVector:
    return VersionVector(counters)


@pytest.mark.rows("VVC-S1", "VVC-R3", "VVC-R4")
@pytest.mark.parametrize(
    ("one", "other", "ordering"),
    [
        (vector(blue=2, green=1), vector(blue=1, green=1), Ordering.AFTER),
        (vector(blue=2, green=1), vector(blue=1, green=2), Ordering.CONCURRENT),
        (vector(blue=1, green=1, red=1), vector(blue=1, green=1), Ordering.AFTER),
        (vector(blue=1, green=1, red=1), vector(blue=1, green=1, pink=1), Ordering.CONCURRENT),
        (vector(blue=1, green=1), vector(blue=2, green=1), Ordering.BEFORE),
        (vector(blue=1), vector(blue=1), Ordering.BEFORE),
    ],
)
def test_vectors_compare_as_in_the_chapters_table(one: VersionVector, other: VersionVector, ordering: Ordering) -> None:
    assert compare(one, other) is ordering


@pytest.mark.rows("VVC-S1", "VVC-R2")
def test_an_update_at_green_changes_greens_counter_alone_and_a_copy() -> None:
    before = vector(blue=43, green=54, black=12)
    assert before.increment("green").counters == {"black": 12, "blue": 43, "green": 55}
    assert before.counter("green") == 54
    assert before.increment("red").counter("red") == 1


def test_a_version_vector_is_no_key_of_a_set() -> None:
    with pytest.raises(TypeError, match="descends"):
        hash(EMPTY_VECTOR)


def test_a_dot_descends_itself_and_its_past_and_nothing_else() -> None:
    first, second = DottedVersion("blue", 1), DottedVersion("blue", 2)
    resolved = DottedVersion("blue", 3, vector(blue=2))
    assert first.descends(first)
    assert not second.descends(first) and not first.descends(second)
    assert resolved.descends(first) and resolved.descends(second)
    assert resolved.context() == vector(blue=3)


def values(*names_and_vectors: tuple[str, VersionVector]) -> Siblings:
    return tuple(VersionedValue(name, version) for name, version in names_and_vectors)


@pytest.mark.rows("VVC-R15", "VVC-R13")
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_what_stays_does_not_depend_on_the_order_of_the_list(order: tuple[int, ...]) -> None:
    """VVC-R15: [A, P, B, C] with B after A and C after P; the sample's walk leaves P behind."""
    listed = values(("A", vector(a=1)), ("P", vector(p=1)), ("B", vector(a=2)), ("C", vector(p=2)))
    assert {sibling.value for sibling in prune(listed[place] for place in order)} == {"B", "C"}


@pytest.mark.rows("VVC-R13", "VVC-R12")
def test_the_same_value_from_two_replicas_is_one_value() -> None:
    [copy] = values(("A", vector(a=1)))
    assert merge((copy,), (copy,)) == (copy,)


@pytest.mark.rows("VVC-R17")
def test_one_context_replaces_all_siblings() -> None:
    siblings = values(("A", vector(blue=1)), ("B", vector(green=1)))
    context = context_of(siblings)
    assert context == vector(blue=1, green=1)
    assert merge(siblings, values(("C", context.increment("blue")))) == values(("C", vector(blue=2, green=1)))


@pytest.mark.parametrize("versioning", [Dotted(), ClientIds()], ids=["dotted", "client-id"])
def test_siblings_that_are_there_already_are_merged_as_if_all_pairs_were_compared(
    versioning: Dotted | ClientIds,
) -> None:
    random = Random(7)
    replicas: list[Siblings] = [(), (), ()]
    unchanged = 0
    for number in range(1, 200):
        here, there = random.sample(range(3), 2)
        theirs = replicas[there]
        if random.random() < 0.4:
            context = context_of(random.sample(theirs, random.randint(0, len(theirs))))
            update = Update(context, f"client-{number}", number)
            theirs = (VersionedValue(number, versioning.version(str(there), number, update)),)
        merged = versioning.merged(replicas[here], theirs)
        assert merged == prune((*replicas[here], *theirs))
        unchanged += merged is replicas[here]
        replicas[here] = merged
    assert unchanged >= 10


@pytest.mark.rows("VVC-R14", "VVC-R16")
def test_conflicts_are_raised_or_resolved_by_the_application() -> None:
    siblings = values(("A", vector(blue=1)), ("B", vector(green=1)))
    assert get_one(()) is None
    assert get_one(siblings[:1]) == "A"
    with pytest.raises(ConflictError, match="2 concurrent") as caught:
        get_one(siblings)
    assert caught.value.siblings == siblings
    assert get_one(siblings, lambda several: "+".join(sorted(sibling.value for sibling in several))) == "A+B"


@pytest.mark.rows("VVC-S8", "VVC-R18")
def test_the_last_writer_wins_by_clock_even_when_its_clock_is_wrong() -> None:
    """VVC-S8: blue's clock is 5 s ahead; A is written on blue, and later, in real time, B on green."""
    first = VersionedValue("A", vector(blue=1), time_us=5_000_000)
    later = VersionedValue("B", vector(blue=1, green=1), time_us=1_000_000)
    assert last_write_wins((first, later)).value == "A"
    assert LastWriteWins().merged((first,), (later,)) == (first,)
    assert [sibling.value for sibling in Dotted().merged((first,), (later,))] == ["B"]


@pytest.mark.rows("VVC-R18")
def test_clocks_that_show_the_same_time_choose_the_same_winner_everywhere() -> None:
    one, other = (VersionedValue(name, DottedVersion(node, 1), 7) for name, node in (("A", "blue"), ("B", "green")))
    assert LastWriteWins().merged((one,), (other,)) == LastWriteWins().merged((other,), (one,))


@pytest.mark.rows("VVC-R21", "VVC-R11")
def test_server_ids_refuse_the_second_write_with_one_context() -> None:
    """VVC-S5: until the client has read again."""
    first = ServerIds().version("blue", 0, Update(EMPTY_VECTOR, "c1", 1))
    assert first == vector(blue=1)
    with pytest.raises(ObsoleteVersion, match="update 1"):
        ServerIds().version("blue", 1, Update(EMPTY_VECTOR, "c2", 1))
    assert ServerIds().version("blue", 1, Update(first.context(), "c2", 1)) == vector(blue=2)


def test_server_ids_refuse_a_base_from_elsewhere_that_lacks_the_nodes_update() -> None:
    """{green: 3} with blue's next number would descend an update of blue that its writer never saw."""
    with pytest.raises(ObsoleteVersion):
        ServerIds().version("blue", 1, Update(vector(green=3), "c1", 1))


def written_blindly(versioning: Versioning, clients: int) -> Siblings:
    """`clients` clients write at blue, each without having read."""
    siblings: Siblings = ()
    for number in range(clients):
        version = versioning.version("blue", number, Update(EMPTY_VECTOR, f"c{number}", 1))
        siblings = versioning.merged(siblings, (VersionedValue(number, version),))
    return siblings


@pytest.mark.rows("VVC-R22", "VVC-R23")
@pytest.mark.parametrize("versioning", [ClientIds(), Dotted()])
def test_blind_writes_at_one_node_become_siblings(versioning: Versioning) -> None:
    assert len(written_blindly(versioning, 2)) == 2


@pytest.mark.rows("VVC-S15", "VVC-R23")
@pytest.mark.parametrize(("versioning", "entries"), [(ClientIds(), 20), (Dotted(), 1)])
def test_contexts_grow_with_clients_for_client_ids_and_with_nodes_for_dots(
    versioning: Versioning, entries: int
) -> None:
    """VVC-S15."""
    assert len(context_of(written_blindly(versioning, 20)).counters) == entries
