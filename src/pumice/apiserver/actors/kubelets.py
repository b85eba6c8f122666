"""Nodes without machines: a bound pod runs at once, ends after the time that it states, and goes when it is deleted.

``pumice.dev/duration: 90m`` on a pod, or on the job that controls it, is its run time; without it, a pod runs until it
is deleted. A node without a condition is ready. A pod that reserves a GPU for KAI's sharing says which one it has, as
the program in KAI's image does.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv4Address
from itertools import count, islice

from pumice.apiserver.actors.loop import work_for_ever
from pumice.apiserver.actors.wakes import Wakes
from pumice.apiserver.api.discovery import KUBERNETES
from pumice.apiserver.kinds.pods import with_condition
from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.objects import Deletion, Objects, Target
from pumice.apiserver.refusals import Refusal
from pumice.apiserver.store import Change, Stored
from pumice.model.devices.gpu import GPU_INDEX_ANNOTATION, RESERVATION_NAMESPACE
from pumice.model.instants import epoch_of
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import ENDED
from pumice.runtime.serving.supervision import SkippedObjects
from pumice.sim.workloads.spans import DURATION_ANNOTATION, seconds_of

_log = logging.getLogger("pumice.apiserver")
_POD_NETWORK = int(IPv4Address("10.64.0.0"))
_POD_ADDRESSES = 2**22


class Kubelets:
    """All nodes together. ``clock``: seconds since the epoch. ``speed``: seconds of a pod per second of the clock.

    ``skipped``: objects that they skipped because of faults.
    """

    def __init__(self, objects: Objects, clock: Callable[[], float], speed: float = 1.0) -> None:
        self._objects, self._clock, self._speed = objects, clock, speed
        self.skipped = SkippedObjects(_log, "nodes")
        self._todo: deque[tuple[str, str]] = deque()  # table, key
        self._ends = Wakes[tuple[str, str]]()  # of pods that run, by key and UID
        self._addresses = 0
        self._work = asyncio.Event()
        pods, nodes = (objects.registry.find("", "v1", plural) for plural in ("pods", "nodes"))
        assert pods is not None and nodes is not None
        self._pods: Resource = pods
        self._nodes: Resource = nodes
        for table in ("nodes", "pods"):
            for row in objects.store.rows(table):
                with self.skipped.guard(f"{table} {row.key}"):
                    self._note(table, row, _started(row.obj))
        objects.store.sinks.append(self._on_change)

    async def run(self) -> None:
        """Run until cancelled."""
        await work_for_ever(self.step, self._todo, self._work, self._clock)

    def step(self, count_max: int = 100) -> float | None:
        """Do what is due, at most ``count_max`` things. Return when the next pod ends, None if none will."""
        for _ in range(min(count_max, len(self._todo))):
            table, key = self._todo.popleft()
            with self.skipped.guard(f"{table} {key}"):
                self._look_at(table, key)
        for key, uid in islice(self._ends.take(self._clock()), count_max):
            with self.skipped.guard(f"pods {key}"):
                row = self._objects.store.find("pods", key)
                if row is not None and row.obj["metadata"]["uid"] == uid and _phase(row.obj) == "Running":
                    self._end(row)
        return self._ends.next_at

    def _look_at(self, table: str, key: str) -> None:
        row = self._objects.store.find(table, key)
        if row is None:
            return
        if table == "nodes":
            self._make_ready(row)
        else:
            self._care_for(row)

    # -- changes -------------------------------------------------------------------------------------------------------

    def _on_change(self, change: Change) -> None:
        if change.deleted:
            self._ends.drop((change.now.key, change.now.obj["metadata"]["uid"]))
        elif change.table in ("pods", "nodes"):
            with self.skipped.guard(f"{change.table} {change.now.key}"):
                self._note(change.table, change.now, None)

    def _note(self, table: str, row: Stored, started: float | None) -> None:
        status = row.obj.get("status") or {}
        if table == "nodes":
            wanted = not status.get("conditions")
        else:
            going = "deletionTimestamp" in row.obj["metadata"]
            phase = _phase(row.obj)
            running = phase == "Running"
            wanted = bool(row.obj["spec"].get("nodeName")) and phase not in ENDED and (going or not running)
            if running and not going:
                self._await_end(row, self._clock() if started is None else started)
        if wanted:
            self._todo.append((table, row.key))
            self._work.set()

    def _await_end(self, row: Stored, started: float) -> None:
        seconds = self._duration(row.obj)
        if seconds is not None:
            self._ends.add((row.key, row.obj["metadata"]["uid"]), started + seconds / self._speed)
            self._work.set()

    def _duration(self, pod: Obj) -> float | None:
        """Return how long a pod runs: as it states, else as its job states."""
        metadata = pod["metadata"]
        own = seconds_of(metadata.get("annotations") or {}, DURATION_ANNOTATION)
        owner = next((each for each in metadata.get("ownerReferences") or () if each.get("controller")), None)
        if own is not None or owner is None:
            return own
        kind = self._objects.registry.of_kind(owner["apiVersion"], owner["kind"])
        if kind is None:
            return None
        job = self._objects.store.find(kind.table, kind.key(metadata["namespace"], owner["name"]))
        return None if job is None else seconds_of(job.obj["metadata"].get("annotations") or {}, DURATION_ANNOTATION)

    # -- what is done --------------------------------------------------------------------------------------------------

    def _make_ready(self, node: Stored) -> None:
        status = node.obj.get("status") or {}
        if status.get("conditions"):
            return
        now = self._objects.stamps.time()
        condition = {"reason": "KubeletReady", "message": "this node has no machine", "lastHeartbeatTime": now}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now, **condition}
        about = {
            "kubeletVersion": KUBERNETES[2],
            "containerRuntimeVersion": "none",
            "osImage": "none",
            "kernelVersion": "none",
            "operatingSystem": "linux",
            "architecture": "amd64",
        }
        about |= {key: value for key, value in (status.get("nodeInfo") or {}).items() if value or key not in about}
        status = {**status, "conditions": [ready], "nodeInfo": about}
        self._objects.write(self._nodes, node, {**node.obj, "status": status})

    def _care_for(self, pod: Stored) -> None:
        metadata = pod.obj["metadata"]
        if "deletionTimestamp" in metadata:
            with suppress(Refusal):
                self._objects.delete(Target(self._pods, metadata["namespace"], metadata["name"]), Deletion(grace_s=0))
        elif _phase(pod.obj) == "Pending" and self._objects.store.find("nodes", pod.obj["spec"]["nodeName"]):
            self._start(pod)

    def _start(self, pod: Stored) -> None:
        now = self._objects.stamps.time()
        status = {**(pod.obj.get("status") or {}), "phase": "Running", "startTime": now, "hostIP": "127.0.0.1"}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready"):
            status = with_condition(status, kind, "True", now)
        address = str(IPv4Address(_POD_NETWORK + self._addresses % _POD_ADDRESSES + 1))
        self._addresses += 1
        status |= {"podIP": address, "podIPs": [{"ip": address}]}
        status["containerStatuses"] = _containers(pod.obj, True, {"running": {"startedAt": now}})
        metadata = pod.obj["metadata"]
        if metadata["namespace"] == RESERVATION_NAMESPACE:
            metadata = {**metadata, "annotations": {**_annotations(pod), GPU_INDEX_ANNOTATION: self._free_gpu(pod)}}
        self._objects.write(self._pods, pod, {**pod.obj, "metadata": metadata, "status": status})

    def _free_gpu(self, pod: Stored) -> str:
        """Return the first GPU of a pod's node that no other reservation has."""
        node = pod.obj["spec"]["nodeName"]
        others = self._objects.store.rows("pods", f"{RESERVATION_NAMESPACE}/")
        there = (row for row in others if row.obj["spec"].get("nodeName") == node)
        taken = {_annotations(row).get(GPU_INDEX_ANNOTATION) for row in there}
        return next(name for number in count() if (name := str(number)) not in taken)

    def _end(self, pod: Stored) -> None:
        now = self._objects.stamps.time()
        status = {**pod.obj["status"], "phase": "Succeeded"}
        for kind in ("Ready", "ContainersReady"):
            status = with_condition(status, kind, "False", now, "PodCompleted")
        ended = {"exitCode": 0, "reason": "Completed", "startedAt": status.get("startTime", now), "finishedAt": now}
        status["containerStatuses"] = _containers(pod.obj, False, {"terminated": ended})
        self._objects.write(self._pods, pod, {**pod.obj, "status": status})


def _containers(pod: Obj, ready: bool, state: Obj) -> list[Obj]:
    return [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": container.get("image", ""),
            "containerID": f"none://{pod['metadata']['uid']}/{container['name']}",
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "state": state,
            "lastState": {},
        }
        for container in pod["spec"]["containers"]
    ]


def _annotations(pod: Stored) -> Obj:
    return pod.obj["metadata"].get("annotations") or {}


def _phase(pod: Obj) -> str:
    """Return the phase of a pod. A pod without one has not begun."""
    return (pod.get("status") or {}).get("phase") or "Pending"


def _started(pod: Obj) -> float | None:
    """Return when a pod started, in seconds since the epoch, as it was written in whole seconds."""
    text = (pod.get("status") or {}).get("startTime")
    return epoch_of(text) if isinstance(text, str) else None
