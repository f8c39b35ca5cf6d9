"""The sentences that clients of all shipped systems share."""

from __future__ import annotations

import pytest
from client_story import ClientStory

from faultline.registry import load_system, systems

SHIPPED = [name for name, path in systems().items() if path.startswith("faultline.")]
FOR_THREE_NODES = {"coordinated-kv": {"core_size": "1"}}


@pytest.mark.parametrize("system", SHIPPED)
def test_an_operation_that_a_system_does_not_have_is_refused_in_one_word_for_all(system: str) -> None:
    story = ClientStory(load_system(system), **FOR_THREE_NODES.get(system, {}))
    story.invoke("dance")
    assert story.ended == [("fail", None, "unsupported-operation")]
