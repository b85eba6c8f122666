"""Which things have to be looked at when an object changes, and what a lost pod leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.kube.api.kinds import NAMESPACES, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES, Kind
from pumice.kube.controllers.kinds import COMMANDS, CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES, JOBS, PlainCodec
from pumice.kube.controllers.owner_kinds import REPLICA_SETS
from pumice.kube.controllers.view import Task, View
from pumice.runtime.controllers.writes import JOB_API, ref_of

GROUP = "scheduling.k8s.io/group-name"
NOW = 1_700_000_000.0


class Noting:
    """A view of all controllers, or some, and what it noted since the last look."""

    def __init__(self, *controllers: str) -> None:
        self.noted: list[Task] = []
        self.view = View(controllers or ("podgroup", "queue", "job"), "default", self.noted.append)

    def put(self, kind: Kind, name: str, **fields: Any) -> dict[str, Any]:
        metadata = {"name": name, "uid": f"uid-{name}", **fields.pop("metadata", {})}
        if kind.namespaced:
            metadata["namespace"] = "ns"
        obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}
        self.view.put(kind, obj)
        return obj

    def taken(self) -> set[tuple[str, str]]:
        found = {tuple(task) for task in self.noted}
        self.noted.clear()
        return found  # type: ignore[return-value]  # a Task is two words


def owned_by(api_version: str, kind: str, name: str) -> dict[str, Any]:
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    return {"ownerReferences": [owner]}


def test_a_group_without_queue_counts_in_the_default_one() -> None:
    noted: list[Task] = []
    view = View(("queue",), "main", noted.append)
    view.put(POD_GROUPS, {"metadata": {"name": "g", "namespace": "ns", "uid": "u"}, "spec": {"minMember": 1}})
    assert noted == [Task("queue", "main")]
    assert list(view.groups_in["main"]) == ["ns/g"]


@pytest.mark.parametrize(
    ("kind", "fields", "wanted"),
    [
        pytest.param(PODS, {}, {("pod", "ns/x")}, id="a pod without a group"),
        pytest.param(PODS, {"metadata": {"annotations": {GROUP: ""}}}, {("pod", "ns/x")}, id="a group without a name"),
        pytest.param(PODS, {"metadata": {"annotations": {GROUP: "g"}}}, set(), id="a pod with a group"),
        pytest.param(
            PODS,
            {"metadata": {"annotations": {GROUP: "g"}, **owned_by(JOB_API, "Job", "j")}},
            {("job", "ns/j")},
            id="a pod of a job",
        ),
        pytest.param(
            PODS,
            {"metadata": {"annotations": {GROUP: "g"}, **owned_by("batch/v1", "Job", "j")}},
            set(),
            id="a pod of another kind of job",
        ),
        pytest.param(POD_GROUPS, {"spec": {"queue": "q"}}, {("queue", "q")}, id="a group"),
        pytest.param(
            POD_GROUPS,
            {"metadata": owned_by(JOB_API, "Job", "j")},
            {("queue", "default"), ("job", "ns/j")},
            id="of a job",
        ),
        pytest.param(JOBS, {}, {("job", "ns/x")}, id="a job"),
        pytest.param(REPLICA_SETS, {}, {("set", "replicasets/ns/x")}, id="a set"),
        pytest.param(PRIORITY_CLASSES, {"value": 1}, set(), id="a priority class"),
    ],
)
def test_whom_a_change_concerns(kind: Kind, fields: dict[str, Any], wanted: set[tuple[str, str]]) -> None:
    it = Noting()
    it.put(kind, "x", **fields)
    assert it.taken() == wanted


def test_controllers_that_are_off_are_not_asked() -> None:
    it = Noting("job")
    it.put(PODS, "p")
    it.put(POD_GROUPS, "g", metadata=owned_by(JOB_API, "Job", "j"))
    assert it.taken() == {("job", "ns/j")}


def test_a_group_that_changes_queues_concerns_both() -> None:
    it = Noting()
    it.put(POD_GROUPS, "g", spec={"queue": "a"})
    it.taken()
    it.put(POD_GROUPS, "g", spec={"queue": "b"})
    assert it.taken() == {("queue", "a"), ("queue", "b")}
    assert (len(it.view.groups_in.get("a", ())), len(it.view.groups_in["b"])) == (0, 1)


def test_children_follow_their_queue() -> None:
    it = Noting()
    it.put(QUEUES, "parent")
    it.put(QUEUES, "child", spec={"parent": "parent"})
    it.taken()
    it.put(QUEUES, "parent", status={"state": "Closed"})
    assert it.taken() == {("queue", "parent"), ("queue", "child")}


def test_a_queue_that_must_exist_is_made_again() -> None:
    it = Noting()
    it.put(QUEUES, "default")
    it.taken()
    it.view.drop(QUEUES, "default", NOW)
    assert ("queues", "") in it.taken()


def test_a_command_finds_its_job_whichever_comes_first() -> None:
    it = Noting()
    target = {"apiVersion": JOB_API, "kind": "Job", "name": "j", "uid": "uid-j"}
    it.put(COMMANDS, "c", target=target, action="AbortJob")
    assert it.taken() == set()
    it.put(JOBS, "j")
    assert it.taken() == {("job", "ns/j")} and list(it.view.commands_for["uid-j"]) == ["ns/c"]
    it.put(COMMANDS, "d", target=target, action="AbortJob")
    assert it.taken() == {("job", "ns/j")}


@pytest.mark.parametrize("uid", [{}, {"uid": ""}], ids=["none", "empty"])
def test_a_command_without_uid_finds_its_target_by_name(uid: dict[str, str]) -> None:
    it = Noting()
    it.put(JOBS, "j")
    it.put(JOBS, "other")
    it.put(QUEUES, "q")
    it.taken()
    it.put(COMMANDS, "c", target={"apiVersion": JOB_API, "kind": "Job", "name": "j", **uid}, action="AbortJob")
    assert it.taken() == {("job", "ns/j")}
    it.put(COMMANDS, "d", target={"kind": "Queue", "name": "q", **uid}, action="CloseQueue")
    assert it.taken() == {("queue", "q")}
    found = {
        (kind, key): [each["metadata"]["name"] for each in it.view.commands_to(word, it.view.objects[kind][key])]
        for kind, word, key in ((JOBS, "Job", "ns/j"), (JOBS, "Job", "ns/other"), (QUEUES, "Queue", "q"))
    }
    assert list(found.values()) == [["c"], [], ["d"]]
    it.view.drop(COMMANDS, "ns/c", NOW)
    assert it.view.commands_to("Job", it.view.objects[JOBS]["ns/j"]) == []


def test_a_lost_pod_is_an_event_of_its_job() -> None:
    it = Noting()
    it.put(JOBS, "j")
    it.put(PODS, "p", metadata=owned_by(JOB_API, "Job", "j"))
    it.view.drop(PODS, "ns/p", NOW)
    (request,) = it.view.take_requests("ns/j")
    assert (request.event, request.pod, request.since) == ("PodEvicted", "p", NOW)
    assert it.view.take_requests("ns/j") == () and it.view.pods_of == {}


def test_a_pod_that_was_marked_is_not_lost_even_before_the_watch_says_so() -> None:
    it = Noting()
    it.put(JOBS, "j")
    pod = it.put(PODS, "p", metadata=owned_by(JOB_API, "Job", "j"))
    mark = {"metadata": {"annotations": {"volcano.sh/controller-out-of-sync": "true"}}}
    it.view.assume(ref_of({**pod, "metadata": {**pod["metadata"], "uid": "another"}}), mark)
    assert "annotations" not in it.view.objects[PODS]["ns/p"]["metadata"]
    it.view.assume(ref_of(pod), mark)
    it.view.drop(PODS, "ns/p", NOW)
    assert it.view.take_requests("ns/j") == ()


def test_a_namespace_may_name_a_queue() -> None:
    noting = Noting()
    assert noting.view.namespace_queue("team") == ""
    noting.put(NAMESPACES, "team", metadata={"annotations": {"scheduling.volcano.sh/queue-name": "q"}})
    assert noting.view.namespace_queue("team") == "q"


def test_pods_whose_group_goes_are_looked_at_again() -> None:
    it = Noting()
    it.put(PODS, "p", metadata=owned_by("apps/v1", "ReplicaSet", "r"))
    it.put(POD_GROUPS, "podgroup-uid-r")
    it.taken()
    it.view.drop(POD_GROUPS, "ns/podgroup-uid-r", NOW)
    assert ("pod", "ns/p") in it.taken()


# -- what is kept of an object


def test_of_pods_only_what_controllers_read_is_kept() -> None:
    raw = b"""{"metadata": {"name": "p", "namespace": "ns", "managedFields": [1], "annotations": {%s}},
      "spec": {"schedulerName": "volcano", "containers": [], "dnsPolicy": "x"}, "status": {"phase": "Pending"}}"""
    bare = PlainCodec(PODS).read(raw % b"")
    assert bare.key == "ns/p" and bare.value["spec"] == {"schedulerName": "volcano", "containers": []}  # type: ignore[index]
    assert "managedFields" not in bare.value["metadata"] and bare.value["apiVersion"] == "v1"  # type: ignore[index]
    grouped = PlainCodec(PODS).read(raw % f'"{GROUP}": "g"'.encode())
    assert "spec" not in grouped.value  # type: ignore[operator]


@pytest.mark.parametrize("raw", [b"{}", b"[]", b'{"metadata": {"name": "x"}, "spec": 3}', b"\xff"])
def test_what_cannot_be_read_is_named(raw: bytes) -> None:
    from pumice.kube.api.codec import BadObject

    with pytest.raises(BadObject):
        PlainCodec(PODS).read(raw)


def test_who_made_a_job_hears_of_it() -> None:
    noting = Noting("cronjob", "jobflow")
    for kind, name in ((CRON_JOBS, "c"), (JOB_FLOWS, "f"), (JOB_FLOWS, "g"), (JOB_TEMPLATES, "t")):
        noting.put(kind, name)
    assert noting.taken() == {("cronjob", "ns/c"), ("flow", "ns/f"), ("flow", "ns/g"), ("template", "ns/t")}
    noting.put(JOBS, "c-1", metadata=owned_by(CRON_JOBS.api_version, "CronJob", "c"))
    assert noting.taken() == {("cronjob", "ns/c")}
    of_template = {"annotations": {"volcano.sh/createdByJobTemplate": "ns.t"}}
    noting.put(JOBS, "f-t", metadata={**owned_by(JOB_FLOWS.api_version, "JobFlow", "f"), **of_template})
    assert noting.taken() == {("flow", "ns/f"), ("template", "ns/t")}
    assert list(noting.view.jobs_of["uid-f"]) == list(noting.view.made_of["ns/t"]) == ["ns/f-t"]
    noting.view.drop(JOBS, "ns/f-t", NOW)
    assert noting.taken() == {("flow", "ns/f"), ("template", "ns/t")}
    assert not noting.view.jobs_of["uid-f"] and not noting.view.made_of["ns/t"]


def test_flows_of_its_namespace_hear_of_a_template() -> None:
    noting = Noting("jobflow")
    noting.put(JOB_FLOWS, "f")
    noting.taken()
    noting.put(JOB_TEMPLATES, "t")
    assert noting.taken() == {("flow", "ns/f"), ("template", "ns/t")}
    assert list(noting.view.templates_in("ns")) == ["t"] and noting.view.templates_in("other") == {}
