"""The client that reads from followers: whom it asks, what stamp it passes on, and where it turns when refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from client_story import MEMBERS, ClientStory

from faultline.systems_under_test.reference.follower_reads.messages import (
    NOT_HEARD,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    FollowerRead,
    ReplicaPing,
    ReplicaPong,
)
from faultline.systems_under_test.reference.follower_reads.system import FollowerReadStore
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    ClientResponse,
    RedirectToLeader,
    RegisterClientResponse,
)
from faultline.systems_under_test.reference.shared.key_commands import VERSION_COMPACTED

MS = 1_000


class Reader(ClientStory):
    """A client at athens that has found its leader; what it asked, and of whom."""

    def __init__(self, mode: str, leader: str = "cyrene", read_from: str = "follower", **options: str) -> None:
        store = {"store": "versioned"} if mode == "at-stamp" else {}
        super().__init__(FollowerReadStore(), read_from=read_from, follower_reads=mode, **store, **options)
        self.hear(leader, RegisterClientResponse(0, 77))

    def asked(self) -> list[tuple[str, int]]:
        """The servers that were asked to read so far, with the stamps they were given."""
        return [(to, message.stamp) for to, message in self.ports.sent if isinstance(message, FollowerRead)]

    def write(self, version: int) -> None:
        """A write that the leader acknowledges under `version`."""
        self.invoke("write", "a value")
        to, request = self.ports.sent[-1]
        assert isinstance(request, ClientRequest)
        self.hear(to, ClientResponse(request.request_number, None, None, version))

    def answer(self, value: Any, version: int) -> None:
        """Let the server that was asked last answer."""
        to, request = self.ports.sent[-1]
        self.hear(to, ClientResponse(request.request_number, None, value, version))

    def refuse(self, error: str) -> None:
        """Let the server that was asked last refuse."""
        to, request = self.ports.sent[-1]
        self.hear(to, ClientResponse(request.request_number, error))


@pytest.mark.rows("FR-R1")
def test_writes_go_to_the_leader_and_return_their_version_while_reads_go_home() -> None:
    reader = Reader("session")
    reader.write(version=5)
    assert reader.ended == [("ok", 5, None)]
    assert reader.ports.sent[-1][0] == "cyrene"
    reader.invoke("read")
    assert reader.asked() == [("athens", 5)]


@pytest.mark.rows("FR-R20", "FR-R12")
@pytest.mark.parametrize(
    ("mode", "stamp"),
    [("plain", 0), ("bounded", 0), ("stamped", 5), ("session", 9), ("at-stamp", 9), ("no-wait", 9), ("closed", 9)],
)
def test_what_a_session_passes_on_depends_on_the_mode(mode: str, stamp: int) -> None:
    reader = Reader(mode)
    reader.write(version=5)
    reader.invoke("read")
    reader.answer("seen", version=9)
    reader.invoke("read")
    reader.answer("older", version=7)
    reader.invoke("read")
    assert reader.asked()[-1] == ("athens", stamp)


@pytest.mark.rows("FR-R8", "FR-R13", "FR-S2")
def test_who_refuses_or_is_silent_is_left_for_the_next_and_the_leader_comes_last() -> None:
    reader = Reader("session")
    reader.invoke("read")
    reader.refuse(NOT_HEARD)
    reader.pass_time(300 * MS)
    assert [to for to, _ in reader.asked()] == ["athens", "byzantium", "cyrene"]
    reader.answer("from the leader", version=3)
    assert reader.ended == [("ok", "from the leader", None)]


def test_a_refusal_that_comes_late_from_a_server_that_was_left_changes_nothing() -> None:
    reader = Reader("session")
    reader.invoke("read")
    number = reader.ports.sent[-1][1].request_number
    reader.refuse(NOT_HEARD)
    reader.hear("athens", ClientResponse(number, NOT_HEARD))
    assert [to for to, _ in reader.asked()] == ["athens", "byzantium"]
    reader.hear("athens", ClientResponse(number, None, "late, but right", 1))
    assert reader.ended == [("ok", "late, but right", None)]


def test_after_the_last_server_a_new_round_begins_until_the_timeout_which_is_indefinite() -> None:
    reader = Reader("session")
    reader.invoke("read")
    for _ in range(3):
        reader.refuse(NOT_HEARD)
    assert len(reader.asked()) == 3
    reader.pass_time(20 * MS)
    assert len(reader.asked()) == 4
    reader.pass_time(2_000 * MS)
    assert reader.ended == [("info", None, "timeout")]


@pytest.mark.rows("FR-R11")
@pytest.mark.parametrize(("error", "turns_to"), [(OFFSET_OUT_OF_RANGE, "cyrene"), (OFFSET_NOT_AVAILABLE, "byzantium")])
def test_a_stamp_that_a_follower_has_never_heard_of_is_taken_to_the_leader_at_once(error: str, turns_to: str) -> None:
    reader = Reader("no-wait")
    reader.invoke("read")
    reader.refuse(error)
    assert reader.asked()[-1][0] == turns_to


@pytest.mark.rows("VVL-R16")
def test_a_past_that_is_not_kept_any_more_is_given_up_for_something_newer() -> None:
    reader = Reader("at-stamp")
    reader.write(version=5)
    reader.invoke("read")
    reader.refuse(VERSION_COMPACTED)
    assert reader.asked() == [("athens", 5), ("byzantium", 0)]


def test_a_redirect_tells_where_the_leader_is_and_the_round_goes_on() -> None:
    reader = Reader("session", leader="byzantium")
    reader.invoke("read")
    reader.refuse(NOT_HEARD)
    reader.refuse(NOT_HEARD)
    to, request = reader.ports.sent[-1]
    assert to == "byzantium"
    reader.hear("byzantium", RedirectToLeader(request.request_number, "cyrene"))
    reader.pass_time(20 * MS)
    reader.refuse(NOT_HEARD)
    reader.refuse(NOT_HEARD)
    assert [to for to, _ in reader.asked()][3:] == ["athens", "byzantium", "cyrene"]


# -- nearest ----------------------------------------------------------------------------------------------------------


def pong_from(latency_us: dict[str, int], regions: dict[str, str]) -> Callable[[Reader], None]:
    """Answers the pings of one heartbeat, each after the latency of its server; silent servers have none."""

    def answer(reader: Reader) -> None:
        sent_us = reader.ports.now_us
        for server in sorted(latency_us, key=latency_us.__getitem__):
            reader.ports.now_us = sent_us + latency_us[server]
            reader.hear(server, ReplicaPong(sent_us, regions[server], 0))
        reader.ports.now_us = sent_us

    return answer


@pytest.mark.rows("FR-R6", "FR-R4", "FR-R8", "FR-S6")
def test_heartbeats_tell_the_nearest_follower_and_when_it_dies() -> None:
    reader = Reader("plain", read_from="nearest", regions="1")
    everywhere = dict.fromkeys(MEMBERS, "us-west")
    near = pong_from({"athens": 9 * MS, "byzantium": 2 * MS, "cyrene": 1 * MS}, everywhere)
    reader.pass_time(100 * MS)
    assert [to for to, message in reader.ports.sent if isinstance(message, ReplicaPing)] == list(MEMBERS)
    near(reader)
    reader.invoke("read")
    assert reader.asked()[-1][0] == "byzantium"
    reader.answer(None, 0)
    dead = pong_from({"athens": 9 * MS, "cyrene": 1 * MS}, everywhere)
    for _ in range(2):
        reader.pass_time(100 * MS)
        dead(reader)
    reader.invoke("read")
    assert reader.asked()[-1][0] == "athens"


@pytest.mark.rows("FR-R3", "FR-S5")
def test_the_region_that_servers_publish_comes_before_latency() -> None:
    reader = Reader("plain", read_from="nearest")
    regions = {"athens": "us-east", "byzantium": "us-west", "cyrene": "eu-west"}
    reader.pass_time(100 * MS)
    pong_from({"athens": 1 * MS, "byzantium": 50 * MS, "cyrene": 2 * MS}, regions)(reader)
    reader.invoke("read")
    assert reader.asked()[-1][0] == "byzantium"
