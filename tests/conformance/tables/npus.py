"""Checks of the function tables of NPUs that pods share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace

from pumice.framework.plugin.filter_result import Unfit
from pumice.model.devices import shared_devices as words
from pumice.testing.build import node, resource
from pumice.volcano.devices.cards import COLUMNS, Card, Cards, card_score
from pumice.volcano.devices.config import DEFAULT, NpuKind, Template
from pumice.volcano.devices.npus import NpuAsk, Npus, fits, given_npus, may_split
from tests.conformance.tables.devices import ask_of, pod_of, used_of
from tests.conformance.tables.table import Row, difference, disagreement, table

_NPU = "api-devices-ascend-hami"


def _kind(raw: Mapping[str, Any]) -> NpuKind:
    templates = tuple(Template(each["Name"], each["Memory"]) for each in raw.get("Templates", ()))
    names = raw["CommonWord"], raw["ResourceName"], raw["ResourceMemoryName"]
    return NpuKind(*names, raw["MemoryAllocatable"], raw["MemoryCapacity"], templates)


def _npu(raw: Mapping[str, Any]) -> Card:
    info = raw["DeviceInfo"]
    return Card(info["Count"], info["Devmem"], cores=info["Devcore"])


def _of_npu(raw: Mapping[str, Any]) -> list[int]:
    return used_of(raw.get("DeviceUsage", {}), "Used", "Usedmem", "Usedcores")


@table(f"{_NPU}/TestAscendDevice_GetNodeDevices_HAMiVnpuCore.yaml")
def npus_of_a_node(row: Row) -> str | None:
    kind = Npus(NpuKind("Ascend910A", "huawei.com/Ascend910A", "huawei.com/Ascend910A-memory", 32_768, 32_768))
    there = replace(node("n", annotations=row["annotations"]), allocatable=resource(1, **{"huawei.com/Ascend910A": 1}))
    cards = kind.cards_of(there)
    assert cards is not None
    assert cards.ids == ("dev-1",)
    return disagreement(cards.mode == words.HAMI_CORE, row.get("expectSupport", False))


@table(f"{_NPU}/TestAscendDevicesFilterNodeErrorClassification.yaml", wants=("status",))
def why_npus_do_not_fit(row: Row) -> str | None:
    devices = row["devices"]
    config = {
        "CommonWord": "Ascend910A",
        "ResourceName": "huawei.com/Ascend910A",
        "ResourceMemoryName": "huawei.com/Ascend910A-memory",
        "MemoryAllocatable": 32_768,
        "MemoryCapacity": 32_768,
    }
    kind = Npus(_kind(next((each["config"] for each in devices.values()), config)))
    cards = Cards(tuple(map(_npu, devices.values())), tuple(devices))
    used = np.array([_of_npu(each) for each in devices.values()], dtype=np.int64).reshape(-1, COLUMNS)
    found = kind.place(kind.asked(ask_of(row["pod"])), cards, used, np.zeros(len(devices), dtype=bool), "")
    return disagreement(int(found.code) if isinstance(found, Unfit) else 0, row["status"])


@table(f"{_NPU}/TestAscendDevices_AddResource.yaml")
def npus_of_a_pod(row: Row) -> str | None:
    devices = row.get("ascendDevices", {}).get("Devices", {})
    used = np.array([_of_npu(each) for each in devices.values()], dtype=np.int64).reshape(-1, COLUMNS)
    before = used.copy()
    for part in given_npus(pod_of(row["pod"]).annotations.get("", ""), tuple(devices)):
        part.add_to(used)
    found = {
        name: dict(zip(("Used", "Usedmem", "Usedcores"), used[i].tolist(), strict=False))
        for i, name in enumerate(devices)
        if (used[i] != before[i]).any()
    }
    return difference(found, row.get("expectedUsage", {}))


@table(f"{_NPU}/TestCalScore.yaml")
def score_of_an_npu(row: Row) -> str | None:
    used = used_of(row["usage"], "Used", "Usedmem", "Usedcores")
    return disagreement(card_score(row["policy"], row["info"].get("Devmem", 0), used), row.get("want", 0))


@table(f"{_NPU}/Test_fit.yaml")
def npu_fits(row: Row) -> str | None:
    device, asked = row["dev"], row["req"]
    mode = words.HAMI_CORE if device.get("hamiVnpuCore") else ""
    found = asked["Type"] == device["config"]["CommonWord"] and fits(
        _npu(device),
        _of_npu(device),
        asked["Memreq"],
        asked.get("Coresreq", 0),
        by_core=row.get("isHAMiCore", False),
        mode=mode,
    )
    return disagreement(found, row.get("result", False))


@table(f"{_NPU}/Test_trimMemory.yaml")
def memory_rounded_up(row: Row) -> str | None:
    return disagreement(DEFAULT.npus[0].template_for(row.get("inputMem", 0))[0], row.get("wantMem", 0))


@table(f"{_NPU}/Test_verifyReq.yaml", wants=("pass",))
def npus_whole(row: Row) -> str | None:
    found = may_split(DEFAULT.npus[0], NpuAsk(row["req"]["Nums"], row["req"]["Memreq"]))
    return disagreement(found, row.get("pass", False))
