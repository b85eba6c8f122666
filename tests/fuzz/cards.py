"""Cards that pods share, in sound clusters: what nodes say of them, what pods ask and have; some of it is wrong."""

from __future__ import annotations

from random import Random
from typing import Any

Raw = dict[str, Any]
REGISTER, UNHEALTHY, LOCK = "volcano.sh/node-vgpu-register", "volcano.sh/gpu-unhealthy-ids", "hamivgpu"
NPU, NPU_REGISTER = "huawei.com/Ascend310P", "hami.io/node-register-Ascend310P"
#: Annotations of nodes that say nothing of what a node has room for in cpu, memory and whole GPUs.
OF_NODES = frozenset({REGISTER, UNHEALTHY, LOCK, NPU_REGISTER})

_CUT = "[{group: g, geometries: [{name: 1g, memory: 6144, count: 4}]}]"
_MIG = f"{{nvidia: {{knownMigGeometries: [{{models: [A30], allowedGeometries: {_CUT}}}]}}}}"
_VGPUS = f"""\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins:
  - {{name: predicates}}
  - {{name: proportion}}
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.AscendHAMiVNPUEnable: true
      deviceshare.SchedulePolicy: binpack
      deviceshare.ScheduleWeight: 10
      deviceshare.GPUExclusiveRules: [{{app: g0}}]
      deviceshare.DeviceConfig: {_MIG}
"""
CONFS = {
    "vgpu": _VGPUS,
    "vgpu-locked": _VGPUS.replace("VGPUEnable: true", "VGPUEnable: true\n      deviceshare.NodeLockEnable: true", 1),
    "gpushare": """\
actions: "allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: predicates}]
- plugins: [{name: deviceshare, arguments: {deviceshare.GPUSharingEnable: true}}]
""",
}
_CARDS = (
    "GPU-{i},10,16384,NVIDIA-A30,true,hami-core:",
    "GPU-{i},10,16384,NVIDIA-A30,true,mig:",
    "GPU-{i},10,16384,NVIDIA-A30,false,hami-core:",
)
_WRONG_CARDS = (
    *("", ":", ",,,,,:", "GPU-{i}", "GPU-{i},10,16384,NVIDIA", "GPU-{i},ten,16384,NVIDIA,true,hami-core:"),
    "GPU-{i},-1,-16384,NVIDIA,true,hami-core:",
    "GPU-{i},1000000000,99999999999999999999,NVIDIA,true,hami-core:",
    "GPU-0,10,16384,NVIDIA,true,hami-core:GPU-0,10,16384,NVIDIA,true,hami-core:",
    "GPU-{i},\u0661\u0660,NaN,\ufeff,TRUE,\x00:",
    "GPU,10,1,T,true,hami-core:" * 400,
)
_NPU_CARD = '{{"id":"npu-{i}","count":4,"devmem":21527,"devcore":8,"type":"Ascend310P","health":true}}'
_WRONG_NPUS = (
    "",
    "[",
    "{}",
    "[null]",
    '[{"id":5}]',
    '[{"id":"a","count":1e999}]',
    "[" * 5_000,
    '[{"id":"a","devmem":-1}]',
)
_HAD = (
    *("GPU-0,NVIDIA-A30,4096,10:", "GPU-0,NVIDIA-A30,4096,10:;GPU-1,NVIDIA,1,1:", "GPU-0[0-1],NVIDIA-A30,6144,0:"),
    *("GPU-9,x,1,1:", "GPU-0[9-99999999999],a,1,1:", "GPU-0,a,-5,1000000000000:", ";;;", "GPU-0", "\ud7ff,,,:" * 300),
)
_PREFERRED = {
    "volcano.sh/vgpu-mode": ("hami-core", "mig", "x"),
    "nvidia.com/use-gputype": ("A30", ",", "a" * 5_000),
    "nvidia.com/nouse-gputype": ("A30", ""),
    "volcano.sh/vgpu-use-gpuuuid": ("GPU-0", "GPU-0,GPU-1", ",,"),
    "volcano.sh/vgpu-podgroup-policy": ("spread", "Spread"),
    "hami.io/use-Ascend310P-uuid": ("npu-0", ""),
}
_AMOUNTS = ("1", "2", "1000", "0", "1000000000", "1k", "0.5", "9223372036854775807")


def add_cards(dice: Random, objects: list[Raw]) -> None:
    """Have some nodes say that they have cards, and some pods ask for parts of them, or say what they have."""
    for each in objects:
        if each["kind"] == "Node" and dice.random() < 0.8:
            _to_node(dice, each)
        elif each["kind"] == "Pod" and dice.random() < 0.7:
            _to_pod(dice, each)


def _to_node(dice: Random, node: Raw) -> None:
    count, npus = dice.randint(1, 3), dice.randint(1, 2)
    card = dice.choice(_CARDS if dice.random() < 0.8 else _WRONG_CARDS)
    listed = ",".join(_NPU_CARD.format(i=i) for i in range(npus))
    said: Raw = {REGISTER: "".join(card.format(i=i) for i in range(count))}
    if dice.random() < 0.3:
        said[NPU_REGISTER] = f"[{listed}]" if dice.random() < 0.7 else dice.choice(_WRONG_NPUS)
    if dice.random() < 0.2:
        said[UNHEALTHY] = dice.choice(("0", "0,1", "-1", "x", "99999999999999999999", "," * 5_000))
    if dice.random() < 0.2:
        said[LOCK] = dice.choice(("2026-01-15T08:00:00Z", "1970-01-01T00:00:00Z", "now", ""))
    node["metadata"]["annotations"] = said
    offered = {
        "volcano.sh/vgpu-number": str(10 * count),
        "volcano.sh/vgpu-memory": str(16_384 * count),
        "volcano.sh/vgpu-cores": str(100 * count),
        "volcano.sh/gpu-memory": str(16_384 * count),
        "volcano.sh/gpu-number": str(count),
        NPU: str(4 * npus),
        f"{NPU}-memory": str(21_527 * npus),
    }
    for room in (node["status"]["allocatable"], node["status"]["capacity"]):
        room.update(offered)


def _to_pod(dice: Random, pod: Raw) -> None:
    asked = dice.choice(
        (
            {"volcano.sh/vgpu-number": dice.choice(_AMOUNTS), "volcano.sh/vgpu-memory": dice.choice(_AMOUNTS)},
            {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory-percentage": dice.choice(("50", "101", "-1"))},
            {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-cores": dice.choice(("10", "100", "1000000000"))},
            {"volcano.sh/gpu-memory": dice.choice(_AMOUNTS)},
            {NPU: "1", f"{NPU}-memory": dice.choice(_AMOUNTS)},
        )
    )
    resources = pod["spec"]["containers"][0]["resources"]
    resources["limits"] = asked
    resources["requests"] |= asked
    said = pod["metadata"]["annotations"]
    for key, values in _PREFERRED.items():
        if dice.random() < 0.15:
            said[key] = dice.choice(values)
    if "nodeName" in pod["spec"]:
        said["volcano.sh/vgpu-ids-new"] = dice.choice(_HAD)
        said["volcano.sh/gpu-index"] = dice.choice(("0", "0,1", "-1", "x", "9" * 40))
