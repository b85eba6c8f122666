"""Measure nodes or queues round after round, beside the cycles, and emit the results as events.

A round that fails emits nothing: the last measurements stay in the snapshot with their age, which plugins check. No
cycle waits for a source.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import Struct

from pumice.model.events import Event, Gone, Seen
from pumice.model.node import Node
from pumice.model.queue import Queue
from pumice.model.usage import NodeUsage, QueueHistory
from pumice.runtime.usage.asking import HttpAsk
from pumice.runtime.usage.histories import queue_histories
from pumice.runtime.usage.history_settings import HistorySettings
from pumice.runtime.usage.settings import INTERVAL_S, OF_API_SERVER, SourceSettings
from pumice.runtime.usage.sources import Ask, SourceError, source_of, usages

_log = logging.getLogger("pumice.usage")
_ROUND_S = 25.0  # for all questions of one round together


class Measuring(Struct, frozen=True):
    """``what`` is measured, as values of ``kind``. ``settings``: the program that the current policy says to ask;
    ``measure(settings, ask, objects, now)`` asks."""

    what: str
    kind: type[NodeUsage | QueueHistory]
    settings: Callable[[], SourceSettings]
    measure: Callable[[SourceSettings, Ask, Sequence[Any], float], Awaitable[Sequence[NodeUsage | QueueHistory]]]


def of_nodes(metrics: Callable[[], Mapping[str, Any]]) -> Measuring:
    """Return the measurement of nodes. ``metrics``: returns that section of the policy."""

    async def measure(settings: SourceSettings, ask: Ask, nodes: Sequence[Node], now: float) -> list[NodeUsage]:
        return usages(await source_of(settings)(ask, nodes), nodes, now)

    return Measuring("usage of nodes", NodeUsage, lambda: SourceSettings.read(metrics()), measure)


def of_queues(section: Callable[[], Mapping[str, Any]], environ: Mapping[str, str]) -> Measuring:
    """Return the measurement of queues. ``section``: returns ``usageDBConfig`` of the policy, which may name a variable
    of ``environ`` for the address."""

    def settings() -> HistorySettings:
        return HistorySettings.read(section(), environ)

    async def measure(_: SourceSettings, ask: Ask, queues: Sequence[Queue], now: float) -> list[QueueHistory]:
        found = settings()
        if found.trouble:
            raise SourceError(found.trouble)
        return await queue_histories(found, ask, queues, now)

    return Measuring("history of queues", QueueHistory, lambda: settings().source, measure)


class UsageFeed:
    """``objects``: returns the present nodes or queues. ``sink``: takes events. ``of_api_server``: asks the API server.
    ``timed``: called with the seconds of each round. ``trouble``: why the last round failed, "" if it did not.
    ``measured_at``: time of the last successful round, 0 for never."""

    def __init__(
        self,
        measuring: Measuring,
        objects: Callable[[], Sequence[Node | Queue]],
        sink: Callable[[list[Event]], None],
        clock: Callable[[], float],
        *,
        of_api_server: Ask | None = None,
        http: Callable[[SourceSettings], AbstractAsyncContextManager[Ask]] = HttpAsk,
        timed: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._measuring, self._objects, self._sink, self._clock = measuring, objects, sink, clock
        self._of_api_server, self._http, self._timed = of_api_server, http, timed
        self._known: dict[str, NodeUsage | QueueHistory] = {}
        self.trouble = ""
        self.measured_at = 0.0

    async def run(self) -> None:
        """Run until cancelled. The policy is read in each round."""
        while True:
            settings = self._measuring.settings()
            if settings.type:
                await self.round(settings)
            else:
                self._forget(())
            await asyncio.sleep(settings.interval_s if settings.type else INTERVAL_S)

    async def round(self, settings: SourceSettings) -> None:
        """Ask once, and emit what is new. Errors are logged once per reason."""
        objects = self._objects()
        self._forget(each.name for each in objects)
        began = time.perf_counter()
        try:
            async with asyncio.timeout(_ROUND_S):
                found = await self._asked(settings, objects)
        except (SourceError, TimeoutError) as error:
            self._failed(settings, str(error) or f"no answer within {_ROUND_S:g} s")
            return
        except Exception as error:
            self._failed(settings, f"{type(error).__name__}: {str(error)[:200]}")
            return
        finally:
            self._timed(time.perf_counter() - began)
        if self.trouble:
            _log.info("%s: %s responds again", self._measuring.what, settings.type)
        self.trouble, self.measured_at = "", self._clock()
        self._known |= {usage.name: usage for usage in found}
        if found:
            self._sink([Seen(usage) for usage in found])

    async def _asked(
        self, settings: SourceSettings, objects: Sequence[Node | Queue]
    ) -> Sequence[NodeUsage | QueueHistory]:
        measure, now = self._measuring.measure, self._clock()
        if settings.type in OF_API_SERVER:
            if self._of_api_server is None:
                raise SourceError("there is no API server to ask")
            return await measure(settings, self._of_api_server, objects, now)
        async with self._http(settings) as ask:
            return await measure(settings, ask, objects, now)

    def _failed(self, settings: SourceSettings, why: str) -> None:
        if why != self.trouble:
            _log.warning(
                "%s: %s: %s; the last values are used until they are too old",
                self._measuring.what,
                settings.type,
                why,
            )
        self.trouble = why

    def _forget(self, names: Any) -> None:
        """Emit the end of measurements of all but these."""
        there = frozenset(names)
        gone = [name for name in self._known if name not in there]
        for name in gone:
            del self._known[name]
        if gone:
            self._sink([Gone(self._measuring.kind, name) for name in gone])
