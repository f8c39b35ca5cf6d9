"""The cost of watches: events a second, latency, processor time and memory against the number of watchers and of keys.

    python benchmarks/watch_fan_out.py                          1 to 1,000 watchers of a tree of 100 keys, and one each
    python benchmarks/watch_fan_out.py --watchers 10,100 --keys 10 --puts 500

`consistent-core` with three servers in the simulated world, without faults: one writer puts values under `jobs/0`,
`jobs/1`, ... as fast as it is answered. In the first rows every watcher watches the whole tree, so that each put is
told to all; in the others each watches one key, so that a put is told to those of its key. Latency and rates are
simulated time: from the writer's request to the event at the watcher. The simulated network has no bandwidth, so the
cost of fan-out is in the processor time, which is given beside that of the same puts without any watcher."""

from __future__ import annotations

import argparse
import sys
import tracemalloc
from collections.abc import Callable, Mapping
from statistics import median, quantiles
from time import process_time
from typing import Any, NamedTuple, cast

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.options import effective_options
from faultline.harness.outcome import Outcome
from faultline.harness.plan import Plan, node_names
from faultline.harness.system import NodeSystem, PortClient
from faultline.harness.world.ports import NodeId, Ports
from faultline.harness.world.simulated.world import SimulatedClient, SimulatedWorld
from faultline.systems_under_test.reference.coordination_service.system import CoordinationService
from faultline.systems_under_test.reference.leases_and_watches.messages import WatchBatch

__all__ = ["main"]

_BOOT_US = 1_000_000
_SETTLE_US = 300_000
_PUT_US_MAX = 1_000_000
_DRAIN_EVERY = 50
_REPETITIONS = 3
_TREE = "jobs"


class _Seen:
    """The time at which each value was put, and those at which its events arrived."""

    def __init__(self) -> None:
        self.put_us: dict[int, int] = {}
        self.event_us: list[int] = []
        self.bytes = 0
        self.world: SimulatedWorld | None = None

    def take(self, batch: WatchBatch) -> None:
        """Note the events that reached a watcher."""
        assert self.world is not None
        now_us = self.world.scheduler.now_us
        self.bytes += len(msgspec.msgpack.encode(batch))
        self.event_us += [now_us - self.put_us[event.value] for event in batch.events]


class _ObservedClient:
    """A client of `consistent-core` whose events are counted as they arrive."""

    def __init__(self, client: PortClient, seen: _Seen) -> None:
        self._client = client
        self._seen = seen
        self.start = client.start
        self.invoke = client.invoke

    def receive(self, source: NodeId, message: Any) -> None:
        if type(message) is WatchBatch and message.events:
            self._seen.take(message)
        self._client.receive(source, message)


class _ObservedService(CoordinationService):
    def __init__(self, seen: _Seen) -> None:
        self._seen = seen

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> Any:
        return _ObservedClient(super().client(ports, members, node, options, planted_bugs), self._seen)


class Measured(NamedTuple):
    """One row: the figures of a number of puts for a number of watchers."""

    puts_per_second: float
    events_per_second: float
    put_ms: float
    event_ms: float
    event_p99_ms: float
    bytes_per_event: float
    cpu_s: float
    kib_per_watcher: float


def measured(watchers: int, keys: int, puts: int, is_one_key_each: bool, traces_memory: bool = False) -> Measured:
    """Set the watches, put, and wait until everything has arrived."""
    seen = _Seen()
    world = seen.world = SimulatedWorld(_plan(), cast("NodeSystem", _ObservedService(seen)), [])
    world.boot()
    world.scheduler.run(_BOOT_US)
    paths = [f"{_TREE}/{number % keys}" if is_one_key_each else _TREE for number in range(watchers)]
    clients = [world.open_client(number, "athens") for number in range(1, watchers + 1)]
    grown = _memory_of(lambda: _watch(world, clients, paths), traces_memory)
    writer = world.open_client(0, "athens")
    started_us, started_s = world.scheduler.now_us, process_time()
    put_us = _put_all(world, writer, keys, puts, seen, lambda: _drain(clients, paths))
    lasted_s = (world.scheduler.now_us - started_us) / 1_000_000
    world.scheduler.run(world.scheduler.now_us + _SETTLE_US)
    events = seen.event_us or [0]
    return Measured(
        puts / lasted_s,
        len(seen.event_us) / lasted_s,
        median(put_us) / 1_000,
        median(events) / 1_000,
        (quantiles(events, n=100)[98] if len(events) > 1 else events[0]) / 1_000,
        seen.bytes / max(1, len(seen.event_us)),
        process_time() - started_s,
        grown / max(1, watchers) / 1_024,
    )


def _plan() -> Plan:
    options = {"watch_queue_max": "1000000"}
    return Plan(
        system="coordination-service",
        workload="watches",
        seed=1,
        nodes=node_names(3),
        workers=1,
        operations=(),
        options=effective_options(cast("NodeSystem", CoordinationService()), options, ()),
        heal_us=0,
        end_us=1,
    )


def _memory_of(act: Callable[[], None], traces: bool) -> int:
    """Return the growth of memory in bytes during `act`; 0 when it is not traced, as tracing costs time."""
    if not traces:
        act()
        return 0
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    act()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return grown


def _watch(world: SimulatedWorld, clients: list[SimulatedClient], paths: list[str]) -> None:
    for client, path in zip(clients, paths, strict=True):
        client.invoke(_operation("watch", path), _ignore_outcome)
    world.scheduler.run(world.scheduler.now_us + _SETTLE_US)


def _drain(clients: list[SimulatedClient], paths: list[str]) -> None:
    for client, path in zip(clients, paths, strict=True):
        client.invoke(_operation("drain", path), _ignore_outcome)


def _put_all(
    world: SimulatedWorld, writer: SimulatedClient, keys: int, puts: int, seen: _Seen, drain: Callable[[], None]
) -> list[int]:
    """Put one value after the other; return the time of each."""
    took_us: list[int] = []

    def ended(outcome: Outcome) -> None:
        assert outcome.kind == "ok", outcome
        took_us.append(world.scheduler.now_us - seen.put_us[len(took_us)])
        if len(took_us) % _DRAIN_EVERY == 0:
            drain()
        if len(took_us) < puts:
            put()
        else:
            world.scheduler.stop()

    def put() -> None:
        value = len(took_us)
        seen.put_us[value] = world.scheduler.now_us
        writer.invoke(_operation("put", f"{_TREE}/{value % keys}", value), ended)

    put()
    world.scheduler.run(world.scheduler.now_us + puts * _PUT_US_MAX)
    assert len(took_us) == puts, f"{len(took_us)} of {puts} puts ended"
    return took_us


def _operation(f: str, key: str, value: Any = None) -> Operation:
    return Operation(process=0, f=f, key=key, value=value)


def _ignore_outcome(_outcome: Outcome) -> None:
    pass


def _least(watchers: int, keys: int, puts: int, is_one_key_each: bool) -> Measured:
    """Return the measurement that took the least processor time; all of them are the same run."""
    found = [measured(watchers, keys, puts, is_one_key_each) for _ in range(_REPETITIONS)]
    return min(found, key=lambda one: one.cpu_s)


def _rows(watchers: list[int], keys: int, puts: int, is_one_key_each: bool) -> None:
    alone_s = _least(0, keys, puts, is_one_key_each).cpu_s
    for count in watchers:
        found = _least(count, keys, puts, is_one_key_each)
        memory = measured(count, keys, 1, is_one_key_each, traces_memory=True).kib_per_watcher
        print(
            f"{'one key' if is_one_key_each else 'the tree':<9} {count:>8} {keys:>5} {found.puts_per_second:>7.0f} "
            f"{found.events_per_second:>9,.0f} {found.put_ms:>7.1f} {found.event_ms:>9.1f} {found.event_p99_ms:>8.1f} "
            f"{found.bytes_per_event:>11.0f} {found.cpu_s / alone_s:>10.1f} {memory:>12.1f}"
        )


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each number of watchers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watchers", default="1,10,100,1000")
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--puts", type=int, default=300)
    asked = parser.parse_args(arguments)
    counts = [int(count) for count in asked.watchers.split(",")]
    print("watch on  watchers  keys  puts/s  events/s  put ms  event ms   p99 ms  bytes/event  CPU ratio  KiB/watcher")
    for is_one_key_each in (False, True):
        _rows(counts, asked.keys, asked.puts, is_one_key_each)
    return 0


if __name__ == "__main__":
    sys.exit(main())
