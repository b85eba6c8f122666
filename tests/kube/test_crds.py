"""The CRDs of deploy/ on a real API server: they refuse and fill in what Volcano's webhooks do."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import HYPER_NODES, POD_GROUPS, QUEUES, Kind
from pumice.kube.controllers.kinds import COMMANDS, JOBS
from tests.kube.objects import CRDS

Obj = dict[str, Any]
TEMPLATE: Obj = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
TOPOLOGY = {"highestTierAllowed": 1, "highestTierName": "rack"}
TWICE = "give one of them"
NODE_CALLED = {"exactMatch": {"name": "n"}}


def custom(kind: Kind, namespace: str, **body: Any) -> tuple[str, Obj]:
    path = kind.namespace_path(namespace) if kind.namespaced else kind.list_path
    name = f"x-{namespace}"
    return path, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, **body}


def job(**spec: Any) -> Obj:
    return {"spec": {"tasks": [task()], **spec}}


def task(**more: Any) -> Obj:
    return {"name": "a", "template": TEMPLATE, **more}


def parts(**policy: int) -> Obj:
    """One task of four pods in parts."""
    return job(tasks=[task(replicas=4, partitionPolicy=policy)])


def policies(*each: Obj) -> Obj:
    return job(policies=list(each))


def members(selector: Obj, kind: str = "Node") -> Obj:
    return {"spec": {"tier": 1, "members": [{"type": kind, "selector": selector}]}}


@pytest.mark.usefixtures("crds")
@pytest.mark.parametrize(
    ("kind", "body", "word"),
    [
        pytest.param(POD_GROUPS, {"spec": {"minMember": -1}}, "minMember", id="a gang below nothing"),
        pytest.param(POD_GROUPS, {"spec": {"networkTopology": TOPOLOGY}}, TWICE, id="a tier twice"),
        pytest.param(POD_GROUPS, {"spec": {"networkTopology": {"mode": "firm"}}}, "firm", id="no such mode"),
        pytest.param(
            POD_GROUPS, {"spec": {"subGroupPolicy": [{"networkTopology": TOPOLOGY}]}}, TWICE, id="a part's tier twice"
        ),
        pytest.param(POD_GROUPS, {"spec": {"subGroupPolicy": [{"subGroupSize": 0}]}}, "subGroupSize", id="empty parts"),
        pytest.param(POD_GROUPS, {"spec": {"minResources": {"cpu": "many"}}}, "minResources", id="no quantity"),
        pytest.param(POD_GROUPS, {"spec": {"queue": "No Name"}}, "queue", id="no name of a queue"),
        pytest.param(QUEUES, {"spec": {"weight": 0}}, "weight", id="a queue without weight"),
        pytest.param(QUEUES, {"spec": {"weight": 65536}}, "weight", id="too much weight"),
        pytest.param(QUEUES, {"spec": {"guarantee": {"resource": {"cpu": 1}}}}, "deserved", id="guaranteed only"),
        pytest.param(
            QUEUES,
            {"spec": {"guarantee": {"resource": {"memory": "2Gi"}}, "deserved": {"memory": "2047Mi"}}},
            "at least as much of it in deserved",
            id="guaranteed more than deserved",
        ),
        pytest.param(
            QUEUES,
            {"spec": {"deserved": {"cpu": "1001m"}, "capability": {"cpu": 1}}},
            "deserved is at most capability",
            id="deserved more than capability",
        ),
        pytest.param(HYPER_NODES, members(NODE_CALLED, "Rack"), "type", id="no such member"),
        pytest.param(HYPER_NODES, members({}), "must be set", id="a member nobody is"),
        pytest.param(
            HYPER_NODES, members({**NODE_CALLED, "regexMatch": {"pattern": "n"}}), "only one", id="selected twice"
        ),
        pytest.param(HYPER_NODES, members({"regexMatch": {"pattern": "("}}), "regular expression", id="no pattern"),
        pytest.param(HYPER_NODES, {"spec": {"members": []}}, "tier", id="no tier"),
        pytest.param(JOBS, job(tasks=[]), "tasks", id="a job of nothing"),
        pytest.param(JOBS, job(tasks=[task(), task()]), "task names are unique", id="two tasks of one name"),
        pytest.param(JOBS, job(minAvailable=2), "at most the replicas of all tasks", id="a minimum out of reach"),
        pytest.param(JOBS, job(queue="root"), "below root", id="the root queue"),
        pytest.param(JOBS, job(minSuccess=0), "minSuccess", id="success for nothing"),
        pytest.param(JOBS, job(networkTopology=TOPOLOGY), TWICE, id="a job's tier twice"),
        pytest.param(
            JOBS, job(tasks=[task(minAvailable=2)]), "of a task is at most its replicas", id="a task's minimum"
        ),
        pytest.param(JOBS, parts(totalPartitions=3, partitionSize=1), "totalPartitions times", id="parts do not fit"),
        pytest.param(
            JOBS, parts(totalPartitions=2, partitionSize=2, minPartitions=3), "at most totalPartitions", id="more parts"
        ),
        pytest.param(
            JOBS,
            job(
                tasks=[
                    task(
                        replicas=4,
                        minAvailable=3,
                        partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1},
                    )
                ]
            ),
            "minPartitions times partitionSize",
            id="a minimum of half a part",
        ),
        pytest.param(JOBS, policies({"action": "Explode", "event": "*"}), "Explode", id="no such action"),
        pytest.param(JOBS, policies({"action": "AbortJob", "event": "Boredom"}), "Boredom", id="no such event"),
        pytest.param(JOBS, policies({"action": "AbortJob"}), "about events", id="a policy about nothing"),
        pytest.param(
            JOBS,
            policies({"action": "AbortJob", "event": "PodFailed", "exitCode": 1}),
            "about events",
            id="a policy about both",
        ),
        pytest.param(JOBS, policies({"action": "AbortJob", "exitCode": 0}), "is success", id="exit code 0"),
        pytest.param(
            JOBS,
            policies({"action": "AbortJob", "event": "PodFailed"}, {"action": "RestartJob", "event": "PodFailed"}),
            "an event has one policy",
            id="two policies for an event",
        ),
        pytest.param(
            JOBS,
            policies({"action": "AbortJob", "exitCode": 3}, {"action": "RestartJob", "exitCode": 3}),
            "an exit code has one policy",
            id="two policies for an exit code",
        ),
        pytest.param(JOBS, policies({"action": "AbortJob", "event": "PodPending"}), "timeout", id="pending for ever"),
        pytest.param(
            JOBS, job(volumes=[{"mountPath": "/d"}, {"mountPath": "/d"}]), "is used once", id="mounted on each other"
        ),
        pytest.param(
            JOBS,
            job(volumes=[{"mountPath": "/d", "volumeClaimName": "c", "volumeClaim": {"accessModes": []}}]),
            "not both",
            id="a claim twice",
        ),
        pytest.param(COMMANDS, {"action": "AbortJob", "target": {"kind": "Job"}}, "target", id="an order to nobody"),
    ],
)
async def test_crds_refuse(client: Client, namespace: str, kind: Kind, body: Obj, word: str) -> None:
    path, obj = custom(kind, namespace, **body)
    with pytest.raises(ApiError) as refused:
        await client.post(path, obj)
    assert refused.value.status == 422 and word in refused.value.message


@pytest.mark.usefixtures("crds")
async def test_a_queue_is_not_its_own_parent(client: Client, namespace: str) -> None:
    path, obj = custom(QUEUES, namespace, spec={"parent": f"x-{namespace}"})
    with pytest.raises(ApiError, match="its own parent"):
        await client.post(path, obj)


@pytest.mark.usefixtures("crds")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"queue": "other"}, "the queue of a job does not change", id="queue"),
        pytest.param({"schedulerName": "other"}, "the scheduler of a job does not change", id="scheduler"),
        pytest.param({"tasks": [task(), task(name="b")]}, "the number of tasks does not change", id="tasks"),
        pytest.param({"tasks": [task(replicas=3)], "minAvailable": 3}, "", id="its size may"),
        pytest.param({"priorityClassName": "low"}, "", id="its priority may"),
    ],
)
async def test_what_of_a_job_may_change(client: Client, namespace: str, change: Obj, said: str) -> None:
    path, obj = custom(JOBS, namespace, **job())
    await client.post(path, obj)
    patched = client.patch(f"{path}/{obj['metadata']['name']}", {"spec": change})
    if not said:
        await patched
        return
    with pytest.raises(ApiError) as refused:
        await patched
    assert refused.value.status == 422 and said in refused.value.message


@pytest.mark.usefixtures("crds")
@pytest.mark.parametrize("page", ["docs/guide/install.md", "examples/gang.yaml"])
async def test_jobs_that_are_shown_are_taken(client: Client, namespace: str, page: str) -> None:
    text = (CRDS.parents[1] / page).read_text()
    shown = re.search(r"^apiVersion: batch.*?(?=^```|\Z)", text, re.MULTILINE | re.DOTALL)
    assert shown is not None
    await client.post(JOBS.namespace_path(namespace), yaml.safe_load(shown[0]))


@pytest.mark.usefixtures("crds")
async def test_crds_keep_templates_and_fill_in_defaults(client: Client, namespace: str) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1}]}]}}
    path, obj = custom(JOBS, namespace, spec={"tasks": [{"name": "a", "template": template}]})
    await client.post(path, obj)
    spec = (await client.get(f"{path}/{obj['metadata']['name']}"))["spec"]
    assert (spec["queue"], spec["maxRetry"], spec["schedulerName"]) == ("default", 3, "volcano")
    assert spec["tasks"][0]["template"]["spec"] == template["spec"] and spec["tasks"][0]["replicas"] == 1
