"""gpuplacement: each policy by where it puts a pod and on which device; rows answer alone as together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task, TaskClass
from pumice.cycle import run_cycle
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PolicyError
from pumice.kai import devices as kai_devices
from pumice.model.decisions import GPU_GROUPS, Bind
from pumice.model.devices.gpu import GPU_GROUP_LABEL, GPU_MEMORY_LABEL, GpuShare
from pumice.model.events import Object, Seen
from pumice.model.pod import Pod
from pumice.ours.free_gpus import MODEL_LABEL, FreeGpus, ask_of
from pumice.ours.plugins import gpuplacement
from pumice.ours.plugins.gpuplacement import POLICIES
from pumice.placing import derived as derived_facts
from pumice.state.store import Store
from tests.unit.kai.cluster import NOW, Planner, Ran, cycle, job, node, policy, queue, store


def sharing(name: str, on: str, part: float, group: str = "") -> list[Object]:
    """A job of one pod with a part of a GPU."""
    labels = {GPU_GROUP_LABEL: group} if group else {}
    return [
        replace(obj, spec=replace(obj.spec, gpu_share=GpuShare(part)), labels=labels) if isinstance(obj, Pod) else obj
        for obj in job(name, "q", [on], gpus=0)
    ]


def placed(found: Store, name: str, **arguments: Any) -> Ran:
    plugin = {"name": "gpuplacement", "arguments": {"policy": name, **arguments}}
    return cycle(found, policy(["allocate"], ["predicates", plugin]))


def mixed() -> Store:
    """Three nodes: one empty, one with a part of a GPU in use, one with a whole one."""
    return store(
        *(node("a", 4), node("b", 4), node("c", 4), queue("q")),
        *sharing("part", "b", 0.6, "g"),
        *job("whole", "q", ["c"]),
        *sharing("j", "", 0.4),
    )


@pytest.mark.parametrize(
    ("name", "where"),
    [("dotprod", "a"), ("clustering", "b"), ("packing", "b"), ("bestfit", "c"), ("fgd", "b"), ("priced", "b")],
)
def test_a_part_goes_where_the_policy_says(name: str, where: str) -> None:
    """Of equal scores, which whole numbers often are (dotprod), the first name's node is taken."""
    assert placed(mixed(), name).binds == {"j-0": where}


def test_random_goes_anywhere_by_its_seed_and_always_the_same() -> None:
    found = [placed(mixed(), "random", seed=seed).binds["j-0"] for seed in range(12)]
    assert set(found) == {"a", "b", "c"}
    assert [placed(mixed(), "random", seed=seed).binds["j-0"] for seed in range(12)] == found


@pytest.mark.parametrize("name", ["bestfit", "fgd", "priced"])
def test_the_device_is_the_one_that_it_fills(name: str) -> None:
    found = store(
        *(node("a", 3), queue("q")),
        *sharing("r", "a", 0.3, "roomy"),
        *sharing("t", "a", 0.6, "tight"),
        *sharing("j", "", 0.4),
    )
    ran = placed(found, name)
    assert [each.context[GPU_GROUPS] for each in ran.decisions if isinstance(each, Bind)] == [("tight",)]


@pytest.mark.parametrize("share", [GpuShare(memory_mib=4000), GpuShare(0.4, devices=2)], ids=["memory", "two devices"])
@pytest.mark.parametrize("name", ["fgd", "priced"])
def test_a_share_that_counts_as_whole_devices_is_placed_beside_others(name: str, share: GpuShare) -> None:
    """Where scores are of nodes and not of devices."""
    group, *pods = sharing("j", "", 0.4)[1:]
    asks = [replace(pod, spec=replace(pod.spec, gpu_share=share)) for pod in pods if isinstance(pod, Pod)]
    machine = node("a", 3, labels={GPU_MEMORY_LABEL: "8000"})
    found = store(machine, queue("q"), *sharing("r", "a", 0.3, "roomy"), group, *asks)
    assert placed(found, name).binds == {"j-0": "a"}


def test_whole_gpus_and_pods_without_any_are_placed_too() -> None:
    for name in POLICIES:
        found = store(node("a", 4), node("b", 0), queue("q"), *job("g", "q", ["", ""], 2), *job("c", "q", [""], 0))
        assert placed(found, name).binds["g-0"] == "a"
        assert len(placed(found, name).binds) == 3


def test_models_fill_evenly_so_that_who_must_have_one_finds_it() -> None:
    """Three GPUs of each model, a pod on one of the first: the next that may choose goes to the other, though its name
    comes later."""
    nodes = [replace(node(name, 3), labels={MODEL_LABEL: model}) for name, model in (("a", "V100"), ("b", "T4"))]
    found = store(*nodes, queue("q"), *job("old", "q", ["a"]), *job("j", "q", [""]))
    assert placed(found, "priced").binds == {"j-0": "b"}


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("random", "priced")])
def test_rows_answer_alone_as_together_and_as_after_placements(name: str) -> None:
    plugin = {"name": "gpuplacement", "arguments": {"policy": name}}
    found = store(
        *(node("a", 4), node("b", 8), node("c", 2), queue("q")), *sharing("p", "b", 0.5), *job("w", "q", [""])
    )
    ssn = Session(found.snapshot(), policy(["allocate"], ["predicates", plugin]), NOW, Planner(), Memo())
    ssn.open()
    (hook,) = (h for h in ssn.hooks.at(points.node_order) if h.plugin == "gpuplacement")
    row = next(r for r in ssn.tables.tasks.alive.nonzero()[0] if ssn.tables.tasks.pods[r].name == "w-0")
    cls = TaskClass(ssn.tables, int(ssn.tables.tasks.cls[row]))
    together = ssn.hooks.ask_one(hook, cls, NodeRows(ssn.tables, np.arange(3), whole=True))
    alone = [ssn.hooks.ask_one(hook, cls, NodeRows(ssn.tables, np.array([i])))[0] for i in range(3)]
    assert together.tolist() == alone
    later = NodeRows(ssn.tables, np.array([0]), after=np.array([1.0]), cls=cls.row)
    expected = ssn.hooks.ask_one(hook, cls, later)[0]
    with ssn.statement() as stmt:
        stmt.allocate([int(row)], [0])
        assert ssn.hooks.ask_one(hook, cls, NodeRows(ssn.tables, np.array([0])))[0] == expected
    assert ssn.hooks.ask_one(hook, cls, NodeRows(ssn.tables, np.array([0])))[0] == together[0]


def test_bids_for_a_node_do_not_depend_on_who_else_is_asked() -> None:
    found = store(
        *(node("a", 4), node("b", 8), node("c", 2), queue("q")), *sharing("p", "b", 0.5), *job("w", "q", [""])
    )
    plugin = {"name": "gpuplacement", "arguments": {"policy": "priced"}}
    ssn = Session(found.snapshot(), policy(["allocate"], ["predicates", plugin]), NOW, Planner(), Memo())
    ssn.open()
    (hook,) = (h for h in ssn.hooks.at(points.batch_node_order) if h.plugin == "gpuplacement")
    row = next(r for r in ssn.tables.tasks.alive.nonzero()[0] if ssn.tables.tasks.pods[r].name == "w-0")
    task = Task(ssn.tables, int(row))
    together = ssn.hooks.ask_one(hook, task, NodeRows(ssn.tables, np.arange(3), whole=True))
    alone = [ssn.hooks.ask_one(hook, task, NodeRows(ssn.tables, np.array([i])))[0] for i in range(3)]
    assert together.tolist() == alone


def test_what_is_free_of_gpus_and_what_is_asked_of_them() -> None:
    ssn = Session(mixed().snapshot(), policy(["allocate"], ["predicates"]), NOW, Planner(), Memo())
    ssn.open()
    room = FreeGpus(ssn).room(NodeRows(ssn.tables, np.arange(3), whole=True))
    assert room.gpus.tolist() == [[1000.0] * 4, [1000.0] * 3 + [400.0], [1000.0] * 3 + [0.0]]
    tasks = ssn.tables.tasks
    asks = {tasks.pods[r].name: ask_of(TaskClass(ssn.tables, int(tasks.cls[r]))) for r in tasks.alive.nonzero()[0]}
    assert asks["j-0"][1:] == (1, 400.0)
    assert asks["whole-0"][1:] == (1, 1000.0)


def test_what_nodes_say_is_read_once_for_as_long_as_no_node_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle costs what has changed: memory of GPUs, MIG strategies and typical pods are kept from one to the next."""
    found, memo, read = mixed(), Memo(), list[str]()
    for module, name in ((kai_devices, "memory_of"), (gpuplacement, "Typical"), (derived_facts, "LabelColumn")):
        monkeypatch.setattr(module, name, _noted(read, name, getattr(module, name)))
    by = policy(["allocate"], ["predicates", {"name": "gpuplacement", "arguments": {"policy": "priced"}}])
    for _ in range(2):
        run_cycle(found.snapshot(), by, NOW, Planner(), memo=memo)
    assert read.count("memory_of") == read.count("Typical") == 1
    labels = read.count("LabelColumn")
    found.apply(Seen(node("d", 4)))
    found.take_in()
    run_cycle(found.snapshot(), by, NOW, Planner(), memo=memo)
    assert (read.count("memory_of"), read.count("LabelColumn")) == (2, 2 * labels)


def _noted(read: list[str], name: str, call: Any) -> Any:
    def noted(*given: Any) -> Any:
        read.append(name)
        return call(*given)

    return noted


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(PolicyError, match='policy: found "best", wanted random, dotprod|wanted one of'):
        placed(mixed(), "best")
