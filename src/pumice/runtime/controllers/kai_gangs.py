"""Gangs of pods by their owners in KAI's terms: how many pods must start together, in which sub-groups.

Source: KAI's pod-grouper, with a rule for each kind of owner. Pods of other owners are in a gang of one that grows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.manifest.reading.fields import Obj
from pumice.model.workloads.gang import SUB_GROUPS_MAX
from pumice.model.workloads.job import JOB_PODS_MAX
from pumice.runtime.controllers.writes import annotations_of, labels_of, meta, part

TRAIN, BUILD, INFERENCE = "train", "build", "inference"

_REPLICA_TYPE = "training.kubeflow.org/replica-type"
_RAY_GROUP = "ray.io/group"
_LWS_INDEX, _LWS_SIZE = "leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/size"
_REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
_SPARK = "spark-app-selector"
_REPLICA_SPECS = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
}


class NoGang(Exception):
    """An owner's spec is invalid. The text has what was found and what was wanted."""


class GangPlan(Struct, frozen=True):
    """A gang. ``sub_groups``: name -> minimum. ``member``: the pod's sub-group, "" for none. ``suffix``: end of the
    group's name, after that of the owner. ``alone``: the pod is a gang of its own, which has its name."""

    minimum: int = 1
    sub_groups: Mapping[str, int] | None = None
    member: str = ""
    suffix: str = ""
    priority_class: str = TRAIN
    alone: bool = False


def plan_of(pod: Obj, owners: Sequence[Obj], *, launcher_there: bool = True) -> GangPlan:
    """Return the gang of a pod. ``owners``: those that control it, the nearest first, each as far as it could be read.

    ``launcher_there``: the launcher of its MPI job has a pod. Raises: NoGang.
    """
    if not owners:
        return _spark(pod) or GangPlan()
    for owner in reversed(owners):
        rule = _RULES.get((str(owner.get("apiVersion", "")).partition("/")[0], str(owner.get("kind"))))
        if rule is not None:
            found = rule(pod, owner, owners)
            if owner.get("kind") == "MPIJob" and not launcher_there:
                found = _without_launcher(found, owner)
            return _checked(found, owner)
    return _spark(pod) or GangPlan()


def _checked(plan: GangPlan, owner: Obj) -> GangPlan:
    where = f"{owner.get('kind')} {meta(owner).get('name')}"
    if not 1 <= plan.minimum <= JOB_PODS_MAX:
        raise NoGang(f"{where}: found {plan.minimum} pods that must start together, wanted 1 to {JOB_PODS_MAX}")
    if plan.sub_groups is not None and len(plan.sub_groups) > SUB_GROUPS_MAX:
        raise NoGang(f"{where}: found {len(plan.sub_groups)} groups of pods, wanted at most {SUB_GROUPS_MAX}")
    return plan


# -- rules: a pod, the owner that has one, and all owners


def _each_alone(pod: Obj, owner: Obj, owners: Sequence[Obj]) -> GangPlan:
    return GangPlan(alone=True)


def _served(pod: Obj, owner: Obj, owners: Sequence[Obj]) -> GangPlan:
    return GangPlan(alone=True, priority_class=INFERENCE)


def _notebook(pod: Obj, owner: Obj, owners: Sequence[Obj]) -> GangPlan:
    return GangPlan(priority_class=BUILD)


def _kubeflow(pod: Obj, owner: Obj, owners: Sequence[Obj]) -> GangPlan:
    """Return all replicas, unless the scheduling policy has a smaller minimum."""
    specs = part(owner, "spec", _REPLICA_SPECS[str(owner["kind"])])
    if not specs:
        raise NoGang(f"{owner['kind']} {meta(owner).get('name')}: found no replica specs, wanted one at least")
    total = sum(_count(each.get("replicas"), 1) for each in specs.values() if isinstance(each, dict))
    return GangPlan(_policy_minimum(owner) or total)


def _pytorch(pod: Obj, owner: Obj, owners: Sequence[Obj]) -> GangPlan:
    """Return master and worker as sub-groups. An elastic job starts with its minimum."""
    plan = _kubeflow(pod, owner, owners)
    least = _policy_minimum(owner) or _count(part(owner, "spec", "elasticPolicy").get("minReplicas"), plan.minimum)
    specs = part(owner, "spec", "pytorchReplicaSpecs")
    masters = _count(part(specs, "Master").get("replicas"), 1) if "Master" in specs else 0
    groups = {"master": masters} if masters else {}
    if "Worker" in specs:
        groups["worker"] = max(least - masters, 0)
    role = labels_of(pod).get(_REPLICA_TYPE, "").lower()
    return GangPlan(least, _with_pods(groups), role if role in groups else "")


def _with_pods(groups: dict[str, int]) -> dict[str, int] | None:
    """Return sub-groups if there are several: a single one adds nothing to the gang's minimum. None if one of them may
    have no pods."""
    return groups if len(groups) > 1 and all(groups.values()) else None


def _without_launcher(plan: GangPlan, owner: Obj) -> GangPlan:
    """Return the gang without the launcher, which is created when the workers run."""
    if part(owner, "spec").get("launcherCreationPolicy") != "WaitForWorkersReady":
        return plan
    launchers = _count(part(owner, "spec", "mpiReplicaSpecs", "Launcher").get("replicas"), 1)
    return replace(plan, minimum=max(plan.minimum - launchers, 1))


def _ray(pod: Obj, owner: Obj, owners: Sequence[Obj]) -> GangPlan:
    """Return the head, and of each group of workers its minimum, or all if it has none."""
    cluster = next((each for each in owners if each.get("kind") == "RayCluster"), owner)
    written = part(cluster, "spec").get("workerGroupSpecs")
    groups = {"headgroup": 1}
    for i, spec in enumerate(each for each in written if isinstance(each, dict)) if isinstance(written, list) else ():
        least, wanted = _count(spec.get("minReplicas"), 0), _count(spec.get("replicas"), 0)
        count = (least or wanted) * _count(spec.get("numOfHosts"), 1)
        if count and not spec.get("suspend"):
            groups[str(spec.get("groupName") or f"worker-group-{i}").lower()] = count
    member = labels_of(pod).get(_RAY_GROUP, "").lower()
    subs = _with_pods(groups)
    return GangPlan(sum(groups.values()), subs, member if subs and member in subs else "")


def _leader_worker_set(pod: Obj, owner: Obj, owners: Sequence[Obj]) -> GangPlan:
    """Return a gang for each replica; the leader alone first if workers wait for it."""
    size = _count(part(owner, "spec", "leaderWorkerTemplate").get("size"), 0)
    size = size or _whole(annotations_of(pod).get(_LWS_SIZE, "")) or 1
    index = labels_of(pod).get(_LWS_INDEX, "")
    return GangPlan(size, suffix=f"-group-{index}" if index.isdecimal() else "")


def _job_set(pod: Obj, owner: Obj, owners: Sequence[Obj]) -> GangPlan:
    """Return all pods, or those of each job alone if they start in order."""
    written = part(owner, "spec").get("replicatedJobs")
    sizes = {
        str(each.get("name")): _count(each.get("replicas"), 1)
        * _count(part(each, "template", "spec").get("parallelism"), 1)
        for each in (written if isinstance(written, list) else ())
        if isinstance(each, dict)
    }
    own = labels_of(pod).get(_REPLICATED_JOB, "")
    if part(owner, "spec", "startupPolicy").get("startupPolicyOrder") == "InOrder" and own in sizes:
        return GangPlan(max(sizes[own], 1), suffix=f"-{own}")
    return GangPlan(max(sum(sizes.values()), 1))


def _spark(pod: Obj) -> GangPlan | None:
    """Return the gang of driver and executors, which name their application."""
    application = labels_of(pod).get(_SPARK)
    return GangPlan(suffix=f"-{application}") if application else None


_RULES: Mapping[tuple[str, str], Callable[[Obj, Obj, Sequence[Obj]], GangPlan]] = {
    ("apps", "Deployment"): _served,
    ("batch", "Job"): _each_alone,
    ("kubeflow.org", "Notebook"): _notebook,
    ("kubeflow.org", "PyTorchJob"): _pytorch,
    **{("kubeflow.org", kind): _kubeflow for kind in _REPLICA_SPECS if kind != "PyTorchJob"},
    ("ray.io", "RayCluster"): _ray,
    ("ray.io", "RayJob"): _ray,
    ("ray.io", "RayService"): _ray,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
}


def _policy_minimum(owner: Obj) -> int:
    return _count(part(owner, "spec", "runPolicy", "schedulingPolicy").get("minAvailable"), 0)


def _count(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0
