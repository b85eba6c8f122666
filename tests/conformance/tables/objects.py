"""The objects of a table's rows as a cluster and a session: what the checks of several modules build from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from pumice.columns.dtypes import F64, ResourceAxis
from pumice.columns.snapshot import Snapshot
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.model.events import Object
from pumice.model.manifest import Decoder
from pumice.model.node import Node
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod
from pumice.model.resources import EMPTY, Resource
from pumice.model.status import TaskStatus
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store
from pumice.testing.build import pod
from pumice.volcano.table import volcano_registry

Raw = Mapping[str, Any]

_API = {
    "Node": "v1",
    "Pod": "v1",
    "PodGroup": "scheduling.volcano.sh/v1beta1",
    "PodDisruptionBudget": "policy/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "Queue": "scheduling.volcano.sh/v1beta1",
    "ResourceClaim": "resource.k8s.io/v1",
}
#: Volcano's bit flag of a task status -> ours.
STATUS_OF_FLAG = {
    1: TaskStatus.PENDING,
    2: TaskStatus.ALLOCATED,
    4: TaskStatus.PIPELINED,
    8: TaskStatus.BINDING,
    16: TaskStatus.BOUND,
    32: TaskStatus.RUNNING,
    64: TaskStatus.RELEASING,
    128: TaskStatus.SUCCEEDED,
    256: TaskStatus.FAILED,
    512: TaskStatus.UNKNOWN,
}
FLAG_OF_STATUS = {status: flag for flag, status in STATUS_OF_FLAG.items()}
_PHASES = {TaskStatus.RUNNING: "Running", TaskStatus.SUCCEEDED: "Succeeded", TaskStatus.FAILED: "Failed"}
#: States that only a session, or a decision in flight, gives a task.
_OF_A_SESSION = {TaskStatus.ALLOCATED, TaskStatus.PIPELINED, TaskStatus.BINDING}


def decoded(**manifests: Iterable[Raw]) -> list[Object]:
    """The objects of manifests without apiVersion and kind, by kind: ``decoded(Pod=row["pods"])``."""
    decoder = Decoder()
    found = [decoder.decode_as(_API[kind], kind, dict(raw)) for kind, raws in manifests.items() for raw in raws]
    assert all(isinstance(each, Object) for each in found)
    return found  # type: ignore[return-value]  # just asserted


def in_group(pods: Iterable[Object], group: str) -> list[Pod]:
    """The pods as members of a group; in the rows it is the test that puts them into a job."""
    found = [each for each in pods if isinstance(each, Pod)]
    return [replace(each, annotations={**each.annotations, GROUP_NAME_ANNOTATION: group}) for each in found]


def homes(pods: Iterable[Pod]) -> list[Node]:
    """A node of every name that a pod is on, which offers what its pods ask for; the rows leave them out."""
    offered: dict[str, Resource] = {}
    for each in pods:
        if each.node_name:
            offered[each.node_name] = offered.get(each.node_name, EMPTY).add(each.spec.request)
    return [Node(name, amount) for name, amount in offered.items()]


def member(raw: Raw, group: str) -> Pod:
    """The pod of a recorded task, as the API server would show it before a session. Asks for a core by default."""
    context = raw["TransactionContext"]
    status = STATUS_OF_FLAG[context["Status"]]
    cpu = f"{raw.get('Resreq', {}).get('MilliCPU', 1000):g}m"
    return pod(
        raw["UID"],
        group,
        cpu=0 if raw.get("BestEffort", False) else cpu,
        memory=0,
        on="" if status in _OF_A_SESSION else context.get("NodeName", ""),
        phase=_PHASES.get(status, "Pending"),
        deletion=1.0 if status is TaskStatus.RELEASING else None,
    )


def take_up(ssn: Session, raws: Iterable[Raw]) -> None:
    """Bring recorded tasks into the states that only a session gives; they stay there."""
    for raw in raws:
        status = STATUS_OF_FLAG[raw["TransactionContext"]["Status"]]
        if status not in _OF_A_SESSION:
            continue
        assert status is TaskStatus.PIPELINED, f"no row has a task that is {status.label}"
        node = raw["TransactionContext"].get("NodeName", ssn.tables.nodes.facts.names[0])
        stmt = ssn.statement()
        stmt.pipeline([row_of(ssn, raw["UID"])], [ssn.tables.nodes.facts.row_of[node]])
        stmt.keep_uncommitted()


def row_of(ssn: Session, name: str) -> int:
    """The task of this pod name, or this UID."""
    pods = ssn.tables.tasks.pods
    (row,) = [row for row, each in enumerate(pods) if each is not None and name in (each.name, each.uid)]
    return row


def lenient(conf: str | Raw) -> Policy:
    """A policy that drops what it does not understand, as Volcano does. ``conf``: names of plugins, or a document."""
    if isinstance(conf, str):
        plugins = [{"name": name.strip()} for name in conf.split(",") if name.strip()]
        conf = {"actions": "allocate", "tiers": [{"plugins": plugins}]}
    return read_policy(conf, volcano_registry(), strict=False)


def opened(store: Store, conf: str | Raw = "") -> Session:
    """A session on the store. ``conf`` as for ``lenient``."""
    return opened_on(store.snapshot(), conf)


def opened_on(snapshot: Snapshot, conf: str | Raw = "") -> Session:
    """A session on a snapshot, likewise."""
    ssn = Session(snapshot, lenient(conf), 0.0, ListPlanner(), Memo())
    ssn.open()
    return ssn


def job_row(tables: Tables, key: str) -> int:
    """The row of the job of this ``namespace/podgroup``."""
    (row,) = [row for row, uid in enumerate(tables.jobs.uids) if uid == key]
    return row


def amount(axis: ResourceAxis, row: F64, pods_max: int = 0) -> dict[str, Any]:
    """A row of a resource column as the tables record it: without what is 0."""
    found = axis.resource(row)
    stated = {"MilliCPU": found.milli_cpu, "Memory": found.memory, "MaxTaskNum": pods_max}
    return {**{key: value for key, value in stated.items() if value}, **_scalars(found.scalars)}


def _scalars(scalars: Mapping[str, float] | None) -> dict[str, Any]:
    return {"ScalarResources": dict(scalars)} if scalars else {}
