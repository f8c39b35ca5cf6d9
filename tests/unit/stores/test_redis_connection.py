"""One connection to Redis: its errors are three, and nothing is tried twice."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from patience import PATIENT_S, wait_until
from scripted_redis import Answer, Refused, ScriptedRedis, end_patience
from scripted_server import HOST, HangsUp, Silent

from faultline.systems_under_test.stores.redis.connection import RedisConnection, RedisRefusal

MOODS = {
    "refuse": Refused("MOVED 7 10.0.0.9:7000"),
    "unknown": Refused("WRONGTYPE Operation against a key"),
    "hang-up": HangsUp(),
    "silence": Silent(),
}


@pytest.fixture
def redis() -> Iterator[ScriptedRedis]:
    def answer(words: list[str]) -> Answer:
        if words[0] in MOODS:
            raise MOODS[words[0]]
        return words

    server = ScriptedRedis(answer)
    yield server
    server.close()


@pytest.fixture
def connection(redis: ScriptedRedis) -> Iterator[RedisConnection]:
    connection = RedisConnection(HOST, redis.port, PATIENT_S)
    yield connection
    connection.close()


def test_answers_are_text(connection: RedisConnection) -> None:
    assert connection.ask("ECHO", 7) == ["ECHO", "7"]


@pytest.mark.parametrize(
    ("mood", "word", "text"),
    [("refuse", "MOVED", "7 10.0.0.9:7000"), ("unknown", "WRONGTYPE", "Operation against a key")],
)
def test_an_error_of_redis_is_a_refusal_with_its_first_word(
    connection: RedisConnection, mood: str, word: str, text: str
) -> None:
    with pytest.raises(RedisRefusal) as caught:
        connection.ask(mood)
    assert (caught.value.word, caught.value.text) == (word, text)
    assert connection.ask("ECHO") == ["ECHO"]


@pytest.mark.parametrize(("mood", "error"), [("hang-up", ConnectionError), ("silence", TimeoutError)])
def test_a_command_without_an_answer_is_sent_once(
    connection: RedisConnection, redis: ScriptedRedis, mood: str, error: type[Exception]
) -> None:
    if mood == "silence":
        end_patience(connection)
    with pytest.raises(error):
        connection.ask(mood)
    wait_until(lambda: bool(redis.asked))
    assert redis.asked == [[mood]]


def test_a_server_that_hangs_up_meanwhile_is_noticed_before_anything_is_said(
    connection: RedisConnection, redis: ScriptedRedis
) -> None:
    connection.ask("ECHO")
    assert connection.is_open()
    redis.hang_up()
    assert not connection.is_open()


def test_a_connection_that_does_not_come_about_is_an_os_error() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionError):
        RedisConnection(HOST, port, PATIENT_S)
