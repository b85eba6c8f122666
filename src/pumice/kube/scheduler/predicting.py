"""Predict starts while a scheduler runs, compare them with what happens, and write them on PodGroups.

The simulations run in a process of their own with a low priority (``AnswerPages.starts``). How right they were is said
beside the next ones, also by ``pumice explain --starts --server``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import F64
from pumice.kube.api.client import ONCE, Client
from pumice.kube.api.errors import ApiError, KubeError
from pumice.kube.api.kinds import WORKLOADS, kind_of_group
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.refused_writes import RefusedWrites
from pumice.kube.writers.start_annotations import WrittenStart, removal, start_annotations, start_difference
from pumice.model.workloads.composite import COMPOSITE_PREFIX
from pumice.model.workloads.podgroup import PodGroup
from pumice.ours.start_scores import LEVELS, StartScores

_log = logging.getLogger("pumice.run")
#: PodGroups that are written each time: the others are written the next time.
WRITES_MAX = 200
#: More than by default, because a long wait must not fall out of memory before its end.
_PREDICTIONS_MAX = 8192
#: The shortest time between two predictions.
EVERY_MIN_S = 10.0

#: Returns the document of ``pumice pages --print starts``. Raises: ValueError with a sentence.
AskStarts = Callable[[], Awaitable[Mapping[str, Any]]]


class _Change(Struct, frozen=True):
    """Annotations to merge into a PodGroup, None removes one; and quantiles of the simulations, if they say a start."""

    group: PodGroup
    annotations: dict[str, str | None]
    simulated_s: F64 | None


class PredictedStarts:
    """``every_s``: how often starts are predicted. ``cache``: returns the objects that are known now.

    What it remembers of predictions outlives a term of leadership, and is bounded."""

    def __init__(
        self,
        ask: AskStarts,
        client: Client,
        cache: Callable[[], InformerCache],
        every_s: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._ask, self._client, self._cache, self._every_s, self._now = ask, client, cache, every_s, now
        self._scores = StartScores(_PREDICTIONS_MAX)
        self._keys: dict[str, str] = {}  # by uid, because a PodGroup may be replaced by one of the same name
        self._refused = RefusedWrites("expected start of PodGroup")

    def notes(self) -> dict[str, float]:
        """Return what became of predictions so far, as notes of a snapshot."""
        return self._scores.record().to_notes()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            await self.renew()

    async def renew(self) -> None:
        """Take in what has started, predict, and write what has changed."""
        cache = self._cache()
        self._take_in_starts(cache)
        try:
            found = await self._ask()
        except ValueError as error:
            _log.warning("starts are not predicted: %s", error)
            return
        for change in self._changes(cache, found)[:WRITES_MAX]:
            if await self._write(change) and change.simulated_s is not None:
                # Only what users were shown counts, so the record is about what they read.
                self._keys[change.group.uid] = change.group.key
                self._scores.add(change.group.uid, float(found["at"]), change.simulated_s)

    def _take_in_starts(self, cache: InformerCache) -> None:
        """Note which jobs have started or are gone, of those whose start was predicted."""
        for uid in self._scores.waiting:
            key = self._keys[uid]
            group = cache.groups.get(key)
            if group is None or group.uid != uid:
                self._scores.gone(uid)
            elif (since := _started(cache, group)) is not None:
                self._scores.started(uid, since or self._now())
        self._keys = {uid: self._keys[uid] for uid in self._scores.waiting}

    def _changes(self, cache: InformerCache, found: Mapping[str, Any]) -> list[_Change]:
        """Return what to write: groups without annotations first, then by key."""
        changes, record, now = [], self._scores.record(), self._now()
        for key, group in sorted(cache.groups.items()):
            # Pod groups of one Workload would share its annotations.
            if kind_of_group(group) is WORKLOADS:
                continue
            start, simulated = found["jobs"].get(key), None
            if _started(cache, group) is not None:
                annotations = removal(group)
            elif start is not None:
                simulated, written = _said_of(start, float(found["at"]), float(found["until_s"]))
                annotations = start_difference(group, start_annotations(written, record), now)
            else:
                # One that came after the snapshot, or does not wait for nodes: nothing is said.
                annotations = {}
            if annotations and not self._refused.holds_back(key):
                changes.append(_Change(group, annotations, simulated))
        return sorted(changes, key=lambda change: bool(removal(change.group)))

    async def _write(self, change: _Change) -> bool:
        """Return True if it was written."""
        group = change.group
        path = kind_of_group(group).path(group.key.replace(COMPOSITE_PREFIX, ""))
        body = {"metadata": {"uid": group.uid, "annotations": change.annotations}}
        try:
            await self._client.patch(path, body, retries=ONCE)
        except KubeError as error:
            # A conflict or an object that is gone: the next prediction finds out.
            if not (isinstance(error, ApiError) and error.status in (404, 409)):
                self._refused.refused(group.key, error)
            return False
        self._refused.written(group.key)
        return True


def _started(cache: InformerCache, group: PodGroup) -> float | None:
    """Return when the minimum of a group had nodes, 0 if that is not said, None if it waits."""
    placed = cache.placed_of(group.key)
    if len(placed) < max(group.min_member, 1):
        return None
    since = [pod.start_time for key in placed if (pod := cache.pods.get(key)) is not None and pod.start_time]
    return min(since, default=0.0)


def _said_of(start: Mapping[str, Any], at: float, until_s: float) -> tuple[F64 | None, WrittenStart]:
    """Return the quantiles of the simulations, None if there were none, and what is said of a job."""
    simulated = np.array(start["simulated_s"], dtype=np.float64)
    if simulated.shape != (len(LEVELS),):
        return None, WrittenStart([np.inf] * len(LEVELS), start["why_not"])
    return simulated, WrittenStart(np.where(simulated >= until_s, np.inf, at + simulated).tolist(), start["why_not"])
