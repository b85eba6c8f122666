"""What controllers know of a cluster, by the keys they use, and which keys a change concerns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from pumice.kube.api.kinds import NAMESPACES, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES, Kind
from pumice.kube.controllers.kinds import (
    COMMANDS,
    CRON_JOBS,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    WATCHED_BY,
)
from pumice.kube.controllers.owner_kinds import REPLICA_SETS, STATEFUL_SETS
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import GROUP_NAME_ANNOTATION
from pumice.runtime.controllers.job_flows import TEMPLATE_KEY
from pumice.runtime.controllers.job_policies import Request, lost
from pumice.runtime.controllers.jobs import command_target
from pumice.runtime.controllers.podgroups import group_name_for, queue_of_namespace
from pumice.runtime.controllers.queues import ROOT
from pumice.runtime.controllers.writes import (
    JOB_API,
    Ref,
    annotations_of,
    controller_of,
    controller_uid,
    merged,
    meta,
    part,
)


class Task(NamedTuple):
    """Something to handle: a ``pod``, a ``set`` (by plural/namespace/name), a ``job``, ``cronjob``, ``flow`` or
    ``template``, a ``queue``, or all ``queues``."""

    what: str
    key: str


#: The controller that handles each.
CONTROLLER_OF = {
    **{"pod": "podgroup", "set": "podgroup", "job": "job", "queue": "queue", "queues": "queue"},
    **{"cronjob": "cronjob", "flow": "jobflow", "template": "jobflow"},
}
#: Controllers of Jobs -> what is handled.
_OF_JOBS = {(kind.api_version, kind.kind): what for kind, what in ((CRON_JOBS, "cronjob"), (JOB_FLOWS, "flow"))}


class View:
    """The objects as last seen. ``note`` is called with everything that must be handled again."""

    def __init__(self, controllers: tuple[str, ...], default_queue: str, note: Callable[[Task], None]) -> None:
        self.kinds = tuple(dict.fromkeys(kind for name in controllers for kind in WATCHED_BY[name]))
        self.objects: dict[Kind, dict[str, Obj]] = {kind: {} for kind in self.kinds}
        self.pods_of: defaultdict[str, dict[str, Obj]] = defaultdict(dict)  # by UID of the controlling owner
        self.jobs_of: defaultdict[str, dict[str, Obj]] = defaultdict(dict)  # likewise
        self.made_of: defaultdict[str, dict[str, Obj]] = defaultdict(dict)  # Jobs, by the key of their template
        self.groups_in: defaultdict[str, dict[str, Obj]] = defaultdict(dict)  # by queue
        self.commands_for: defaultdict[str, dict[str, Obj]] = defaultdict(dict)  # by ``_target_of``
        self.requests: dict[str, tuple[Request, ...]] = {}  # by job
        self._controllers = controllers
        self._default_queue = default_queue
        self._bootstrap = (ROOT, default_queue)
        self._note_task = note
        self._unnamed: dict[str, None] = {}  # pods without a group
        self._job_keys: dict[str, str] = {}  # by uid

    def find(self, kind: Kind, key: str) -> Obj | None:
        return self.objects.get(kind, {}).get(key)

    # -- what happens

    def put(self, kind: Kind, obj: Obj) -> None:
        """Note a new or changed object."""
        key = key_of(obj)
        self._unlink(kind, key)
        self.objects[kind][key] = obj
        self._link(kind, key, obj)
        self._note_change(kind, key, obj)

    def drop(self, kind: Kind, key: str, now: float) -> None:
        """Note that an object is gone."""
        obj = self._unlink(kind, key)
        if obj is None:
            return
        if kind is PODS:
            self._lost(obj, now)
        elif kind is JOBS:
            self.requests.pop(key, None)
        elif kind is QUEUES and key in self._bootstrap:
            self._note("queues", "")
        elif kind is POD_GROUPS:
            for pod in [pod for pod in self._unnamed if group_name_for(self.objects[PODS][pod]) == meta(obj)["name"]]:
                self._note("pod", pod)
        self._note_change(kind, key, obj)

    def assume(self, ref: Ref, merge: Obj) -> None:
        """Note a patch of a pod before the watch confirms it, so that its job does not see the old state."""
        key = f"{ref.namespace}/{ref.name}"
        pod = self.find(PODS, key)
        if pod is not None and meta(pod).get("uid") == ref.uid:
            self._unlink(PODS, key)
            self.objects[PODS][key] = merged(pod, merge)
            self._link(PODS, key, self.objects[PODS][key])

    def keep(self, job: str, requests: tuple[Request, ...]) -> None:
        """Keep requests that are not handled yet."""
        if requests and job in self.objects.get(JOBS, ()):
            self.requests[job] = self.requests.get(job, ()) + requests

    def take_requests(self, job: str) -> tuple[Request, ...]:
        return self.requests.pop(job, ())

    # -- indices

    def _link(self, kind: Kind, key: str, obj: Obj) -> None:
        if kind is PODS:
            owner = controller_uid(obj)
            if owner:
                self.pods_of[owner][key] = obj
            if not annotations_of(obj).get(GROUP_NAME_ANNOTATION):
                self._unnamed[key] = None
        elif kind is POD_GROUPS:
            self.groups_in[self._queue_of(obj)][key] = obj
        elif kind is COMMANDS:
            self.commands_for[_target_of(obj)][key] = obj
        elif kind is JOBS:
            self._job_keys[meta(obj).get("uid", "")] = key
            if owner := controller_uid(obj):
                self.jobs_of[owner][key] = obj
            if template := _template_of(obj):
                self.made_of[template][key] = obj

    def _unlink(self, kind: Kind, key: str) -> Obj | None:
        obj = self.objects[kind].pop(key, None)
        if obj is None:
            return None
        if kind is PODS:
            _take_out(self.pods_of, controller_uid(obj), key)
            self._unnamed.pop(key, None)
        elif kind is POD_GROUPS:
            _take_out(self.groups_in, self._queue_of(obj), key)
            self._note("queue", self._queue_of(obj))
        elif kind is COMMANDS:
            _take_out(self.commands_for, _target_of(obj), key)
        elif kind is JOBS:
            self._job_keys.pop(meta(obj).get("uid", ""), None)
            _take_out(self.jobs_of, controller_uid(obj), key)
            _take_out(self.made_of, _template_of(obj), key)
        return obj

    def _lost(self, pod: Obj, now: float) -> None:
        job = self._job_keys.get(controller_uid(pod))
        request = lost(pod, now) if job else None
        if job and request is not None:
            self.keep(job, (request,))

    # -- what a change concerns

    def _note_change(self, kind: Kind, key: str, obj: Obj) -> None:
        if kind is PODS:
            self._note_job_of(obj)
            if key in self._unnamed:
                self._note("pod", key)
        elif kind is POD_GROUPS:
            self._note("queue", self._queue_of(obj))
            self._note_job_of(obj)
        elif kind is QUEUES:
            self._note("queue", key)
            for child, queue in self.objects[QUEUES].items():
                if part(queue, "spec").get("parent") == key:
                    self._note("queue", child)
        elif kind is COMMANDS:
            self._note_target(obj)
        elif kind is JOBS:
            self._note("job", key)
            self._note_maker_of(obj)
        elif kind is CRON_JOBS:
            self._note("cronjob", key)
        elif kind is JOB_FLOWS:
            self._note("flow", key)
        elif kind is JOB_TEMPLATES:
            self._note("template", key)
            for flow in [each for each in self.objects[JOB_FLOWS] if each.startswith(f"{meta(obj)['namespace']}/")]:
                self._note("flow", flow)
        elif kind in (REPLICA_SETS, STATEFUL_SETS):
            self._note("set", f"{kind.plural}/{key}")

    def _note_job_of(self, obj: Obj) -> None:
        for owner in meta(obj).get("ownerReferences") or ():
            if owner.get("controller") and (owner.get("apiVersion"), owner.get("kind")) == (JOB_API, "Job"):
                self._note("job", f"{meta(obj).get('namespace', '')}/{owner.get('name', '')}")

    def _note_maker_of(self, job: Obj) -> None:
        """Note what created a Job: a CronJob, or a flow from a template."""
        owner = controller_of(job)
        if owner is not None and (owner.api_version, owner.kind) in _OF_JOBS:
            self._note(_OF_JOBS[owner.api_version, owner.kind], f"{owner.namespace}/{owner.name}")
        if template := _template_of(job):
            self._note("template", template)

    def _note_target(self, command: Obj) -> None:
        kind, uid = command_target(command) or ("", "")
        if kind == "Job" and (uid in self._job_keys or not uid):
            self._note("job", self._job_keys[uid] if uid else _named_target(command))
        elif kind == "Queue":
            self._note("queue", str(part(command, "target").get("name", "")))

    def _queue_of(self, group: Obj) -> str:
        return str(part(group, "spec").get("queue") or self._default_queue)

    def _note(self, what: str, key: str) -> None:
        if CONTROLLER_OF[what] in self._controllers:
            self._note_task(Task(what, key))

    # -- reading

    def commands_to(self, kind: str, obj: Obj) -> list[Obj]:
        """Return the commands whose target is an object, by its UID or, without one, by its name."""
        found = self.commands_for.get(meta(obj).get("uid", ""), {})
        return list((found | self.commands_for.get(f"{kind} {key_of(obj)}", {})).values())

    def templates_in(self, namespace: str) -> dict[str, Obj]:
        """Return the JobTemplates of a namespace, by name."""
        found = self.objects.get(JOB_TEMPLATES, {})
        return {meta(obj)["name"]: obj for obj in found.values() if meta(obj)["namespace"] == namespace}

    def namespace_queue(self, namespace: str) -> str:
        """Return the queue that a namespace names, or ""."""
        return queue_of_namespace(self.find(NAMESPACES, namespace))

    def priorities(self) -> dict[str, int]:
        """Return the value of each PriorityClass."""
        found = self.objects.get(PRIORITY_CLASSES, {})
        return {name: obj["value"] for name, obj in found.items() if isinstance(obj.get("value"), int)}


def key_of(obj: Obj) -> str:
    m = meta(obj)
    return f"{m['namespace']}/{m['name']}" if m.get("namespace") else str(m["name"])


def _template_of(job: Obj) -> str:
    """Return the key of the JobTemplate from which a Job says it was made, or ""."""
    namespace = str(meta(job).get("namespace", ""))
    said = annotations_of(job).get(TEMPLATE_KEY, "")
    return f"{namespace}/{said.removeprefix(f'{namespace}.')}" if said.startswith(f"{namespace}.") else ""


def _target_of(command: Obj) -> str:
    """Return the UID of a command's target, or its kind and key if the command names no UID."""
    kind, uid = command_target(command) or ("", "")
    return uid or f"{kind} {_named_target(command)}"


def _named_target(command: Obj) -> str:
    """Return the key of a command's target by its name."""
    target = part(command, "target")
    name = str(target.get("name", ""))
    return name if target.get("kind") == "Queue" else f"{meta(command).get('namespace', '')}/{name}"


def _take_out(index: dict[str, dict[str, Obj]], at: str, key: str) -> None:
    found = index.get(at)
    if found is not None:
        found.pop(key, None)
        if not found:
            del index[at]
