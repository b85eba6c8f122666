"""Gangs of Kubeflow's training jobs in KAI's terms. Source: KAI ``kubeflow``, ``pytorch`` and ``mpi``."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.model.manifest.reading.fields import Obj
from pumice.model.workloads.gang import SubGroup
from pumice.runtime.controllers.kai.plan import (
    SEGMENT_SIZE_ANNOTATION,
    GangPlan,
    NoGang,
    check_sub_groups,
    named,
    segment_constraint,
    whole,
)
from pumice.runtime.controllers.writes import annotations_of, count_or, labels_of, leaving, meta, part

REPLICA_SPECS = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
}
_REPLICA_TYPE, _REPLICA_INDEX = "training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index"
_JOB_NAME, _JOB_ROLE = "training.kubeflow.org/job-name", "training.kubeflow.org/job-role"
_MASTER, _WORKER = "master", "worker"


def training_job(pod: Obj, owner: Obj) -> GangPlan:
    """Return all replicas, unless the scheduling policy has a smaller minimum. Raises: NoGang."""
    specs = part(owner, "spec", REPLICA_SPECS[str(owner["kind"])])
    if not specs:
        raise NoGang(f"{named(owner)}: found no replica specs, wanted one at least")
    total = sum(count_or(each.get("replicas"), 1) for each in specs.values() if isinstance(each, dict))
    return GangPlan(_policy_minimum(owner) or total)


def mpi_job(pod: Obj, owner: Obj, launcher_there: bool) -> GangPlan:
    """Return all replicas, without the launcher if it is created only when the workers run. Raises: NoGang."""
    plan = training_job(pod, owner)
    if launcher_there or part(owner, "spec").get("launcherCreationPolicy") != "WaitForWorkersReady":
        return plan
    launchers = count_or(part(owner, "spec", "mpiReplicaSpecs", "Launcher").get("replicas"), 1)
    return replace(plan, minimum=max(plan.minimum - launchers, 1))


def launched_job(pod: Obj) -> tuple[str, str] | None:
    """Return namespace and name of the MPI job whose launcher a pod is, None if it is none, or is being deleted."""
    labels = labels_of(pod)
    if labels.get(_JOB_ROLE) != "launcher" or leaving(pod):
        return None
    return str(meta(pod).get("namespace", "")), labels.get(_JOB_NAME, "")


def pytorch_job(pod: Obj, owner: Obj) -> GangPlan:
    """Return master and worker as sub-groups. An elastic job starts with its minimum. Raises: NoGang."""
    plan = training_job(pod, owner)
    least = _policy_minimum(owner) or count_or(part(owner, "spec", "elasticPolicy").get("minReplicas"), plan.minimum)
    specs = part(owner, "spec", "pytorchReplicaSpecs")
    masters = count_or(part(specs, "Master").get("replicas"), 0)
    role = labels_of(pod).get(_REPLICA_TYPE, "").lower()
    subs, member = [SubGroup(_MASTER, masters)] if masters else [], _MASTER if masters and role == _MASTER else ""
    if "Worker" in specs:
        workers, own = _workers(pod, owner, max(least - masters, 0))
        subs += workers
        member = member or own
    return GangPlan(least, tuple(subs), member=member)


def _workers(pod: Obj, owner: Obj, least: int) -> tuple[list[SubGroup], str]:
    """Return the sub-groups of workers, and that of the pod, "" if it is no worker. Raises: NoGang."""
    spec = part(owner, "spec", "pytorchReplicaSpecs", "Worker")
    template = part(spec, "template", "metadata", "annotations")
    written = annotations_of(pod).get(SEGMENT_SIZE_ANNOTATION) or template.get(SEGMENT_SIZE_ANNOTATION)
    is_worker = labels_of(pod).get(_REPLICA_TYPE, "").lower() == _WORKER
    if not written:
        return [SubGroup(_WORKER, least)], _WORKER if is_worker else ""
    size = whole(str(written))
    if not size:
        raise NoGang(
            f"{named(owner)}: {SEGMENT_SIZE_ANNOTATION}: found {str(written)[:40]!r}, wanted an integer from 1"
        )
    workers = count_or(spec.get("replicas"), 1)
    number, needed = -(-workers // size), -(-least // size)
    check_sub_groups(number + 2, owner)
    place = segment_constraint(pod, template, owner)
    subs = [SubGroup(_WORKER, min_sub_group=number)]
    for i in range(number):
        # Segments beyond the elastic minimum are extras.
        pods = min(size, workers - i * size) if i < needed else 0
        subs.append(SubGroup(f"{_WORKER}-{i}", pods, _WORKER, place))
    if not is_worker:
        return subs, ""
    label = labels_of(pod).get(_REPLICA_INDEX, "")
    index = whole(label)
    if index is None:
        raise NoGang(f"{named(owner)}: label {_REPLICA_INDEX}: found {label[:40]!r}, wanted an integer from 0")
    return subs, f"{_WORKER}-{index // size}"


def _policy_minimum(owner: Obj) -> int:
    return count_or(part(owner, "spec", "runPolicy", "schedulingPolicy").get("minAvailable"), 0)
