"""Promises: completed exactly once, callbacks in order, at once when the result is there."""

from __future__ import annotations

import pytest

from faultline.systems_under_test.patterns.promise import AlreadyCompleted, NotCompleted, Promise


def test_callbacks_are_called_in_order_with_the_value() -> None:
    calls: list[str] = []
    promise: Promise[str] = Promise()
    promise.then(lambda value: calls.append("first " + value)).then(lambda value: calls.append("second " + value))
    assert calls == []
    promise.complete("x")
    promise.then(lambda value: calls.append("late " + value))
    assert calls == ["first x", "second x", "late x"]
    assert promise.done
    assert promise.result() == "x"


def test_an_error_reaches_those_who_asked_for_errors() -> None:
    values: list[int] = []
    errors: list[Exception] = []
    promise: Promise[int] = Promise()
    promise.then(values.append, errors.append).then(values.append)
    error = KeyError("gone")
    promise.fail(error)
    promise.then(values.append, errors.append)
    assert (values, errors) == ([], [error, error])
    with pytest.raises(KeyError, match="gone"):
        promise.result()


def test_there_is_no_result_before_completion() -> None:
    with pytest.raises(NotCompleted):
        Promise[int]().result()


def test_a_promise_is_completed_once() -> None:
    promise: Promise[int] = Promise()
    promise.complete(1)
    with pytest.raises(AlreadyCompleted):
        promise.complete(2)
    with pytest.raises(AlreadyCompleted):
        promise.fail(KeyError())
    assert promise.result() == 1
