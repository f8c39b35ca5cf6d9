"""Cut-short and foreign answers, which a store never gives: no adapter takes one for a success or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pika
import pytest

from faultline.harness.operation import Operation
from faultline.harness.outcome import OutcomeRegistry
from faultline.systems_under_test.stores.client import FOREIGN_ANSWER, ForeignAnswer, MemberClient
from faultline.systems_under_test.stores.galera.client import GaleraSession
from faultline.systems_under_test.stores.nats.bucket import Bucket
from faultline.systems_under_test.stores.postgresql.client import PostgresClient
from faultline.systems_under_test.stores.postgresql.session import Session
from faultline.systems_under_test.stores.rabbitmq.channel import QueueChannel
from faultline.systems_under_test.stores.redis.commands import FUNCTIONS, Waiting, execute
from faultline.systems_under_test.stores.zookeeper.tree import Found, Tree


class Answering(MemberClient[str]):
    """A client whose store gives an answer that none does."""

    outcomes = OutcomeRegistry([FOREIGN_ANSWER[:3]])

    def connect(self, address: str) -> str:
        return address

    def hang_up(self, connection: str) -> None:
        """Nothing is open."""

    def word_for(self, error: Exception) -> str:
        return "word"

    def perform(self, connection: str, operation: Operation, node: str) -> Any:
        raise ForeignAnswer(connection)


@pytest.mark.parametrize("f", ["read", "write", "cas"])
def test_a_foreign_answer_leaves_every_operation_open_and_the_next_member_is_asked(f: str) -> None:
    client = Answering(lambda node: node, ("athens", "byzantium"), "athens")
    outcomes = [client.invoke(Operation(0, f, "k", 1)) for _ in range(3)]
    assert [(outcome.kind, outcome.error) for outcome in outcomes] == [("info", FOREIGN_ANSWER)] * 3
    assert [outcome.node for outcome in outcomes] == ["athens", "byzantium", "athens"]


NUMBER: tuple[Any, list[Any]] = (7, [None, "OK", [], 1.5, True, {}])
ANSWERS: dict[str, tuple[Any, list[Any]]] = {
    **dict.fromkeys(FUNCTIONS, NUMBER),
    "read": ("7", [7, True, {}]),
    "write": ("OK", [None, "QUEUED", 1, []]),
    "cas": (1, [None, "OK", [], 2, True]),
    "dequeue": (None, [7, [], {}]),
    "drain": ([], [None, "x", 7]),
}
"""To each function an answer of Redis, and some that it never gives."""
VALUES = {"cas": [1, 2], "increment": 1, "generate": None, "dequeue": None, "drain": None}


@pytest.mark.parametrize("f", FUNCTIONS)
def test_redis_says_each_thing_in_its_own_kind_of_answer(f: str) -> None:
    right, wrong = ANSWERS[f]
    operation = Operation(0, f, "k", VALUES.get(f, 3))

    def answered(answer: Any) -> Any:
        connection: Any = SimpleNamespace(ask=lambda *words: answer)
        return execute(connection, operation, "athens", Waiting(0, 0))

    assert answered(right).kind == "ok"
    for answer in wrong:
        with pytest.raises(ForeignAnswer):
            answered(answer)


@pytest.mark.parametrize(("tag", "rows"), [("", -1), ("SELECT 1", 1), ("ROLLBACK", -1), ("INSERT 0 1", -1)])
def test_postgresql_says_of_a_change_what_it_changed(tag: str, rows: int) -> None:
    session = Session.__new__(Session)
    cursor = SimpleNamespace(statusmessage=tag, rowcount=rows)
    session.connection = SimpleNamespace(execute=lambda *_: cursor)  # type: ignore[assignment]  # a stand-in
    with pytest.raises(ForeignAnswer):
        session.changes("UPDATE objects SET value = 1")


@pytest.mark.parametrize(("tag", "kind"), [("COMMIT", "ok"), ("", "info"), ("SELECT 1", "info")])
def test_a_commit_of_postgresql_is_answered_with_commit_or_rollback_and_nothing_else(
    tag: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session.__new__(Session)
    session.expired = session.unreplicated = False
    session.connection = SimpleNamespace(closed=False, close=lambda: None)  # type: ignore[assignment]  # a stand-in
    monkeypatch.setattr(session, "tag", lambda command: tag if command == "COMMIT" else command)
    monkeypatch.setattr(session, "rows", lambda *_: [[1]])
    monkeypatch.setattr(PostgresClient, "connect", lambda *_: session)
    client = PostgresClient(
        lambda node: node, ("athens",), "athens", isolation="serializable", primary_only=True, timeout_s=30.0
    )
    assert client.invoke(Operation(0, "txn", None, [("r", "k", None)])).kind == kind


def test_galera_answers_no_change_with_rows() -> None:
    class Cursor:
        description = (("1", 3),)

        def __enter__(self) -> Cursor:
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing is open."""

        def execute(self, *_: object) -> int:
            return 1

    with pytest.raises(ForeignAnswer):
        GaleraSession(SimpleNamespace(cursor=Cursor)).changes("COMMIT")


def test_zookeeper_answers_each_step_of_a_transaction() -> None:
    def commit() -> Any:
        return SimpleNamespace(get=lambda timeout: [])

    transaction = SimpleNamespace(check=lambda *_: None, set_data=lambda *_: None, commit_async=commit)
    tree = Tree(SimpleNamespace(transaction=lambda: transaction), deadline_s=0.0)
    with pytest.raises(ForeignAnswer):
        tree.replace_all({"k": Found(1, 1)}, {"k": 2})


def publishing(answer: Any) -> QueueChannel:
    channel = QueueChannel.__new__(QueueChannel)
    channel._confirms = True
    channel._specification = pika.spec
    channel._errors = pika.exceptions
    channel._persistent = None
    channel._channel = SimpleNamespace(basic_publish=lambda *_, **__: None)
    channel._wait = lambda timeout_s=None: answer  # type: ignore[method-assign]  # a stand-in
    return channel


@pytest.mark.parametrize("answer", [None, SimpleNamespace(method=pika.spec.Queue.DeclareOk()), (b"", 1)])
def test_rabbitmq_confirms_a_publication_or_refuses_it(answer: Any) -> None:
    publishing(SimpleNamespace(method=pika.spec.Basic.Ack())).publish("q", b"1")
    with pytest.raises(ForeignAnswer):
        publishing(answer).publish("q", b"1")


def bucket_that(come: Callable[[], Any]) -> Bucket:
    bucket = Bucket.__new__(Bucket)
    bucket._direct = False
    bucket._stream = SimpleNamespace(publish=lambda *_, **__: None, get_msg=lambda *_, **__: None)
    bucket._done = lambda request: come()  # type: ignore[method-assign]  # a stand-in
    return bucket


def test_nats_acknowledges_a_change_as_one_of_the_stream_and_holds_values() -> None:
    assert bucket_that(lambda: SimpleNamespace(stream="KV_faultline", seq=7)).put("k", 1) == 7
    for stream, seq in (("OTHER", 7), ("KV_faultline", None), (None, 7)):
        with pytest.raises(ForeignAnswer):
            bucket_that(lambda stream=stream, seq=seq: SimpleNamespace(stream=stream, seq=seq)).put("k", 1)
    for data in (b"{", b"\xff", None):
        with pytest.raises(ForeignAnswer):
            bucket_that(lambda data=data: SimpleNamespace(data=data, seq=1)).get("k")
