"""Policies drawn from every action and plugin that there is."""

from __future__ import annotations

from typing import Any

from pumice.framework.registry import Registry
from pumice.sim.eviction_laws import VOTES
from pumice.sim.fuzz.dice import Dice

Conf = dict[str, Any]

#: Actions that others rest on: without them next to nothing happens.
_ALLOCATE = "allocate"
#: Plugins without which laws about gangs and nodes do not hold.
_NEEDED = ("gang", "predicates")
#: Two plugins that answer for queues' shares: Volcano's users take one of them.
_SHARES = ("proportion", "capacity")
#: Actions that take from queues which have more than their share, and from those who come later.
_RECLAIM, _PREEMPT = {"reclaim", "gangreclaim"}, {"preempt", "gangpreempt"}


def draw_conf(dice: Dice, registry: Registry, *, tree: bool) -> Conf:
    """Some actions in any order, some plugins in one tier or in two. ``tree``: queues have parents.

    Whoever has a say in evictions is in the first tier, and there is one who says whose turn it is: a policy without
    evicts in circles by its own wish, in Volcano too.
    """
    dialect = registry.dialects["volcano"]
    actions = dice.shuffled([*dice.some([name for name in dialect.actions if name != _ALLOCATE], 0.5), _ALLOCATE])
    if dice.chance(0.2):
        actions.append(_ALLOCATE)
    share = "capacity" if tree else dice.one((*_SHARES, "proportion" if _RECLAIM & set(actions) else ""))
    wanted = {*_NEEDED, share, "priority" if _PREEMPT & set(actions) else "", "tdm" if "shuffle" in actions else ""}
    wanted |= {name for name in dialect.plugins if name not in _SHARES and dice.chance(0.5)}
    plugins = dice.shuffled([name for name in dialect.plugins if name in wanted])
    tiers: list[list[str]] = [[], []]
    for name in plugins:
        votes = any(dialect.plugins[name].hooks_at(point) for point in VOTES)
        tiers[0 if votes else dice.number(0, 1)].append(name)
    listed = [{"plugins": [_entry(dice, name, tree=tree) for name in tier]} for tier in tiers if tier]
    return {"actions": ", ".join(actions), "tiers": listed, "configurations": _arguments(dice, actions)}


def _entry(dice: Dice, name: str, *, tree: bool) -> Conf:
    entry: Conf = {"name": name}
    if name == "capacity" and tree:
        entry["enableHierarchy"] = True
        entry["arguments"] = {"ancestorReclaimLevel": dice.number(0, 2)}
    elif name == "tdm":
        hours = dice.one(("00:00-00:03", "00:02-00:10", "12:00-13:00"))
        entry["arguments"] = {"tdm.revocable-zone.rz1": hours, "tdm.evict.period": "30s"}
    elif name == "sla":
        entry["arguments"] = {"sla-waiting-time": dice.one(("10s", "5m"))}
    elif name == "binpack":
        entry["arguments"] = {"binpack.weight": dice.number(1, 5)}
    elif name == "overcommit":
        entry["arguments"] = {"overcommit-factor": dice.one((1.0, 1.2, 2.0))}
    elif name == "gang" and dice.chance(0.2):
        entry["arguments"] = {"halvesFirst": True}
    return entry


def _arguments(dice: Dice, actions: list[str]) -> list[Conf]:
    found: list[Conf] = []
    if "preempt" in actions and dice.chance(0.4):
        arguments = {"enableTopologyAwarePreemption": True, "minCandidateNodesAbsolute": dice.number(1, 4)}
        found.append({"name": "preempt", "arguments": arguments})
    for name in ("gangpreempt", "gangreclaim"):
        if name in actions:
            arguments = {"maxDomains": dice.number(1, 8), "allowWholeBundle": dice.chance(0.5), "onlyInNeed": True}
            found.append({"name": name, "arguments": arguments})
    return found
