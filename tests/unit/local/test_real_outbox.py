"""The outbox: nothing sent after an fsync leaves before it, sends keep their order, waiting fsyncs share a round."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from faultline.harness.world.local.outbox import Outbox
from faultline.harness.world.local.storage import Commit

COMMIT = Commit((), None, ())


class SlowDisk:
    """Carries commits out only when it is let; `rounds` says how many commits each round took."""

    def __init__(self) -> None:
        self.permits = threading.Semaphore(0)
        self.rounds: list[int] = []

    def carry_out(self, commits: Sequence[Commit]) -> None:
        if not self.permits.acquire(timeout=30):
            raise TimeoutError("the test never let the disk work")
        self.rounds.append(len(commits))


class Bench:
    def __init__(self) -> None:
        self.disk = SlowDisk()
        self.left: list[str] = []
        self.failures: list[BaseException] = []
        self.executor = ThreadPoolExecutor(1)
        self.outbox = Outbox(asyncio.get_running_loop(), self.executor, self.disk.carry_out, self.failures.append)

    def send(self, name: str) -> None:
        self.outbox.submit(lambda: self.left.append(name))


def on_bench(scenario: Callable[[Bench], Awaitable[None]]) -> Bench:
    async def run() -> Bench:
        bench = Bench()
        try:
            await scenario(bench)
        finally:
            bench.disk.permits.release(100)
            bench.executor.shutdown()
        return bench

    return asyncio.run(run())


async def settled(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


def test_a_message_waits_for_the_fsync_before_it() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send("before")
        bench.outbox.commit(COMMIT)
        bench.send("after")
        assert bench.left == ["before"]
        bench.disk.permits.release()
        await settled(lambda: len(bench.left) == 2)

    assert on_bench(scenario).left == ["before", "after"]


def test_fsyncs_asked_for_while_the_disk_works_share_the_next_round() -> None:
    async def scenario(bench: Bench) -> None:
        bench.outbox.commit(COMMIT)
        await asyncio.sleep(0)
        for name in "abc":
            bench.outbox.commit(COMMIT)
            bench.send(name)
        assert bench.left == []
        bench.disk.permits.release(2)
        await settled(lambda: len(bench.left) == 3)

    bench = on_bench(scenario)
    assert (bench.left, bench.disk.rounds) == (["a", "b", "c"], [1, 3])


def test_only_what_the_finished_round_covers_leaves() -> None:
    async def scenario(bench: Bench) -> None:
        bench.outbox.commit(COMMIT)
        bench.send("first")
        await asyncio.sleep(0)
        bench.outbox.commit(COMMIT)
        bench.send("second")
        bench.disk.permits.release()
        await settled(lambda: bool(bench.left))
        assert bench.left == ["first"]

    on_bench(scenario)


def test_a_disk_that_refuses_is_reported_and_nothing_leaves() -> None:
    async def scenario(bench: Bench) -> None:
        def refuse(_commits: Sequence[Commit]) -> None:
            raise OSError("no space left on device")

        bench.outbox._carry_out = refuse
        bench.outbox.commit(COMMIT)
        bench.send("never")
        await settled(lambda: bool(bench.failures))

    bench = on_bench(scenario)
    assert bench.left == []
    assert isinstance(bench.failures[0], OSError)
