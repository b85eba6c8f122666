"""Delete pods whose node is deleted or not well, like the controllers of a real cluster.

Pods of a deleted node are deleted. A node that reports that it is not ready, or whose state is unknown, is tainted
until it is ready again. From a node with a ``NoExecute`` taint, pods that do not tolerate it are deleted, and those
that tolerate it for some seconds when these are over. Source: Kubernetes' node lifecycle, taint eviction and pod
garbage collection controllers, without their waiting for nodes that might come back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import Any

from pumice.apiserver.actors.loop import work_for_ever
from pumice.apiserver.actors.wakes import Wakes
from pumice.apiserver.kinds.admission import NO_EXECUTE, NOT_READY, UNREACHABLE
from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.objects import Deletion, Objects, Target
from pumice.apiserver.refusals import Refusal
from pumice.apiserver.store import Change, Stored
from pumice.model.instants import stamp
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import ENDED
from pumice.runtime.serving.supervision import SkippedObjects

_log = logging.getLogger("pumice.apiserver")
_TAINT_OF = {"False": NOT_READY, "Unknown": UNREACHABLE}
_STAYS_MAX_S = 10 * 365 * 86_400


class NodeLife:
    """``clock``: seconds since the epoch. ``skipped``: objects that it skipped because of faults."""

    def __init__(self, objects: Objects, clock: Callable[[], float]) -> None:
        self._objects, self._clock = objects, clock
        self.skipped = SkippedObjects(_log, "node life")
        pods, nodes = (objects.registry.find("", "v1", plural) for plural in ("pods", "nodes"))
        assert pods is not None and nodes is not None
        self._pods: Resource = pods
        self._nodes: Resource = nodes
        self._on: defaultdict[str, dict[str, None]] = defaultdict(dict)  # node -> keys of pods
        self._where: dict[str, str] = {}  # key of a pod -> node
        self._todo: deque[tuple[str, str]] = deque()  # table, key
        self._leaves = Wakes[str]()  # keys of pods that tolerate the taints of their node for some time
        self._work = asyncio.Event()
        for row in objects.store.rows("pods"):
            with self.skipped.guard(f"pods {row.key}"):
                self._placed(row)
        for row in objects.store.rows("nodes"):
            self._note("nodes", row.key)
        objects.store.sinks.append(self._on_change)

    async def run(self) -> None:
        """Run until cancelled."""
        await work_for_ever(self.step, self._todo, self._work, self._clock)

    def step(self, count_max: int = 100) -> float | None:
        """Do what is due, at most ``count_max`` things. Return when the next pod must leave, None for none."""
        for _ in range(count_max):
            if not self._todo:
                break
            table, key = self._todo.popleft()
            with self.skipped.guard(f"{table} {key}"):
                if table == "nodes":
                    self._look_at_node(key)
                else:
                    self._look_at_pod(key)
        for key in islice(self._leaves.take(self._clock()), count_max):
            with self.skipped.guard(f"pods {key}"):
                self._look_at_pod(key, is_over=True)
        return self._leaves.next_at

    # -- changes -------------------------------------------------------------------------------------------------------

    def _on_change(self, change: Change) -> None:
        if change.table == "nodes":
            self._note("nodes", change.now.key)
        elif change.table == "pods":
            with self.skipped.guard(f"pods {change.now.key}"):
                if change.deleted:
                    self._on[self._where.pop(change.now.key, "")].pop(change.now.key, None)
                    self._leaves.drop(change.now.key)
                else:
                    self._placed(change.now)

    def _placed(self, pod: Stored) -> None:
        node = (pod.obj.get("spec") or {}).get("nodeName") or ""
        if node and self._where.get(pod.key) != node:
            self._where[pod.key] = node
            self._on[node][pod.key] = None
            self._note("pods", pod.key)

    def _note(self, table: str, key: str) -> None:
        self._todo.append((table, key))
        self._work.set()

    # -- what is done --------------------------------------------------------------------------------------------------

    def _look_at_node(self, name: str) -> None:
        """Set the taints of a node, then examine every pod on it."""
        row = self._objects.store.find("nodes", name)
        if row is not None:
            self._taint(row)
        taints = [] if row is None else _no_execute(row.obj)
        for key in list(self._on.get(name, ())):
            if row is None or taints:
                self._note("pods", key)
            else:
                self._leaves.drop(key)

    def _taint(self, node: Stored) -> None:
        conditions = (node.obj.get("status") or {}).get("conditions") or ()
        ready = next((each for each in conditions if each.get("type") == "Ready"), None)
        wanted = _TAINT_OF.get(str(ready.get("status"))) if ready is not None else None
        spec = node.obj.get("spec") or {}
        given = spec.get("taints") or []
        kept = [taint for taint in given if taint.get("key") not in _TAINT_OF.values() or taint.get("key") == wanted]
        for effect in ("NoSchedule", NO_EXECUTE) if wanted else ():
            if not any((taint.get("key"), taint.get("effect")) == (wanted, effect) for taint in kept):
                since = {"timeAdded": stamp(self._clock())} if effect == NO_EXECUTE else {}
                kept = [*kept, {"key": wanted, "effect": effect, **since}]
        if kept != given:
            left = {key: value for key, value in spec.items() if key != "taints"}
            self._objects.write(self._nodes, node, {**node.obj, "spec": left | ({"taints": kept} if kept else {})})

    def _look_at_pod(self, key: str, *, is_over: bool = False) -> None:
        """Examine whether a pod must leave its node, now or later. ``is_over``: the time for which it tolerates a taint
        has passed."""
        row = self._objects.store.find("pods", key)
        if row is None:
            return
        name = (row.obj.get("spec") or {}).get("nodeName") or ""
        node = self._objects.store.find("nodes", name)
        if not name:
            return
        if node is None:
            if self._was_there(row):
                self._delete(row)
            return
        stays = _stays_s(row.obj, _no_execute(node.obj))
        ended = (row.obj.get("status") or {}).get("phase") in ENDED
        if stays is None or ended or "deletionTimestamp" in row.obj["metadata"]:
            self._leaves.drop(key)
        elif is_over or stays <= 0:
            self._delete(row, None)
        else:
            self._leaves.add(key, self._clock() + stays)

    def _was_there(self, pod: Stored) -> bool:
        """Return True if a pod's node is gone. A pod that is bound to a node that never existed waits for it."""
        return (pod.obj.get("status") or {}).get("phase") not in (None, "", "Pending")

    def _delete(self, pod: Stored, grace_s: int | None = 0) -> None:
        metadata = pod.obj["metadata"]
        with suppress(Refusal):
            self._objects.delete(Target(self._pods, metadata["namespace"], metadata["name"]), Deletion(grace_s=grace_s))


def _no_execute(node: Obj) -> list[Obj]:
    return [taint for taint in (node.get("spec") or {}).get("taints") or () if taint.get("effect") == NO_EXECUTE]


def _stays_s(pod: Obj, taints: Iterable[Obj]) -> float | None:
    """Return for how long a pod may stay on a node with these taints: None for ever, 0 not at all."""
    found: list[float] = []
    for taint in taints:
        covering = [t for t in (pod.get("spec") or {}).get("tolerations") or () if _covers(t, taint)]
        if not covering:
            return 0.0
        bounds = [t["tolerationSeconds"] for t in covering if isinstance(t.get("tolerationSeconds"), int)]
        if bounds:
            found.append(float(max(0, min([*bounds, _STAYS_MAX_S]))))
    return min(found, default=None)


def _covers(toleration: Any, taint: Obj) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")
