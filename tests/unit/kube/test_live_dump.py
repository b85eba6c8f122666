"""A dump says the same as the store: read back it gives equal values, and a cycle on it, snapshot or manifests, decides
the same."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from pumice.cycle import run_cycle
from pumice.kube.api.encode_objects import object_of
from pumice.kube.scheduler.dump import SNAPSHOT_NAME, write_dump
from pumice.model.config_map import ConfigMap
from pumice.model.decisions import Bind, Evict
from pumice.model.events import Object, Seen
from pumice.model.manifest import Decoder
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass
from pumice.runtime.digest import Digest
from pumice.runtime.files.manifests import load_manifests
from pumice.runtime.loop import ListPlanner
from pumice.runtime.policy.conf import policy_of
from pumice.sim.scenes.inputs import read_inputs
from pumice.state.config_maps import with_config_maps
from pumice.state.group_trees import with_trees
from pumice.state.store import Store
from pumice.testing.build import node, pod, podgroup, pods, queue
from pumice.volcano.table import DEFAULT_CONF, volcano_registry
from tests.unit.cli.kit import run

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo"
NOW = 1_800_000_000.25

META = "metadata: {name: x, namespace: ns, uid: u, creationTimestamp: '2026-01-02T03:04:05Z', resourceVersion: '7'}"
POD = f"apiVersion: v1\nkind: Pod\n{META}\n"
TERM = "{topologyKey: zone, labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: k, operator: Exists}]}}"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("spec: {containers: [{name: a}]}", id="best effort"),
        pytest.param(
            "spec: {containers: [{name: a, image: i, resources: {requests: {cpu: 1500m, memory: 1Gi, gpu.io/x: 2}}}]}",
            id="scalars",
        ),
        pytest.param(
            "spec: {containers: [{name: a, resources: {requests: {cpu: 1}}},"
            " {name: b, resources: {requests: {memory: 1Gi}}}, {name: c}]}",
            id="requests here and there",
        ),
        pytest.param("spec: {containers: [{name: a, resources: {limits: {cpu: 2}, requests: {cpu: 1}}}]}", id="limits"),
        pytest.param(
            "spec: {containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi},"
            " requests: {cpu: 1, memory: 1Gi}}}]}",
            id="guaranteed",
        ),
        pytest.param("spec: {containers: [{name: a}], overhead: {cpu: 250m, memory: 1Mi}}", id="overhead"),
        pytest.param(
            "spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}],"
            " initContainers: [{name: b, resources: {requests: {cpu: 3, memory: 1Gi}}}]}",
            id="init container",
        ),
        pytest.param(
            "spec: {containers: [{name: a, image: i, ports: [{containerPort: 80, hostPort: 81, protocol: UDP}]}],"
            " nodeSelector: {disk: ssd}, tolerations: [{key: k, operator: Exists, effect: NoSchedule},"
            " {operator: Exists}],"
            " schedulingGates: [{name: g}], priority: 0, priorityClassName: high, preemptionPolicy: Never,"
            " volumes: [{name: v, persistentVolumeClaim: {claimName: data}}],"
            " resourceClaims: [{name: a, resourceClaimName: b}, {name: c, resourceClaimTemplateName: d}]}",
            id="terms",
        ),
        pytest.param(
            "spec: {containers: [{name: a}], affinity: {nodeAffinity: {"
            "requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions:"
            " [{key: k, operator: Gt, values: ['3']}]}, {matchFields:"
            " [{key: metadata.name, operator: In, values: [n]}]}]},"
            " preferredDuringSchedulingIgnoredDuringExecution: [{weight: 3, preference: {matchExpressions:"
            " [{key: k, operator: DoesNotExist}]}}]}, podAffinity:"
            f" {{requiredDuringSchedulingIgnoredDuringExecution: [{TERM}]}}, podAntiAffinity:"
            f" {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 5, podAffinityTerm: {TERM}}}]}}}}}}",
            id="affinity",
        ),
        pytest.param(
            "spec: {containers: [{name: a}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
            " [{topologyKey: zone, namespaceSelector: {}}, {topologyKey: zone, labelSelector: {}, namespaces: [o]}]}}}",
            id="empty selectors and none",
        ),
        pytest.param(
            "spec: {containers: [{name: a}], topologySpreadConstraints: [{maxSkew: 2, topologyKey: zone,"
            " whenUnsatisfiable: DoNotSchedule, minDomains: 2, labelSelector: {matchLabels: {a: b}}}]}",
            id="spread",
        ),
        pytest.param(
            "spec: {containers: [{name: a}], initContainers: [{name: s, restartPolicy: Always,"
            " resources: {requests: {cpu: '0', memory: '0'}}}]}",
            id="sidecar",
        ),
        pytest.param(
            "spec: {containers: [{name: a}], nodeName: n, schedulerName: other}\n"
            "status: {phase: Running, startTime: '2026-01-02T03:04:06Z', nominatedNodeName: m,"
            " conditions: [{type: PodScheduled, status: 'True', lastTransitionTime: '2026-01-02T03:04:05.5Z'}]}",
            id="status",
        ),
        pytest.param(
            "spec: {containers: [{name: a}], nodeName: n}\n"
            "status: {phase: Succeeded, startTime: '2026-01-02T03:04:06Z',"
            " containerStatuses: [{name: a, state: {terminated: {finishedAt: '2026-01-02T04:04:06Z'}}}]}",
            id="ended",
        ),
        pytest.param(
            "spec: {containers: [{name: a}], schedulingGroup: {podGroupName: g},"
            " resourceClaims: [{name: own, resourceClaimName: c}, {name: shared, resourceClaimTemplateName: t}]}\n"
            "status: {phase: Pending, resourceClaimStatuses: [{name: own, resourceClaimName: c}]}",
            id="of a native podgroup",
        ),
        pytest.param(
            "spec: {containers: [{name: a}], workloadRef: {name: w, podGroup: g, podGroupReplicaKey: r}}",
            id="of a replica of a pod group",
        ),
        pytest.param(
            "spec: {containers: [{name: a}], workloadRef: {name: w, podGroup: g}, schedulingGroup: {podGroupName: g}}",
            id="of a native podgroup and of a pod group",
        ),
        pytest.param(
            "spec: {containers: [{name: a, envFrom: [{configMapRef: {name: c}}]}, {name: b}]}",
            id="with a ConfigMap",
        ),
    ],
)
def test_pods_read_back_are_the_same(text: str) -> None:
    same_when_read_back(yaml.safe_load(POD + text))


NATIVE_API = "scheduling.k8s.io"
GROUP_API, TOPOLOGY_API = "scheduling.volcano.sh/v1beta1", "topology.volcano.sh/v1alpha1"


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(
            "apiVersion: v1\nkind: Node\n"
            "metadata: {name: n, labels: {a: b}, annotations: {volcano.sh/oversubscription-cpu: '5'}}\n"
            "spec: {unschedulable: true, taints: [{key: k, value: v, effect: NoExecute}]}\n"
            "status: {allocatable: {cpu: '4', memory: 8Gi, pods: '110', gpu.io/x: '2'}, capacity: {cpu: '5'},"
            " images: [{names: [i], sizeBytes: 5}]}",
            id="node",
        ),
        pytest.param(
            f"apiVersion: {GROUP_API}\nkind: PodGroup\n{META}\nspec: {{minMember: 2, queue: q, minTaskMember: {{a: 1}},"
            " minResources: {cpu: '2'}, priorityClassName: p, networkTopology: {mode: soft, highestTierAllowed: 2},"
            " subGroupPolicy: [{name: s, subGroupSize: 2, minSubGroups: 1, matchLabelKeys: [k],"
            " networkTopology: {mode: hard, highestTierName: rack}, labelSelector: {matchLabels: {a: b}}}]}\n"
            "status: {phase: Inqueue, running: 1, conditions: [{type: Unschedulable, status: 'True', reason: r,"
            " message: m, transitionID: t, lastTransitionTime: '2026-01-02T03:04:05Z'}]}",
            id="podgroup",
        ),
        pytest.param(
            f"apiVersion: {GROUP_API}\nkind: Queue\nmetadata: {{name: q}}\nspec: {{weight: 3, capability: {{cpu: '4'}},"
            " deserved: {memory: 1Gi}, guarantee: {resource: {cpu: '1'}}, reclaimable: false, priority: 5,"
            " parent: root}\n"
            "status: {state: Closed, allocated: {cpu: '1'}}",
            id="queue",
        ),
        pytest.param(
            "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: p}\nvalue: -5\n"
            "globalDefault: true\npreemptionPolicy: Never",
            id="priority class",
        ),
        pytest.param(
            f"apiVersion: {TOPOLOGY_API}\nkind: HyperNode\nmetadata: {{name: h}}\nspec: {{tier: 1, tierName: rack,"
            " members: ["
            "{type: Node, selector: {exactMatch: {name: n}}}, {type: Node, selector: {regexMatch: {pattern: '^n'}}},"
            " {type: HyperNode, selector: {labelMatch: {matchLabels: {a: b}}}}]}",
            id="hypernode",
        ),
        pytest.param(
            f"apiVersion: {NATIVE_API}/v1beta1\nkind: PodGroup\n{META}\n"
            "spec: {schedulingPolicy: {gang: {minCount: 4}},"
            " parentCompositePodGroupName: c, priorityClassName: p, preemptionPolicy: Never, disruptionMode: {all: {}},"
            " schedulingConstraints: {topology: [{key: rack}]},"
            " resourceClaims: [{name: a, resourceClaimName: own}, {name: b, resourceClaimTemplateName: t}]}\n"
            "status: {resourceClaimStatuses: [{name: b, resourceClaimName: made}], conditions: ["
            "{type: PodGroupInitiallyScheduled, status: 'True', reason: r, message: m, observedGeneration: 3,"
            " lastTransitionTime: '2026-01-02T03:04:05Z'}]}",
            id="native podgroup",
        ),
        pytest.param(
            f"apiVersion: {NATIVE_API}/v1alpha2\nkind: PodGroup\n{META}\nspec: {{schedulingPolicy: {{basic: {{}}}},"
            " disruptionMode: PodGroup, schedulingConstraints: {topologyConstraints: [{topologyKey: rack}]}}",
            id="native podgroup of the first version",
        ),
        pytest.param(
            f"apiVersion: {NATIVE_API}/v1alpha3\nkind: CompositePodGroup\n{META}\nspec: {{schedulingPolicy: {{gang:"
            " {minGroupCount: 2}}, parentCompositePodGroupName: c, priorityClassName: p, preemptionPolicy: Never,"
            " disruptionMode: {all: {}}, schedulingConstraints: {topology: [{key: rack}]}}\n"
            "status: {conditions: [{type: CompositePodGroupInitiallyScheduled, status: 'False', reason: r, message: m,"
            " observedGeneration: 3, lastTransitionTime: '2026-01-02T03:04:05Z'}]}",
            id="composite podgroup",
        ),
        pytest.param(
            f"apiVersion: {NATIVE_API}/v1alpha1\nkind: Workload\n{META}\nspec: {{podGroups: ["
            "{name: a, policy: {gang: {minCount: 2}}}, {name: b, policy: {basic: {}}}]}",
            id="workload",
        ),
        pytest.param(
            f"apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\n{META}\nspec: {{minMember: 2, queue: q}}\n"
            "status: {pending: 1, schedulingConditions: [{type: UnschedulableOnNodePool, status: 'True', nodePool: p,"
            " reason: r, message: m, reasons: [{reason: OverLimit, message: n}], transitionID: '3',"
            " lastTransitionTime: '2026-01-02T03:04:05Z'}], resourcesStatus: {allocated: {cpu: '1'}}}",
            id="podgroup of KAI",
        ),
    ],
)
def test_other_kinds_read_back_are_the_same(obj: str) -> None:
    same_when_read_back(yaml.safe_load(obj))


def same_when_read_back(obj: Any) -> None:
    decoder = Decoder()
    value = decoder.decode(obj)
    assert decoder.decode(object_of(value)) == value  # type: ignore[arg-type]  # what is decoded here is an Object


def test_nothing_secret_is_written() -> None:
    obj = yaml.safe_load(POD + "spec: {containers: [{name: a, env: [{name: S, value: hush}], command: [hush]}]}")
    obj["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "hush", "a": "kept"}
    written = str(object_of(Decoder().decode(obj)))  # type: ignore[arg-type]  # it is a Pod
    assert "kept" in written
    assert "hush" not in written


# -- replay


def demo_store(every: int = 2) -> tuple[Store, str]:
    """The demo with one node out of ``every``, so that something is left to wait."""
    inputs = read_inputs([str(DEMO)])
    store = Store()
    nodes = {node.name for node in inputs.nodes[::every]}
    objects = [obj for obj in inputs.scene.objects if obj not in inputs.nodes or getattr(obj, "name", "") in nodes]
    for work in inputs.scene.works:
        group, pods = work.expand(NOW - 100)
        objects += (group, *pods)
    for obj in objects:
        store.apply(Seen(obj))
    return store, inputs.confs[0].read_text()


def decided(store: Store, conf: str, now: float) -> tuple[list[Bind | Evict], str]:
    planner, digest = ListPlanner(), Digest()
    run_cycle(store.snapshot(), policy_of(conf, volcano_registry()), now, planner)
    digest.add(now, planner.taken)
    return planner.taken, digest.hex


def replayed(store: Store, conf: str, folder: Path, *flags: str) -> str:
    """The digest of what the dump's own commands decide: on the snapshot, and on the manifests."""
    place = write_dump(store, conf, folder, NOW, flags)
    digests = set()
    commands = (place / "README").read_text().splitlines()
    assert [Path(shlex.split(command)[2]) for command in commands] == [place / SNAPSHOT_NAME, place]
    for command in commands:
        reports = run(*shlex.split(command)[1:], "--json")
        assert reports.code == 0, reports.err
        assert reports.lines("error") == []
        digests.add(reports.json["digest"])
    (digest,) = digests
    return str(digest)


def test_a_dump_replays_to_the_same_decisions(tmp_path: Path) -> None:
    store, conf = demo_store()
    digest = replayed(store, conf, tmp_path)
    taken, expected = decided(store, conf, NOW)
    assert taken
    assert digest == expected


def test_a_dump_in_the_middle_of_things_does_too(tmp_path: Path) -> None:
    """Some binds are confirmed, some are on their way, one pod is being evicted."""
    store, conf = demo_store(every=1)
    taken, _ = decided(store, conf, NOW - 1)
    pods = {pod.key: pod for pod in store.snapshot().tables.tasks.pods if isinstance(pod, Pod)}
    jobs = sorted({decision.job for decision in taken})
    taken = [decision for decision in taken if decision.job in jobs[: len(jobs) // 2]]
    assert len(taken) > 4
    for number, decision in enumerate(taken):
        if number % 2:
            store.apply(Seen(replace(pods[decision.pod], node_name=decision.node, phase="Running")))
        else:
            store.assume([decision])
    victim = taken[1]
    store.assume([Evict(victim.pod, victim.uid, victim.node, victim.job, "test")])
    digest = replayed(store, conf, tmp_path)
    more, expected = decided(store, conf, NOW)
    assert more
    assert digest == expected


def test_a_dump_of_a_scheduler_with_names_of_its_own(tmp_path: Path) -> None:
    names = ("pumice", "and more")
    store = Store(scheduler_names=names)
    ours = [pod("g-0", "g", scheduler_name="pumice"), pod("g-1", "g", scheduler_name="and more")]
    made: list[Object] = [node("n"), queue(), podgroup("g", 2), *ours, pod("x", "g")]
    for obj in made:
        store.apply(Seen(obj))
    digest = replayed(store, DEFAULT_CONF, tmp_path, *(f"--scheduler-name={name}" for name in names))
    taken, expected = decided(store, DEFAULT_CONF, NOW)
    assert [decision.pod for decision in taken] == ["ns/g-0", "ns/g-1"]
    assert digest == expected


TREE = """
{apiVersion: scheduling.k8s.io/v1alpha3, kind: CompositePodGroup, metadata: {name: r, namespace: ns},
 spec: {schedulingPolicy: {gang: {minGroupCount: 2}}}}
"""
GROUP_OF_TREE = """
{{apiVersion: scheduling.k8s.io/v1alpha3, kind: PodGroup, metadata: {{name: {0}, namespace: ns}},
 spec: {{schedulingPolicy: {{gang: {{minCount: 2}}}}, parentCompositePodGroupName: r}}}}
"""
POD_OF_TREE = """
{{apiVersion: v1, kind: Pod, metadata: {{name: {0}-{1}, namespace: ns, uid: {0}-{1}}}, status: {{phase: Pending}},
 spec: {{schedulerName: volcano, schedulingGroup: {{podGroupName: {0}}},
 containers: [{{name: a, resources: {{requests: {{cpu: 1}}}}}}]}}}}
"""


@pytest.mark.parametrize(("cores", "bound"), [(4, 4), (3, 0)])
def test_a_dump_has_the_groups_of_a_tree_as_they_are_in_the_api(tmp_path: Path, cores: int, bound: int) -> None:
    store = Store()
    texts = [TREE, *(GROUP_OF_TREE.format(name) for name in "ab")]
    texts += [POD_OF_TREE.format(name, number) for name in "ab" for number in range(2)]
    for obj in with_trees([node("n", cpu=cores), queue(), *(Decoder().decode(yaml.safe_load(text)) for text in texts)]):
        store.apply(Seen(obj))
    digest = replayed(store, DEFAULT_CONF, tmp_path)
    (written,) = tmp_path.glob("*/podgroups.yaml")
    assert [each["kind"] for each in yaml.safe_load_all(written.read_text())] == [
        "CompositePodGroup",
        *2 * ["PodGroup"],
    ]
    taken, expected = decided(store, DEFAULT_CONF, NOW)
    assert len(taken) == bound
    assert digest == expected


WORKLOAD = """
{apiVersion: scheduling.k8s.io/v1alpha1, kind: Workload, metadata: {name: w, namespace: ns},
 spec: {podGroups: [{name: a, policy: {gang: {minCount: 2}}}, {name: b, policy: {gang: {minCount: 2}}}]}}
"""


def test_a_dump_has_the_workload_of_pod_groups(tmp_path: Path) -> None:
    store = Store()
    texts = [POD_OF_TREE.format(name, number) for name in "ab" for number in range(2)]
    for name in "ab":
        texts = [each.replace(f"schedulingGroup: {{podGroupName: {name}}}", _ref(name)) for each in texts]
    read = (Decoder().decode(yaml.safe_load(text)) for text in (WORKLOAD, *texts))
    for obj in with_trees([node("n", cpu=3), queue(), *read]):
        store.apply(Seen(obj))
    digest = replayed(store, DEFAULT_CONF, tmp_path)
    (written,) = tmp_path.glob("*/podgroups.yaml")
    (workload,) = yaml.safe_load_all(written.read_text())
    assert [each["name"] for each in workload["spec"]["podGroups"]] == ["a", "b"]
    taken, expected = decided(store, DEFAULT_CONF, NOW)
    assert len(taken) == 2
    assert digest == expected


def test_a_dump_has_the_config_maps_that_exist(tmp_path: Path) -> None:
    """Under KAI's language: one pod lacks a ConfigMap, and another of the same namespace does not."""
    needing = [
        replace(pod(name, "g"), config_maps=names) for name, names in (("a", ("there", "gone")), ("b", ("there",)))
    ]
    store = Store()
    for obj in with_config_maps([ConfigMap("ns", "there"), node("n"), queue(), podgroup("g", 1), *needing]):
        store.apply(Seen(obj))
    write_dump(store, DEFAULT_CONF, tmp_path, NOW)
    (folder,) = tmp_path.iterdir()
    read = load_manifests([folder]).objects
    lacking = {each.key: each.spec.missing_config_maps for each in read if isinstance(each, Pod)}
    assert lacking == {"ns/a": ("gone",), "ns/b": ()}


def _ref(name: str) -> str:
    return f"workloadRef: {{name: w, podGroup: {name}}}"


@pytest.mark.parametrize("used", [True, False])
def test_a_dump_knows_whether_priority_classes_count(tmp_path: Path, used: bool) -> None:
    """There is room for one gang: which one follows from their classes, or from their age."""
    store = Store(use_priority_classes=used)
    groups = [podgroup("old", 1), podgroup("high", 1, priority_class="high", creation=1.0)]
    made: list[Object] = [
        PriorityClass("high", 1000),
        node("n", cpu=1),
        queue(),
        *groups,
        *pods("old", 1),
        *pods("high", 1),
    ]
    for obj in made:
        store.apply(Seen(obj))
    digest = replayed(store, DEFAULT_CONF, tmp_path)
    taken, expected = decided(store, DEFAULT_CONF, NOW)
    assert [decision.job for decision in taken] == ["ns/high" if used else "ns/old"]
    assert digest == expected


def test_a_dump_is_for_its_owner_alone(tmp_path: Path) -> None:
    store, conf = demo_store()
    place = write_dump(store, conf, tmp_path, NOW)
    assert {path.stat().st_mode & 0o077 for path in (place, *place.iterdir())} == {0}


def test_a_dump_is_written_into_no_folder_that_is_there(tmp_path: Path) -> None:
    """In a folder that all may write to, another user may have taken the name first."""
    store, conf = demo_store()
    place = write_dump(store, conf, tmp_path / "dumps", NOW)
    trap, target = place.with_name(f"{place.name}-2"), tmp_path / "target"
    target.mkdir()
    trap.symlink_to(target)
    again = write_dump(store, conf, tmp_path / "dumps", NOW)
    assert again.name == f"{place.name}-3"
    assert not list(target.iterdir())
