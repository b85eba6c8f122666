"""Each blocker, and each deed of the trace, as a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pumice.explain.words import amount, counted, joined, names, number, unit
from pumice.framework.cycle.trace import Admitted, Finding, MakesRoom
from pumice.model import blockers as b


def sentence(finding: Finding) -> str:
    """Say in one sentence, without an end, what stands in the way or what was done."""
    return _SENTENCES[type(finding)](finding)


def _inside(blocker: b.Blocker | None) -> str:
    return sentence(blocker) if blocker is not None else "nothing has changed since it was tried"


def _queue_limit(limit: b.QueueLimit) -> str:
    over = [each for each in limit.resources if each.excess]
    if over:
        return f"{_WHOSE.get(limit.kind, 'queue')} {limit.queue}".rstrip() + f": {_amounts(over)}"
    text = f"queue {limit.queue} {_LIMITS.get(limit.kind, 'may not take more')}"
    return f"{text}: {limit.detail}" if limit.detail else text


_WHOSE = {b.OVERCOMMIT: "cluster", b.RESOURCE_QUOTA: "ResourceQuota"}


def _amounts(over: Sequence[b.ResourceLimit]) -> str:
    """``2 of 8 cores used and 4 promised, asks for 4``"""
    parts = []
    for each in over:
        most = number(each.resource, each.limit)
        part = f"{number(each.resource, each.used)} of {most} {unit(each.resource, most)}"
        if any(other.promised for other in over):
            part += " used" + (f" and {number(each.resource, each.promised)} promised" if each.promised else "")
        parts.append(part)
    used = joined(parts) if any(each.promised for each in over) else f"{joined(parts)} used"
    if len(over) == 1:
        return f"{used}, asks for {number(over[0].resource, over[0].asked)}"
    return f"{used}, asks for {joined([amount(each.resource, each.asked) for each in over])}"


_LIMITS = {
    b.CLOSED: "is not open",
    b.DESERVED: "has all that it deserves",
    b.CAPACITY: "may not take more of what the pods ask for",
    b.RECLAIM: "may not take more from others",
    b.LIMIT: "has reached its limit",
    b.QUOTA: "has no quota left for jobs that are not preemptible",
}


def _bad_queue(found: b.BadQueue) -> str:
    match found.problem:
        case b.HAS_CHILDREN:
            return f"queue {found.queue} has queues below it: only those that have none run workloads"
        case b.NO_PARENT:
            return f"queue {found.queue} has a parent that does not exist: {found.other}"
        case b.CIRCLE:
            return f"the parents of queue {found.queue} form a circle"
    return f"the tree of queues is not valid: {found.detail}"


def _not_admitted(found: b.NotAdmitted) -> str:
    return f"not admitted: {joined([sentence(each) for each in found.by])}" if found.by else "not admitted yet"


def _gang_incomplete(found: b.GangIncomplete) -> str:
    if found.detail:
        return found.detail
    of_role = f" of role {found.role}" if found.role else ""
    return f"{found.exist} of the {counted(found.minimum, 'pod')}{of_role} that it needs exist"


def _partial(found: b.GangPartial) -> str:
    text = f"{found.placed} of the {counted(found.minimum, 'pod')} that it needs fit"
    return text if found.first is None else f"{text}; the next one does not: {sentence(found.first)}"


def _protected(found: b.Protected) -> str:
    whose = f"of queue {found.queue}" if found.queue else "of other queues"
    where = counted(found.nodes, "node")
    if not found.victims:
        return f"no pod {whose} that could be evicted runs on the {where}"
    running = counted(found.victims, "running pod")
    head = f"{found.free_to_go} of the {running} {whose} on {where} can be evicted"
    if not found.free_to_go:
        head = f"none of the {running} {whose} on {where} can be evicted"
    text = "; ".join([head, *(f"{plugin} protects {count:,} {which}".rstrip() for plugin, count, which in found.by)])
    if found.enough_on:
        return (
            f"{text}; that makes room enough on {counted(found.enough_on, 'node')}, where filters or its queue refuse"
        )
    return f"{text}; that makes room enough on no node" if found.free_to_go else text


def _too_few(found: b.TooFewVictims) -> str:
    if not found.tasks:
        return f"none of {counted(found.candidates, 'pod')} that were looked at in {found.domain} can be evicted"
    if_gone = f"if {counted(found.tasks, 'pod')} in {counted(found.bundles, 'bundle')} left {found.domain}"
    return f"there would be no place for the gang {if_gone}" if found.enough else f"too little would be free {if_gone}"


def _cannot_evict(found: b.CannotEvict) -> str:
    if not found.promised:
        return f"cannot {found.what}: {_inside(found.because)}"
    first = f"{found.promised} of {counted(found.waiting, 'pod')} could be given a node"
    return f"cannot {found.what}: {first}; then {_inside(found.because)}"


def _reserved(found: b.Reserved) -> str:
    where = names(found.nodes, 2)
    return f"reserved on {where}: starts when others have left" if found.leaving else f"reserved on {where}"


def _fault(found: b.PluginFault) -> str:
    return f"plugin {found.plugin}, {found.hook} at {found.point} ({found.place}): {found.error}"


def _missing(found: b.Missing) -> str:
    if found.kind == b.HYPERNODES:
        return "no HyperNode is ready"
    return f"{found.kind} {found.name} does not exist" + (f"; did you mean {found.meant}?" if found.meant else "")


def _shortage(found: b.Shortage) -> str:
    return f"{found.nodes} of {counted(found.looked_at, 'node')} have too little {found.resource}"


_SENTENCES: dict[type[Finding], Callable[[Any], str]] = {
    Admitted: lambda _: "admitted",
    MakesRoom: lambda deed: f"{counted(deed.evicted, 'pod')} are evicted for {deed.pods}",
    b.NodeFilter: lambda found: f"{found.nodes} of {counted(found.looked_at, 'node')}: {found.detail}",
    b.Shortage: _shortage,
    b.QueueLimit: _queue_limit,
    b.BadQueue: _bad_queue,
    b.NotAdmitted: _not_admitted,
    b.Refused: lambda found: found.detail,
    b.GangIncomplete: _gang_incomplete,
    b.Gated: lambda found: f"held back by the scheduling gates {joined(found.gates)}",
    b.GangPartial: _partial,
    b.NoRoom: lambda _: "no node has room",
    b.NoNode: lambda _: "no node takes it",
    b.Domain: lambda found: f"no domain of the topology has room for all of it{f' in {found.name}' * bool(found.name)}",
    b.NoCase: lambda _: "evicting others for it is not allowed, or cannot help",
    b.NoVictims: lambda _: "no set of jobs that may be evicted makes room for it",
    b.Behind: lambda _: "others came first and the cycle ended",
    b.Protected: _protected,
    b.TooFewVictims: _too_few,
    b.OutOfReach: lambda found: f"filters leave none of {counted(found.nodes, 'node')} to it, whatever is evicted",
    b.NeverPreempts: lambda _: "its preemptionPolicy is Never",
    b.RoomIsFree: lambda _: "there is room for it without an eviction",
    b.CannotEvict: _cannot_evict,
    b.Reserved: _reserved,
    b.SearchCut: lambda found: f"the search of {found.action} was cut off after {counted(found.steps, 'try')}",
    b.PluginFault: _fault,
    b.Unreadable: lambda found: f"{found.object} cannot be read: {found.detail}",
    b.Missing: _missing,
}
