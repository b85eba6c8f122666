"""Each key once at a time, none lost, and again when it is time."""

import asyncio

import pytest

from pumice.kube.controllers.key_queue import KeyQueue


@pytest.fixture
def queue() -> KeyQueue[str]:
    return KeyQueue(retry_first_s=0.001, retry_last_s=0.002)


async def test_keys_come_in_order_and_once(queue: KeyQueue[str]) -> None:
    for key in ("b", "a", "b"):
        queue.add(key)
    assert [await queue.take(), await queue.take()] == ["b", "a"]
    assert len(queue) == 2
    queue.done("a")
    queue.done("b")
    assert len(queue) == 0


async def test_what_is_added_while_it_is_worked_on_comes_again(queue: KeyQueue[str]) -> None:
    queue.add("a")
    await queue.take()
    queue.add("a")
    queue.add("b")
    assert await queue.take() == "b", "nobody else works on a meanwhile"
    queue.done("a")
    assert await queue.take() == "a"


async def test_a_taker_waits_for_something_to_do(queue: KeyQueue[str]) -> None:
    taker = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not taker.done()
    queue.add("a")
    assert await taker == "a"


async def test_what_failed_comes_again_by_itself(queue: KeyQueue[str]) -> None:
    queue.add("a")
    await queue.take()
    assert 0 < queue.failed("a") <= 0.002
    assert len(queue) == 0, "not at once"
    assert await queue.take() == "a"


async def test_what_was_added_while_it_failed_waits_as_well(queue: KeyQueue[str]) -> None:
    queue.add("a")
    await queue.take()
    queue.add("a")
    queue.failed("a")
    assert len(queue) == 0
    assert await queue.take() == "a"


async def test_of_two_times_the_earlier_counts(queue: KeyQueue[str]) -> None:
    queue.later("a", 0.0)
    queue.later("a", 3600.0)
    assert await queue.take() == "a"
    queue.done("a")
    queue.later("b", 3600.0)
    queue.later("b", 0.0)
    assert await queue.take() == "b"
    queue.close()


async def test_what_rests_comes_once_however_often_it_is_added(queue: KeyQueue[str]) -> None:
    queue.add("a")
    await queue.take()
    queue.done("a", rest_s=0.001)
    for _ in range(3):
        queue.add("a")
    queue.add("b")
    assert await queue.take() == "b"
    queue.done("b")
    assert await queue.take() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_a_closed_queue_leaves_no_timers(queue: KeyQueue[str]) -> None:
    queue.later("a", 0.0)
    queue.close()
    await asyncio.sleep(0)
    assert len(queue) == 0
