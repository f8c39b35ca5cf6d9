"""A watch that follows a store: the next member after one that broke, and gaps that are told with what closes them."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import pytest
from patience import wait_until

from faultline.harness.errors import HarnessError
from faultline.systems_under_test.stores.followed_watch import FollowedWatch

LAST = 1 << 30


class Watch(FollowedWatch):
    """Does at each member what the test puts into `news`: a gap, an index, or what breaks it."""

    failures = (OSError,)

    def __init__(self, first_member: int) -> None:
        super().__init__("servers", first_member)
        self.asked: list[tuple[int, bool]] = []
        self.news: queue.Queue[str | int | Exception] = queue.Queue()
        self.start()

    def follow(self, member: int) -> None:
        self.asked.append((member, self.is_new))
        if self.is_new:
            self.begin(len(self.asked), {"servers/1": member})
        while self.goes_on:
            try:
                told = self.news.get(timeout=0.01)
            except queue.Empty:
                continue
            if isinstance(told, Exception):
                raise told
            if isinstance(told, str):
                self.gap = told
            else:
                self.log.told_upto(told)


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch(4)
    yield watch
    watch.close()


def test_a_member_that_breaks_is_followed_by_the_next_one_which_goes_on_where_it_was(watch: Watch) -> None:
    watch.news.put(7)
    watch.news.put(OSError("broken"))
    wait_until(lambda: len(watch.asked) == 2)
    assert watch.asked == [(4, True), (5, False)]
    assert watch.log.drain() == [["state", [1, LAST], {"servers/1": 4}, None], ["upto", [7, LAST]]]


def test_a_gap_is_told_once_with_the_content_of_the_same_member(watch: Watch) -> None:
    watch.news.put("discarded")
    wait_until(lambda: len(watch.asked) == 2 and not watch.is_new)
    watch.news.put(OSError("broken"))
    wait_until(lambda: len(watch.asked) == 3)
    assert watch.asked == [(4, True), (4, True), (5, False)]
    states = [item for item in watch.log.drain() if item[0] == "state"]
    assert [reason for *_, reason in states] == [None, "discarded"]


def test_a_mistake_of_the_adapter_is_raised_where_events_are_taken_and_is_no_silence_of_the_store(watch: Watch) -> None:
    watch.news.put(KeyError("revision"))
    wait_until(lambda: not watch.is_following)
    with pytest.raises(
        HarnessError, match=r"watch on servers ended by a mistake of the adapter: KeyError\('revision'\)"
    ):
        watch.log.drain()


def test_a_watch_that_is_closed_sends_no_further_request(watch: Watch) -> None:
    wait_until(lambda: not watch.is_new)
    watch.close()
    assert watch.is_over and not watch.goes_on and watch.asked == [(4, True)]
