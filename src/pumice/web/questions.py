"""Questions of pages about one job, answered by trials on the cluster of a file."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

from pumice.answers.explanation import NoSuchJob, explain, find_job
from pumice.answers.plain import described
from pumice.answers.world import REASON_TRIALS_MAX, Trials, World
from pumice.runtime.serving.viewers import Viewer

_KEPT_MAX = 256


class Questions:
    """Answers about one world, one at a time: a viewer who asks about many jobs takes one thread and no more."""

    def __init__(self, world: World, digest: str) -> None:
        self._world, self._digest = world, digest
        self._one = asyncio.Lock()
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()

    async def explain(self, job: str, viewer: Viewer) -> dict[str, Any]:
        """Return why a job waits, as ``pumice explain --json`` prints it. These pages are for viewers of this machine,
        who see everything. Raises: KeyError for an unknown job."""
        async with self._one:
            if job not in self._kept:
                # The world does not change, so an answer holds until it is pushed out by others.
                self._kept[job] = await asyncio.to_thread(self._explain, job)
                if len(self._kept) > _KEPT_MAX:
                    self._kept.popitem(last=False)
            return self._kept[job]

    def _explain(self, job: str) -> dict[str, Any]:
        try:
            key = find_job(self._world, job)
        except NoSuchJob as error:
            raise KeyError(str(error)) from None
        trials = Trials(self._world, REASON_TRIALS_MAX)
        return described(explain(self._world, key, ways=True, trials=trials), self._digest)
