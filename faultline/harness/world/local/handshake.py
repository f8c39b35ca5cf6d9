"""The proof that both ends of a connection belong to the run, before any message crosses it.

Each run draws a secret that the harness, its clients and its nodes know. It never travels over these connections, and
it stands in no file: node processes read it from the pipe that they are born with. Both ends prove that they know it by
an HMAC (RFC 2104) over random bytes of both, so that a proof overheard is of no use on any other connection, and over
both names and the part each plays, so that none can be handed back or on:

    caller    -> Hello(name, random bytes)
    listener  -> Challenge(random bytes, proof)
    caller    -> Proof(proof), and its messages right behind it

So neither a stranger that finds a node's port, nor one that listens there while the node is dead, becomes a part of the
test. What follows is neither encrypted nor signed: this keeps out strangers that can connect, not those that can change
packets.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Any

import msgspec

from faultline.harness.world.framing import encode_frame
from faultline.harness.world.message_codec import WireError

__all__ = [
    "HANDSHAKE_BYTES_MAX",
    "HANDSHAKE_TIMEOUT_S",
    "SECRET_BYTES",
    "Caller",
    "Listener",
    "RunSecret",
    "Witness",
]

SECRET_BYTES = 32
HANDSHAKE_BYTES_MAX = 1_024
"""The bytes that a caller may send, of an unfinished frame, before it has proved its name."""

HANDSHAKE_TIMEOUT_S = 10.0
"""The time for which either end waits for the other's proof, until it hangs up."""

_NONCE_BYTES = 16
_PASSWORD_CHARACTERS = 32
_ENCODER = msgspec.msgpack.Encoder()


class _Hello(msgspec.Struct, frozen=True, array_like=True):
    """The caller's name, and random bytes."""

    caller: str
    nonce: bytes


class _Challenge(msgspec.Struct, frozen=True, array_like=True):
    """The listener's random bytes, and its proof."""

    nonce: bytes
    proof: bytes


class _Proof(msgspec.Struct, frozen=True, array_like=True):
    """The caller's proof."""

    proof: bytes


class RunSecret:
    """The secret of one run. No text and no record is made of it: it is handed on as bytes, through pipes alone."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        if len(key) != SECRET_BYTES:
            raise ValueError(f"a secret has {SECRET_BYTES} bytes, not {len(key)}")
        self._key = key

    @classmethod
    def drawn(cls) -> RunSecret:
        """Return a new one, from the machine's source of randomness: a seed would make it known."""
        return cls(secrets.token_bytes(SECRET_BYTES))

    def __repr__(self) -> str:
        return "RunSecret(...)"

    def __reduce__(self) -> Any:
        raise TypeError("the secret of a run is not stored")

    def reveal(self) -> bytes:
        """Return its bytes, for the pipe to a node."""
        return self._key

    def password(self) -> str:
        """Return a password for stores that ask for one. It follows from the secret, and the secret not from it."""
        return hmac.digest(self._key, b"password of the store", "sha256").hex()[:_PASSWORD_CHARACTERS]

    def redacted(self, data: bytes) -> bytes:
        """Return `data`, of a node or a store, without the secret and the password: nothing else is kept or shown."""
        for told in (self._key, self._key.hex().encode(), self.password().encode()):
            data = data.replace(told, b"[secret]")
        return data

    def proof(self, part: str, hello: _Hello, listener: str, nonce: bytes) -> bytes:
        """Return the proof that takes the secret, for this `part` and the connection of these random bytes."""
        told = _ENCODER.encode((part, hello.caller, listener, hello.nonce, nonce))
        return hmac.digest(self._key, told, "sha256")


class Caller:
    """The caller's end. `hello` is the first frame."""

    def __init__(self, secret: RunSecret, name: str, listener: str) -> None:
        self._secret = secret
        self._listener = listener
        self._hello = _Hello(name, secrets.token_bytes(_NONCE_BYTES))
        self.hello = encode_frame(_ENCODER.encode(self._hello))

    def answer(self, payload: bytes) -> bytes:
        """Return the frame that answers the challenge in `payload`. Raises WireError unless it proves the listener."""
        challenge = _decoded(payload, _Challenge)
        _refuse_unless(self._secret.proof("listener", self._hello, self._listener, challenge.nonce), challenge.proof)
        own = self._secret.proof("caller", self._hello, self._listener, challenge.nonce)
        return encode_frame(_ENCODER.encode(_Proof(own)))


class Listener:
    """The listener's end. `caller` is the name of the caller, once that is proved."""

    def __init__(self, secret: RunSecret, name: str) -> None:
        self._secret = secret
        self._name = name
        self._hello: _Hello | None = None
        self._nonce = secrets.token_bytes(_NONCE_BYTES)
        self.caller: str | None = None

    def take(self, payload: bytes) -> bytes:
        """Return the answer to `payload`, if any. Raises WireError when the caller does not know the secret."""
        if self._hello is None:
            self._hello = _hello_in(payload)
            proof = self._secret.proof("listener", self._hello, self._name, self._nonce)
            return encode_frame(_ENCODER.encode(_Challenge(self._nonce, proof)))
        expected = self._secret.proof("caller", self._hello, self._name, self._nonce)
        _refuse_unless(expected, _decoded(payload, _Proof).proof)
        self.caller = self._hello.caller
        return b""


class Witness:
    """A proxy in between, which passes the frames on: it too lets nothing follow until both ends are proved."""

    def __init__(self, secret: RunSecret, caller: str, listener: str) -> None:
        self._secret = secret
        self._caller = caller
        self._listener = listener
        self._hello: _Hello | None = None
        self._nonce: bytes | None = None
        self.is_proven = False

    def take_from_caller(self, payload: bytes) -> None:
        """Take the next frame of the caller. Raises WireError when it is not the one that belongs there."""
        if self._hello is None:
            self._hello = _hello_in(payload)
            if self._hello.caller != self._caller:
                raise WireError(f"{self._hello.caller!r} does not belong on the link from {self._caller}")
            return
        if self._nonce is None:
            raise WireError("a caller proves itself before it is asked to")
        expected = self._secret.proof("caller", self._hello, self._listener, self._nonce)
        _refuse_unless(expected, _decoded(payload, _Proof).proof)
        self.is_proven = True

    def take_from_listener(self, payload: bytes) -> None:
        """Take the listener's frame, which the caller will look at. Raises WireError when it cannot be read."""
        self._nonce = _decoded(payload, _Challenge).nonce


def _hello_in(payload: bytes) -> _Hello:
    hello: _Hello = _decoded(payload, _Hello)
    if len(hello.nonce) != _NONCE_BYTES:
        raise WireError(f"a hello has {_NONCE_BYTES} random bytes, not {len(hello.nonce)}")
    return hello


def _decoded(payload: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.msgpack.decode(payload, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"{payload[:80]!r} is no {kind.__name__[1:].lower()}: {error}") from error


def _refuse_unless(expected: bytes, proof: bytes) -> None:
    if not hmac.compare_digest(expected, proof):
        raise WireError("the other end does not know the secret of this run")
