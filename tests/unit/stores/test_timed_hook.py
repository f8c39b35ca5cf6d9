"""The entry with a time limit that holds a lock: refreshed where that works, and elsewhere once it fails there."""

from __future__ import annotations

from typing import cast

import pytest

from faultline.systems_under_test.stores.client import MemberClient
from faultline.systems_under_test.stores.timed_hook import TimedHook


class Refusal(Exception):
    """The store does not say."""


class Client:
    """Connections are the numbers of members; remembers what became of them."""

    failures = (OSError, Refusal)

    def __init__(self) -> None:
        self.did: list[tuple[str, int]] = []

    def connect_to(self, member: int) -> int:
        self.did.append(("connect", member))
        return member

    def hang_up(self, connection: int) -> None:
        self.did.append(("hang up", connection))


class Entry(TimedHook[int]):
    """Answers what the test says, or raises it."""

    def __init__(self, client: Client) -> None:
        super().__init__(cast(MemberClient[int], client), client.connect_to, first_member=2)
        self.says: bool | Exception = True

    def prolong(self, connection: int) -> bool:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


@pytest.fixture
def client() -> Client:
    return Client()


def test_who_answers_is_asked_again_over_the_same_connection_whatever_the_answer(client: Client) -> None:
    entry = Entry(client)
    assert entry.refresh() and entry.refresh()
    entry.says = False
    assert not entry.refresh()
    assert client.did == [("connect", 2)]


@pytest.mark.parametrize("failure", [Refusal("not now"), ConnectionError("broken")])
def test_who_does_not_say_is_left_for_the_next_member(client: Client, failure: Exception) -> None:
    entry = Entry(client)
    entry.says = failure
    with pytest.raises(OSError, match="not refreshed"):
        entry.refresh()
    entry.says = True
    assert entry.refresh()
    assert client.did == [("connect", 2), ("hang up", 2), ("connect", 3)]


def test_a_hook_at_rest_has_hung_up_once_and_its_lock_is_not_over(client: Client) -> None:
    entry = Entry(client)
    entry.rest()
    assert client.did == []
    entry.refresh()
    entry.let_go()
    entry.rest()
    entry.rest()
    assert client.did == [("connect", 2), ("hang up", 2)] and entry.holds()
