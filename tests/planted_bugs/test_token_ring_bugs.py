"""A bug of the token ring by itself; `partitioned-kv` has it too (campaign `single-token-ring`)."""

from __future__ import annotations

from bisect import bisect_left

import pytest

from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_hash
from faultline.systems_under_test.patterns.data_partitioning.token_ring import TokenRing, tokens_of


class NoWrapAround(TokenRing):
    """Planted bug `no-wrap-around`: after the last token the circle does not begin again."""

    def _place(self, hashed: int) -> int:
        return bisect_left(self._sorted, hashed)


def owners_of_many_keys(ring: TokenRing) -> set[str]:
    for node in ("athens", "byzantium", "cyrene"):
        ring.add(node, tokens_of(node, 1, 3))
    return {ring.owner_of(partition_hash(f"key-{number}")) for number in range(500)}


@pytest.mark.rows("FXP-M11")
def test_a_ring_that_does_not_wrap_has_no_owner_for_hashes_above_its_last_token() -> None:
    with pytest.raises(IndexError):
        owners_of_many_keys(NoWrapAround())


@pytest.mark.rows("FXP-R32")
def test_a_ring_that_wraps_has_an_owner_for_every_hash() -> None:
    assert owners_of_many_keys(TokenRing()) == {"athens", "byzantium", "cyrene"}
