"""The calls on a wire, and their answers: which messages they are, and how an answer gets the number of its call."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from faultline.systems_under_test.reference.consistent_core.forwarding import ForwardedAnswer, ForwardedRequest
from faultline.systems_under_test.reference.raft.append_batches import REQUEST_TOO_LARGE
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    ClientResponse,
    RedirectToLeader,
    RegisterClientRequest,
    RegisterClientResponse,
)

__all__ = ["Answer", "Call", "key_of", "lost", "numbered_like", "refused_as_too_large"]

Call = ClientRequest | RegisterClientRequest | ForwardedRequest
"""A request for which the wire waits for an answer."""

Answer = ClientResponse | RegisterClientResponse | RedirectToLeader | ForwardedAnswer
"""The answer to a call."""


def key_of(message: Call | Answer) -> str:
    """Return the key that an answer shares with its call: the number, after the client for which it was forwarded."""
    if isinstance(message, ForwardedRequest):
        return f"{message.client} {key_of(message.request)}"
    if isinstance(message, ForwardedAnswer):
        return f"{message.client} {key_of(message.answer)}"
    return str(_number(message))


def numbered_like(call: Call, answer: Any) -> Any:
    """Return `answer` under the number of `call`, for the client of `call`: the wire says that they belong together."""
    if isinstance(call, ForwardedRequest):
        inner = answer.answer if isinstance(answer, ForwardedAnswer) else answer
        return ForwardedAnswer(call.client, numbered_like(call.request, inner))
    if isinstance(answer, ForwardedAnswer):
        return numbered_like(call, answer.answer)
    if isinstance(answer, ClientResponse):
        return replace(answer, request_number=_number(call))
    return replace(answer, correlation_id=_number(call))


def lost(call: Call) -> Any:
    """Return the answer to a call that the wire lost: the caller may ask any server, and knows no outcome."""
    return numbered_like(call, RedirectToLeader(0, None))


def refused_as_too_large(call: Call) -> Any:
    """Return the answer to a call that no batch can hold."""
    return numbered_like(call, ClientResponse(0, REQUEST_TOO_LARGE))


def _number(message: Any) -> int:
    is_numbered = isinstance(message, ClientRequest | ClientResponse)
    number: int = message.request_number if is_numbered else message.correlation_id
    return number
