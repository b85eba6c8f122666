"""Sound inputs to begin with: small clusters as manifests, policy files, traces."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from pumice.volcano.table import DEFAULT_CONF
from tests.fuzz import cards

Raw = dict[str, Any]
VOLCANO, BATCH, TOPOLOGY = "scheduling.volcano.sh/v1beta1", "batch.volcano.sh/v1alpha1", "topology.volcano.sh/v1alpha1"
GROUP = "scheduling.k8s.io/group-name"
GPU = "nvidia.com/gpu"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

CONFS = {
    "default": DEFAULT_CONF,
    "topology": DEFAULT_CONF + "  - name: network-topology-aware\n  - name: binpack\n",
    **cards.CONFS,
}


def _object(api: str, kind: str, name: str, namespace: str = "", **rest: Any) -> Raw:
    metadata: Raw = {"name": name, "uid": f"{kind}-{namespace}-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def cluster(dice: Random, running: bool = True) -> list[Raw]:
    """Nodes, queues, gangs that wait and some that run, jobs, and what else a scheduler reads."""
    nodes = [_node(dice, i) for i in range(dice.randint(1, 4))]
    queues = [_object(VOLCANO, "Queue", f"q{i}", spec=_queue_spec(dice)) for i in range(dice.randint(1, 3))]
    objects = [*nodes, *queues, _object("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000)]
    for i in range(dice.randint(1, 4)):
        names = [node["metadata"]["name"] for node in nodes] if running else []
        objects += _gang(dice, f"g{i}", f"q{dice.randrange(len(queues))}", names)
    if dice.random() < 0.4:
        objects.append(_job(dice, f"q{dice.randrange(len(queues))}"))
    if dice.random() < 0.2:
        template = {"spec": _pod_spec(dice)}
        objects.append(_object("batch/v1", "Job", "plain", "default", spec={"parallelism": 2, "template": template}))
    if dice.random() < 0.4:
        objects += [_hypernode(f"rack-{i}", 1, "Node", [f"n{i}", f"n{i + 1}"]) for i in range(2)]
        objects.append(_hypernode("spine", 2, "HyperNode", ["rack-0", "rack-1"]))
    if dice.random() < 0.2:
        hard = {"requests.cpu": "8", "pods": "20"}
        objects.append(_object("v1", "ResourceQuota", "all", "default", spec={"hard": hard}, status={"hard": hard}))
    if dice.random() < 0.3:
        cards.add_cards(dice, objects)
    return objects


def _node(dice: Random, i: int) -> Raw:
    room = {
        "cpu": str(dice.choice((2, 4, 8))),
        "memory": dice.choice(("4Gi", "8Gi")),
        "pods": str(dice.choice((3, 110))),
    }
    if dice.random() < 0.5:
        room[GPU] = str(dice.choice((1, 4)))
    node = _object("v1", "Node", f"n{i}", spec={}, status={"allocatable": room, "capacity": dict(room)})
    node["metadata"]["labels"] = {"kubernetes.io/hostname": f"n{i}", "zone": f"z{i % 2}", "size": str(i)}
    if dice.random() < 0.3:
        node["spec"]["taints"] = [
            {"key": "only", "value": "gpu", "effect": dice.choice(("NoSchedule", "PreferNoSchedule"))}
        ]
    if dice.random() < 0.1:
        node["spec"]["unschedulable"] = True
    return node


def _queue_spec(dice: Random) -> Raw:
    spec: Raw = {"weight": dice.randint(1, 4), "reclaimable": dice.random() < 0.8}
    if dice.random() < 0.3:
        spec["capability"] = {"cpu": "6", "memory": "16Gi"}
    if dice.random() < 0.2:
        spec["guarantee"] = {"resource": {"cpu": "1"}}
    return spec


def _gang(dice: Random, name: str, queue: str, nodes: list[str]) -> list[Raw]:
    size = dice.randint(1, 4)
    spec: Raw = {"minMember": dice.randint(1, size), "queue": queue}
    if dice.random() < 0.2:
        spec["minResources"] = {"cpu": "1"}
    if dice.random() < 0.2:
        spec["networkTopology"] = {"mode": dice.choice(("hard", "soft")), "highestTierAllowed": dice.randint(1, 2)}
    if dice.random() < 0.1:
        spec["subGroupPolicy"] = [{"name": "s", "subGroupSize": 1, "minSubGroups": 1, "matchLabelKeys": ["part"]}]
    group = _object(
        VOLCANO, "PodGroup", name, "default", spec=spec, status={"phase": dice.choice(("Pending", "Inqueue"))}
    )
    runs = bool(nodes) and dice.random() < 0.3
    if runs:
        group["status"]["phase"] = "Running"
    pods = []
    for i in range(size):
        pod = _object("v1", "Pod", f"{name}-{i}", "default", spec=_pod_spec(dice), status={"phase": "Pending"})
        pod["metadata"] |= {"labels": {"app": name, "part": str(i % 2)}, "annotations": {GROUP: name}}
        if runs:
            pod["spec"]["nodeName"] = dice.choice(nodes)
            pod["status"]["phase"] = "Running"
        pods.append(pod)
    return [group, *pods]


def _pod_spec(dice: Random) -> Raw:
    requests = {"cpu": dice.choice(("1", "500m", "2")), "memory": dice.choice(("1Gi", "512Mi"))}
    if dice.random() < 0.3:
        requests[GPU] = "1"
    container: Raw = {"name": "c", "image": "i:1", "resources": {"requests": requests}}
    spec: Raw = {"schedulerName": "volcano", "containers": [container]}
    for chance, add in _SOMETIMES:
        if dice.random() < chance:
            add(dice, spec)
    return spec


def _add_port(dice: Random, spec: Raw) -> None:
    spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": dice.choice((80, 81))}]


def _add_init(dice: Random, spec: Raw) -> None:
    spec["initContainers"] = [{"name": "init", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]
    if dice.random() < 0.5:
        spec["initContainers"][0]["restartPolicy"] = "Always"


def _add_affinity(dice: Random, spec: Raw) -> None:
    term = {
        "topologyKey": dice.choice(("zone", "kubernetes.io/hostname")),
        "labelSelector": {"matchLabels": {"app": "g0"}},
    }
    number = {"key": "size", "operator": "Gt", "values": ["0"]}
    spec["affinity"] = {
        dice.choice(("podAffinity", "podAntiAffinity")): {_REQUIRED: [term]},
        "nodeAffinity": {_PREFERRED: [{"weight": 5, "preference": {"matchExpressions": [number]}}]},
    }


def _add_spread(dice: Random, spec: Raw) -> None:
    spec["topologySpreadConstraints"] = [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ]


_SOMETIMES = (
    (0.2, lambda dice, spec: spec.update(nodeSelector={"zone": dice.choice(("z0", "z1"))})),
    (0.3, lambda dice, spec: spec.update(tolerations=[{"key": "only", "operator": "Exists"}])),
    (0.15, _add_port),
    (0.15, _add_init),
    (0.15, _add_affinity),
    (0.1, _add_spread),
    (0.1, lambda dice, spec: spec.update(overhead={"cpu": "50m"})),
    (0.1, lambda dice, spec: spec.update(priority=dice.choice((0, 5)), priorityClassName="high")),
    (0.05, lambda dice, spec: spec.update(schedulingGates=[{"name": "wait"}])),
)


def _job(dice: Random, queue: str) -> Raw:
    tasks = [
        {"name": f"t{i}", "replicas": dice.randint(1, 3), "template": {"spec": _pod_spec(dice)}}
        for i in range(dice.randint(1, 2))
    ]
    spec = {"queue": queue, "schedulerName": "volcano", "minAvailable": 1, "tasks": tasks}
    job = _object(BATCH, "Job", "job", "default", spec=spec)
    del job["metadata"]["uid"]
    job["metadata"]["annotations"] = {"pumice.dev/duration": "10m"}
    return job


def _hypernode(name: str, tier: int, kind: str, members: list[str]) -> Raw:
    listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    return _object(TOPOLOGY, "HyperNode", name, spec={"tier": tier, "members": listed})


# -- traces: kind -> (name of the file, text, files beside it)

_SWF = "; MaxNodes: 4\n" + "".join(
    f"{i} {i * 10} 5 100 {i} -1 -1 {i} 120 -1 0 -1 -1 -1 -1 -1 -1 0\n" for i in (1, 2, 3)
)
_OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p1,4000,8192,1,1000,,LS,Running,10,500,11\np2,1000,1024,0,0,,BE,Running,20,90,21\n"
)
_PHILLY = "ResNet-18 (batch size 32)\tcmd %s\t-n\t1\t100\t0.5\t1\nResNet-18 (batch size 32)\tcmd %s\t-n\t1\t300\t6\t2\n"
_RATES = {"v100": {f"('ResNet-18 (batch size 32)', {n})": {"null": 10.0 * n} for n in (1, 2)}}
_PUBLISHED = Path(__file__).parents[2] / "examples" / "traces"
#: Kind, the file that is spoiled, and so many of its first lines.
_SAMPLES = (
    ("helios", "cluster_log.csv", 8),
    ("pai-2020", "pai_task_table.csv", 8),
    ("alibaba-dlrm-2025", "disaggregated_DLRM_trace.csv", 8),
    ("alibaba-spot-2026", "job_info_df.csv", 8),
    ("google-2019", "instance_events.json", 12),
    ("philly", "cluster_job_log", 100_000),
)


def _sample(kind: str, name: str, rows: int) -> tuple[str, str, dict[str, str]]:
    text = {path.name: path.read_text() for path in sorted((_PUBLISHED / kind).iterdir())}
    return name, "".join(text.pop(name).splitlines(keepends=True)[:rows]), text


TRACES: dict[str, tuple[str, str, dict[str, str]]] = {
    "swf": ("a.swf", _SWF, {}),
    "tiresias": (
        "a_job.csv",
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n1,1,0,10,vgg,60,1\n2,4,5,10,alex,90,1\n",
        {"cluster_spec.csv": "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,4,4,64,256\n"},
    ),
    "acme": (
        "converted_a_trace.csv",
        "job_id,arrival_time,num_iteration,gpu_workers,gpu_per_worker,cpu_per_gpu_worker,tensorsizes\n"
        "1,0,100,2,4,8,1\n2,50,10,1,8,8,1\n",
        {},
    ),
    "openb": (
        "openb_pod_list_a.csv",
        _OPENB,
        {"openb_node_list_all_node.csv": "sn,cpu_milli,memory_mib,gpu,model\nm1,64000,262144,4,V100\n"},
    ),
    **{kind: _sample(kind, name, rows) for kind, name, rows in _SAMPLES},
    "csv": ("a.csv", "job,team,submit,run_min,gpus,mem_gb,prio\na,x,0,5,1,8,1\nb,y,2024-01-01,6,0.5,9,2\n", {}),
    "philly-gavel": ("a.trace", _PHILLY, {"simulation_throughputs.json": json.dumps(_RATES)}),
}


def write_all(folder: Path, files: dict[str, str]) -> None:
    """Text may hold what no UTF-8 can: it is written as the bytes that it came from, or as half a character."""
    for name, text in files.items():
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
