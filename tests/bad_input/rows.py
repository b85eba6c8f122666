"""Groups that no scheduler can take as they are, and what the user reads about each: one row for each kind of mistake.

The rows are tried from files and on a server that schedules, under both policy languages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Obj = dict[str, Any]
#: Policy language -> the scheduler's name, and its queue.
SCHEDULERS = {"volcano": "volcano", "kai": "kai-scheduler"}
#: Policy language -> the annotation in which a pod names its PodGroup.
GROUP_ANNOTATIONS = {"volcano": "scheduling.k8s.io/group-name", "kai": "pod-group-name"}
_NATIVE = "scheduling.k8s.io"
_FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


class Row(NamedTuple):
    """A mistake. ``objects``: what is wrong, and its pods, by policy language. ``message``: the text about it, in
    files and on a server; by policy language if each has its own text. ``bound``: pods that start in spite of it.
    ``only``: the language that has the kind.
    """

    name: str
    objects: Callable[[str], list[Obj]]
    message: str | dict[str, str]
    bound: int = 0
    only: str = ""


def queue(dialect: str) -> Obj:
    """Return the queue in which all pods are."""
    if dialect == "kai":
        spec = {"resources": {"cpu": _FREE, "memory": _FREE, "gpu": _FREE}}
        return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "default"}, "spec": spec}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}


def cluster(dialect: str) -> list[Obj]:
    """Return a queue and a node with room for all."""
    status = {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}
    return [queue(dialect), {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status}]


def native(kind: str, name: str, minimum: int, parent: str = "", version: str = "v1alpha3", **spec: Any) -> Obj:
    """Return a PodGroup or CompositePodGroup of Kubernetes."""
    field = "minCount" if kind == "PodGroup" else "minGroupCount"
    spec = {"schedulingPolicy": {"gang": {field: minimum}}, **spec}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    metadata = {"name": name, "annotations": {"scheduling.volcano.sh/queue-name": "default"}}
    return {"apiVersion": f"{_NATIVE}/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def pods(dialect: str, count: int, group: str = "g", **annotations: str) -> list[Obj]:
    """Return pods of a group of Kubernetes, "" for none."""
    spec = {
        "schedulerName": SCHEDULERS[dialect],
        **({"schedulingGroup": {"podGroupName": group}} if group else {}),
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
    }
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i}", "annotations": annotations}, "spec": spec}
        for i in range(count)
    ]


def workload(group: str, minimum: int, **more: Any) -> Obj:
    """Return a Workload of v1alpha1 with one pod group, which is a gang."""
    metadata = {"name": "w", "annotations": {"scheduling.volcano.sh/queue-name": "default"}}
    groups = [{"name": group, "policy": {"gang": {"minCount": minimum, **more}}}]
    spec = {"podGroups": groups}
    return {"apiVersion": f"{_NATIVE}/v1alpha1", "kind": "Workload", "metadata": metadata, "spec": spec}


def in_workload(dialect: str, count: int, group: str = "") -> list[Obj]:
    """Return pods that name pod group g of a Workload. ``group``: the PodGroup that they name too, "" for none."""
    found = pods(dialect, count, group)
    for each in found:
        each["spec"] = {**each["spec"], "workloadRef": {"name": "w", "podGroup": "g"}}
    return found


def _config_map(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}


def _needing(name: str, dialect: str) -> list[Obj]:
    """Return pods of PodGroup g that take variables from a ConfigMap."""
    found = pods(dialect, 2)
    for each in found:
        container = {**each["spec"]["containers"][0], "envFrom": [{"configMapRef": {"name": name}}]}
        each["spec"] = {**each["spec"], "containers": [container]}
    return found


def _circle(dialect: str) -> list[Obj]:
    above = [native("CompositePodGroup", "a", 1, "b"), native("CompositePodGroup", "b", 1, "a")]
    return [*above, native("PodGroup", "g", 2, "a"), *pods(dialect, 2)]


def _deep(dialect: str) -> list[Obj]:
    above = [native("CompositePodGroup", f"c{i}", 1, f"c{i - 1}" if i else "") for i in range(5)]
    return [*above, native("PodGroup", "g", 2, "c4"), *pods(dialect, 2)]


def _sub_groups(dialect: str) -> list[Obj]:
    return _kai_group(
        dialect, [{"name": "a", "parent": "b", "minMember": 1}, {"name": "b", "parent": "a", "minMember": 1}]
    )


def _kai_group(dialect: str, subs: list[Obj], of: str = "") -> list[Obj]:
    """Return a PodGroup of KAI with sub-groups, and two pods. ``of``: their sub-group, "" for none."""
    spec = {"queue": "default", "minMember": 2, "subGroups": subs}
    group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}
    members = pods(dialect, 2, "", **{GROUP_ANNOTATIONS[dialect]: "g"})
    for each in members:
        each["metadata"]["labels"] = {"kai.scheduler/subgroup-name": of} if of else {}
    return [group, *members]


_NO_POD_GROUP = "pod group g of Workload {namespace}/w, which spec.workloadRef names, does not exist in " + (
    f"{_NATIVE}/v1alpha1"
)
ROWS = (
    Row(
        "a ConfigMap that is not there",
        lambda dialect: [_config_map("other"), native("PodGroup", "g", 2), *_needing("gone", dialect)],
        "Missing required configmaps: [gone]",
        only="kai",
    ),
    Row(
        "a name of a sub-group that is no DNS label",
        lambda dialect: _kai_group(dialect, [{"name": "Work_1", "minMember": 2}], "work_1"),
        'spec.subGroups[0].name: found "Work_1", wanted a DNS label (lower-case letters, digits and -); it counts as'
        ' "work_1"',
        bound=2,
        only="kai",
    ),
    Row(
        "groups that name each other",
        _circle,
        "spec.parentCompositePodGroupName: found a circle of parents (a -> b -> a), wanted a tree",
    ),
    Row(
        "more than four levels",
        _deep,
        "spec.parentCompositePodGroupName: found more than 4 levels of groups, wanted at most 4",
    ),
    Row(
        "sub-groups that name each other",
        _sub_groups,
        'spec.subGroups[0]: found parents of "a" that go round in a circle, wanted a tree',
        only="kai",
    ),
    Row(
        "a minimum above the members",
        lambda dialect: [native("PodGroup", "g", 4), *pods(dialect, 3)],
        {"volcano": "3 Pending, 4 minAvailable", "kai": "3 of the 4 pods of minMember exist"},
    ),
    Row(
        "an unknown key",
        lambda dialect: [native("PodGroup", "g", 2, schedulingConstrains={"topology": []}), *pods(dialect, 2)],
        "schedulingConstrains",
        bound=2,
    ),
    Row(
        "both forms on one pod",
        lambda dialect: [native("PodGroup", "g", 2), *pods(dialect, 2, **{GROUP_ANNOTATIONS[dialect]: "other"})],
        "spec.schedulingGroup and an annotation name different groups; the annotation (other) is ignored",
        bound=2,
    ),
    Row("a group that is not there", lambda dialect: pods(dialect, 2), "g, which spec.schedulingGroup names, does not"),
    Row(
        "a version that is not known",
        lambda dialect: [native("PodGroup", "g", 2, version="v2"), *pods(dialect, 2)],
        "does not exist in a version of scheduling.k8s.io that is read (v1, v1beta1, v1alpha3, v1alpha2)",
    ),
    Row(
        "a Workload that is not there",
        lambda dialect: in_workload(dialect, 2),
        _NO_POD_GROUP,
    ),
    Row(
        "a pod group that its Workload does not have",
        lambda dialect: [workload("other", 2), *in_workload(dialect, 2)],
        _NO_POD_GROUP,
    ),
    Row(
        "a minimum of a Workload above the members",
        lambda dialect: [workload("g", 4), *in_workload(dialect, 3)],
        {"volcano": "3 Pending, 4 minAvailable", "kai": "3 of the 4 pods of minMember exist"},
    ),
    Row(
        "an unknown key of a Workload",
        lambda dialect: [workload("g", 2, minCont=2), *in_workload(dialect, 2)],
        "minCont",
        bound=2,
    ),
    Row(
        "both fields on one pod",
        lambda dialect: [native("PodGroup", "g", 2), workload("g", 3), *in_workload(dialect, 2, "g")],
        "spec.schedulingGroup and spec.workloadRef are both given; spec.workloadRef (w, pod group g) is ignored",
        bound=2,
    ),
    Row(
        "a group above that is not there",
        lambda dialect: [native("PodGroup", "g", 2, "above"), *pods(dialect, 2)],
        'spec.parentCompositePodGroupName: found "above", wanted the name of an existing CompositePodGroup',
    ),
)


def message_of(row: Row, dialect: str, namespace: str = "default") -> str:
    """Return what is said about a mistake under a policy language."""
    message = row.message if isinstance(row.message, str) else row.message[dialect]
    return message.replace("{namespace}", namespace)


def rows_of(dialect: str) -> list[Row]:
    """Return the rows whose objects exist under a policy language."""
    return [row for row in ROWS if row.only in ("", dialect)]
