"""Name the actions, plugins and defaults of the KAI language, as a literal table. An entry is imported when a policy
names it.
"""

from __future__ import annotations

from pumice.framework.plugin.registry import Dialect, actions_at, plugins_at
from pumice.kai.accounting import ACCOUNTING
from pumice.kai.begin import STUCK, begin, stuck_problems
from pumice.kai.engine.tree_order import QUEUE_DEPTH, depth_problems
from pumice.kai.points import POINTS
from pumice.kai.search_budgets import SEARCH_BUDGETS, budget_problems
from pumice.kai.status import close, nominations, notices

NAME = "kai"

ACTIONS = actions_at(
    {
        "allocate": "pumice.kai.actions.allocate:allocate",
        "consolidation": "pumice.kai.actions.consolidation:consolidation",
        "reclaim": "pumice.kai.actions.reclaim:reclaim",
        "preempt": "pumice.kai.actions.preempt:preempt",
        "stalegangeviction": "pumice.kai.actions.stalegangeviction:stalegangeviction",
    },
    # A gang goes stale by the clock, also while no job waits.
    also_when_idle=("stalegangeviction",),
)
#: Hooks that are given jobs or tasks and read nothing of them that differs between equal ones ("": the plugin is the
#: hook), as in ``pumice.volcano.table``. If all that are asked are listed, equal jobs share a failure. A listed
#: ``on_allocate`` refuses no placement, whichever the job and its queue.
_EQUAL_ANSWERS = {
    "gpupack": ("",),
    "gpuspread": ("",),
    "minruntime": ("preempt_valid", "preempt_victims", "reclaim_valid", "reclaim_victims"),
    "numa": ("on_allocate",),
    "proportion": ("may_reclaim", "on_allocate", "reclaim_valid", "reclaim_victims"),
}
PLUGINS = plugins_at(
    {
        "predicates": "pumice.kai.plugins.predicates:Predicates",
        "proportion": "pumice.kai.plugins.proportion:Proportion",
        "priority": "pumice.kai.plugins.priority:priority",
        "elastic": "pumice.kai.plugins.elastic:elastic",
        "nodeavailability": "pumice.kai.plugins.nodeavailability:nodeavailability",
        "resourcetype": "pumice.kai.plugins.resourcetype:resourcetype",
        "taskorder": "pumice.kai.plugins.taskorder:taskorder",
        "nodeplacement": "pumice.kai.plugins.nodeplacement:NodePlacement",
        "gpusharingorder": "pumice.kai.plugins.gpusharingorder:gpusharingorder",
        "gpupack": "pumice.kai.plugins.gpupack:gpupack",
        "gpuspread": "pumice.kai.plugins.gpuspread:gpuspread",
        "topology": "pumice.kai.plugins.topology:TopologyPlugin",
        "kubeflow": "pumice.kai.plugins.kubeflow:kubeflow",
        "ray": "pumice.kai.plugins.ray:ray",
        "subgrouporder": "pumice.kai.plugins.subgrouporder:subgrouporder",
        "nominatednode": "pumice.kai.plugins.nominatednode:NominatedNode",
        "numa": "pumice.kai.plugins.numa:Numa",
        "minruntime": "pumice.kai.plugins.minruntime:MinRuntime",
        "dynamicresources": "pumice.kai.plugins.dynamicresources:DynamicResources",
        "podaffinity": "pumice.kai.plugins.podaffinity:PodAffinity",
        "snapshot": "pumice.kai.plugins.snapshot:snapshot",
        "sg-nodelocalgreedy": "pumice.kai.plugins.scenario_generators:nodelocalgreedy",
        "sg-multinodegang": "pumice.kai.plugins.scenario_generators:multinodegang",
        "reflectjoborder": "pumice.kai.plugins.reflectjoborder:reflectjoborder",
    },
    _EQUAL_ANSWERS,
)

#: Default order of actions and plugins, as in KAI.
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
    "sg-nodelocalgreedy",
    "sg-multinodegang",
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

KAI = Dialect(
    ACTIONS,
    PLUGINS,
    points=POINTS,
    accounting=ACCOUNTING,
    opens=begin,
    closes=close,
    sections={
        QUEUE_DEPTH: depth_problems,
        # Checked by the shell, which reads files and asks the database: ``pumice.runtime.usage.history_settings``.
        "usageDBConfig": lambda section: iter(()),
        SEARCH_BUDGETS: budget_problems,
        STUCK: stuck_problems,
    },
    notices=notices,
    nominations=nominations,
    default_actions=DEFAULT_ACTIONS,
    default_tiers=({"plugins": [{"name": name} for name in DEFAULT_PLUGINS]},),
    name=NAME,
    scheduler="kai-scheduler",
    default_queue="default-queue",
)
