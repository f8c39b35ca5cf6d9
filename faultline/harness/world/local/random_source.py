"""Randomness of real nodes: a pure function of the seed, the node, the stream's name and the node's time of asking."""

from __future__ import annotations

from faultline.harness.world.ports import Clock, NodeId
from faultline.harness.world.weather import salt, uniform

__all__ = ["WeatherRandom"]


class WeatherRandom:
    """The random port of one node or client."""

    def __init__(self, seed: int, node_id: NodeId, clock: Clock) -> None:
        self._seed = seed
        self._node_id = node_id
        self._clock = clock
        self._salts: dict[str, int] = {}

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        """Return an integer in [low_us, high_us)."""
        stream_salt = self._salts.get(stream)
        if stream_salt is None:
            stream_salt = self._salts[stream] = salt(self._seed, "random", self._node_id, stream)
        return uniform(stream_salt, self._clock.monotonic_us(), low_us, high_us)
