"""`logged-store` by hand: what a server logs, applies and answers, how it recovers, and what its client sends."""

from __future__ import annotations

from typing import Any

import pytest
from client_story import MEMBERS, ClientStory

from faultline.harness.errors import UsageError
from faultline.harness.invariant import Breach
from faultline.harness.promises import Asked
from faultline.harness.system import NodeSystem
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.reference.logged_store.client import server_of
from faultline.systems_under_test.reference.logged_store.invariants import logged_store_invariants
from faultline.systems_under_test.reference.logged_store.messages import (
    FULL_QUEUE,
    AddToValue,
    CommandApplied,
    ReadValue,
    StoreAnswer,
    StoreOpened,
    WriteValue,
)
from faultline.systems_under_test.reference.logged_store.options import OPTIONS, LoggedStoreSettings
from faultline.systems_under_test.reference.logged_store.system import LoggedStoreSystem
from faultline.systems_under_test.reference.shared.key_commands import VERSION_COMPACTED, WRONG_KIND_OF_VALUE
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import MemoryStorage

MS = 1_000
CLIENT = NodeId("client-0")


class Server:
    """One server, and what it answers to one client."""

    def __init__(self, storage: MemoryStorage | None = None, bugs: tuple[str, ...] = (), **options: str) -> None:
        self.ports = FakePorts(storage=storage)
        self.node = LoggedStoreSystem().node(self.ports, MEMBERS[:1], options, frozenset(bugs))
        self.node.start()
        self.number = 0

    def ask(self, kind: type, *fields: Any) -> StoreAnswer | None:
        self.number += 1
        identified = (1,) if kind in (WriteValue, AddToValue) else ()
        self.node.receive(CLIENT, kind(*identified, self.number, *fields))
        return self.answer()

    def answer(self) -> StoreAnswer | None:
        sent = [message for _, message in self.ports.take_sent()]
        return sent[-1] if sent else None

    def read(self, key: str, version: int = 0) -> str | None:
        answer = self.ask(ReadValue, key, version)
        assert answer is not None
        return answer.value

    def opened(self) -> StoreOpened:
        return next(event for event in self.ports.events if isinstance(event, StoreOpened))

    def restarted(self, **options: str) -> Server:
        self.ports.storage.crash()
        return Server(self.ports.storage, **options)


def test_the_logged_store_fulfils_the_protocol_of_systems_with_few_options() -> None:
    system: NodeSystem = LoggedStoreSystem()
    assert system.name == "logged-store"
    assert len(OPTIONS) <= 15


@pytest.mark.rows("WAL-R1", "WAL-R17", "VVL-R3")
def test_a_write_is_answered_with_its_version_and_read_from_memory() -> None:
    server = Server()
    assert server.ask(WriteValue, "title", '"old"') == StoreAnswer(1, None, None, 1)
    assert server.ask(WriteValue, "title", '"new"') == StoreAnswer(2, None, None, 2)
    assert server.read("title") == '"new"'
    assert server.read("title", 1) == '"old"'
    assert server.read("absent") is None


@pytest.mark.rows("WAL-R11", "WAL-S6")
def test_a_repetition_is_logged_and_answered_like_the_first_and_has_no_second_effect() -> None:
    server = Server()
    server.node.receive(CLIENT, AddToValue(7, 1, "count", 5))
    server.node.receive(CLIENT, AddToValue(7, 1, "count", 5))
    assert [message for _, message in server.ports.take_sent()] == [
        StoreAnswer(1, None, "5", index) for index in (1, 2)
    ]
    assert server.node.store.log.last_index == 2
    assert server.read("count") == "5"
    assert "repeated-request-answered" in server.ports.marks


def test_an_addition_to_a_text_is_refused() -> None:
    server = Server()
    server.ask(WriteValue, "title", '"text"')
    assert server.ask(AddToValue, "title", 1) == StoreAnswer(2, WRONG_KIND_OF_VALUE)


@pytest.mark.rows("WAL-S1", "WAL-R8", "WAL-I3", "WAL-I6", "VVL-S5")
def test_a_server_that_loses_its_memory_goes_on_from_the_file_and_the_log() -> None:
    options = {"store_every_entries": "3", "segment_size_bytes": "64", "log_cleaning_interval_ms": "10"}
    server = Server(**options)
    for number in range(8):
        server.ask(WriteValue, f"k{number % 2}", str(number))
    server.ports.pass_time(20 * MS)
    assert {"versions-stored", "log-cleaned"} <= set(server.ports.marks)
    again = server.restarted(**options)
    assert {"versions-read-from-file", "entries-replayed"} <= set(again.ports.marks)
    assert (again.opened().found, again.opened().applied) == (8, 8)
    assert [again.read(key) for key in ("k0", "k1")] == ["6", "7"]
    assert again.read("k0", 5) == "4"
    assert again.opened().checksum == server.node.store.checksum()


@pytest.mark.rows("SUQ-R7", "SUQ-R15")
def test_writes_gather_in_front_of_the_log_and_are_refused_when_too_many_wait() -> None:
    server = Server(batch_linger_ms="5", queue_max="2")
    assert server.ask(WriteValue, "a", "1") is None
    assert server.ask(WriteValue, "b", "2") is None
    assert server.ask(WriteValue, "c", "3") == StoreAnswer(3, FULL_QUEUE)
    assert server.read("a") is None
    server.ports.pass_time(5 * MS)
    assert [message.request_number for _, message in server.ports.take_sent()] == [1, 2]
    assert server.node.store.log.last_index == 2
    assert "writes-gathered" in server.ports.marks


@pytest.mark.rows("WAL-R9")
def test_a_group_is_answered_after_its_flush_and_not_seen_before() -> None:
    server = Server(flush_policy="groups", group_max="2", group_linger_ms="5")
    assert server.ask(WriteValue, "a", "1") is None
    assert server.read("a") is None
    assert server.ask(WriteValue, "a", "2") == StoreAnswer(3, None, None, 2)
    assert server.read("a") == "2"


@pytest.mark.rows("VVL-R16")
def test_a_read_at_a_version_that_is_not_kept_is_refused_by_name() -> None:
    server = Server(versions_kept="2")
    for number in range(6):
        server.ask(WriteValue, "title", str(number))
    assert server.ask(ReadValue, "title", 3) == StoreAnswer(7, VERSION_COMPACTED)
    assert server.read("title", 4) == "3"


@pytest.mark.rows("WAL-R16", "WAL-S10")
def test_a_disk_that_refuses_ends_the_server_and_no_client_is_told() -> None:
    server = Server()
    server.ports.storage.failing = "fsync"
    with pytest.raises(Exception, match="log"):
        server.ask(WriteValue, "title", "1")
    assert server.answer() is None


# -- the client -------------------------------------------------------------------------------------------------------


def test_a_client_asks_the_server_of_the_key_again_under_one_number() -> None:
    story = ClientStory(LoggedStoreSystem())
    story.invoke("write", 3)
    story.pass_time(300 * MS)
    home = server_of("x", MEMBERS)
    assert story.ports.sent == 2 * [(home, WriteValue(1, 1, "x", "3"))]
    story.hear(home, StoreAnswer(1, None, None, 9))
    assert story.ended == [("ok", 9, None)]


def test_a_write_without_an_answer_in_time_is_open() -> None:
    story = ClientStory(LoggedStoreSystem())
    story.invoke("increment", 2)
    story.pass_time(1_000 * MS)
    assert story.ended == [("info", None, "timeout")]


@pytest.mark.rows("VVL-R12")
def test_a_session_reads_at_the_version_that_it_has_seen_and_at_the_newest_when_that_is_gone() -> None:
    story = ClientStory(LoggedStoreSystem(), reads="at-version")
    home = server_of("x", MEMBERS)
    story.invoke("write", 3)
    story.hear(home, StoreAnswer(1, None, None, 9))
    assert story.invoke("read") == ReadValue(2, "x", 9)
    story.hear(home, StoreAnswer(2, VERSION_COMPACTED))
    assert story.ports.sent[-1][1] == ReadValue(2, "x", 0)
    story.hear(home, StoreAnswer(2, None, "4", 12))
    assert story.invoke("read") == ReadValue(3, "x", 12)
    assert story.ended == [("ok", 9, None), ("ok", 4, None)]


def test_a_write_that_found_the_queue_full_is_sent_again_after_a_pause() -> None:
    story = ClientStory(LoggedStoreSystem())
    story.invoke("write", 3)
    story.hear(server_of("x", MEMBERS), StoreAnswer(1, FULL_QUEUE))
    assert len(story.ports.sent) == 1
    story.pass_time(20 * MS)
    assert len(story.ports.sent) == 2


# -- promises and invariants ------------------------------------------------------------------------------------------


def test_options_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(UsageError, match="give up before"):
        LoggedStoreSettings.read({"request_timeout_ms": "2000"})


@pytest.mark.parametrize(
    ("options", "workload", "kinds", "promised"),
    [
        ({}, "read-write", {"kill"}, True),
        ({"flush_policy": "never"}, "read-write", {"kill"}, False),
        ({"flush_policy": "never"}, "read-write", {"pause"}, True),
        ({"reads": "at-version"}, "read-write", set(), False),
        ({"reads": "at-version"}, "read-your-writes", set(), True),
    ],
)
def test_less_is_promised_with_late_flushes_and_reads_of_the_past(
    options: dict[str, str], workload: str, kinds: set[str], promised: bool
) -> None:
    given = {name: description.default for name, description in OPTIONS.items()} | options
    asked = Asked(workload=workload, functions=("read", "write"), options=given, fault_kinds=frozenset(kinds))
    assert (LoggedStoreSystem().not_promised(asked) is None) is promised


def broken(*events: Any) -> set[str]:
    breaches: list[Breach] = []
    for invariant in logged_store_invariants():
        for event in events:
            if isinstance(event, invariant.events):
                invariant.observe(0, "athens", event, breaches.append)
    return {breach.invariant for breach in breaches}


def opened(last: int, checksum: int = 0, applied: int | None = None, found: int | None = None) -> StoreOpened:
    return StoreOpened(
        found=last if found is None else found,
        last=last,
        applied=last if applied is None else applied,
        checksum=checksum,
    )


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ((opened(0), CommandApplied(2, 7)), {"WAL-I2"}),
        ((opened(0), CommandApplied(1, 7), opened(1, checksum=8)), {"WAL-I3"}),
        ((opened(5, applied=4),), {"WAL-I3"}),
        ((opened(5, found=4),), {"WAL-I6"}),
        ((opened(0), CommandApplied(1, 7), opened(1, checksum=7), CommandApplied(2, 9)), set()),
        ((opened(0), CommandApplied(1, 7), opened(0), CommandApplied(1, 8), opened(1, checksum=8)), set()),
    ],
)
def test_each_invariant_of_the_log_reports_its_breach_and_nothing_else(events: Any, found: set[str]) -> None:
    assert broken(*events) == found
