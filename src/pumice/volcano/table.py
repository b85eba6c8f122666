"""What the Volcano dialect has: a literal table."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.framework.registry import ActionSpec, Dialect, Registry, Switches, action_spec, plugin_specs
from pumice.volcano.accounting import ACCOUNTING
from pumice.volcano.actions.allocate import allocate
from pumice.volcano.actions.backfill import backfill
from pumice.volcano.actions.enqueue import enqueue
from pumice.volcano.actions.gangpreempt import gangpreempt
from pumice.volcano.actions.gangreclaim import gangreclaim
from pumice.volcano.actions.preempt import preempt
from pumice.volcano.actions.reclaim import reclaim
from pumice.volcano.actions.shuffle import shuffle
from pumice.volcano.fit_errors import nominations, notices
from pumice.volcano.plugins.binpack import Binpack
from pumice.volcano.plugins.capacity import Capacity
from pumice.volcano.plugins.cdp import Cooldown
from pumice.volcano.plugins.conformance import Conformance
from pumice.volcano.plugins.deviceshare import DeviceShare
from pumice.volcano.plugins.drf import Drf
from pumice.volcano.plugins.extender import Extender
from pumice.volcano.plugins.gang import Gang
from pumice.volcano.plugins.network_topology_aware import NetworkTopologyAware
from pumice.volcano.plugins.nodegroup import NodeGroup
from pumice.volcano.plugins.nodeorder import NodeOrder
from pumice.volcano.plugins.numa_aware import NumaAware
from pumice.volcano.plugins.overcommit import Overcommit
from pumice.volcano.plugins.pdb import Pdb
from pumice.volcano.plugins.predicates import Predicates
from pumice.volcano.plugins.priority import Priority
from pumice.volcano.plugins.proportion import Proportion
from pumice.volcano.plugins.rescheduling import Rescheduling
from pumice.volcano.plugins.resource_strategy_fit import ResourceStrategyFit
from pumice.volcano.plugins.resourcequota import ResourceQuotas
from pumice.volcano.plugins.sla import Sla
from pumice.volcano.plugins.task_topology import TaskTopologies
from pumice.volcano.plugins.tdm import Tdm
from pumice.volcano.plugins.usage import Usage
from pumice.volcano.points import FEATURE_SWITCHES, POINTS
from pumice.volcano.status import close
from pumice.volcano.topology import nothing_waits, recover_hypernodes

ACTIONS: dict[str, ActionSpec] = {
    name: action_spec(name, run, only_for_waiting=True)
    for name, run in (
        ("enqueue", enqueue),
        ("allocate", allocate),
        ("backfill", backfill),
        ("preempt", preempt),
        ("reclaim", reclaim),
        ("gangpreempt", gangpreempt),
        ("gangreclaim", gangreclaim),
    )
} | {"shuffle": action_spec("shuffle", shuffle)}
PLUGINS: tuple[type, ...] = (
    Binpack,
    Capacity,
    Cooldown,
    Conformance,
    DeviceShare,
    Drf,
    Extender,
    Gang,
    NetworkTopologyAware,
    NodeGroup,
    NodeOrder,
    NumaAware,
    Overcommit,
    Pdb,
    Predicates,
    Priority,
    Proportion,
    Rescheduling,
    ResourceQuotas,
    ResourceStrategyFit,
    Sla,
    TaskTopologies,
    Tdm,
    Usage,
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
    """Source: Volcano's check of the tiers."""
    if "proportion" in plugins and plugins.get("drf", {}).get("Hierarchy"):
        return "proportion and drf with hierarchy enabled conflicts"
    return ""


def volcano_registry() -> Registry:
    """A registry with the Volcano dialect."""
    dialect = Dialect(
        ACTIONS,
        plugin_specs(PLUGINS),
        {},  # Volcano has no action and no plugin that is not here
        POINTS,
        FEATURE_SWITCHES,
        _conflict,
        ACCOUNTING,
        nothing_waits,
        recover_hypernodes,
        close,
        notices,
        nominations,
        name="volcano",
        scheduler="volcano",
    )
    return Registry({"volcano": dialect})
