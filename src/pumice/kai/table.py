"""What the KAI dialect has: a literal table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pumice.framework.registry import ActionSpec, Dialect, action_spec, plugin_specs
from pumice.kai.accounting import ACCOUNTING
from pumice.kai.actions.allocate import allocate
from pumice.kai.actions.consolidation import consolidation
from pumice.kai.actions.preempt import preempt
from pumice.kai.actions.reclaim import reclaim
from pumice.kai.actions.stalegangeviction import stalegangeviction
from pumice.kai.devices import open_devices
from pumice.kai.plugins.dynamicresources import DynamicResources
from pumice.kai.plugins.elastic import elastic
from pumice.kai.plugins.gpupack import gpupack
from pumice.kai.plugins.gpuplacement import GpuPlacement
from pumice.kai.plugins.gpusharingorder import gpusharingorder
from pumice.kai.plugins.gpuspread import gpuspread
from pumice.kai.plugins.kubeflow import kubeflow
from pumice.kai.plugins.minruntime import MinRuntime
from pumice.kai.plugins.nodeavailability import nodeavailability
from pumice.kai.plugins.nodeplacement import NodePlacement
from pumice.kai.plugins.nominatednode import NominatedNode
from pumice.kai.plugins.podaffinity import PodAffinity
from pumice.kai.plugins.predicates import Predicates
from pumice.kai.plugins.priority import priority
from pumice.kai.plugins.proportion import Proportion
from pumice.kai.plugins.ray import ray
from pumice.kai.plugins.reflectjoborder import reflectjoborder
from pumice.kai.plugins.resourcetype import resourcetype
from pumice.kai.plugins.snapshot import snapshot
from pumice.kai.plugins.subgrouporder import subgrouporder
from pumice.kai.plugins.taskorder import taskorder
from pumice.kai.plugins.topology import TopologyPlugin
from pumice.kai.points import POINTS
from pumice.kai.status import close, nominations, notices
from pumice.scenario.turns import QUEUE_DEPTH, depth_problems

NAME = "kai"

ACTIONS: dict[str, ActionSpec] = {
    "allocate": action_spec("allocate", allocate, only_for_waiting=True),
    "consolidation": action_spec("consolidation", consolidation, only_for_waiting=True),
    "reclaim": action_spec("reclaim", reclaim, only_for_waiting=True),
    "preempt": action_spec("preempt", preempt, only_for_waiting=True),
    "stalegangeviction": action_spec("stalegangeviction", stalegangeviction),
}
PLUGINS: tuple[Callable[..., Any], ...] = (
    Predicates,
    Proportion,
    priority,
    elastic,
    nodeavailability,
    resourcetype,
    taskorder,
    NodePlacement,
    gpusharingorder,
    gpupack,
    gpuspread,
    GpuPlacement,
    TopologyPlugin,
    kubeflow,
    ray,
    subgrouporder,
    NominatedNode,
    MinRuntime,
    DynamicResources,
    PodAffinity,
    snapshot,
    reflectjoborder,
)

#: KAI's own order of actions and of plugins.
DEFAULT_ACTIONS = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
DEFAULT_PLUGINS = (
    "predicates",
    "proportion",
    "priority",
    "elastic",
    "kubeflow",
    "ray",
    "nodeavailability",
    "gpusharingorder",
    "gpupack",
    "resourcetype",
    "subgrouporder",
    "taskorder",
    "nominatednode",
    "dynamicresources",
    "nodeplacement",
    "minruntime",
    "topology",
    "snapshot",
)
DEFAULT_CONF = "\n".join(
    (
        "dialect: kai",
        f'actions: "{", ".join(DEFAULT_ACTIONS)}"',
        "tiers:",
        "- plugins:",
        *(f"  - name: {name}" for name in DEFAULT_PLUGINS),
        "",
    )
)


def kai_dialect() -> Dialect:
    """KAI's policy language."""
    return Dialect(
        ACTIONS,
        plugin_specs(PLUGINS),
        points=POINTS,
        accounting=ACCOUNTING,
        opens=open_devices,
        closes=close,
        sections={QUEUE_DEPTH: depth_problems, "usageDBConfig": lambda section: iter(())},
        notices=notices,
        nominations=nominations,
        default_actions=DEFAULT_ACTIONS,
        default_plugins=tuple(name for name in DEFAULT_PLUGINS),
        name=NAME,
        scheduler="kai-scheduler",
        default_queue="default-queue",
    )
