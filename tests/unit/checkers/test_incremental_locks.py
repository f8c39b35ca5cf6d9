"""Locks, leases, their tokens, and session guarantees judged while operations come and go."""

from __future__ import annotations

import pytest
from watched_clients import Clients

from faultline.checkers.classic.lock import LockChecker
from faultline.checkers.classic.sessions import SessionsChecker
from faultline.checkers.incremental import sessions, tokens
from faultline.checkers.leased_lock import LeasedLockChecker
from faultline.harness.incremental import incremental_checkers
from faultline.harness.outcome import fail, info, ok


def test_a_lock_that_is_given_away_while_another_client_holds_it_is_certain_at_once():
    clients = Clients(LockChecker())
    clients.do("acquire", process=0)
    assert clients.do("acquire", process=1) == (0, 1)


def test_a_release_under_way_excuses_the_next_holder_until_it_has_failed():
    for outcome, rows in ((ok(), ()), (info("timeout"), ()), (fail("refused"), (0, 2, 1))):
        clients = Clients(LockChecker())
        clients.do("acquire", process=0)
        release = clients.begin("release", process=0)
        assert not clients.do("acquire", process=1)
        assert clients.end(release, outcome) == rows


def test_a_release_without_a_hold_is_certain_unless_an_acquire_has_an_unknown_outcome():
    clients = Clients(LockChecker())
    assert clients.do("release") == (0,)
    clients = Clients(LockChecker())
    clients.end(clients.begin("acquire"), info("timeout"))
    assert not clients.do("release", process=5)


def test_a_write_with_a_token_that_was_overtaken_before_its_call_is_certain():
    clients = Clients(LockChecker())
    early = clients.begin("write", {"token": 1}, process=1)
    assert not clients.do("write", {"token": 2}, process=2)
    assert not clients.end(early, ok()), "it may have been accepted before the other one"
    assert clients.do("write", [1, "again"], process=1) == (1, 2)


def test_a_token_that_goes_back_or_comes_twice_is_certain():
    clients = Clients(LeasedLockChecker())
    concurrent = clients.begin("acquire", process=2)
    clients.do("acquire", answer={"token": 5}, process=0)
    assert clients.end(concurrent, ok({"token": 5})) == (1, 0)
    for token, is_wrong in ((4, True), (5, True), (6, False)):
        clients = Clients(LeasedLockChecker())
        clients.do("acquire", answer={"token": 5}, process=0)
        assert bool(clients.do("acquire", answer={"token": token}, process=1)) is is_wrong


def test_a_former_owner_that_goes_on_is_certain_at_its_next_answer_and_not_when_it_refuses_itself():
    for outcome, rows in ((ok(), (0, 1, 2)), (fail("stale-token"), (0, 1, 2)), (fail("not-held"), ())):
        clients = Clients(LeasedLockChecker())
        clients.do("acquire", answer={"token": 5}, process=0)
        assert not clients.do("acquire", answer={"token": 9}, process=1)
        assert clients.end(clients.begin("check", process=0), outcome) == rows


def test_a_former_owner_that_was_called_before_the_next_was_given_the_lease_is_no_rival():
    clients = Clients(LeasedLockChecker())
    clients.do("acquire", answer={"token": 5}, process=0)
    check = clients.begin("check", process=0)
    clients.do("acquire", answer={"token": 9}, process=1)
    assert not clients.end(check, ok())


@pytest.mark.parametrize("f", ["guarded-write", "late-write"])
def test_a_write_under_an_older_token_behind_one_under_a_newer_is_certain_by_their_places(f):
    for index, is_wrong in ((3, True), (1, False)):
        clients = Clients(LeasedLockChecker())
        clients.do(f, answer={"token": 9, "index": 2}, process=1)
        assert bool(clients.do(f, answer={"token": 5, "index": index}, process=0)) is is_wrong


def test_the_places_of_a_bounded_number_of_tokens_are_kept_and_still_suffice_for_old_ones(monkeypatch):
    monkeypatch.setattr(tokens, "TOKENS_KEPT", 3)
    places = tokens.PlacedTokens()
    assert not any(places.add(token, token, 10 * token) for token in range(20))
    assert places.add(20, 4, 195) == (17, 20), "the smallest token that is left"


def test_a_session_that_reads_an_older_version_than_its_own_is_certain_and_another_session_may():
    clients = Clients(SessionsChecker())
    clients.do("write", "a", answer=[7, "a"], process=1)
    assert not clients.do("read", answer=[6, "b"], process=2)
    assert clients.do("read", answer=[6, "b"], process=1) == (0, 2)


def test_a_write_needs_a_version_of_its_own_and_a_read_may_see_one_again():
    clients = Clients(SessionsChecker())
    clients.do("read", answer=[7, "a"])
    assert not clients.do("read", answer=[7, "a"])
    assert clients.do("write", "a", answer=7) == (0, 2)


def test_a_version_with_two_values_is_certain_in_any_sessions():
    clients = Clients(SessionsChecker())
    clients.do("read", answer=[7, "a"], process=1)
    assert clients.do("read", answer={"version": 7, "value": "b"}, process=2) == (0, 1)


def test_sessions_that_ended_and_old_versions_are_forgotten(monkeypatch):
    monkeypatch.setattr(sessions, "VERSIONS_KEPT", 10)
    clients = Clients(SessionsChecker())
    for process in range(500):
        clients.do("write", process, answer=process + 1, process=process)
        clients.end(clients.begin("read", process=process), info("timeout"))
    assert clients.twin.size <= 10


def test_sessions_of_workers_have_no_twin():
    assert incremental_checkers([SessionsChecker(sessions="worker")]) == ()
