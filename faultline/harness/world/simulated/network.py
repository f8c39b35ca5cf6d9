"""The simulated network: one ordered channel per directed link, with latency, loss, duplication, delay and cuts.

Messages of one link arrive in the order they were sent (a single socket channel); messages of different links overtake
each other as their latencies have it. A duplicate comes later and out of order, as a resend over a new connection.
A cut loses whatever would arrive while it lasts. Messages between clients and nodes have short latencies of their own:
long ones would only hide anomalies (Maelstrom's observation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from faultline.harness.plan import Weather
from faultline.harness.run_record import MessageRecord
from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.simulated.scheduler import Scheduler
from faultline.harness.world.weather import DRAW_RANGE, draw, salt

__all__ = ["SimulatedNetwork"]

_HEALTHY = LinkQuality()
_CLIENT_LATENCY_US_MIN = 100
_CLIENT_LATENCY_US_SPAN = 400
_DUPLICATE_AFTER_US_MAX = 40_000


class _Link:
    __slots__ = ("cut", "deliver", "last_arrival_us", "latency_us", "plain", "quality", "salt", "source", "span_us")

    def __init__(self, stream_salt: int, source: str, latency_us: int, span_us: int, deliver: Deliver) -> None:
        self.salt = stream_salt
        self.source = source
        self.latency_us = latency_us
        self.span_us = span_us
        self.deliver = deliver
        self.last_arrival_us = 0
        self.cut = False
        self.quality = _HEALTHY
        self.plain = True


Deliver = Callable[[str, Any], None]


class SimulatedNetwork:
    """All links of one world. Participants register by name with the function that takes their messages."""

    def __init__(
        self, scheduler: Scheduler, weather: Weather, seed: int, nodes: Iterable[str], *, record: bool = False
    ) -> None:
        self.sent = 0
        self.delivered = 0
        self.records: list[MessageRecord] = []
        self._record = record
        self._scheduler = scheduler
        self._weather = weather
        self._seed = seed
        self._nodes = frozenset(nodes)
        self._receivers: dict[str, Deliver] = {}
        self._links: dict[str, dict[str, _Link]] = {}

    def register(self, name: str, deliver: Deliver) -> None:
        """Let `name` take part; `deliver(source, message)` is called for each message that reaches it."""
        self._receivers[name] = deliver

    def send(self, source: str, target: str, message: Any) -> None:
        """Put `message` on the link from `source` to `target`."""
        link = self._links.get(source, {}).get(target) or self._link(source, target)
        self.sent += 1
        if link is None:
            return
        now_us = self._scheduler.now_us
        arrival_us = now_us + link.latency_us + (draw(link.salt, now_us) * link.span_us >> 24)
        if not link.plain:
            if _happens(link.salt ^ 0x10, now_us, link.quality.loss + self._weather.loss):
                if self._record:
                    self._note(source, target, message, now_us, -1)
                return
            arrival_us += self._extra_delay(link, now_us)
        arrival_us = link.last_arrival_us = max(arrival_us, link.last_arrival_us)
        self._scheduler.at(arrival_us, self._arrive, link, message, now_us, target)
        if not link.plain and _happens(link.salt ^ 0x20, now_us, link.quality.duplicate + self._weather.duplicate):
            later_us = arrival_us + (draw(link.salt ^ 0x40, now_us) * _DUPLICATE_AFTER_US_MAX >> 24)
            self._scheduler.at(later_us, self._arrive, link, message, now_us, target)

    # -- the fault port's handles -------------------------------------------------------------------------------

    def set_cut(self, source: str, target: str, cut: bool) -> None:
        self._require(source, target).cut = cut

    def is_cut(self, source: str, target: str) -> bool:
        return self._require(source, target).cut

    def set_quality(self, source: str, target: str, quality: LinkQuality) -> None:
        link = self._require(source, target)
        link.quality = quality
        link.plain = quality == _HEALTHY and not self._weather.loss and not self._weather.duplicate

    def quality(self, source: str, target: str) -> LinkQuality:
        return self._require(source, target).quality

    # -- inside -------------------------------------------------------------------------------------------------

    def _arrive(self, link: _Link, message: Any, send_us: int, target: str) -> None:
        if self._record:
            self._note(link.source, target, message, send_us, -1 if link.cut else self._scheduler.now_us)
        if not link.cut:
            self.delivered += 1
            link.deliver(link.source, message)

    def _link(self, source: str, target: str) -> _Link | None:
        """The link, made at first use; None when nobody of that name was ever there (the message is lost)."""
        deliver = self._receivers.get(target)
        if deliver is None:
            return None
        stream_salt = salt(self._seed, "link", source, target)
        if source in self._nodes and target in self._nodes:
            low_us, high_us = self._weather.latency_us_min, self._weather.latency_us_max
            link = _Link(stream_salt, source, low_us, high_us - low_us, deliver)
            link.plain = not self._weather.loss and not self._weather.duplicate
        else:
            link = _Link(stream_salt, source, _CLIENT_LATENCY_US_MIN, _CLIENT_LATENCY_US_SPAN, deliver)
        self._links.setdefault(source, {})[target] = link
        return link

    def _require(self, source: str, target: str) -> _Link:
        link = self._links.get(source, {}).get(target) or self._link(source, target)
        assert link is not None, f"no such link: {source} to {target}"
        return link

    def _extra_delay(self, link: _Link, now_us: int) -> int:
        quality = link.quality
        return quality.delay_us + (draw(link.salt ^ 0x80, now_us) * quality.jitter_us >> 24)

    def _note(self, source: str, target: str, message: Any, send_us: int, receive_us: int) -> None:
        self.records.append(MessageRecord(source, target, type(message).__name__, send_us, receive_us, str(message)))


def _happens(stream_salt: int, now_us: int, probability: float) -> bool:
    return probability > 0 and draw(stream_salt, now_us) < probability * DRAW_RANGE
