"""Round after round, what nodes really use: asked beside the cycles, and told as events.

A round that fails tells nothing: what was measured last stays in the snapshot, with its age, and plugins look at that.
No cycle waits for a source.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from pumice.model.events import Event, Gone, Seen
from pumice.model.node import Node
from pumice.model.usage import NodeUsage
from pumice.runtime.usage.asking import HttpAsk, SourceError
from pumice.runtime.usage.settings import INTERVAL_S, OF_API_SERVER, SourceSettings
from pumice.runtime.usage.sources import Ask, source_of, usages

_log = logging.getLogger("pumice.usage")
_ROUND_S = 25.0  # all questions of one round together


class UsageFeed:
    """``metrics`` gives the section of the policy that is in force, ``nodes`` those that are there, ``tell`` takes
    events. ``of_api_server``: who asks the API server. ``trouble``: why the last round failed, empty where it did not;
    ``measured_at``: when the last one did not, 0 for never."""

    def __init__(
        self,
        metrics: Callable[[], Mapping[str, Any]],
        nodes: Callable[[], Sequence[Node]],
        tell: Callable[[list[Event]], None],
        clock: Callable[[], float],
        *,
        of_api_server: Ask | None = None,
        http: Callable[[SourceSettings], AbstractAsyncContextManager[Ask]] = HttpAsk,
    ) -> None:
        self._metrics, self._nodes, self._tell, self._clock = metrics, nodes, tell, clock
        self._of_api_server, self._http = of_api_server, http
        self._known: dict[str, NodeUsage] = {}
        self.trouble = ""
        self.measured_at = 0.0

    async def run(self) -> None:
        """For ever, until cancelled. The section is read anew each round."""
        while True:
            settings = SourceSettings.read(self._metrics())
            if settings.type:
                await self.round(settings)
            else:
                self._forget(())
            await asyncio.sleep(settings.interval_s if settings.type else INTERVAL_S)

    async def round(self, settings: SourceSettings) -> None:
        """Ask once, and tell what is new. What goes wrong is told once for each reason."""
        nodes = self._nodes()
        self._forget(node.name for node in nodes)
        try:
            async with asyncio.timeout(_ROUND_S):
                found = await self._asked(settings, nodes)
        except (SourceError, TimeoutError) as error:
            self._failed(settings, str(error) or f"no answer within {_ROUND_S:g} s")
            return
        except Exception as error:
            self._failed(settings, f"{type(error).__name__}: {str(error)[:200]}")
            return
        if self.trouble:
            _log.info("usage of nodes: %s answers again", settings.type)
        self.trouble, self.measured_at = "", self._clock()
        self._known |= {usage.name: usage for usage in found}
        if found:
            self._tell([Seen(usage) for usage in found])

    async def _asked(self, settings: SourceSettings, nodes: Sequence[Node]) -> list[NodeUsage]:
        source = source_of(settings)
        if settings.type in OF_API_SERVER:
            if self._of_api_server is None:
                raise SourceError("there is no API server to ask")
            percents = await source(self._of_api_server, nodes)
        else:
            async with self._http(settings) as ask:
                percents = await source(ask, nodes)
        return usages(percents, nodes, self._clock())

    def _failed(self, settings: SourceSettings, why: str) -> None:
        if why != self.trouble:
            _log.warning(
                "usage of nodes: %s: %s; what was measured last stays for as long as it is fresh", settings.type, why
            )
        self.trouble = why

    def _forget(self, names: Any) -> None:
        """Tell the end of what was measured of nodes that are not among these."""
        there = frozenset(names)
        gone = [name for name in self._known if name not in there]
        for name in gone:
            del self._known[name]
        if gone:
            self._tell([Gone(NodeUsage, name) for name in gone])
