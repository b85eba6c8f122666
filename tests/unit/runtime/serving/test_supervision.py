"""Work that goes on: after a fault of its own, and past an object that it cannot deal with."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pumice.runtime.serving.supervision import Health, SkippedObjects, SupervisedTask

LOG = logging.getLogger("pumice.test")


class Work:
    """Fails a given number of times, then runs."""

    def __init__(self, *ends: Exception | None) -> None:
        self.ends = list(ends)
        self.running = asyncio.Event()

    async def __call__(self) -> None:
        if self.ends:
            end = self.ends.pop(0)
            if end is not None:
                raise end
            return
        self.running.set()
        await asyncio.Event().wait()


async def test_what_stops_is_started_again_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    work, now = Work(KeyError("image"), None, OSError("gone")), [0.0]
    part = SupervisedTask(LOG, "nodes", work, first_s=0.0, last_s=0.0, steady_s=5.0, clock=lambda: now[0])
    assert part.health() == Health()
    running = asyncio.create_task(part.run())
    await asyncio.wait_for(work.running.wait(), 30)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == ["nodes stopped", "nodes stopped"]
    assert part.health() == Health(False, "OSError: gone")
    now[0] = 5.0
    assert part.health() == Health(True, "it was restarted after OSError: gone")
    running.cancel()


async def test_what_fails_again_and_again_is_started_ever_later(caplog: pytest.LogCaptureFixture) -> None:
    work = Work(*[ValueError("x")] * 4)
    part = SupervisedTask(LOG, "nodes", work, first_s=0.001, last_s=0.004, clock=lambda: 0.0)
    running = asyncio.create_task(part.run())
    await asyncio.wait_for(work.running.wait(), 30)
    delays = [record.args[1] for record in caplog.records if "restarts in" in record.msg]  # type: ignore[index]
    assert delays == [0.001, 0.002, 0.004, 0.004]
    running.cancel()


async def test_nothing_is_started_after_the_end() -> None:
    stop = asyncio.Event()

    async def work() -> None:
        stop.set()
        raise ValueError("on the way out")

    await asyncio.wait_for(SupervisedTask(LOG, "nodes", work, stop=stop, first_s=1000.0).run(), 30)


def test_an_object_that_cannot_be_dealt_with_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    skipped = SkippedObjects(LOG, "nodes")
    assert skipped.note == ""
    done = []
    for name in ("a", "b", "c"):
        with skipped.guard(f"pods default/{name}"):
            if name == "b":
                raise KeyError("image")
            done.append(name)
    assert done == ["a", "c"]
    assert skipped.note == "objects skipped: 1, the last pods default/b: KeyError: 'image'"
    assert "nodes: pods default/b is skipped" in caplog.text


def test_many_objects_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    skipped = SkippedObjects(LOG, "nodes")
    for i in range(100):
        with skipped.guard(f"pods default/{i}"):
            raise KeyError("image")
    assert len(caplog.records) == 20
    assert "further errors are only counted" in caplog.records[-1].getMessage()
    assert skipped.count == 100
