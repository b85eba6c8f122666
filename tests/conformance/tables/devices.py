"""Checks of the function tables of GPUs that pods share, and of what is written on pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import yaml
from msgspec.structs import replace

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.plugin.filter_result import Unfit
from pumice.model.decisions import DEVICES, Bind
from pumice.model.devices import shared_devices as words
from pumice.model.devices.node_locks import LOCKED, is_locked
from pumice.model.devices.shared_devices import DeviceAsk, DeviceGrant
from pumice.model.events import Seen
from pumice.model.instants import epoch_of
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.sim.cluster import SimCluster
from pumice.sim.engine import Engine
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup
from pumice.testing.devices import shared_gpus, vgpu
from pumice.volcano.devices.cards import COLUMNS, Card, CardPlacement, Cards, Part, card_score
from pumice.volcano.devices.config import (
    DEFAULT,
    DeviceConfig,
    DeviceConfigError,
    Models,
    read_device_config,
)
from pumice.volcano.devices.exclusive import matching
from pumice.volcano.devices.gpushare import gpu_index
from pumice.volcano.devices.mig import Geometry, Instance, find, name_of
from pumice.volcano.devices.vgpu import (
    HAMI_CORE,
    MIG,
    Vgpus,
    VgpuWanted,
    decoded,
    group_of,
    in_order,
    is_type_wanted,
    may_use_id,
    vgpu_wanted,
)
from pumice.volcano.plugins.deviceshare import DeviceShare
from tests.conformance.tables.objects import decoded as read
from tests.conformance.tables.objects import opened
from tests.conformance.tables.table import Row, disagreement, table

_VGPU, _GPUSHARE = "api-devices-nvidia-vgpu", "api-devices-nvidia-gpushare"


def pod_of(raw: Mapping[str, Any] | None) -> Pod:
    metadata = {"name": "p", "namespace": "ns", **((raw or {}).get("metadata") or {})}
    found = read(
        Pod=[{"metadata": metadata, "spec": {"containers": [{"name": "c"}], **((raw or {}).get("spec") or {})}}]
    )[0]
    assert isinstance(found, Pod)
    return found


def ask_of(raw: Mapping[str, Any]) -> DeviceAsk:
    found = pod_of(raw).spec.devices
    assert found is not None
    return found


# -- GPU sharing


@table(f"{_GPUSHARE}/TestGetGPUMemoryOfPod.yaml", resource=words.GPU_MEMORY)
@table(f"{_GPUSHARE}/TestGetGPUNumberOfPod.yaml", resource=words.GPU_NUMBER)
def asked_of_gpus(row: Row, *, resource: str) -> str | None:
    return disagreement(ask_of(row["pod"]).most(resource), row["want"])


@table("api/TestGetGPUIndex.yaml")
def cards_by_index(row: Row) -> str | None:
    return disagreement(gpu_index(pod_of(row["pod"]).annotations) or None, row.get("want"))


# -- vGPUs


@table(f"{_VGPU}/TestGetGPUMemoryOfPod.yaml")
def vgpus_asked(row: Row) -> str | None:
    wanted = vgpu_wanted(ask_of(row["pod"]))
    return disagreement(sum(ask.count for ask in wanted.asks) if wanted else 0, row["want"])


def _wanted(annotations: Mapping[str, str] | None) -> VgpuWanted:
    found = vgpu_wanted(replace(vgpu(), annotations=words.device_annotations(annotations or {})))
    assert found is not None
    return found


@table(f"{_VGPU}/TestCheckGPUtype.yaml")
def type_is_wanted(row: Row) -> str | None:
    return disagreement(is_type_wanted(_wanted(row.get("annos")), row["cardtype"]), row.get("want", False))


@table(f"{_VGPU}/TestCheckGPUUUID.yaml")
def id_is_wanted(row: Row) -> str | None:
    return disagreement(may_use_id(_wanted(row.get("annotations")), row.get("id", "")), row.get("want", False))


@table(f"{_VGPU}/TestGPUUUIDConstraints.yaml")
def card_by_id(row: Row) -> str | None:
    cards = Cards((Card(10, 16_384, "NVIDIA"),) * 2, ("GPU-0000A", "GPU-0000B"), HAMI_CORE)
    wanted, kind = _wanted(row["annotations"]), Vgpus(DEFAULT)
    excluded = kind.ids_excluded(wanted, cards)
    assert excluded is not None
    found = kind.place(wanted, cards, _unused(2), excluded, "")
    if isinstance(found, Unfit):
        said = row.get("wantError", "an error")
        why = said if said in found.reason else found.reason
        return disagreement((False, None, why), (row.get("wantFit", False), row.get("wantUUID"), said))
    wants = row.get("wantFit", False), row.get("wantUUID"), row.get("wantError")
    return disagreement((True, cards.ids[found.parts[0].card], None), wants)


def _unused(count: int) -> Any:
    return np.zeros((count, COLUMNS), dtype=np.int64)


def used_of(
    raw: Mapping[str, Any], number: str = "UsedNum", memory: str = "UsedMem", cores: str = "UsedCore"
) -> list[int]:
    return [raw.get(number, 0), raw.get(memory, 0), raw.get(cores, 0), 0, 0]


@table(f"{_VGPU}/TestGPUScore.yaml")
def score_of_a_card(row: Row) -> str | None:
    device = row["device"]
    return disagreement(card_score(row.get("policy", ""), device["Memory"], used_of(device)), row.get("want", 0))


#: What the functions of the recording that set up the cards did: how much is in use of each.
_SEEDS = {"binpack": [(1, 4096), (0, 0)], "spread": [(1, 4096), (0, 0)], "": [(0, 0)] * 3}


@table(f"{_VGPU}/TestSortedDeviceIndicesByPolicy_PicksExpectedDevice.yaml")
def first_card(row: Row) -> str | None:
    policy = row.get("policy", "")
    used = np.array([(number, memory, 0, 0, 0) for number, memory in _SEEDS[policy]], dtype=np.int64)
    assert len(used) == row["numGPUs"]
    return disagreement(in_order(used, policy)[0], row.get("wantDevID", 0))


@table(f"{_VGPU}/TestDecodeContainerDevicesRejectsInvalidUsage.yaml")
def devices_decoded(row: Row) -> str | None:
    found = [
        {"Type": each.type, "UUID": each.id, "Usedcores": each.cores, "Usedmem": each.memory}
        for each in decoded(row["str"])
    ]
    return disagreement(found, row["want"])


@table(f"{_VGPU}/TestAddResource.yaml")
def card_of_a_pod(row: Row) -> str | None:
    ids = tuple(device["UUID"] for device in row["devices"].values())
    cards = Cards((Card(10, 32_768, "NVIDIA"),) * len(ids), ids, HAMI_CORE)
    had = Vgpus(DEFAULT).had(row["annotations"], pod_of(row["pod"]), _wanted(None), cards)
    return disagreement(bool(had.parts), row.get("wantAdded", False))


@table(f"{_VGPU}/TestGetPodGroupKey.yaml")
def group_of_a_pod(row: Row) -> str | None:
    return disagreement(group_of(pod_of(row.get("pod"))) if "pod" in row else "", row.get("want", ""))


def _on_card(name: str, group: str, given: str) -> Pod:
    annotations = {words.ASSIGNED_IDS_ANNOTATION: given} if given else {}
    return pod(name, group, on="n", annotations=annotations, devices=vgpu())


_CONF = {
    "actions": "allocate",
    "tiers": [{"plugins": [{"name": "deviceshare", "arguments": {"deviceshare.VGPUEnable": True}}]}],
}


def _plugin(store: Store) -> DeviceShare:
    found = opened(store, _CONF).hooks.plugin("deviceshare")
    assert isinstance(found, DeviceShare)
    return found


@table(f"{_VGPU}/TestDeviceHasPodFromSameGroup.yaml")
def card_has_a_pod_of_the_group(row: Row) -> str | None:
    """A pod that spreads its group finds no card where one of its group is, and one where there is none."""
    group = row.get("currentKey", "").rpartition("/")[2]
    there = [
        _on_card(name, each["PodGroupKey"].rpartition("/")[2], "n-0,NVIDIA,10,1:" if each.get("UsedMem") else "")
        for name, each in row["gd"].get("PodMap", {}).items()
    ]
    waiting = pod("waits", group, annotations={words.SPREAD_ANNOTATION: words.SPREAD}, devices=vgpu(1))
    plugin = _plugin(cluster(shared_gpus("n"), there, waiting))
    tables = plugin.ssn.tables
    task = next(i for i in tables.tasks.alive.nonzero()[0].tolist() if tables.tasks.pods[i].name == "waits")
    filter_result = plugin.apart(Task(tables, task), NodeRows(tables, np.array([0])))
    return disagreement(filter_result is not None and bool(filter_result.codes[0]), row.get("want", False))


@table(f"{_VGPU}/TestHAMICoreFactory_AddPod.yaml")
def pod_counts_once(row: Row) -> str | None:
    """Seen once; seen twice; assumed first, and then seen."""
    given = "n-0,NVIDIA,1000,25:"
    seen, store = _on_card("p", "g", given), cluster(shared_gpus("n"), podgroup("g"))
    if row["name"].startswith("add after"):
        waiting = pod("p", "g", devices=vgpu())
        said = DeviceGrant("ns", "p", ((words.ASSIGNED_IDS_ANNOTATION, given),))
        store.apply(Seen(waiting))
        store.assume([Bind(waiting.key, waiting.uid, "n", "ns/g", {DEVICES: said})])
    times = 2 if row["name"].startswith("duplicate") else 1
    for _ in range(times):
        store.apply(Seen(seen))
    number, memory, cores = _plugin(store).ssn.world.columns["deviceshare.now"].array[0, 0, :3].tolist()
    return disagreement((number, memory, cores), (row["wantUsedNum"], row["wantUsedMem"], row["wantUsedCore"]))


@table("plugins-deviceshare/Test_FilterNode.yaml")
def pod_fits_cards(row: Row) -> str | None:
    devices = row["Devices"]["Device"]
    listed = tuple(Card(each["Number"], each["Memory"], each["Type"]) for each in devices.values())
    cards = Cards(listed, tuple(devices), HAMI_CORE)
    wanted = vgpu_wanted(ask_of(row["Pod"]))
    assert wanted is not None
    found = Vgpus(DEFAULT).place(wanted, cards, _unused(len(listed)), np.zeros(len(listed), dtype=bool), "")
    return disagreement(found.reason if isinstance(found, Unfit) else None, row.get("expected"))


#: The rules of the tests, which their rows only number.
_RULES = ((("app", "training"), ("team", "ml")), (("workload", "inference"),))


@table("plugins-deviceshare/TestMatchingRules.yaml")
def rules_that_match(row: Row) -> str | None:
    return disagreement(len(matching(pod_of(row["pod"]).labels, _RULES)), row.get("expectedLen", 0))


@table("plugins-deviceshare/TestPodMatchesRule.yaml")
def rule_matches(row: Row) -> str | None:
    found = row.get("ruleIdx", 0) in matching(pod_of(row["pod"]).labels, _RULES)
    return disagreement(found, row.get("expected", False))


# -- instances


def _instance(raw: Mapping[str, Any]) -> Instance:
    return Instance(raw["Name"], raw["Memory"], raw["Count"])


def _geometries(raw: Any) -> tuple[Geometry, ...]:
    return tuple(
        Geometry(
            each.get("Group", ""),
            tuple(Instance(i["Name"], i["Memory"], i["Count"]) for i in each.get("Instances", ())),
        )
        for each in raw
    )


@table(f"{_VGPU}/TestFindMatch.yaml")
def instance_found(row: Row) -> str | None:
    """A card of which an instance is in use that the group does not have is cut in a way that is not known."""
    geometries, usage = _geometries(row["allowedGeometries"]), row["usage"]
    number, in_use = usage.get("Index", 0) + 1, 0
    if number:
        names = [each.name for each in geometries[number - 1].instances]
        if any(each["Name"] not in names for each in usage.get("UsageList", ())):
            number = -1
        in_use = sum(1 << i for each in usage.get("UsageList", ()) for i in each.get("UsedIndex", ()))
    found = find(geometries, number, in_use, row["requestMem"])
    name = "" if found is None else name_of(row["uuid"], geometries[found.group - 1], found.place)
    wanted = row.get("wantFit", False), row.get("wantMem", 0), row.get("wantUUID", "")
    return disagreement((found is not None, found.memory if found else 0, name), wanted)


def _cut(raw: Any, factor: int = 1, id: str = "gpu-1234") -> tuple[Vgpus, Cards]:
    kind = Vgpus(DeviceConfig((Models(("NVIDIA",), _geometries(raw)),), factor))
    return kind, Cards((Card(10, 81_920, "NVIDIA"),), (id,), MIG)


def _has(kind: Vgpus, cards: Cards, id: str, cores: int = 0) -> Part:
    said = {words.ASSIGNED_IDS_ANNOTATION: f"{id},NVIDIA,0,{cores}:"}
    return kind.had(said, pod("p"), _wanted(None), cards).parts[0]


@table(f"{_VGPU}/TestAddAndSubMigUsed.yaml")
def instance_used_and_left(row: Row) -> str | None:
    device = row["initialDevice"]
    kind, cards = _cut(device["MigTemplate"], 1, device["UUID"])
    part = _has(kind, cards, f"{device['UUID']}[{row['groupName']}-{row.get('addPosition', 0)}]")
    used = _unused(1)
    part.add_to(used)
    added = used[0].tolist()
    part.add_to(used, -1)
    place = added[4].bit_length() - 1
    found = added[1], place, bool(added[3]), added[1] - int(used[0, 1])
    wants = ("wantAddMemory", "wantAddUsedPos", "wantAddInUse", "wantSubMemory")
    return disagreement(found, tuple(row.get(key, False if key == "wantAddInUse" else 0) for key in wants))


@table(f"{_VGPU}/TestMIGFactory_AddPod_WithMemoryFactor.yaml")
def instance_of_a_pod(row: Row) -> str | None:
    kind, cards = _cut(row["migTemplate"], row["memoryFactor"])
    part, used = _has(kind, cards, row["devID"], row["core"]), _unused(1)
    part.add_to(used)
    number, memory, cores, _, bits = used[0].tolist()
    found = part.cores, part.memory, bits.bit_count(), cores, memory, number
    wants = ("PodCore", "PodMem", "UsageLen", "UsedCore", "UsedMem", "UsedNum")
    return disagreement(found, tuple(row[f"expected{key}"] for key in wants))


@table(f"{_VGPU}/TestMIGFactory_SubPod_WithMemoryFactor.yaml")
def instance_left(row: Row) -> str | None:
    """Nothing is in use any more."""
    kind, cards = _cut(row["migTemplate"], row["memoryFactor"])
    part, used = _has(kind, cards, row["devID"], row["core"]), _unused(1)
    part.add_to(used)
    part.add_to(used, -1)
    return disagreement([each for each in used[0].tolist() if each] or None, row.get("expected"))


@table(f"{_VGPU}/TestMIGFactory_TryAddPod_WithMemoryFactor.yaml")
def instance_for_a_pod(row: Row) -> str | None:
    kind, cards = _cut(row["migTemplate"], row["memoryFactor"])
    wanted = vgpu_wanted(vgpu(row["requestMem"], cores=row["core"]))
    assert wanted is not None
    placed = kind.place(wanted, cards, _unused(1), np.zeros(1, dtype=bool), "")
    assert isinstance(placed, CardPlacement)
    part = placed.parts[0]
    geometry = _geometries(row["migTemplate"])[part.group - 1]
    found = part.memory, True, geometry.group, geometry.memory_at(part.instance)
    wants = ("DeviceMem", "Found", "Group", "MemReturned")
    return disagreement(found, tuple(row[f"expected{key}"] for key in wants))


@table("api-devices-config/TestParseDeviceConfig.yaml")
def configuration_read(row: Row) -> str | None:
    """It can be read, and says something of every card it names."""
    text = yaml.safe_load(row["deviceConfigStr"])
    try:
        found = read_device_config(text)
    except DeviceConfigError as error:
        return disagreement(str(error), row.get("expected"))
    named = [model for each in text["nvidia"]["knownMigGeometries"] for model in each["models"]]
    unknown = [model for model in named if not found.geometries_of(f"NVIDIA-{model}")]
    return disagreement(unknown or None, row.get("expected"))


# -- what is written on pods


@table("api/TestTaskInfoPodAnnotations.yaml")
def annotations_of_a_bound_pod(row: Row) -> str | None:
    """As the cluster has it once the pod is bound; nothing where there is no such pod."""
    sim, waiting = SimCluster(Engine()), replace(pod("p"), annotations=row.get("existing", {}))
    sim.put(node("n"))
    if "task" in row:
        sim.put(waiting)
    sim.submit([Bind("ns/p", "ns-p", "n", "", {DEVICES: DeviceGrant("ns", "p", tuple(row["annotations"].items()))})])
    bound = sim.pods.get("ns/p")
    return disagreement(None if bound is None else dict(bound.annotations), row.get("want"))


# -- locks on nodes


@table("plugins-util-nodelock/TestLockNode.yaml", whole=True)
def lock_taken(row: Row, rows: list[Row]) -> str | None:
    """The table does not say when it was recorded: a second after the last lock in it was taken."""
    given = [written for each in rows for written in each["node"]["metadata"]["annotations"].values()]
    now = max(at for written in given if (at := epoch_of(written)) is not None) + 1.0
    (locked,) = read(Node=[row["node"]])
    assert isinstance(locked, Node)
    (lock,) = locked.annotations
    found = f"node {locked.name} {LOCKED}" if is_locked(locked.annotations, lock, now) else None
    return disagreement(found, (row.get("expectErr") or {}).get("$error"))
