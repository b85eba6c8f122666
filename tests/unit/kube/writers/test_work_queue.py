"""Work queues: newest of a key, never two at once, bounded, from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from pumice.kube.writers.work_queue import WorkQueue

Do = Callable[[str], Awaitable[None]]


@asynccontextmanager
async def at_work(work_queue: WorkQueue[str]) -> AsyncIterator[None]:
    task = asyncio.create_task(work_queue.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def queue_of(do: Do, workers: int = 1, waiting_max: int = 100) -> WorkQueue[str]:
    return WorkQueue("test", do, workers=workers, waiting_max=waiting_max)


async def test_oldest_first_and_only_the_newest_of_a_key() -> None:
    done: list[str] = []

    async def do(item: str) -> None:
        done.append(item)

    work_queue = queue_of(do)
    assert [work_queue.put(key, item) for key, item in (("a", "a1"), ("b", "b1"), ("a", "a2"))] == [True, True, True]
    assert (len(work_queue), work_queue.left) == (2, 2)
    async with at_work(work_queue):
        await work_queue.empty()
    assert done == ["a2", "b1"]


async def test_what_has_no_room_is_refused_but_a_newer_item_of_a_key_is_not() -> None:
    async def do(item: str) -> None:
        raise AssertionError("nobody works")

    work_queue = queue_of(do, waiting_max=2)
    assert [work_queue.put(key, key) for key in "abca"] == [True, True, False, True]
    assert len(work_queue) == 2


async def test_never_two_of_a_key_at_once_and_others_do_not_wait() -> None:
    under_way: list[str] = []
    most_of_a, done = 0, []
    go_on = asyncio.Event()

    async def do(item: str) -> None:
        nonlocal most_of_a
        under_way.append(item)
        most_of_a = max(most_of_a, sum(each.startswith("a") for each in under_way))
        if item == "a1":
            await go_on.wait()
        under_way.remove(item)
        done.append(item)

    work_queue = queue_of(do, workers=3)
    async with at_work(work_queue):
        work_queue.put("a", "a1")
        while under_way != ["a1"]:
            await asyncio.sleep(0)
        work_queue.put("a", "a2")
        work_queue.put("b", "b1")
        while done != ["b1"]:
            await asyncio.sleep(0)
        go_on.set()
        await work_queue.empty()
    assert done == ["b1", "a1", "a2"]
    assert most_of_a == 1


async def test_items_from_another_thread_are_done() -> None:
    done: list[str] = []

    async def do(item: str) -> None:
        done.append(item)

    work_queue = queue_of(do, workers=4)

    def hand_over() -> None:
        for number in range(50):
            assert work_queue.put(str(number), str(number))

    async with at_work(work_queue):
        for _ in range(2):
            await asyncio.to_thread(hand_over)
            await work_queue.empty()
    assert sorted(done) == sorted([str(n) for n in range(50)] * 2)


async def test_a_fault_ends_one_item_and_not_the_queue(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []

    async def do(item: str) -> None:
        if item == "bad":
            raise RuntimeError("odd")
        done.append(item)

    work_queue = queue_of(do)
    for item in ("bad", "good"):
        work_queue.put(item, item)
    async with at_work(work_queue):
        await work_queue.empty()
    assert done == ["good"]
    assert [record.getMessage() for record in caplog.records] == ["test: a fault of this program"]


async def test_what_comes_back_later_is_waited_for_and_gives_way_to_what_is_newer() -> None:
    done: list[str] = []

    async def do(item: str) -> None:
        done.append(item)
        if item == "first try":
            work_queue.put_later("k", "second try", 0.0)

    work_queue = queue_of(do)
    work_queue.put("k", "first try")
    async with at_work(work_queue):
        await work_queue.empty()
    assert done == ["first try", "second try"]
    work_queue.put_later("k", "old", 0.0)
    work_queue.put("k", "new")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    async with at_work(work_queue):
        await work_queue.empty()
    assert done[2:] == ["new"]
