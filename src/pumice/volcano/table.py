"""Name the actions, plugins and defaults of the Volcano language, as a literal table. An entry is imported when a
policy names it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.framework.plugin.registry import Dialect, Registry, Switches, actions_at, plugins_at
from pumice.volcano.accounting import ACCOUNTING
from pumice.volcano.begin import begin
from pumice.volcano.points import FEATURE_SWITCHES, POINTS
from pumice.volcano.status.closing import close
from pumice.volcano.status.fit_errors import nominations, notices
from pumice.volcano.topology.rules import nothing_waits

ACTIONS = actions_at(
    {
        "enqueue": "pumice.volcano.actions.enqueue:enqueue",
        "allocate": "pumice.volcano.actions.allocate:allocate",
        "backfill": "pumice.volcano.actions.backfill:backfill",
        "preempt": "pumice.volcano.actions.preempt:preempt",
        "reclaim": "pumice.volcano.actions.reclaim:reclaim",
        "gangpreempt": "pumice.volcano.actions.gangpreempt:gangpreempt",
        "gangreclaim": "pumice.volcano.actions.gangreclaim:gangreclaim",
        "shuffle": "pumice.volcano.actions.shuffle:shuffle",
    },
    # It evicts what runs, for which no job has to wait.
    also_when_idle=("shuffle",),
)
#: Hooks that are given single jobs or tasks and read nothing of them that differs between equal ones. So one answer
#: serves all equal jobs. A hook that is not listed, and each of a plugin from outside, is asked for every one, since
#: it may read a name or a label. ``testing.checks.twins`` asks the listed ones about equal jobs.
_EQUAL_ANSWERS = {
    "capacity": (
        *("allocatable", "reclaimable", "preemptive"),
        *("simulate_remove", "simulate_add", "simulate_allocatable"),
    ),
    "conformance": ("evictable",),
    "drf": ("preemptable", "reclaimable"),
    "gang": (
        "job_valid",
        "job_ready",
        "sub_job_ready",
        "job_pipelined",
        "sub_job_pipelined",
        "job_starving",
        "evictable",
    ),
    "network-topology-aware": (
        "gradient_for_sub_job",
        "hyper_node_order",
        "near_its_gang",
        "full_hypernodes",
    ),
    "predicates": ("simulate_remove", "simulate_add", "simulate_predicate"),
    "priority": ("job_starving", "preemptable"),
    "proportion": (
        *("allocatable", "reclaimable", "preemptive"),
        *("simulate_remove", "simulate_add", "simulate_allocatable"),
    ),
    "tdm": ("job_pipelined",),
}
PLUGINS = plugins_at(
    {
        "binpack": "pumice.volcano.plugins.binpack:Binpack",
        "capacity": "pumice.volcano.plugins.capacity:Capacity",
        "cdp": "pumice.volcano.plugins.cdp:Cooldown",
        "conformance": "pumice.volcano.plugins.conformance:Conformance",
        "deviceshare": "pumice.volcano.plugins.deviceshare:DeviceShare",
        "drf": "pumice.volcano.plugins.drf:Drf",
        "extender": "pumice.volcano.plugins.extender:Extender",
        "gang": "pumice.volcano.plugins.gang:Gang",
        "network-topology-aware": "pumice.volcano.plugins.network_topology_aware:NetworkTopologyAware",
        "nodegroup": "pumice.volcano.plugins.nodegroup:NodeGroup",
        "nodeorder": "pumice.volcano.plugins.nodeorder:NodeOrder",
        "numa-aware": "pumice.volcano.plugins.numa_aware:NumaAware",
        "overcommit": "pumice.volcano.plugins.overcommit:Overcommit",
        "pdb": "pumice.volcano.plugins.pdb:Pdb",
        "predicates": "pumice.volcano.plugins.predicates:Predicates",
        "priority": "pumice.volcano.plugins.priority:Priority",
        "proportion": "pumice.volcano.plugins.proportion:Proportion",
        "rescheduling": "pumice.volcano.plugins.rescheduling:Rescheduling",
        "resourcequota": "pumice.volcano.plugins.resourcequota:ResourceQuotas",
        "resource-strategy-fit": "pumice.volcano.plugins.resource_strategy_fit:ResourceStrategyFit",
        "sla": "pumice.volcano.plugins.sla:Sla",
        "task-topology": "pumice.volcano.plugins.task_topology:TaskTopologies",
        "tdm": "pumice.volcano.plugins.tdm:Tdm",
        "usage": "pumice.volcano.plugins.usage:Usage",
    },
    _EQUAL_ANSWERS,
)

DEFAULT_CONF = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


def _conflict(plugins: Mapping[str, Switches]) -> str:
    """Return why plugins cannot be used together, or "". Source: Volcano, validation of the configuration."""
    if "proportion" in plugins and plugins.get("drf", {}).get("Hierarchy"):
        return "proportion and drf with hierarchy enabled conflicts"
    return ""


VOLCANO = Dialect(
    ACTIONS,
    PLUGINS,
    {},  # every action and plugin of Volcano is in the tables
    POINTS,
    FEATURE_SWITCHES,
    _conflict,
    ACCOUNTING,
    nothing_waits,
    begin,
    close,
    notices,
    nominations,
    name="volcano",
    scheduler="volcano",
)


def volcano_registry() -> Registry:
    """Return a registry with the Volcano language only."""
    return Registry({VOLCANO.name: VOLCANO})
