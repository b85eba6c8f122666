"""A job and what its controller makes of it, without an API server: writes are carried out on dictionaries."""

from __future__ import annotations

from typing import Any

from pumice.model.instants import stamp
from pumice.model.manifest.pod_spec import SpecCache
from pumice.runtime.controllers.job_policies import Request, lost
from pumice.runtime.controllers.job_ssh import Keys, NewKeys
from pumice.runtime.controllers.jobs import JobView, reconcile_job
from pumice.runtime.controllers.writes import Create, Delete, Emit, Patch, Ref, Wake, Write, merged

JOB = "batch.volcano.sh/v1alpha1"
NOW = 1_700_000_000.0

Obj = dict[str, Any]


def task(name: str = "w", replicas: int = 2, **fields: Any) -> Obj:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {"name": name, "replicas": replicas, "template": {"spec": {"containers": [container]}}, **fields}


def policy(action: str, *events: str, **fields: Any) -> Obj:
    return {"action": action, **({"events": list(events)} if events else {}), **fields}


class World:
    """``step`` asks the controller once and does as it says; ``settle`` does so until it wants nothing."""

    def __init__(self, *tasks: Obj, **spec: Any) -> None:
        self.now = NOW
        self.objects: dict[tuple[str, str], Obj] = {}
        self.reports: list[Emit] = []
        self.wakes: list[Wake] = []
        self.requests: tuple[Request, ...] = ()
        self.namespace_queue = ""
        self.new_keys: NewKeys = lambda: Keys("private", "public")
        self._made = 0
        self.put(
            {
                "apiVersion": JOB,
                "kind": "Job",
                "metadata": {"name": "j", "namespace": "ns", "uid": "job-uid", "creationTimestamp": stamp(NOW)},
                "spec": {"schedulerName": "volcano", "tasks": list(tasks) or [task()], **spec},
            }
        )

    # -- what is there

    @property
    def job(self) -> Obj:
        return self.objects["Job", "j"]

    @property
    def pods(self) -> dict[str, Obj]:
        return {name: obj for (kind, name), obj in self.objects.items() if kind == "Pod"}

    @property
    def group(self) -> Obj | None:
        return self.objects.get(("PodGroup", "j-job-uid"))

    @property
    def phase(self) -> str:
        return str(self.job.get("status", {}).get("state", {}).get("phase", ""))

    def status(self, name: str) -> Any:
        return self.job["status"].get(name)

    # -- what happens

    def put(self, obj: Obj) -> None:
        self._made += 1
        metadata = {"uid": f"uid-{self._made}", "creationTimestamp": stamp(self.now), **obj["metadata"]}
        self.objects[obj["kind"], metadata["name"]] = {**obj, "metadata": metadata}

    def admit(self) -> None:
        """The scheduler admits the PodGroup, and the controller goes on."""
        self.settle()
        assert self.group is not None
        self.change("PodGroup", "j-job-uid", {"status": {"phase": "Inqueue"}})
        self.settle()

    def change(self, kind: str, name: str, patch: Obj) -> None:
        self.objects[kind, name] = merged(self.objects[kind, name], patch)

    def become(self, phase: str, *names: str, exit_code: int | None = None) -> None:
        """Pods (all, if none is named) come to a phase."""
        ended = {"state": {"terminated": {"exitCode": exit_code}}}
        status = {"phase": phase, **({"containerStatuses": [ended]} if exit_code is not None else {})}
        for name in names or tuple(self.pods):
            self.change("Pod", name, {"status": status})

    def evict(self, name: str) -> None:
        """Another client deletes a pod, and it is gone at once."""
        found = lost(self.objects.pop(("Pod", name)), self.now)
        self.requests += (found,) if found else ()

    def order(self, action: str) -> None:
        target = {"apiVersion": JOB, "kind": "Job", "name": "j", "uid": "job-uid"}
        metadata = {"name": "order", "namespace": "ns"}
        self.put(
            {
                "apiVersion": "bus.volcano.sh/v1alpha1",
                "kind": "Command",
                "metadata": metadata,
                "action": action,
                "target": target,
            }
        )

    # -- the controller

    def asked(self) -> list[Write]:
        commands = [obj for (kind, _), obj in self.objects.items() if kind == "Command"]
        view = JobView(self.job, list(self.pods.values()), self.group, commands, self.requests, self.namespace_queue)
        return reconcile_job(view, self.now, SpecCache(), {"high": 100}, new_keys=self.new_keys)

    def step(self) -> list[Write]:
        writes = self.asked()
        self.requests, self.wakes = (), []
        for write in writes:
            self._do(write)
        return writes

    def settle(self) -> None:
        for _ in range(20):
            if not [write for write in self.step() if not isinstance(write, Emit | Wake)]:
                return
        raise AssertionError(f"the controller does not come to rest: {self.asked()}")

    def _do(self, write: Write) -> None:
        match write:
            case Create(obj):
                if (obj["kind"], obj["metadata"]["name"]) not in self.objects:
                    self.put(obj)
            case Patch(ref, merge):
                found = self._at(ref)
                if found is not None:
                    self.objects[ref.kind, ref.name] = merged(found, merge)
            case Delete(ref):
                if self._at(ref) is not None:
                    del self.objects[ref.kind, ref.name]
            case Emit():
                self.reports.append(write)
            case Wake():
                self.wakes.append(write)
                self.requests += write.requests

    def _at(self, ref: Ref) -> Obj | None:
        found = self.objects.get((ref.kind, ref.name))
        return found if found is not None and found["metadata"]["uid"] == ref.uid else None
