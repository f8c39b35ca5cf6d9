"""Fixed partitions as reckoning: hashes, assignments, and the fewest moves that even the loads out."""

from __future__ import annotations

import subprocess
import sys

import pytest

from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import (
    NotEnoughClusterNodes,
    assign_by_rendezvous,
    assign_round_robin,
    partition_hash,
    partition_of,
    plan_rebalancing,
)

THREE = ["athens", "byzantium", "cyrene"]
KEYS = [f"key-{number}" for number in range(9_000)]

GOLDEN = {
    "Alice": (133299819613694460644197938031451912208, 0, 3, 0),
    "Bob": (63479738429015246738359000453022047291, 1, 1, 1),
    "Mary": (37724856304035789372490171084843241126, 2, 1, 5),
    "Philip": (83980963731216160506671196398339418866, 2, 1, 2),
}


@pytest.mark.rows("FXP-R2", "FXP-R3")
@pytest.mark.parametrize("name", GOLDEN)
def test_hashes_are_equal_on_all_machines(name: str) -> None:
    hashed, of_three, of_five, of_nine = GOLDEN[name]
    assert partition_hash(name) == hashed
    assert [partition_of(name, count) for count in (3, 5, 9)] == [of_three, of_five, of_nine]


@pytest.mark.rows("FXP-R1", "FXP-R2")
def test_another_process_finds_the_same_partition() -> None:
    program = "from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of as p;"
    program += "import sys; sys.stdout.write(str([p(f'key-{n}', 30) for n in range(50)]))"
    found = subprocess.run(
        [sys.executable, "-R", "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert found == str([partition_of(f"key-{number}", 30) for number in range(50)])


@pytest.mark.rows("FXP-R4")
@pytest.mark.parametrize("partitions", [9, 30, 271])
def test_keys_spread_evenly_over_the_partitions(partitions: int) -> None:
    counts = [0] * partitions
    for key in KEYS:
        counts[partition_of(key, partitions)] += 1
    expected = len(KEYS) / partitions
    chi_square = sum((count - expected) ** 2 / expected for count in counts)
    # The mean is the degrees of freedom; four standard deviations above it is far beyond what an even hash gives.
    assert chi_square < partitions - 1 + 4 * (2 * (partitions - 1)) ** 0.5


@pytest.mark.rows("FXP-R5")
def test_more_nodes_move_most_keys_by_hash_of_nodes_and_only_those_of_moved_partitions_here() -> None:
    remapped = [key for key in KEYS if partition_hash(key) % 3 != partition_hash(key) % 5]
    assert len(remapped) / len(KEYS) > 0.7
    owners = assign_round_robin(30, THREE, 3)
    moves = {move.partition: move.target for move in plan_rebalancing(owners, [*THREE, "delphi", "ephesus"])}
    after = [moves.get(partition, owner) for partition, owner in enumerate(owners)]
    moved = [key for key in KEYS if after[partition_of(key, 30)] != owners[partition_of(key, 30)]]
    assert {partition_of(key, 30) for key in moved} == set(moves)
    assert 0.35 < len(moved) / len(KEYS) < 0.45


@pytest.mark.rows("FXP-R4", "FXP-R12", "FXP-R13", "FXP-I5")
@pytest.mark.parametrize("partitions", [1, 9, 30, 1024])
def test_round_robin_gives_every_partition_from_zero_on_one_owner_and_even_loads(partitions: int) -> None:
    owners = assign_round_robin(partitions, THREE, 3)
    assert len(owners) == partitions
    assert owners[0] == "athens"
    loads = [owners.count(member) for member in THREE]
    assert max(loads) - min(loads) <= 1


@pytest.mark.rows("FXP-R12")
def test_by_rendezvous_only_the_partitions_of_the_one_who_leaves_get_another_owner() -> None:
    before = assign_by_rendezvous(1024, THREE, 3)
    after = assign_by_rendezvous(1024, THREE[:2], 2)
    assert all(old == new for old, new in zip(before, after, strict=True) if old != "cyrene")
    assert min(before.count(member) for member in THREE) > 280


@pytest.mark.rows("FXP-R11", "FXP-S2")
@pytest.mark.parametrize("assign", [assign_round_robin, assign_by_rendezvous])
@pytest.mark.parametrize(("members", "minimum"), [(THREE[:2], 3), ([], 0)])
def test_too_few_members_get_nothing(assign: type, members: list[str], minimum: int) -> None:
    with pytest.raises(NotEnoughClusterNodes, match=f"{len(members)} members live"):
        assign(9, members, minimum)


@pytest.mark.rows("FXP-R21", "FXP-S4", "FXP-I5")
def test_a_fourth_node_gets_seven_of_thirty_partitions() -> None:
    owners = assign_round_robin(30, THREE, 3)
    moves = plan_rebalancing(owners, [*THREE, "delphi"])
    assert len(moves) == 7
    assert {move.target for move in moves} == {"delphi"}
    assert max([move.source for move in moves].count(member) for member in THREE) == 3


@pytest.mark.rows("FXP-R22")
@pytest.mark.parametrize("seed", range(40))
def test_a_plan_moves_no_more_than_it_must_and_nothing_of_the_dead(seed: int) -> None:
    members = [f"node-{number}" for number in range(2 + seed % 5)]
    owners = [members[partition_hash(f"{seed}:{partition}") % len(members)] for partition in range(30 + seed)]
    live = [*members[1:], "newcomer"]
    moves = plan_rebalancing(owners, live)
    after = list(owners)
    for move in moves:
        assert owners[move.partition] == move.source
        assert move.source in live
        assert move.target in live
        after[move.partition] = move.target
    loads = [after.count(member) for member in live]
    assert max(loads) - min(loads) <= 1
    assert len({move.partition for move in moves}) == len(moves)
    # No plan can avoid this: the node with the most partitions gives all above its final share.
    fair = sum(loads) // len(live)
    larger = sum(loads) % len(live)
    before = sorted((owners.count(member) for member in live), reverse=True)
    shares = [fair + (number < larger) for number in range(len(live))]
    assert len(moves) == sum(max(0, held - share) for held, share in zip(before, shares, strict=True))


def test_without_live_members_there_is_nothing_to_plan() -> None:
    assert plan_rebalancing(["athens"], []) == []
