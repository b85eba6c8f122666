"""The loop of all controllers: a failure is reported once, and nothing is reconciled before its kinds are listed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from pumice.apiserver.api.http import Api
from pumice.apiserver.api.server import serving
from pumice.kube.api.access import Access
from pumice.kube.api.client import Client
from pumice.kube.api.errors import KubeError
from pumice.kube.api.kinds import PODS
from pumice.kube.api.retry_policy import RetryPolicy
from pumice.kube.controllers.kinds import PlainCodec
from pumice.kube.controllers.reconcile import Part, Reconciler
from pumice.kube.informers.watch_failures import Cause, WatchFailures
from pumice.runtime.serving.listening import Place
from tests.unit.apiserver.worlds import START, cluster

ENOUGH_S = 60.0
SOON = RetryPolicy(soon_last_s=0.01)
POD_PART = Part(PODS, (PODS,))


async def reconciled(
    look_at: Callable[[str], Awaitable[float]], part_of: Callable[[str], Part], troubles: WatchFailures
) -> None:
    """A key that is worked on until it was looked at without a failure."""
    done = asyncio.Event()

    async def looked_at(key: str) -> float:
        rest_s = await look_at(key)
        asyncio.get_running_loop().call_soon(done.set)
        return rest_s

    async with serving(Api(cluster()), Place()) as url, Client(Access(url)) as client:
        loop = Reconciler[str](client, lambda: START, "key {}".format, (POD_PART,), part_of, SOON, troubles)
        loop.follow(PlainCodec(PODS), lambda _: None, lambda _: None)
        task = asyncio.create_task(loop.run(looked_at, ["it"]))
        try:
            await asyncio.wait_for(done.wait(), ENOUGH_S)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_what_fails_is_said_once_until_it_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pumice.controllers")
    answers = iter([KubeError("no answer"), KubeError("still none"), None])

    async def look_at(key: str) -> float:
        if (error := next(answers)) is not None:
            raise error
        return 0.0

    await reconciled(look_at, lambda _: POD_PART, WatchFailures())
    said = [record.getMessage() for record in caplog.records if record.name == "pumice.controllers"]
    assert [text.split(";")[0] for text in said] == ["key it: no answer", "key it: goes on"]


async def test_a_key_waits_for_what_it_needs_and_is_looked_at_once_that_is_followed() -> None:
    troubles, asked = WatchFailures(), 0

    def part_of(key: str) -> Part:
        nonlocal asked
        asked += 1
        if asked == 2:  # the first time for a look; before, the key was added
            troubles.note(PODS, Cause.FORBIDDEN, "no right to list pods", log=False)
        else:
            troubles.over(PODS)
        return POD_PART

    async def look_at(key: str) -> float:
        assert not troubles.of(PODS), "what it would find missing may be there"
        return 0.0

    await reconciled(look_at, part_of, troubles)
    assert asked == 3
