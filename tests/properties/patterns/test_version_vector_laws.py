"""Laws of version vectors: a partial order with joins; siblings merge in any order; dots lose nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.systems_under_test.patterns.data_replication.version_vector import (
    EMPTY_VECTOR,
    ObsoleteVersion,
    Ordering,
    VersionedValue,
    VersionVector,
    compare,
    context_of,
    merge,
    prune,
)
from faultline.systems_under_test.reference.quorum_kv.sibling_store import (
    ClientIds,
    Dotted,
    ServerIds,
    Siblings,
    Update,
    Versioning,
)

NODES = ("blue", "green", "red")
vectors = st.dictionaries(st.sampled_from(NODES), st.integers(1, 4)).map(VersionVector)
siblings = st.lists(vectors, max_size=5).map(
    lambda several: prune(VersionedValue(sorted(one.counters.items()), one) for one in several)
)
"""The values of one replica, of which none descends another."""


@pytest.mark.rows("VVC-R3")
@given(vectors, vectors, vectors)
def test_descending_is_a_partial_order(one: VersionVector, two: VersionVector, three: VersionVector) -> None:
    assert one.descends(one)
    if one.descends(two) and two.descends(one):
        assert one == two
    if one.descends(two) and two.descends(three):
        assert one.descends(three)


@given(vectors, vectors, vectors)
def test_the_join_is_the_least_vector_above_both(one: VersionVector, two: VersionVector, bound: VersionVector) -> None:
    join = one.join(two)
    assert join == two.join(one)
    assert join.descends(one) and join.descends(two)
    assert bound.descends(join) == (bound.descends(one) and bound.descends(two))


@given(vectors, vectors)
def test_comparing_the_other_way_round_gives_the_opposite(one: VersionVector, two: VersionVector) -> None:
    forth, back = compare(one, two), compare(two, one)
    if one == two:
        assert forth is back is Ordering.BEFORE
    else:
        assert (forth is Ordering.AFTER) == (back is Ordering.BEFORE)
        assert (forth is Ordering.CONCURRENT) == (back is Ordering.CONCURRENT)


@given(vectors, st.sampled_from(NODES))
def test_an_increment_comes_after_what_it_was_made_from(one: VersionVector, node: str) -> None:
    assert compare(one.increment(node), one) is Ordering.AFTER


@given(siblings, siblings, siblings)
def test_merging_siblings_commutes_associates_and_repeats(one: Siblings, two: Siblings, three: Siblings) -> None:
    assert merge(one, two) == merge(two, one)
    assert merge(merge(one, two), three) == merge(one, merge(two, three))
    assert merge(merge(one, two), two) == merge(one, two)


@given(siblings, siblings)
def test_merging_compares_pairs_across_only_and_keeps_what_comparing_all_pairs_would(
    one: Siblings, two: Siblings
) -> None:
    assert merge(one, two) == prune((*one, *two))


@pytest.mark.rows("VVC-R5", "VVC-R11")
@given(siblings, siblings)
def test_a_merge_keeps_concurrent_values_and_what_all_of_them_know(one: Siblings, two: Siblings) -> None:
    merged = merge(one, two)
    assert context_of(merged) == context_of(one).join(context_of(two))
    for sibling in merged:
        assert sum(other.version.descends(sibling.version) for other in merged) == 1


# -- a store of three replicas that exchange all siblings of a key ----------------------------------------------------

steps = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 3), st.integers(0, 2)),
        st.tuples(st.just("write"), st.integers(0, 3), st.integers(0, 2)),
        st.tuples(st.just("exchange"), st.integers(0, 2), st.integers(0, 2)),
    ),
    max_size=40,
)


def run(versioning: Versioning, script: list[tuple[str, int, int]], *, know_their_own: bool = False) -> None:
    """Clients write with what they have read; whatever is written stays until it is replaced by a reader of it.

    Or, when clients `know_their_own` writes without reading them, by the next write of its own writer.
    """
    replicas: list[Siblings] = [(), (), ()]
    counters = [0, 0, 0]
    contexts = [EMPTY_VECTOR] * 4
    seen: list[frozenset[int]] = [frozenset()] * 4
    updates = [0] * 4
    written: list[set[int]] = [set(), set(), set(), set()]
    replaced: set[int] = set()
    may_be_replaced: set[int] = set()
    for value, (what, who, where) in enumerate(script):
        if what == "exchange":
            replicas[where] = versioning.merged(replicas[where], replicas[who])
        elif what == "read":
            contexts[who] = context_of(replicas[where])
            seen[who] = frozenset(sibling.value for sibling in replicas[where])
        else:
            updates[who] += 1
            try:
                update = Update(contexts[who], f"c{who}", updates[who])
                version = versioning.version(NODES[where], counters[where], update)
            except ObsoleteVersion:
                continue
            counters[where] += 1
            replaced |= seen[who]
            may_be_replaced |= seen[who] | (written[who] if know_their_own else set())
            written[who].add(value)
            replicas[where] = versioning.merged(replicas[where], (VersionedValue(value, version),))
    everything: Siblings = ()
    for replica in replicas:
        everything = versioning.merged(everything, replica)
    left = {sibling.value for sibling in everything}
    assert not left & replaced
    assert set().union(*written) - may_be_replaced <= left


@pytest.mark.rows("VVC-R23", "VVC-I3")
@given(steps)
def test_dotted_versions_lose_nothing_and_keep_nothing_that_was_replaced(script: list[tuple[str, int, int]]) -> None:
    run(Dotted(), script)


@pytest.mark.rows("VVC-R21", "VVC-I3")
@given(steps)
def test_server_ids_lose_nothing_either_because_they_refuse(script: list[tuple[str, int, int]]) -> None:
    run(ServerIds(), script)


@given(steps)
def test_client_ids_lose_only_what_their_own_client_wrote_before(script: list[tuple[str, int, int]]) -> None:
    run(ClientIds(), script, know_their_own=True)
