"""The simulated network: one ordered channel per directed link, with latency, loss, duplication, delay and cuts.

Messages of one link arrive in the order they were sent (a single socket channel); messages of different links overtake
each other as their latencies have it. A duplicate comes later and out of order, as a resend over a new connection.
A *stale* message comes seconds after it was sent, instead of in its place or once more: the bytes of a connection that
both ends have given up, and perhaps of processes that have restarted since. A *reset* breaks the connection in the
middle of a message, and loses all that is under way on it; the ports tell neither end, as those of the real worlds do
not. A cut loses whatever would arrive while it lasts. Messages between clients and nodes have short latencies of their
own: long ones would only hide anomalies (Maelstrom's observation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappush
from typing import Any

from faultline.harness.plan import Weather
from faultline.harness.run_record import MessageRecord
from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.ports import NodeId
from faultline.harness.world.simulated.scheduler import Scheduler
from faultline.harness.world.weather import DRAW_RANGE, FIRST_ODD, MASK, SECOND_ODD, draw, salt, uniform

__all__ = ["STALE_US", "Link", "Links", "SimulatedNetwork"]

STALE_US = (500_000, 10_000_000)
"""The bounds of the time between the sending of a stale message and its arrival."""

_HEALTHY = LinkQuality()
_CLIENT_LATENCY_US_MIN = 100
_CLIENT_LATENCY_US_SPAN = 400
_DUPLICATE_AFTER_US_MAX = 40_000


Deliver = Callable[[NodeId, Any], None]


class Link:
    """One directed link. Every message of a run passes here, so its state is at hand and the healthy way is short."""

    __slots__ = (
        "_broken_us", "_deliver", "_latency_us", "_lost_below", "_repeated_below", "_reset_salt", "_salt", "_scheduler",
        "_span_us", "_stale_salt", "_traffic", "cut", "last_arrival_us", "plain", "quality", "source", "target",
    )  # fmt: skip

    def __init__(
        self, network: SimulatedNetwork, source: str, target: str, latency_us: int, span_us: int, deliver: Deliver
    ) -> None:
        self._traffic = network
        self._scheduler = network.scheduler
        self._salt = salt(network.seed, "link", source, target)
        self._stale_salt = salt(network.seed, "stale", source, target) if network.stale_below else 0
        self._reset_salt = salt(network.seed, "reset", source, target) if network.resets_below else 0
        self._latency_us = latency_us
        self._span_us = span_us
        self._deliver = deliver
        self.source = NodeId(source)
        self.target = target
        self.last_arrival_us = 0
        self._broken_us = -1
        self.cut = False
        self.set_quality(_HEALTHY)

    def set_quality(self, quality: LinkQuality) -> None:
        """Be of this quality, on top of the weather, from now on."""
        weather = self._traffic.weather
        self.quality = quality
        self.plain = quality == _HEALTHY and self._traffic.is_plain
        # A draw is compared with these for every message, so the products are taken once.
        self._lost_below = (quality.loss + weather.loss) * DRAW_RANGE
        self._repeated_below = (quality.duplicate + weather.duplicate) * DRAW_RANGE

    def send(self, message: Any) -> None:
        """Put `message` on the link."""
        self._traffic.sent += 1
        scheduler = self._scheduler
        now_us = scheduler.now_us
        # This is `draw`, written out, as it is the busiest line of a run.
        mixed = ((self._salt ^ now_us) * FIRST_ODD) & MASK
        arrival_us = now_us + self._latency_us
        arrival_us += (((((mixed ^ (mixed >> 29)) * SECOND_ODD) & MASK) >> 40) * self._span_us) >> 24
        if not self.plain:
            if self._lost_below and draw(self._salt ^ 0x10, now_us) < self._lost_below:
                self._traffic.note(self, message, now_us, -1)
                return
            is_stale = self._stale_salt and draw(self._stale_salt, now_us) < self._traffic.stale_below
            if is_stale and self._becomes_stale(message, now_us):
                return
            quality = self.quality
            if quality is not _HEALTHY:
                arrival_us += quality.delay_us + (draw(self._salt ^ 0x80, now_us) * quality.jitter_us >> 24)
        if arrival_us < self.last_arrival_us:
            arrival_us = self.last_arrival_us
        self.last_arrival_us = arrival_us
        scheduler.sequence = sequence = scheduler.sequence + 1
        heappush(scheduler.heap, (arrival_us, sequence, self.arrive, (message, now_us)))
        if self.plain:
            return
        if self._repeated_below and draw(self._salt ^ 0x20, now_us) < self._repeated_below:
            later_us = arrival_us + (draw(self._salt ^ 0x40, now_us) * _DUPLICATE_AFTER_US_MAX >> 24)
            scheduler.at(later_us, self.arrive, message, now_us)
        if self._reset_salt and draw(self._reset_salt, now_us) < self._traffic.resets_below:
            scheduler.at(uniform(self._reset_salt ^ 1, now_us, now_us, arrival_us), self.reset)

    def arrive(self, message: Any, send_us: int) -> None:
        """Hand over a message that was sent at `send_us`, or lose it to a cut or a reset."""
        # This is `loses`, written out, as it is asked for every message.
        lost = self.cut or send_us <= self._broken_us
        if self._traffic.records is not None:
            self._traffic.note(self, message, send_us, -1 if lost else self._scheduler.now_us)
        if not lost:
            self._deliver(self.source, message)

    def arrive_stale(self, message: Any, send_us: int) -> None:
        """Hand over a stale message, unless the link is cut; resets of later connections do not concern it."""
        self._traffic.note(self, message, send_us, -1 if self.cut else self._scheduler.now_us, stale=True)
        if not self.cut:
            self._deliver(self.source, message)

    def loses(self, send_us: int) -> bool:
        """Return whether a message of `send_us` that would arrive now is lost to a cut or a reset."""
        return self.cut or send_us <= self._broken_us

    def reset(self) -> None:
        """Break the connection: what is under way is lost, between a client and a node in both directions."""
        for link in self._traffic.connection_of(self):
            link._broken_us = self._scheduler.now_us

    def _becomes_stale(self, message: Any, now_us: int) -> bool:
        """Let the message arrive late. Return whether it does not come in its place as well."""
        later_us = now_us + uniform(self._stale_salt ^ 1, now_us, *STALE_US)
        self._scheduler.at(later_us, self.arrive_stale, message, now_us)
        return draw(self._stale_salt ^ 2, now_us) < DRAW_RANGE // 2

    @property
    def is_heard(self) -> bool:
        """True when a message that arrives now is handed to a host that runs."""
        host = getattr(self._deliver, "__self__", None)
        return not self.cut and host is not None and host.node is not None


class SimulatedNetwork:
    """All links of one world. Participants register by name with the function that takes their messages.

    `records` keeps every message when it is a list; `sent` counts them, lost ones included. `stale_below` and
    `resets_below` are the draws at which the weather makes a message stale or resets its connection, 0 where it does
    not; `is_plain` tells that it loses, repeats and delays no message.
    """

    def __init__(
        self, scheduler: Scheduler, weather: Weather, seed: int, nodes: Iterable[str], *, record: bool = False
    ) -> None:
        self.scheduler = scheduler
        self.weather = weather
        self.seed = seed
        self.sent = 0
        self.stale_below = (weather.stale or 0.0) * DRAW_RANGE
        self.resets_below = (weather.reset or 0.0) * DRAW_RANGE
        self.is_plain = not (weather.loss or weather.duplicate or self.stale_below or self.resets_below)
        self.records: list[MessageRecord] | None = [] if record else None
        self._nodes = frozenset(nodes)
        self._receivers: dict[str, Deliver] = {}
        self._links: dict[str, Links] = {}

    def register(self, name: str, deliver: Deliver) -> None:
        """Let `name` take part; `deliver(source, message)` is called for each message that reaches it."""
        self._receivers[name] = deliver

    def links_from(self, source: str) -> Links:
        """Return the links on which `source` sends, by target; a link is opened when it is first asked for."""
        links = self._links.get(source)
        if links is None:
            links = self._links[source] = Links(self, source)
        return links

    def note(self, link: Link, message: Any, send_us: int, receive_us: int, *, stale: bool = False) -> None:
        """Record a message, when records are kept; `receive_us` is -1 for a lost one."""
        if self.records is not None:
            name = type(message).__name__
            self.records.append(MessageRecord(link.source, link.target, name, send_us, receive_us, str(message), stale))

    def connection_of(self, link: Link) -> tuple[Link, ...]:
        """Return the links of the connection: nodes have one for each direction, a client and a node have one."""
        if link.source in self._nodes and link.target in self._nodes:
            return (link,)
        return link, self.links_from(link.target)[link.source]

    def set_cut(self, source: str, target: str, cut: bool) -> None:
        self._require(source, target).cut = cut

    def is_cut(self, source: str, target: str) -> bool:
        return self._require(source, target).cut

    def set_quality(self, source: str, target: str, quality: LinkQuality) -> None:
        self._require(source, target).set_quality(quality)

    def quality(self, source: str, target: str) -> LinkQuality:
        return self._require(source, target).quality

    def open(self, source: str, target: str) -> Link:
        """Return a new link. A message to a name that no host bears is lost."""
        deliver = self._receivers.get(target, _lose)
        if source in self._nodes and target in self._nodes:
            low_us, high_us = self.weather.latency_us_min, self.weather.latency_us_max
            return Link(self, source, target, low_us, high_us - low_us, deliver)
        latency_us = _CLIENT_LATENCY_US_MIN + self._distance_us(source, target)
        return Link(self, source, target, latency_us, _CLIENT_LATENCY_US_SPAN, deliver)

    def _distance_us(self, source: str, target: str) -> int:
        """Return how far a client is from a node, the same in both directions."""
        farthest_us = self.weather.client_distance_us_max
        return farthest_us and uniform(salt(self.seed, "distance", *sorted((source, target))), 0, 0, farthest_us)

    def _require(self, source: str, target: str) -> Link:
        return self.links_from(source)[target]


class Links(dict[str, Link]):
    """The links of one source by target, opened when first asked for."""

    def __init__(self, network: SimulatedNetwork, source: str) -> None:
        super().__init__()
        self._network = network
        self._source = source

    def __missing__(self, target: str) -> Link:
        link = self[target] = self._network.open(self._source, target)
        return link


def _lose(_source: str, _message: Any) -> None:
    """Do nothing: no host is there."""
