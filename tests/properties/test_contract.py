"""Every built-in plugin keeps the contract of plugins: 480 examples each, in clusters that they share."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import read_policy
from pumice.model.devices.shared_devices import ASSIGNED_IDS_ANNOTATION, SPREAD, SPREAD_ANNOTATION
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.runtime.loop import ListPlanner
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import cluster, interned
from pumice.testing.check import BESIDE, SIZE, check_plugin
from pumice.testing.checks.answers import Asking
from pumice.testing.checks.twins import CHANGES, equal_jobs_are_answered_equally, with_twin
from pumice.testing.checks.walk import BEGIN
from pumice.testing.clusters import small_cluster
from pumice.testing.devices import shared_gpus, vgpu
from pumice.volcano.table import volcano_registry

REGISTRY = builtin_registry()
BUILT_IN = tuple(sorted(volcano_registry().dialects["volcano"].plugins))
#: Each part is a process's work of some seconds.
PARTS = 4
SEEDS = 26
EXAMPLES = 480
#: Without a verb, and without a kind of device, they have no hook: they are asked with some below.
ASKED_BY_NO_DEFAULT = {"extender", "deviceshare"}


@pytest.mark.parametrize("part", range(PARTS))
def test_every_built_in_plugin_keeps_the_contract(part: int) -> None:
    """Memo on is memo off, a rollback leaves every answer equal, a snapshot that was saved and read decides the same,
    rows are answered as one by one, in any order. Values of arguments are for one part to try."""
    checked = check_plugin(*BUILT_IN, seeds=range(part * SEEDS, (part + 1) * SEEDS), values=part == 0)
    assert checked.examples.keys() == set(BUILT_IN)
    assert min(checked.examples.values()) >= EXAMPLES // PARTS
    asked = {key.partition(":")[0] for key in checked.asked}
    assert asked == set(BUILT_IN) - ASKED_BY_NO_DEFAULT


#: Fields in which the pods of two jobs may differ and the jobs be equal: nothing is scheduled by them. With another
#: field the tasks are of another class, or do not wait.
FREE_FIELDS = {
    *("name", "namespace", "uid", "creation", "labels", "annotations", "owner", "conditions", "resource_version"),
    *("start_time", "finish_time", "active_deadline_s", "closes_node", "stays", "made_claims"),
}
#: Hooks of the table of equal answers that are asked nothing here: they are notified, or off without other arguments.
NOT_ASKED_OF_TWINS = {"simulate_add", "simulate_remove", "reclaimable of drf"}


def test_every_hook_that_answers_for_equal_jobs_is_asked_about_jobs_that_differ_in_each_field() -> None:
    wants = read_policy({"actions": "enqueue", "tiers": [{"plugins": [{"name": name} for name in BUILT_IN]}]}, REGISTRY)
    # An idle session asks no hook.
    under = replace(wants, actions=tuple(replace(action, only_for_waiting=False) for action in wants.actions))
    asked: dict[str, set[str]] = {}
    for field, seed in product(CHANGES, range(3)):
        dice = Random(seed)
        twins = with_twin(small_cluster(dice, SIZE, None), dice, field)
        if twins is None:
            continue
        ssn = Session(cluster(list(twins.objects)).snapshot(BEGIN), under, BEGIN, ListPlanner(), Memo(keeps=False))
        ssn.open()
        for hook in equal_jobs_are_answered_equally(Asking(ssn, BUILT_IN), twins, dice):
            asked.setdefault(hook, set()).add(field)
    assert {hook: FREE_FIELDS - fields for hook, fields in asked.items() if not fields >= FREE_FIELDS} == {}
    names = {hook.partition(" at ")[0].rpartition(".")[2] for hook in asked}
    specs = [spec for name in BUILT_IN if (spec := REGISTRY.plugin("volcano", name)) is not None]
    assert {method for spec in specs for method in spec.equal_answers} - names <= NOT_ASKED_OF_TWINS


def test_drf_between_queues_keeps_the_contract() -> None:
    """With hierarchy, which proportion does not go with."""
    beside = [name for name in BESIDE if name != "proportion"]
    checked = check_plugin("drf", switches={"enabledHierarchy": True}, beside=beside, seeds=range(20))
    assert {"drf: Drf.queue_order at queue_order", "drf: Drf.reclaimable at reclaimable"} <= checked.asked.keys()


@pytest.mark.parametrize(
    ("plugin", "arguments"),
    [
        ("binpack", {"binpack.resources": "nvidia.com/gpu", "binpack.resources.nvidia.com/gpu": 5}),
        ("nodeorder", {"mostrequested.weight": 2, "leastrequested.weight": 0, "podaffinity.weight": 3}),
        ("predicates", {"predicate.PodAffinityEnable": False, "predicate.CacheEnable": True}),
        ("sla", {"sla-waiting-time": "1m"}),
        ("overcommit", {"overcommit-factor": 1.0}),
        ("gang", {"evictPartialGangsAfter": "1m"}),
        ("gang", {"gatedCount": False}),
        ("extender", {"extender.predicateVerb": "x", "extender.prioritizeVerb": "y", "extender.ignorable": True}),
    ],
)
def test_a_plugin_keeps_the_contract_with_other_arguments(plugin: str, arguments: dict[str, object]) -> None:
    assert check_plugin(plugin, arguments=arguments, seeds=range(8)).examples[plugin]


def with_cards(obj: Any, dice: Random) -> Any:
    """Nodes with cards, and pods that share them: some keep away from others, some have their cards already."""
    if isinstance(obj, Node):
        cards = shared_gpus(obj.name, dice.randint(1, 2), mode=dice.choice(("hami-core", "hami-core", "mig")))
        scalars = {**(obj.allocatable.scalars or {}), **(cards.allocatable.scalars or {})}
        return replace(obj, annotations=cards.annotations, allocatable=replace(obj.allocatable, scalars=scalars))
    if not isinstance(obj, Pod) or dice.random() < 0.3:
        return obj
    ask = vgpu(dice.choice((0, 4000, 9000)), dice.choice((1, 1, 2)), dice.choice((0, 30, 100)))
    said = {SPREAD_ANNOTATION: SPREAD} if dice.random() < 0.3 else {}
    if obj.node_name:
        said[ASSIGNED_IDS_ANNOTATION] = f"{obj.node_name}-0,NVIDIA,{dice.choice((100, 8000))},10:"
    annotations = tuple(said.items()) if SPREAD_ANNOTATION in said else ()
    ask = replace(ask, annotations=annotations[:1])
    return replace(obj, annotations={**obj.annotations, **said}, spec=interned(replace(obj.spec, devices=ask)))


def test_deviceshare_keeps_the_contract() -> None:
    geometries = [{"group": "a", "geometries": [{"name": "1g", "memory": 8192, "count": 2}]}]
    arguments = {
        "deviceshare.VGPUEnable": True,
        "deviceshare.SchedulePolicy": "binpack",
        "deviceshare.ScheduleWeight": 10,
        "deviceshare.GPUExclusiveRules": [{"app": "a"}],
        "deviceshare.DeviceConfig": {
            "nvidia": {"knownMigGeometries": [{"models": ["A30"], "allowedGeometries": geometries}]}
        },
    }
    checked = check_plugin("deviceshare", arguments=arguments, alter=with_cards, seeds=range(8))
    hooks = {f"deviceshare: DeviceShare.{name}" for name in ("fits", "apart", "waits", "node_order")}
    assert {key.partition(" at ")[0] for key in checked.asked} >= hooks


def test_deviceshare_keeps_the_contract_where_nodes_are_locked() -> None:
    arguments = {"deviceshare.VGPUEnable": True, "deviceshare.NodeLockEnable": True}
    checked = check_plugin("deviceshare", arguments=arguments, alter=with_cards, seeds=range(2))
    assert any(key.startswith("deviceshare: DeviceShare.free at ") for key in checked.asked)
