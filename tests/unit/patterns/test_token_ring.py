"""The ring of tokens: the examples of the book, what a join moves, and what it must not."""

from __future__ import annotations

import pytest

from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_hash
from faultline.systems_under_test.patterns.data_partitioning.token_ring import (
    TOKENS_PER_NODE,
    JoinInProgress,
    NoTokens,
    TokenRange,
    TokenRing,
    TokenTaken,
    tokens_of,
)

KEYS = [partition_hash(f"key-{number}") for number in range(4_000)]


def ring_of(**tokens: list[int]) -> TokenRing:
    ring = TokenRing()
    for node, wanted in tokens.items():
        ring.add(node, wanted)
    return ring


def of_the_book() -> TokenRing:
    return ring_of(athens=[10], byzantium=[20], cyrene=[30])


@pytest.mark.rows("FXP-R32", "FXP-S11")
@pytest.mark.parametrize(
    ("hashed", "owner"),
    [(0, "athens"), (10, "athens"), (11, "byzantium"), (20, "byzantium"), (30, "cyrene"), (31, "athens")],
)
def test_a_hash_belongs_to_the_first_token_not_below_it_around_the_circle(hashed: int, owner: str) -> None:
    ring = of_the_book()
    assert ring.owner_of(hashed) == owner
    assert [part.owner for part in ring.ranges() if part.contains(hashed)] == [owner]


@pytest.mark.rows("FXP-R33", "FXP-S11")
def test_with_one_token_a_joining_node_relieves_one_other_and_counts_only_once_it_has_the_data() -> None:
    ring = of_the_book()
    assert ring.begin_join("delphi", [40]) == [TokenRange(30, 40, "athens")]
    assert ring.owner_of(35) == "athens"
    ring.complete_join()
    assert ring.owner_of(35) == "delphi"
    assert ring.owner_of(41) == "athens"
    assert list(ring.tokens()) == [10, 20, 30, 40]


@pytest.mark.rows("FXP-R34", "FXP-S11")
def test_with_several_tokens_a_joining_node_takes_small_ranges_from_several_others() -> None:
    ring = ring_of(athens=[10, 100, 130], byzantium=[20, 60, 110], cyrene=[30, 70, 120])
    taken = ring.begin_join("delphi", [40, 50, 200])
    assert taken == [TokenRange(30, 50, "byzantium"), TokenRange(130, 200, "athens")]


@pytest.mark.rows("FXP-R34")
def test_many_tokens_spread_the_burden_of_a_join_over_all_nodes() -> None:
    ring = TokenRing()
    for node in ("athens", "byzantium", "cyrene"):
        ring.add(node, tokens_of(node, 1, TOKENS_PER_NODE))
    before = {key: ring.owner_of(key) for key in KEYS}
    ring.begin_join("delphi", tokens_of("delphi", 1, TOKENS_PER_NODE))
    ring.complete_join()
    moved = [before[key] for key in KEYS if ring.owner_of(key) != before[key]]
    assert all(ring.owner_of(key) == "delphi" for key in KEYS if ring.owner_of(key) != before[key])
    assert 0.15 < len(moved) / len(KEYS) < 0.35
    assert min(moved.count(node) for node in ("athens", "byzantium", "cyrene")) > len(moved) / 6


@pytest.mark.rows("FXP-R35", "FXP-S12")
def test_a_join_that_is_broken_off_leaves_everything_with_its_owners() -> None:
    ring = of_the_book()
    before = ring.ranges()
    ring.begin_join("delphi", [40])
    with pytest.raises(JoinInProgress, match="delphi is joining"):
        ring.begin_join("ephesus", [50])
    ring.abandon_join()
    assert ring.ranges() == before
    with pytest.raises(RuntimeError, match="no node is joining"):
        ring.complete_join()


@pytest.mark.rows("FXP-R35")
@pytest.mark.parametrize("tokens", [[20], [40, 40]])
def test_a_token_belongs_to_one_node_once(tokens: list[int]) -> None:
    ring = of_the_book()
    with pytest.raises(TokenTaken):
        ring.begin_join("delphi", tokens)
    assert ring.begin_join("delphi", [40]) == [TokenRange(30, 40, "athens")]


def test_the_first_node_has_nothing_to_fetch() -> None:
    ring = TokenRing()
    with pytest.raises(NoTokens):
        ring.owner_of(1)
    assert ring.begin_join("athens", [10]) == []
    ring.complete_join()
    assert ring.owner_of(11) == "athens"
