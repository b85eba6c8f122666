"""Shared GPUs: what slots hold, and what follows for whole GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.columns.gpus.devices import (
    HELD,
    LEFT,
    PROMISED,
    Choice,
    DeviceLedger,
    charge_of_memory,
    slots_of,
    whole_gpus,
)
from pumice.columns.nodes import FUTURE, IDLE, PIPELINED, RELEASING, USED
from pumice.framework.cycle.session import Session
from pumice.kai.devices import open_devices
from pumice.kai.table import DEFAULT_CONF
from pumice.model.devices.gpu import GPU_GROUP_LABEL, RESERVATION_NAMESPACE, GpuShare
from pumice.model.node import Node
from pumice.model.pod import Pod, PodSpec
from pumice.model.resources import Resource
from pumice.model.status import TaskStatus
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import cluster, session

GPU = "nvidia.com/gpu"
HALF, THIRD, MEMORY = GpuShare(0.5), GpuShare(0.33, devices=2), GpuShare(memory_mib=300)


def node(name: str, gpus: int, mib: int = 1000) -> Node:
    amount = Resource(8000.0, 1e9, {GPU: 1000.0 * gpus}, 110)
    return Node(name, amount, labels={"nvidia.com/gpu.memory": str(mib)} if mib else {})


def pod(name: str, share: GpuShare, where: str = "", group: str = "", *, leaves: bool = False) -> Pod:
    return Pod(
        "n",
        name,
        name,
        PodSpec(Resource(100.0, 1e6), gpu_share=share),
        labels={GPU_GROUP_LABEL: group} if group else {},
        node_name=where,
        phase="Running" if where else "Pending",
        deletion=1.0 if leaves else None,
    )


def opened(*objects: Any) -> tuple[Session, DeviceLedger]:
    ssn = session(cluster(*objects), policy_of(DEFAULT_CONF, builtin_registry()))
    assert ssn.ledger.devices is not None
    return ssn, ssn.ledger.devices


def gpu_books(ssn: Session, row: int = 0) -> list[float]:
    """Whole GPUs: idle, used, releasing, pipelined, future."""
    return (ssn.tables.nodes.books[row, :, ssn.tables.axis.column[GPU]] / 1000).tolist()


def row_of(ssn: Session, name: str) -> int:
    return next(i for i, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.name == name)


def slot_of(ssn: Session, devices: DeviceLedger, name: str) -> int:
    (slot,) = slots_of(int(devices.of.array[row_of(ssn, name)]))
    return slot


@pytest.mark.parametrize(
    ("sums", "books"),
    [
        ({}, {}),
        ({HELD: 1}, {IDLE: -1, USED: 1, FUTURE: -1}),
        ({LEFT: 1}, {IDLE: -1, USED: 1, RELEASING: 1}),
        ({PROMISED: 1}, {PIPELINED: 1, FUTURE: -1}),
        ({LEFT: 1, PROMISED: 1}, {IDLE: -1, USED: 1, FUTURE: -1}),
        ({HELD: 1, LEFT: 1, PROMISED: 1}, {IDLE: -1, USED: 1, FUTURE: -1}),
    ],
)
def test_what_a_slot_does_to_whole_gpus(sums: dict[int, int], books: dict[int, int]) -> None:
    found = whole_gpus(np.array([[sums.get(i, 0) for i in range(3)]], dtype=np.float64))
    assert found.tolist() == [books.get(i, 0) for i in range(5)]
    assert found[FUTURE] == found[IDLE] + found[RELEASING] - found[PIPELINED]


def test_pods_of_one_group_are_on_one_device_and_those_of_none_on_their_own() -> None:
    ssn, devices = opened(
        node("a", 4),
        pod("p", HALF, "a", "g"),
        pod("q", HALF, "a", "g", leaves=True),
        pod("r", MEMORY, "a"),
        pod("s", HALF, "a", "h", leaves=True),
    )
    assert gpu_books(ssn) == [1, 3, 1, 0, 2]
    assert sorted(map(tuple, devices.shares.array[0].tolist()), reverse=True)[:3] == [
        (500, 500, 0),
        (300, 0, 0),
        (0, 500, 0),
    ]
    assert devices.groups_of(row_of(ssn, "p")) == devices.groups_of(row_of(ssn, "q")) == ("g",)


@pytest.mark.parametrize(
    ("share", "soon", "count"),
    [
        (HALF, False, 2 + 1),  # beside r, beside p once q has left, and a whole one
        (HALF, True, 2 + 2),
        (GpuShare(0.8), False, 1),
        (GpuShare(memory_mib=700), False, 1 + 1),
        (GpuShare(memory_mib=1001), True, 0),
        (GpuShare(1.0, problem="x"), True, 0),
    ],
)
def test_on_how_many_devices_there_is_room(share: GpuShare, soon: bool, count: int) -> None:
    _, devices = opened(
        node("a", 4),
        pod("p", HALF, "a", "g"),
        pod("q", HALF, "a", "g", leaves=True),
        pod("r", MEMORY, "a"),
        pod("s", HALF, "a", "h", leaves=True),
    )
    assert devices.count(share, soon=soon).tolist() == [count]


@pytest.mark.parametrize("gpus", [0, 1, 2])
def test_groups_without_a_device_are_closed_and_reserved_or_older_ones_are_not(gpus: int) -> None:
    """Of four groups as many may be joined as the node has devices."""
    old, young = (replace(pod(name, HALF, "a", name), creation=at) for name, at in (("old", 1.0), ("young", 2.0)))
    late = replace(pod("late", HALF, "a", "reserved"), creation=3.0)
    holds = replace(pod("holds", HALF, "a", "reserved"), namespace=RESERVATION_NAMESPACE, creation=3.0)
    holds = replace(holds, spec=PodSpec(Resource(scalars={GPU: 1000.0})))
    ssn, devices = opened(node("a", gpus), node("b", 1), old, young, late, holds, pod("bare", HALF, "a"))
    for soon in (True, False):
        joins = devices.joins(np.full(2, 100.0), soon=soon)[0]
        open_to = [name for name in ("late", "bare", "old", "young") if joins[slot_of(ssn, devices, name)]]
        assert open_to == ["late", "bare", "old", "young"][:gpus]
    assert devices.count(HALF, soon=True).tolist() == [gpus, 1]
    assert gpu_books(ssn)[:2] == [gpus - 4, 4], "what is over counts all the same"


def test_memory_fits_only_where_the_node_says_how_much_there_is() -> None:
    _, devices = opened(node("a", 2, mib=0), pod("p", HALF, "a", "g"))
    assert devices.count(MEMORY, soon=True).tolist() == [0]
    assert devices.count(HALF, soon=True).tolist() == [2]


def test_the_best_devices_are_chosen_by_what_is_used_of_them() -> None:
    _, devices = opened(node("a", 3), pod("p", HALF, "a", "g"), pod("r", MEMORY, "a", "h"))

    def chosen(share: GpuShare, sign: float) -> Choice | None:
        return devices.choose(0, share, lambda used: sign * used)

    assert chosen(HALF, 1.0) == Choice(0b001, True)
    assert chosen(HALF, -1.0) == Choice(0b100, True)
    assert chosen(THIRD, 1.0) == Choice(0b011, True)
    assert chosen(GpuShare(0.5, devices=4), 1.0) is None


def test_moves_are_booked_and_a_rollback_restores_every_byte() -> None:
    ssn, devices = opened(node("a", 2), node("b", 2), pod("p", HALF, "a", "g"), pod("w", HALF))
    before, row = ssn.world.digest(), row_of(ssn, "w")
    with ssn.statement() as stmt:
        devices.assign(row, 0, 0b1)
        stmt.allocate([row], [0])
        assert gpu_books(ssn) == [1, 1, 0, 0, 1]
        stmt.evict([row_of(ssn, "p")], "why")
        assert gpu_books(ssn) == [1, 1, 0, 0, 1], "one stays on the device"
        stmt.evict([row], "why")
        assert gpu_books(ssn) == [1, 1, 1, 0, 2]
        devices.reassign(row, 1, 0b10)
        stmt.promise_another([row], [1])
        assert (gpu_books(ssn), gpu_books(ssn, 1)) == ([1, 1, 1, 0, 2], [2, 0, 0, 1, 1])
        stmt.stay([row_of(ssn, "p")])
        assert gpu_books(ssn) == [1, 1, 0, 0, 1]
    assert ssn.world.digest() == before


def test_a_task_may_stay_where_it_would_be_put_again() -> None:
    ssn, devices = opened(node("a", 2), pod("p", HALF, "a", "g"))
    row = row_of(ssn, "p")
    with ssn.statement() as stmt:
        stmt.evict([row], "why")
        assert int(ssn.tables.tasks.status[row]) == TaskStatus.RELEASING
        choice = devices.choose(0, HALF, lambda used: used)
        assert choice is not None and devices.may_stay(row, choice)


@pytest.mark.parametrize("count", [2, 6])
def test_tasks_that_are_there_already_are_written_in_one_go(count: int) -> None:
    """A cycle opens with three writes, however many pods share GPUs."""
    ssn, _ = opened(node("a", 2), node("b", 2), *(pod(f"p{i}", THIRD, "ab"[i % 2]) for i in range(count)))
    mark = ssn.journal.mark()
    open_devices(ssn)
    assert ssn.journal.mark() - mark == 3


def test_a_session_without_such_pods_keeps_no_devices() -> None:
    ssn = session(cluster(node("a", 2)), policy_of(DEFAULT_CONF, builtin_registry()))
    open_devices(ssn)
    assert ssn.ledger.devices is None


@pytest.mark.parametrize(("memory", "milli"), [(500, 500), (1, 10), (333, 340), (1000, 1000)])
def test_memory_counts_in_hundredths_rounded_up(memory: float, milli: float) -> None:
    assert charge_of_memory(memory, 1000.0) == milli
