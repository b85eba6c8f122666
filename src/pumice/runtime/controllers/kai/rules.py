"""Gangs of pods by their owners in KAI's terms: how many pods must start together, in which sub-groups.

Source: KAI's pod-grouper, version 0.17, with a rule for each kind of top owner. Pods of other owners are in a gang of
one that grows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from pumice.model.manifest.reading.fields import Obj
from pumice.model.workloads.gang import SubGroup, TopologyConstraint
from pumice.runtime.controllers.kai.grove import grove
from pumice.runtime.controllers.kai.karta import karta_for, karta_gang
from pumice.runtime.controllers.kai.kind_defaults import KindDefaults
from pumice.runtime.controllers.kai.kubeflow import REPLICA_SPECS, mpi_job, pytorch_job, training_job
from pumice.runtime.controllers.kai.owners import group_kind
from pumice.runtime.controllers.kai.plan import (
    BUILD,
    INFERENCE,
    PREFERRED_ANNOTATION,
    REQUIRED_ANNOTATION,
    SET_MIN_MEMBER_ANNOTATION,
    TOPOLOGY_ANNOTATION,
    GangPlan,
    NoGang,
    check_sub_groups,
    checked,
    constraint_in,
    minimum_in,
    named,
    whole,
)
from pumice.runtime.controllers.kai.replicated import FindGroup, job_set, leader_worker_set
from pumice.runtime.controllers.writes import annotations_of, count_or, labels_of, meta, part, parts

_RAY_GROUP = "ray.io/group"
_SPARK = "spark-app-selector"
_AML_NODES = "AZUREML_NODE_COUNT"
_MIN_SCALE = "autoscaling.knative.dev/min-scale"


def _no_group(name: str) -> Obj | None:
    return None


def _every_class(name: str) -> bool:
    return True


class PodContext(Struct, frozen=True):
    """What a rule reads beside the pod. ``owners``: those that control it, the nearest first, each as far as it could
    be read, without wrappers. ``find_group``: the existing PodGroup with a name. ``launcher_there``: the launcher of
    its MPI job has a pod. ``pod_gang``: that of a pod of Grove. ``kartas``: definitions of kinds without a rule.
    ``defaults``: what pods get by the kind of their owner. ``class_exists``: whether there is a PriorityClass."""

    owners: Sequence[Obj]
    find_group: FindGroup = _no_group
    launcher_there: bool = True
    pod_gang: Obj | None = None
    kartas: Sequence[Obj] = ()
    defaults: KindDefaults = KindDefaults()
    class_exists: Callable[[str], bool] = _every_class

    @property
    def top(self) -> Obj:
        return self.owners[-1]


def plan_of(pod: Obj, context: PodContext) -> GangPlan:
    """Return the gang of a pod. Raises: NoGang."""
    rule = _RULES.get(group_kind(context.top)) if context.owners else None
    if rule is not None:
        return checked(rule(pod, context), context.top)
    karta = karta_for(context.top, context.kartas) if context.owners and not has_rule(context.top) else None
    if karta is not None:
        return checked(karta_gang(pod, context.top, karta), context.top)
    return _spark(pod) or GangPlan()


def has_rule(owner: Obj) -> bool:
    """Return True if a top owner is of a kind that KAI knows, so that no Karta is asked for it."""
    return group_kind(owner) in _RULES or group_kind(owner) in _PLAIN


# -- rules


def _deployment(pod: Obj, context: PodContext) -> GangPlan:
    return GangPlan(alone=True, priority_class=INFERENCE)


def _job(pod: Obj, context: PodContext) -> GangPlan:
    """Return one gang for the Job, or the gang of this pod alone that an earlier version made."""
    job = context.owners[0] if group_kind(context.owners[0]) == ("batch", "Job") else context.top
    if context.find_group(f"pg-{meta(pod).get('name', '')}-{meta(job).get('uid', '')}") is not None:
        return GangPlan(alone=True, top=job)
    # The run of a CronJob is a gang, and not the CronJob.
    return GangPlan(minimum_in(annotations_of(job), named(job), 1), top=job)


def _stateful_set(pod: Obj, context: PodContext) -> GangPlan:
    """Return one gang, with the minimum that the set says, if its pods are created at once. Source: KAI after 0.17."""
    notes = annotations_of(context.top)
    policy = part(context.top, "spec").get("podManagementPolicy") or "OrderedReady"
    if SET_MIN_MEMBER_ANNOTATION in notes and policy != "Parallel":
        where = f"{named(context.top)}: spec.podManagementPolicy"
        raise NoGang(
            f"{where}: found {policy!s:.40}, wanted Parallel beside the annotation {SET_MIN_MEMBER_ANNOTATION}"
        )
    return GangPlan(minimum_in(notes, named(context.top), 1, SET_MIN_MEMBER_ANNOTATION))


def _notebook(pod: Obj, context: PodContext) -> GangPlan:
    return GangPlan(priority_class=BUILD)


def _ray(pod: Obj, context: PodContext) -> GangPlan:
    """Return the head, and of each group of workers its minimum, or all if it has none. Of a cluster that scales by
    itself a group may have none; it then starts without."""
    cluster = _ray_cluster(context)
    groups = parts(cluster, "workerGroupSpecs")
    scales = cluster.get("enableInTreeAutoscaling") is True
    check_sub_groups(1 + len(groups), context.top)
    where = named(context.top)
    subs = [
        SubGroup("headgroup", 1, "", _template_constraint(part(cluster, "headGroupSpec"), f"{where}: headGroupSpec"))
    ]
    for i, spec in enumerate(groups):
        least, wanted = count_or(spec.get("minReplicas"), 0), count_or(spec.get("replicas"), 0)
        at = f"{where}: workerGroupSpecs[{i}]"
        if least > wanted and not spec.get("suspend"):
            raise NoGang(f"{at}.minReplicas: found {least}, wanted at most {wanted}, the replicas of the group")
        pods = (least if scales else least or wanted) * count_or(spec.get("numOfHosts"), 1)
        if (least or wanted) and not spec.get("suspend"):
            name = str(spec.get("groupName") or f"worker-group-{i}").lower()
            subs.append(SubGroup(name, pods, "", _template_constraint(spec, at)))
    minimum = sum(each.min_member for each in subs)
    there = context.find_group(f"pg-{meta(context.top).get('name', '')}-{meta(context.top).get('uid', '')}")
    if there is not None and not part(there, "spec").get("subGroups"):
        # A gang that runs must not be divided anew by an upgrade: its pods are in no sub-group.
        return GangPlan(minimum)
    member = labels_of(pod).get(_RAY_GROUP, "").lower()
    known = {each.name for each in subs}
    return GangPlan(minimum, tuple(subs), member=member if member in known else "")


def _ray_cluster(context: PodContext) -> Obj:
    """Return the spec of the cluster. The submitter of a RayJob has no RayCluster among its owners."""
    cluster = next((each for each in context.owners if each.get("kind") == "RayCluster"), None)
    if cluster is not None:
        return part(cluster, "spec")
    return part(context.top, "spec", "rayClusterSpec") or part(context.top, "spec", "rayClusterConfig")


def _template_constraint(spec: Obj, where: str) -> TopologyConstraint | None:
    """Return the topology constraint of a group's template. Raises: NoGang."""
    written = part(spec, "template", "metadata", "annotations")
    levels = [key for key in (REQUIRED_ANNOTATION, PREFERRED_ANNOTATION) if written.get(key)]
    if levels and not written.get(TOPOLOGY_ANNOTATION):
        raise NoGang(f"{where}: found the annotation {levels[0]}, wanted {TOPOLOGY_ANNOTATION} beside it")
    return constraint_in(written)


def _knative(pod: Obj, context: PodContext) -> GangPlan:
    """Return a gang for each revision, as large as its least scale."""
    revision = next((each for each in context.owners if each.get("kind") == "Revision"), None)
    if revision is None:
        raise NoGang(f"{named(context.top)}: pod {meta(pod).get('name')}: found no Revision among its owners")
    # A scale that is no number counts as 1, as does 0: a pod that exists is one.
    least = whole(annotations_of(revision).get(_MIN_SCALE, "")) or 1
    return GangPlan(least, top=revision, priority_class=INFERENCE)


def _aml_job(pod: Obj, context: PodContext) -> GangPlan:
    envs = part(context.top, "spec", "job", "options", "envs")
    nodes = count_or(envs.get(_AML_NODES), 0)
    if not nodes:
        raise NoGang(f"{named(context.top)}: spec.job.options.envs.{_AML_NODES}: found none, wanted an integer from 1")
    return GangPlan(nodes)


def _runai_job(pod: Obj, context: PodContext) -> GangPlan:
    """Return a gang for all pods whose names differ in their last part alone."""
    stem = str(meta(pod).get("name", "")).rpartition("-")[0] or str(meta(pod).get("name", ""))
    return GangPlan(name=f"pg-{stem}-{meta(context.top).get('uid', '')}".lower())


def _spark(pod: Obj) -> GangPlan | None:
    """Return the gang of driver and executors, which name their application."""
    application = labels_of(pod).get(_SPARK)
    return GangPlan(suffix=f"-{application}") if application else None


_RULES: Mapping[tuple[str, str], Callable[[Obj, PodContext], GangPlan]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _job,
    ("kubeflow.org", "Notebook"): _notebook,
    **{("kubeflow.org", kind): lambda pod, context: training_job(pod, context.top) for kind in REPLICA_SPECS},
    ("kubeflow.org", "PyTorchJob"): lambda pod, context: pytorch_job(pod, context.top),
    ("kubeflow.org", "MPIJob"): lambda pod, context: mpi_job(pod, context.top, context.launcher_there),
    **{("ray.io", kind): _ray for kind in ("RayCluster", "RayJob", "RayService")},
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): lambda pod, context: leader_worker_set(pod, context.top),
    ("jobset.x-k8s.io", "JobSet"): lambda pod, context: job_set(pod, context.top, context.find_group),
    ("serving.knative.dev", "Service"): _knative,
    ("amlarc.azureml.com", "AmlJob"): _aml_job,
    ("run.ai", "RunaiJob"): _runai_job,
    ("egx.nvidia.io", "SPOTRequest"): lambda pod, context: GangPlan(priority_class=INFERENCE),
    **{
        ("grove.io", kind): lambda pod, context: grove(pod, context.top, context.pod_gang)
        for kind in ("PodCliqueSet", "PodGangSet")
    },
}
#: Kinds of which all pods are one group, with minimum 1.
_PLAIN = frozenset(
    {
        ("", "Pod"),
        ("apps", "ReplicaSet"),
        ("machinelearning.seldon.io", "SeldonDeployment"),
        ("kubevirt.io", "VirtualMachineInstance"),
        ("workspace.devfile.io", "DevWorkspace"),
        ("kubeflow.org", "ScheduledWorkflow"),
        ("tekton.dev", "PipelineRun"),
        ("tekton.dev", "TaskRun"),
    }
)
