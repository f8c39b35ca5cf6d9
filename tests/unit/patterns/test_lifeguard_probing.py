"""SWIM with Lifeguard's health score: HB-R16, HB-I1, HB-I2, HB-I4, and bugs that helpers and refutations prevent."""

from __future__ import annotations

from collections import Counter

import pytest
from lifeguard_driver import SwimCluster

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.lifeguard_probing import (
    HEALTH_MAX,
    Ping,
    PingAnswer,
    PingRequest,
    Rumour,
    Standing,
    SwimMember,
)

SECOND_US = 1_000_000


class WithoutHelpers(SwimMember):
    """Only the direct way counts."""

    def _helpers(self, target: str) -> list[str]:
        return []


class NeverRefutes(SwimMember):
    """A member that does not refute what is said of it."""

    def _hear_of_oneself(self, rumour: Rumour) -> None:
        pass


@pytest.mark.rows("HB-R16", "HB-I1")
@pytest.mark.parametrize("size", [5, 20, 40])
def test_a_member_that_dies_is_marked_dead_by_all_others_and_no_other_member_is(size: int) -> None:
    cluster = SwimCluster(size)
    cluster.pass_time(10 * SECOND_US)
    dead = cluster.names[1]
    cluster.kill(dead)
    cluster.pass_time(60 * SECOND_US)
    assert {name for name, rumour in cluster.deaths() if rumour.server == dead} == set(cluster.members)
    assert cluster.dead_by_someone() == {dead}


@pytest.mark.rows("HB-I4", "HB-R14")
@pytest.mark.parametrize("size", [5, 20, 40])
def test_messages_of_a_member_do_not_grow_with_the_cluster(size: int) -> None:
    cluster = SwimCluster(size)
    cluster.pass_time(5 * SECOND_US)
    cluster.sent.clear()
    cluster.pass_time(20 * SECOND_US)
    pings = Counter(source for source, _, message in cluster.sent if isinstance(message, Ping))
    assert set(pings.values()) <= {20, 21}
    assert not any(isinstance(message, PingRequest) for _, _, message in cluster.sent)
    assert len(cluster.sent) <= 2 * 21 * size
    assert all(len(message.rumours) <= 6 for _, _, message in cluster.sent)


@pytest.mark.rows("HB-R16", "HB-I2")
@pytest.mark.parametrize(("kind", "accused"), [(SwimMember, False), (WithoutHelpers, True)])
def test_one_bad_link_makes_a_member_suspected_only_where_no_helper_is_asked(
    kind: type[SwimMember], accused: bool
) -> None:
    cluster = SwimCluster(10, kind)
    one, other = cluster.names[:2]
    cluster.cut = {(one, other), (other, one)}
    cluster.pass_time(60 * SECOND_US)
    suspicions = [
        rumour
        for _, _, message in cluster.sent
        for rumour in message.rumours
        if rumour.standing is Standing.SUSPECTED and rumour.server in (one, other)
    ]
    assert bool(suspicions) == accused


@pytest.mark.rows("HB-R16", "HB-I2")
@pytest.mark.parametrize(("kind", "survives"), [(SwimMember, True), (NeverRefutes, False)])
def test_a_member_that_was_away_for_three_seconds_refutes_the_suspicion(kind: type[SwimMember], survives: bool) -> None:
    cluster = SwimCluster(10, kind)
    cluster.pass_time(5 * SECOND_US)
    away = cluster.names[3]
    cluster.cut = {pair for name in cluster.names for pair in ((away, name), (name, away))}
    cluster.pass_time(3 * SECOND_US)
    cluster.cut = set()
    cluster.pass_time(60 * SECOND_US)
    standings = {cluster.members[name].standing(away) for name in cluster.names if name != away}
    assert (standings == {Standing.ALIVE}) == survives
    assert (cluster.members[away].incarnation > 0) == survives


@pytest.mark.rows("HB-I2")
def test_two_halves_that_took_each_other_for_dead_find_each_other_after_the_heal() -> None:
    cluster = SwimCluster(6)
    one, other = cluster.names[:3], cluster.names[3:]
    cluster.cut = {pair for a in one for b in other for pair in ((a, b), (b, a))}
    cluster.pass_time(200 * SECOND_US)
    assert {cluster.members[a].standing(b) for a in one for b in other} == {Standing.DEAD}
    cluster.cut = set()
    cluster.pass_time(40 * SECOND_US)
    standings = {cluster.members[a].standing(b) for a in cluster.names for b in cluster.names if a != b}
    assert standings == {Standing.ALIVE}


def test_every_rumour_that_is_believed_is_told_once() -> None:
    cluster = SwimCluster(3)
    cluster.believed.clear()
    member, server = cluster.members[cluster.names[0]], cluster.names[1]
    for incarnation, said in ((4, Standing.DEAD), (4, Standing.DEAD), (5, Standing.SUSPECTED), (5, Standing.ALIVE)):
        member.handle_ping(cluster.names[2], Ping(1, [Rumour(server, incarnation, said)]))
    told = [(name, rumour.incarnation, rumour.standing) for name, rumour in cluster.believed]
    assert told == [(cluster.names[0], 4, Standing.DEAD), (cluster.names[0], 5, Standing.SUSPECTED)]


def test_a_rumour_of_an_older_incarnation_changes_nothing_and_the_worse_of_one_incarnation_wins() -> None:
    cluster = SwimCluster(3)
    member, server = cluster.members[cluster.names[0]], cluster.names[1]
    for incarnation, said, believed in (
        (4, Standing.ALIVE, Standing.ALIVE),
        (3, Standing.DEAD, Standing.ALIVE),
        (4, Standing.SUSPECTED, Standing.SUSPECTED),
        (4, Standing.ALIVE, Standing.SUSPECTED),
        (5, Standing.ALIVE, Standing.ALIVE),
        (5, Standing.DEAD, Standing.DEAD),
        (5, Standing.SUSPECTED, Standing.DEAD),
        (6, Standing.ALIVE, Standing.ALIVE),
    ):
        member.handle_ping(cluster.names[2], Ping(1, [Rumour(server, incarnation, said)]))
        assert member.standing(server) is believed


def test_late_and_repeated_answers_of_an_earlier_probe_count_for_nothing() -> None:
    cluster = SwimCluster(3)
    cluster.kill(cluster.names[1])
    member = cluster.members[cluster.names[0]]
    for _ in range(30):
        cluster.pass_time(SECOND_US)
        for number in (1, 1, 2):
            member.handle_ping_answer(NodeId(cluster.names[1]), PingAnswer(number, []))
    assert member.standing(cluster.names[1]) is Standing.DEAD


@pytest.mark.rows("HB-R16", "HB-I2")
def test_losses_of_one_message_in_twenty_make_no_member_dead() -> None:
    cluster = SwimCluster(20, loss=0.05)
    cluster.pass_time(200 * SECOND_US)
    assert cluster.dead_by_someone() == set()


@pytest.mark.rows("HB-R16", "HB-R11")
def test_a_member_that_is_slow_itself_waits_longer_instead_of_accusing_the_others() -> None:
    """Everything that reaches or leaves it takes three fifths of a second more: answers come after the period."""
    cluster = SwimCluster(10)
    slow = cluster.names[4]
    cluster.delays_us = {slow: 600_000}
    cluster.pass_time(30 * SECOND_US)
    healths = []
    for _ in range(20):
        cluster.pass_time(SECOND_US)
        healths.append(cluster.members[slow].health)
    assert 0 < max(healths) <= HEALTH_MAX
    assert cluster.dead_by_someone() <= {slow}


def test_a_restarted_member_with_a_higher_incarnation_is_alive_again() -> None:
    cluster = SwimCluster(6)
    name = cluster.names[2]
    cluster.kill(name)
    cluster.pass_time(40 * SECOND_US)
    assert cluster.dead_by_someone() == {name}
    cluster.start(name, 1)
    cluster.pass_time(40 * SECOND_US)
    assert {cluster.members[other].standing(name) for other in cluster.members if other != name} == {Standing.ALIVE}
