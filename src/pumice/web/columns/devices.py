"""The devices of nodes that are known one by one, as plain columns: how much of each is held, and by how many.

* GPUs that pods share by KAI's labels: each group of pods is a device.
* Devices of ResourceSlices: those that claims have are held. Partitions of one counter set are one device, which is
  held as far as its scarcest counter is used up.
* Cards that Volcano's plugin deviceshare gives out, as it publishes them (``device.memory``, ``device.used``,
  ``device.containers``).

Whole GPUs that a node merely counts are not among them: which pod has which is not known to a scheduler.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import F64, I32, AnyArray
from pumice.columns.tables import Tables
from pumice.framework.cycle.outcome import Outcome
from pumice.model.devices.claims import ResourceSlice
from pumice.model.devices.gpu import gpu_groups, node_gpu_memory
from pumice.model.status import ALLOCATED_STATUSES, TaskStatus
from pumice.web.columns.units import TEXT_MAX

#: Devices that pages show: 5,000 nodes with eight each.
DEVICES_MAX = 40_000
_HOLD = [int(status) for status in (*ALLOCATED_STATUSES, TaskStatus.RELEASING, TaskStatus.STUCK)]


class DeviceRow(Struct, frozen=True):
    """One device. ``share``: how much of it is held, from 0 to 1. ``holders``: pods, containers or claims that hold
    some of it. ``kind``: what knows of it: its driver, or a word for a way to share."""

    node: int
    name: str
    kind: str
    share: float
    holders: int


class DeviceColumns(Struct, frozen=True):
    """The devices (D), node by node. ``node``: into the nodes. ``left_out``: how many more there are."""

    node: I32
    names: list[str]
    kinds: list[str]
    share: F64
    holders: I32
    left_out: int = 0


NO_DEVICES = DeviceColumns(np.zeros(0, dtype=np.int32), [], [], np.zeros(0), np.zeros(0, dtype=np.int32))


def device_columns(outcome: Outcome) -> DeviceColumns:
    """Return the devices of a cycle."""
    tables = outcome.tables
    rows = [*_shared(tables), *_sliced(tables), *_cards(outcome.figures)]
    rows.sort(key=lambda row: row.node)
    shown = rows[:DEVICES_MAX]
    return DeviceColumns(
        np.array([row.node for row in shown], dtype=np.int32),
        [row.name[:TEXT_MAX] for row in shown],
        [row.kind[:TEXT_MAX] for row in shown],
        np.array([row.share for row in shown], dtype=np.float64),
        np.array([row.holders for row in shown], dtype=np.int32),
        len(rows) - len(shown),
    )


def _shared(tables: Tables) -> Iterator[DeviceRow]:
    """Yield the GPUs that pods share by KAI's labels."""
    tasks, specs, objs = tables.tasks, tables.classes.specs, tables.nodes.facts.objs
    shares = np.array([spec is not None and spec.gpu_share is not None for spec in specs], dtype=bool)
    if not shares.any():
        return
    rows = (tasks.alive & (tasks.node >= 0) & np.isin(tasks.status, _HOLD)).nonzero()[0]
    held: dict[tuple[int, str], float] = defaultdict(float)
    holders = Counter[tuple[int, str]]()
    for row in rows[shares[tasks.cls[rows]]].tolist():
        share, node = specs[tasks.cls[row]].gpu_share, int(tasks.node[row])
        memory = node_gpu_memory(objs[node].labels)
        part = share.memory_mib / memory if share.memory_mib and memory else share.fraction
        for group in gpu_groups(tasks.pods[row].labels):
            held[node, group] += 1.0 if share.problem else part
            holders[node, group] += 1
    count = Counter[int]()
    # Groups have long random names, which say nothing to people.
    for node, group in sorted(held):
        name, count[node] = f"GPU {count[node]}", count[node] + 1
        yield DeviceRow(node, name, "shared GPU", min(held[node, group], 1.0), holders[node, group])


def _sliced(tables: Tables) -> Iterator[DeviceRow]:
    """Yield the devices of ResourceSlices of one node."""
    if not len(tables.slices):
        return
    users: dict[tuple[str, str, str], int] = {}
    for claim in tables.claims.objs:
        for device in claim.allocation.devices if claim.allocation is not None else ():
            key = device.driver, device.pool, device.device
            users[key] = users.get(key, 0) + max(len(claim.reserved_for), 1)
    newest: dict[tuple[str, str], int] = {}
    for each in tables.slices.objs:
        key_of_pool = each.driver, each.pool
        newest[key_of_pool] = max(newest.get(key_of_pool, 0), each.generation)
    row_of = tables.nodes.facts.row_of
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in tables.slices.objs:
        if each.node_name in row_of and each.generation == newest[each.driver, each.pool]:
            pools.setdefault((each.driver, each.pool), []).append(each)
    for slices in pools.values():
        yield from _of_pool(slices, row_of[slices[0].node_name], users)


def _of_pool(slices: list[ResourceSlice], node: int, users: Mapping[tuple[str, str, str], int]) -> Iterator[DeviceRow]:
    driver, pool = slices[0].driver, slices[0].pool
    has = {(use.counter_set, use.counter): use.amount for each in slices for use in each.counters}
    used: dict[tuple[str, str], float] = defaultdict(float)
    holders = Counter[str]()
    for device in (device for each in slices for device in each.devices):
        count = users.get((driver, pool, device.name), 0)
        if not device.consumes:
            yield DeviceRow(node, device.name, driver, 1.0 if count else 0.0, count)
        elif count:
            for use in device.consumes:
                used[use.counter_set, use.counter] += use.amount
            holders.update({use.counter_set for use in device.consumes})
    for name in dict.fromkeys(counter_set for counter_set, _ in has):
        parts = [used[key] / amount for key, amount in has.items() if key[0] == name and amount > 0]
        yield DeviceRow(node, name, f"{driver}, partitioned", min(max(parts, default=0.0), 1.0), holders[name])


def _cards(figures: Mapping[str, AnyArray]) -> Iterator[DeviceRow]:
    """Yield the cards that a plugin publishes. Shapes (N, cards)."""
    if "device.memory" not in figures:
        return
    memory, used, containers = (figures[f"device.{name}"] for name in ("memory", "used", "containers"))
    for node, card in zip(*(memory >= 0).nonzero(), strict=True):
        has, holds, count = float(memory[node, card]), float(used[node, card]), int(containers[node, card])
        # A card that is taken whole has no amount of memory that is held.
        share = holds / has if has > 0 and holds > 0 else float(count > 0)
        yield DeviceRow(int(node), f"card {card}", "shared card", min(share, 1.0), count)
