"""Whatever one tenant writes is reported in words, costs a bounded amount of work, and the others are served."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pumice.runtime.one_cycle import schedule_once
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.problems.problem import Severity
from pumice.sim.run import simulate
from pumice.sim.scenes import manifests
from pumice.sim.scenes.inputs import read_inputs
from pumice.sim.settings import SimSettings
from pumice.volcano.table import volcano_registry
from tests.simulation.scenes import POLICIES

Raw = dict[str, Any]
POLICY = policy_of(POLICIES["topology"], volcano_registry())
VOLCANO, JOBS, TOPOLOGY = (f"{group}.volcano.sh" for group in ("scheduling", "batch", "topology"))
INT_MAX = 2**31 - 1
ENORMOUS = 10**18
NOWHERE = "error: Pod default/x: PodGroup default/bad does not exist"


def raw(api: str, kind: str, name: str, annotations: Any = None, **rest: Any) -> Raw:
    metadata = {"name": name, "uid": name, "annotations": annotations or {}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def node(name: str, **room: str) -> Raw:
    return raw("v1", "Node", name, status={"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "20", **room}})


def queue(name: str, annotations: Any = None, **spec: Any) -> Raw:
    return raw(f"{VOLCANO}/v1beta1", "Queue", name, annotations, spec={"weight": 1, **spec})


def group(name: str, annotations: Any = None, **spec: Any) -> Raw:
    return raw(f"{VOLCANO}/v1beta1", "PodGroup", name, annotations, spec={"queue": "q", "minMember": 1, **spec})


def pod(name: str, of: str, requests: Any = None, **spec: Any) -> Raw:
    containers = [{"resources": {"requests": {"cpu": "1"} if requests is None else requests}}]
    note = {"scheduling.k8s.io/group-name": of}
    return raw("v1", "Pod", name, note, spec={"schedulerName": "volcano", "containers": containers, **spec})


def job(name: str, **task: Any) -> Raw:
    tasks = [{"name": "t", "replicas": 1, "template": {"spec": {"containers": [{}]}}, **task}]
    spec = {"queue": "q", "minAvailable": 1, "schedulerName": "volcano", "tasks": tasks}
    return raw(f"{JOBS}/v1alpha1", "Job", name, spec=spec)


def hypernode(name: str, tier: int, **selector: Any) -> Raw:
    kind = "HyperNode" if "exactMatch" in selector else "Node"
    return raw(
        f"{TOPOLOGY}/v1alpha1",
        "HyperNode",
        name,
        spec={"tier": tier, "members": [{"type": kind, "selector": selector}]},
    )


def spread(**terms: Any) -> list[Raw]:
    return [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, **terms}]


GOOD = [node("n0"), queue("q"), group("good", annotations={"pumice.dev/duration": "9s"}), pod("good-0", "good")]


def gang(**spec: Any) -> list[Raw]:
    return [group("bad", **spec), pod("x", "bad")]


@pytest.fixture
def reports(tmp_path: Path) -> Any:
    """Reads what is good with what is bad, sees that what is good is served, and gives the problems."""

    def read_and_serve(bad: list[Raw]) -> list[str]:
        path = tmp_path / "a.yaml"
        path.write_text("\n---\n".join(json.dumps(obj) for obj in [*bad, *GOOD]))
        scene = read_inputs([str(path)]).scene
        parts = [work.expand(0.0) for work in scene.works]
        answer = schedule_once([*scene.objects, *(obj for g, pods in parts for obj in (g, *pods))], POLICY, 0.0)
        assert answer.binds["default/good-0"] == "n0"
        assert "default/good" not in {
            waiting.job for waiting in simulate(scene, POLICY, SimSettings(check_laws=True)).waiting
        }
        return [str(problem).replace(f"{path} ", "") for problem in scene.problems]

    return read_and_serve


@pytest.mark.parametrize(
    ("bad", "problems"),
    [
        pytest.param(
            [job("j", replicas=10**9)],
            ["error: document 1: Job j: spec.tasks[0].replicas: found 1000000000, wanted at most 100000 pods"],
            id="replicas",
        ),
        pytest.param(
            gang(minMember=ENORMOUS),
            [f"error: document 1: PodGroup bad: spec.minMember: found {ENORMOUS}"],
            id="a minMember beyond integers",
        ),
        pytest.param(
            gang(minMember=INT_MAX),
            [f"warning: PodGroup default/bad: minMember is {INT_MAX}, but it has 1 pods"],
            id="a minMember beyond the pods",
        ),
        pytest.param(gang(minMember=-1), ["error: document 1: PodGroup bad: spec.minMember: found -1"], id="minus one"),
        pytest.param(gang(minTaskMember={f"r{i}": INT_MAX for i in range(5000)}), [], id="many roles that nobody has"),
        pytest.param(gang(queue="que"), ["error: PodGroup default/bad: Queue que does not exist"], id="no such queue"),
        pytest.param([pod("x", "bad")], [NOWHERE], id="no such PodGroup"),
        pytest.param(
            [group("bad"), pod("x", "bad", {"cpu": str(ENORMOUS)})],
            ["error: document 2: Pod x: spec.containers[0].resources.requests.cpu: found"],
            id="a request beyond integers",
        ),
        pytest.param(
            [group("bad"), pod("x", "bad", {"cpu": "-1"})],
            ["error: document 2: Pod x: spec.containers[0].resources.requests.cpu: found"],
            id="a negative request",
        ),
        pytest.param([group("bad"), pod("x", "bad", {f"x.io/r{i}": "1" for i in range(100)})], [], id="many resources"),
        pytest.param(
            [group("bad"), pod("x", "bad", {f"x.io/r{i}": "1" for i in range(5000)})],
            ["error: document 2: Pod x: spec.containers[0].resources.requests: found 5000 resources, wanted at most"],
            id="more resources than a cluster has",
        ),
        pytest.param(
            gang(minResources={f"x.io/r{i}": "1" for i in range(5000)}),
            ["error: document 1: PodGroup bad: spec.minResources: found 5000 resources, wanted at most 128"],
            id="a minimum of more resources than a cluster has",
        ),
        pytest.param(
            [queue("wide", capability={f"x.io/r{i}": "1" for i in range(5000)})],
            ["error: document 1: Queue wide: spec.capability: found 5000 resources, wanted at most 128"],
            id="a queue of more resources than a cluster has",
        ),
        pytest.param(
            [group("bad"), pod("x", "bad", {"kubernetes.io/" + "x" * 400: "1"})],
            ["error: document 2: Pod x: spec.containers[0].resources.requests.kubernetes.io/xxx"],
            id="a resource with a very long name",
        ),
        pytest.param(
            [node("n1", cpu=str(ENORMOUS))],
            ["error: document 1: Node n1: status.allocatable.cpu: found"],
            id="an enormous node",
        ),
        pytest.param(
            [node("n1", cpu="-4")], ["error: document 1: Node n1: status.allocatable.cpu: found"], id="a negative node"
        ),
        pytest.param(
            [queue("a", parent="b"), queue("b", parent="a"), group("bad", queue="a"), pod("x", "bad")],
            ["note: Queue root: does not exist and was added", "error: Queue a: parents form a cycle: a -> b -> a"],
            id="queues in a circle",
        ),
        pytest.param(
            [queue("deep", {"volcano.sh/hierarchy": "/".join("x" * 999), "volcano.sh/hierarchy-weights": "1"})],
            [],
            id="a deep hierarchy",
        ),
        pytest.param(
            [hypernode("a", 1, exactMatch={"name": "b"}), hypernode("b", 2, exactMatch={"name": "a"})],
            ["error: HyperNode a: members form a cycle: a -> b -> a", "warning: HyperNode a: is of tier 1"],
            id="HyperNodes in a circle",
        ),
        pytest.param([hypernode("a", 9, regexMatch={"pattern": "(n+)+$"})], [], id="a slow pattern"),
        pytest.param(
            gang(networkTopology={"mode": "hard", "highestTierAllowed": INT_MAX}), [], id="a tier that is not there"
        ),
        pytest.param(
            gang(subGroupPolicy=[{"name": "s", "subGroupSize": INT_MAX, "minSubGroups": INT_MAX}]),
            [],
            id="enormous sub-groups",
        ),
        pytest.param(
            [group("bad"), pod("x", "bad", topologySpreadConstraints=spread(minDomains=INT_MAX, maxSkew=INT_MAX))],
            [],
            id="enormous spread",
        ),
        pytest.param(
            [group("bad", {"sla-waiting-time": "9" * 30 + "h"}), pod("x", "bad")],
            ["warning: PodGroup default/bad: annotation sla-waiting-time: found '99999999999999999999"],
            id="a waiting time beyond all time",
        ),
        pytest.param(
            [group("bad", {"pumice.dev/duration": "-5s"}), pod("x", "bad")],
            ["error: PodGroup default/bad: annotation pumice.dev/duration:"],
            id="a negative duration",
        ),
    ],
)
def test_the_others_are_served(reports: Any, bad: list[Raw], problems: list[str]) -> None:
    found = reports(bad)
    assert len(found) == len(problems), found
    for line, start in zip(found, problems, strict=True):
        assert line.startswith(start)
        assert len(line) < 600


def test_many_large_jobs_make_a_bounded_number_of_pods(reports: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "MADE_PODS_MAX", 50)
    large = [job(f"large-{i}", replicas=40) for i in range(5)]
    assert reports([*large, job("small", replicas=8)]) == [
        "error: Job default/large-1, default/large-2, default/large-3 and 1 more: ignored: all jobs create 208 pods, "
        "wanted at most 50"
    ]


# -- what cannot be read still counts

NO_NUMBER = {"key": "size", "operator": "Gt", "values": ["abc"]}


def preferred(expression: Raw) -> Raw:
    term = {"weight": 1, "preference": {"matchExpressions": [expression]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def bound(name: str, cpu: str, node_name: str = "n0", **spec: Any) -> Raw:
    found = pod(name, "good", {"cpu": cpu}, nodeName=node_name, **spec)
    return found | {"status": {"phase": "Running"}}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"affinity": preferred(NO_NUMBER)}, id="a preferred affinity"),
        pytest.param({"tolerations": [{"key": "a", "operator": "Perhaps"}]}, id="an operator of a toleration"),
        pytest.param({"topologySpreadConstraints": [{"maxSkew": "1"}]}, id="a spread"),
        pytest.param({"nodeSelector": {"a": 5}}, id="a selector"),
        pytest.param({"priority": 2**40}, id="a priority"),
    ],
)
def test_a_running_pod_that_cannot_be_read_counts(spec: Raw) -> None:
    """Its node is full: nothing more is put there."""
    full = [node("n0"), bound("there", "8", **spec), queue("q"), group("good"), pod("good-0", "good")]
    answer, problems = decided(full)
    assert answer == {}
    (problem,) = problems
    assert problem.startswith("error: document 2: Pod there: spec.")
    assert problem.endswith("; it still counts")


def test_why_what_cannot_be_read_waits_is_said() -> None:
    bad_pod = pod("x", "good", tolerations=[{"operator": "Perhaps"}])
    lost = [group("lost", networkTopology=5), pod("y", "lost")]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.yaml"
        path.write_text("\n---\n".join(json.dumps(obj) for obj in [*GOOD, group("good"), bad_pod, *lost]))
        scene = read_inputs([str(path)]).scene
        parts = [work.expand(0.0) for work in scene.works]
        waiting = schedule_once(
            [*scene.objects, *(obj for g, ps in parts for obj in (g, *ps))], POLICY, 0.0
        ).unscheduled
    assert waiting == {
        "default/x": 'cannot be read: spec.tolerations[0].operator: found "Perhaps", wanted one of Equal, Exists',
        "default/y": "PodGroup default/lost cannot be read: spec.networkTopology: found 5, wanted an object",
    }


def decided(objects: list[Raw]) -> tuple[dict[str, str], list[str]]:
    """What one cycle binds, and what was wrong."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.yaml"
        path.write_text("\n---\n".join(json.dumps(obj) for obj in objects))
        scene = read_inputs([str(path)]).scene
        parts = [work.expand(0.0) for work in scene.works]
        answer = schedule_once([*scene.objects, *(obj for g, pods in parts for obj in (g, *pods))], POLICY, 0.0)
        reports = [str(each).replace(f"{path} ", "") for each in scene.problems if each.severity is Severity.ERROR]
        return answer.binds, reports


def test_the_host_ports_of_a_running_pod_that_cannot_be_read_count() -> None:
    ports = [{"ports": [{"containerPort": 80, "hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}]
    there = bound("there", "1", containers=ports, tolerations=[{"operator": "Perhaps"}])
    binds, _ = decided(
        [node("n0"), there, queue("q"), group("good"), pod("a", "good", containers=ports), pod("b", "good")]
    )
    assert binds == {"default/b": "n0"}


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        pytest.param(
            [pod("good-0", "good", tolerations=[{"operator": "Perhaps"}])], "Pod good-0: spec.tolerations", id="the pod"
        ),
        pytest.param(
            [pod("good-0", "good"), group("good", networkTopology={"mode": "perhaps"})],
            "PodGroup good: spec.networkTopology.mode",
            id="its group",
        ),
        pytest.param(
            [pod("good-0", "good"), queue("q", capability={"cpu": "much"})],
            "Queue q: spec.capability.cpu",
            id="its queue",
        ),
        pytest.param(
            [
                pod("good-0", "good"),
                node("n0") | {"spec": {"taints": [{"key": "a", "effect": "Perhaps"}]}},
            ],
            "Node n0: spec.taints[0].effect",
            id="the node",
        ),
    ],
)
def test_what_cannot_be_read_allows_nothing(bad: list[Raw], text: str) -> None:
    given = {(obj["kind"], obj["metadata"]["name"]): obj for obj in [node("n0"), queue("q"), group("good"), *bad]}
    binds, problems = decided(list(given.values()))
    assert binds == {}
    (problem,) = problems
    assert text in problem


def test_a_gang_whose_topology_cannot_be_read_is_not_placed_without_one() -> None:
    """The HyperNode in which all of it would fit holds no node any more."""
    nodes = [node(f"n{i}", cpu="1") for i in range(2)]
    member = [{"type": "Node", "selector": {"exactMatch": {"name": f"n{i}"}}} for i in range(2)]
    hard = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}, "minMember": 2}
    objects = [*nodes, queue("q"), group("good", **hard), pod("good-0", "good"), pod("good-1", "good")]
    near = raw(f"{TOPOLOGY}/v1alpha1", "HyperNode", "near", spec={"tier": 1, "members": member})
    assert len(decided([*objects, near])[0]) == 2
    near["spec"]["members"] = [*member, {"type": "Perhaps"}]
    binds, problems = decided([*objects, near])
    assert binds == {}
    assert problems[0].endswith("it is not used for placement")
