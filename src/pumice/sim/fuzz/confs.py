"""Draw policies from all actions and plugins."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pumice.framework.plugin.registry import Registry
from pumice.sim.fuzz.dice import Dice
from pumice.sim.laws.evictions import VOTES

Conf = dict[str, Any]

#: The action on which others rest. Without it, next to nothing happens.
_ALLOCATE = "allocate"
#: Plugins without which laws about gangs and nodes do not hold.
_NEEDED = ("gang", "predicates")
#: Two plugins that compute shares of queues. Users of Volcano choose one of them.
_SHARES = ("proportion", "capacity")
#: Actions that evict from queues above their share, and those that evict pods of lower priority.
RECLAIM, PREEMPT = {"reclaim", "gangreclaim"}, {"preempt", "gangpreempt"}


def draw_conf(dice: Dice, registry: Registry, *, tree: bool, groups: bool) -> Conf:
    """Return some actions in any order and some plugins in one tier or two.

    ``tree``: queues have parents. ``groups``: queues say which groups of nodes they use. The number of plugins varies:
    all that are asked about victims must agree, so many plugins allow none. Plugins with a say in evictions are in the
    first tier, and one of them orders jobs or queues. A policy without such a plugin evicts in circles by design, in
    Volcano, too.
    """
    dialect = registry.dialects["volcano"]
    actions = dice.shuffled([*dice.some([name for name in dialect.actions if name != _ALLOCATE], 0.5), _ALLOCATE])
    if dice.chance(0.2):
        actions.append(_ALLOCATE)
    share = "capacity" if tree else dice.one((*_SHARES, "proportion" if RECLAIM & set(actions) else ""))
    wanted = {*_NEEDED, share, *needed_by(actions)}
    wanted.add("tdm" if "shuffle" in actions and dice.chance(0.4) else "")  # it protects most victims
    often = dice.one((0.05, 0.05, 0.2, 0.5))
    wanted |= {name for name in dialect.plugins if name not in _SHARES and dice.chance(often)}
    wanted -= set(_SHARES) - {share}
    plugins = dice.shuffled([name for name in dialect.plugins if name in wanted])
    tiers: list[list[str]] = [[], []]
    for name in plugins:
        votes = any(dialect.plugins[name].hooks_at(point) for point in VOTES)
        tiers[0 if votes else dice.number(0, 1)].append(name)
    listed = [{"plugins": [_entry(dice, name, tree=tree, groups=groups) for name in tier]} for tier in tiers if tier]
    return {"actions": ", ".join(actions), "tiers": listed, "configurations": _arguments(dice, actions)}


def needed_by(actions: Collection[str]) -> frozenset[str]:
    """Return the plugins of which a policy with these actions needs one, because otherwise it evicts in circles by
    design."""
    order = {"priority"} if PREEMPT & set(actions) else set()
    return frozenset({*_NEEDED, *order, *(_SHARES if RECLAIM & set(actions) else ())})


def _entry(dice: Dice, name: str, *, tree: bool, groups: bool) -> Conf:
    entry: Conf = {"name": name}
    if name == "capacity" and tree:
        entry["enableHierarchy"] = True
        entry["arguments"] = {"ancestorReclaimLevel": dice.number(0, 2), "commonAncestorsCount": False}
    elif name == "tdm":
        hours = dice.one(("00:00-00:03", "00:02-00:10", "00:01-00:20", "12:00-13:00"))
        entry["arguments"] = {"tdm.revocable-zone.rz1": hours, "tdm.evict.period": "30s"}
    elif name == "sla":
        entry["arguments"] = {"sla-waiting-time": dice.one(("10s", "5m"))}
    elif name == "binpack":
        entry["arguments"] = {"binpack.weight": dice.number(1, 5)}
    elif name == "overcommit":
        entry["arguments"] = {"overcommit-factor": dice.one((1.0, 1.2, 2.0))}
    elif name == "nodegroup":
        entry["arguments"] = {"strict": groups and dice.chance(0.5)}  # else no job could run without groups
    elif name == "proportion":
        entry["arguments"] = {"deservedKept": True}
    elif name == "gang" and dice.chance(0.2):
        entry["arguments"] = {"finishPartialGangs": True}
    return entry


def _arguments(dice: Dice, actions: list[str]) -> list[Conf]:
    found: list[Conf] = []
    if "preempt" in actions:
        arguments: dict[str, object] = {"allMustAgree": True}
        if dice.chance(0.4):
            arguments |= {"enableTopologyAwarePreemption": True, "allocatableAsked": True}
            arguments["minCandidateNodesAbsolute"] = dice.number(1, 4)
        found.append({"name": "preempt", "arguments": arguments})
    if "reclaim" in actions:
        found.append({"name": "reclaim", "arguments": {"allMustAgree": True}})
    for name in ("gangpreempt", "gangreclaim"):
        if name in actions:
            arguments = {
                "maxDomains": dice.number(1, 8),
                "allowWholeBundle": dice.chance(0.5),
                "onlyInNeed": True,
                "allMustAgree": True,
            }
            found.append({"name": name, "arguments": arguments})
    return found
