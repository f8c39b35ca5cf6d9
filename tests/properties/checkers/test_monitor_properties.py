"""Monitors against the port of Porcupine, on true, corrupted and invented histories with overlaps and crashes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from object_histories import KINDS, corrupted, invented_histories, true_histories

from faultline.checkers.linearizability.data_types import MODEL_FACTORIES
from faultline.checkers.linearizability.monitors import decide
from faultline.checkers.linearizability.replay import replays
from faultline.checkers.porcupine import UNLIMITED, check_operations


def agrees_with_the_port(kind, history):
    model = MODEL_FACTORIES[kind].model()
    expected = check_operations(model, history)
    found = decide(kind, history, UNLIMITED)
    assert found.is_legal == expected, (found, history)
    assert found.is_confirmed
    if found.is_illegal:
        assert not check_operations(model, [history[position] for position in found.core])
    elif found.engine == "monitor":
        assert replays(kind, history, found.order)
    return expected


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=90)
@given(data=st.data())
def test_what_a_true_object_did_is_never_refused(kind, data):
    assert agrees_with_the_port(kind, data.draw(true_histories(kind)))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=90)
@given(data=st.data())
def test_a_corrupted_history_is_judged_as_the_port_judges_it(kind, data):
    agrees_with_the_port(kind, data.draw(corrupted(data.draw(true_histories(kind)), kind)))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=90)
@given(data=st.data())
def test_an_invented_history_is_judged_as_the_port_judges_it(kind, data):
    agrees_with_the_port(kind, data.draw(invented_histories(kind)))
