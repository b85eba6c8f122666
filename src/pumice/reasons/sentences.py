"""Each blocker, and each deed of the trace, as a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pumice.columns.dtypes import EPS
from pumice.framework.cycle.trace import Admitted, Finding, MakesRoom
from pumice.model import blockers as b
from pumice.model.instants import stamp
from pumice.model.workloads.native_group import FIRST_VERSION, NATIVE_GROUP, NATIVE_VERSIONS
from pumice.model.workloads.workload import workload_ref
from pumice.reasons import sentences_of_nodes as of_nodes
from pumice.reasons.words import amount, counted, is_free, joined, names, number, unit, verb

_NAMED_MAX = 2


def sentence(finding: Finding) -> str:
    """Say in one sentence, without an end, what is in the way or what was done."""
    return _SENTENCES[type(finding)](finding)


def _inside(blocker: b.Blocker | None) -> str:
    return sentence(blocker) if blocker is not None else "nothing has changed since it was tried"


def _queue_limit(limit: b.QueueLimit) -> str:
    over = limit.exceeded
    if not over:
        if limit.resources:  # decided when the queue held more than at the end of the cycle
            now = _amounts(limit, limit.resources)
            return f"queue {limit.queue} could take no more when the job was tried; at the end of the cycle {now}"
        text = f"queue {limit.queue} {_LIMITS.get(limit.kind, 'may not take more')}"
        return f"{text}: {limit.detail}" if limit.detail else text
    beyond = next((each for each in over if each.total and each.asked - each.total >= EPS), None)
    if beyond is not None:
        has = amount(beyond.resource, beyond.total)
        return f"the cluster has {has}, it asks for {number(beyond.resource, beyond.asked)}"
    if limit.kind == b.OVERCOMMIT:
        return _overcommit(limit, over[0])
    return f"{_WHOSE.get(limit.kind, 'queue')} {limit.queue}: {_amounts(limit, over)}"


_WHOSE = {b.RESOURCE_QUOTA: "ResourceQuota"}
_WHICH = {b.GUARANTEE: "left to it ", b.DESERVED: "deserved ", b.RECLAIM: "deserved "}


def _amounts(limit: b.QueueLimit, over: Sequence[b.ResourceLimit]) -> str:
    """``2 of 8 cores used and 4 promised to ns/next, asks for 4``"""
    parts, promised = [], any(each.promised >= EPS for each in over)
    for each in over:
        most, which = number(each.resource, each.limit), _WHICH.get(limit.kind, "")
        name = unit(each.resource, most)
        whose = f"{name} {which}" if limit.kind == b.GUARANTEE else f"{which}{name}"
        part = f"{number(each.resource, each.used)} of {most} {whose}".rstrip()
        if each.promised >= EPS:
            part += f" used and {number(each.resource, each.promised)} promised"
        parts.append(part)
    used = f"{joined(parts)}{_to_holders(limit)}" if promised else f"{joined(parts)} used"
    first = over[0]
    if limit.kind == b.GUARANTEE and limit.others:
        rest, total = number(first.resource, first.total - first.limit), number(first.resource, first.total)
        who = f"{limit.others[0]} is" if len(limit.others) == 1 else f"{len(limit.others)} others are"
        used += f" ({who} guaranteed {rest} of {total})"
    asked = joined([amount(each.resource, each.asked) for each in over])
    text = f"{used}, asks for {number(first.resource, first.asked) if len(over) == 1 else asked}"
    if limit.kind == b.CAPABILITY and any(each.asked - each.limit >= EPS for each in over):
        return f"{text}: more than it may ever have"
    return f"{text}{' a pod' if limit.a_pod else ''}{_others_want(limit)}"


def _others_want(limit: b.QueueLimit) -> str:
    """``; queue prod wants the other 4``"""
    first = limit.resources[0]
    rest = number(first.resource, max(first.total - first.limit, 0.0))
    if limit.kind != b.DESERVED or not limit.others or rest == "0":
        return ""
    if len(limit.others) == 1:
        return f"; queue {limit.others[0]} wants the other {rest}"
    return f"; {len(limit.others)} other queues want the other {rest}"


def _to_holders(limit: b.QueueLimit) -> str:
    """`` to ns/next``; how many where they are many."""
    if len(limit.holders) > _NAMED_MAX:
        return f" to {len(limit.holders):,} jobs{' without pods' if limit.without_pods else ''}"
    never = ", which can never run" if limit.in_vain else ""
    if limit.without_pods:
        never = f", which {'has' if len(limit.holders) == 1 else 'have'} no pods"
    return f" to {names(limit.holders)}{never}" if limit.holders else ""


def _overcommit(limit: b.QueueLimit, over: b.ResourceLimit) -> str:
    """``cluster: 8 cores used and 4 promised of 12 (1.5 × 8), asks for 4``"""
    name, most, ask = over.resource, number(over.resource, over.limit), number(over.resource, over.asked)
    used, promised = number(name, over.used), number(name, over.promised)
    factor = over.limit / over.total if over.total else 1.0
    why = f" ({factor:g} × {number(name, over.total)})" if abs(factor - 1.0) >= EPS else ""
    if over.used < EPS:
        return f"cluster: {promised} of {most} {unit(name, most)}{why} promised{_to_holders(limit)}, asks for {ask}"
    if over.promised < EPS:
        return f"cluster: {used} of {most} {unit(name, most)}{why} used, asks for {ask}"
    to = _to_holders(limit) if limit.in_vain or limit.without_pods else ""
    return f"cluster: {amount(name, over.used)} used and {promised} promised{to} of {most}{why}, asks for {ask}"


_LIMITS = {
    b.CLOSED: "is closed",
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
    return joined([sentence(each) for each in found.by[:1]]) or "not admitted yet"


def _gang_incomplete(found: b.GangIncomplete) -> str:
    if found.exist >= found.minimum:
        return found.detail or "not all of its pods exist"
    if found.leaving and found.exist + found.leaving >= found.minimum:
        of_all = f"{found.leaving} of its {counted(found.exist + found.leaving, 'pod')}"
        left = f"{found.exist} {verb(found.exist, 'is', 'are')} left of the {found.minimum} of minMember"
        return f"{of_all} {verb(found.leaving, 'is', 'are')} being deleted; {left}"
    which = f"of role {found.role}" if found.role else "of minMember"
    if found.minimum == 1:
        return f"it has no pod of role {found.role}" if found.role else "it has no pod"
    return f"{found.exist} of the {counted(found.minimum, 'pod')} {which} exist"


def _gated(found: b.Gated) -> str:
    which = f"{'gate' if len(found.gates) == 1 else 'gates'} {names(found.gates)}"
    return f"{found.pods} of {counted(found.waiting, 'pod')} {verb(found.pods, 'is', 'are')} held back by the {which}"


def _partial(found: b.GangPartial) -> str:
    left, first = found.minimum - found.placed, found.first
    pods = counted(found.minimum, "pod") + (f" of sub-group {found.role}" if found.role else "")
    if first is None or isinstance(first, b.NoRoom):
        return f"{found.placed} of {pods} fit"
    if isinstance(first, b.Shortage):
        ask = amount(first.resource, first.each)
        each = f"the other {left} ask for {ask} each" if left > 1 else f"the other one asks for {ask}"
        if first.node:
            each = f"{each}, and {first.node} has {number(first.resource, first.free)} free"
        return f"{found.placed} of {pods} fit; {each}"
    rest = f"{left} of {pods} {verb(left, 'is', 'are')} left over"
    return f"{sentence(first)}; {rest}"


def _domain(found: b.Domain) -> str:
    if found.narrower:
        one, wide = _short(found.narrower), _short(found.label)
        return f"all nodes are in one {one}, and within one {one} KAI looks for no {wide}: require {one}"
    if found.first is None:
        return of_nodes.SENTENCES[b.Domain](found)
    which = _short(found.label) or "HyperNode"
    return f"{which} {found.name} takes most of it: {sentence(found.first)}"


def _short(label: str) -> str:
    """Return a label without its prefix."""
    return label.rpartition("/")[2]


def _uneven(found: b.Uneven) -> str:
    text = of_nodes.SENTENCES[b.Uneven](found)
    return text if found.first is None else f"{text.rpartition('; ')[0]}; {found.emptier}: {sentence(found.first)}"


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


def _where(domain: str) -> str:
    return f"into {domain}" if domain else "on any node"


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
    where, who, needs = names(found.nodes, 2), names(found.by, 2), found.needs
    if not found.leaving:
        return f"reserved on {where}"
    if needs is None or not found.by:
        return f"reserved on {where}: starts when others have left"
    what = f"the {amount(needs.resource, needs.value)} it needs"
    if needs.value - found.freed >= EPS:
        what = f"{amount(needs.resource, found.freed)} of {number(needs.resource, needs.value)} that it needs"
    return f"reserved on {where}: starts when {who} {verb(len(found.by), 'has', 'have')} freed {what}"


def _start_reserved(found: b.StartReserved) -> str:
    cause = f": {', '.join(map(_moved_by, found.moved_by))}" if found.moved_by else ""
    if found.start is None:
        before = "" if found.said is None else f", which was to start at {stamp(found.said)}"
        return f"room is no longer reserved for it{before}{cause}"
    text = f"room is reserved for it, expected to start at {stamp(found.start)}"
    if found.waits_for:
        text += f" when {names(found.waits_for, 2)} {verb(len(found.waits_for), 'has', 'have')} ended"
    if found.said is not None:
        return f"{text}; {stamp(found.said)} was said before{cause}"
    if found.first is not None and found.first < found.start:
        return f"{text}; {stamp(found.first)} was said first"
    return text


def _moved_by(cause: b.MovedBy) -> str:
    return _CAUSES[cause.kind].format(cause.job)


_CAUSES = {
    b.OVERRUN: "{} runs longer than its estimate",
    b.STARTED: "{} has started since and does not end in time",
    b.AHEAD: "{} goes before it",
    b.ROOM: "nodes have less room than before",
    b.TOO_LONG: "room was kept for as long as the policy allows",
    b.NO_PLACE: "its room was free for as long as its estimate and it was not placed there",
    b.REPLANNED: "its pods, an estimate or the policy has changed",
}


def _behind(found: b.Behind) -> str:
    if found.free is None:
        return "others came first and the cycle ended"
    count, name = len(found.jobs), found.free.resource
    first = f"{counted(count, 'other gang')} of queue {found.queue} {verb(count, 'takes', 'take')} them first"
    ask = f"{names(found.jobs, 1)} {verb(count, 'asks', 'ask')} for {number(name, found.taken)}"
    left = "" if found.best is None else f", and at most {number(name, found.best)} are left on one node"
    return f"{is_free(name, found.free.value)} and {first}: {ask}{left}"


def _fault(found: b.PluginFault) -> str:
    return f"plugin {found.plugin}, {found.hook} at {found.point} ({found.place}): {found.error}"


def _missing(found: b.Missing) -> str:
    match found.kind:
        case b.HYPERNODES:
            return "no HyperNode is ready"
        case b.LOW_HYPERNODES:
            return f"there is no HyperNode of tier {found.name} or less, and it must be within one"
        case b.ALL_NODES:
            return "there are no nodes"
        case b.RESOURCE:
            return f"no node has {found.name}"
        case b.ACTION:
            return f"the policy has no action {found.name}, which admits jobs of Volcano"
        case b.NATIVE_PODGROUP if (ref := workload_ref(found.name.rpartition("/")[2])) is not None:
            workload = f"{found.name.partition('/')[0]}/{ref.workload}"
            return (
                f"{ref.shown} of Workload {workload}, which spec.workloadRef names, does not exist in {FIRST_VERSION}"
            )
        case b.NATIVE_PODGROUP:
            versions = ", ".join(NATIVE_VERSIONS)
            return (
                f"PodGroup {found.name}, which spec.schedulingGroup names, does not exist in a version of"
                f" {NATIVE_GROUP} that is read ({versions})"
            )
    return f"{found.kind} {found.name} does not exist" + (f"; did you mean {found.meant}?" if found.meant else "")


def _other_scheduler(found: b.OtherScheduler) -> str:
    return f"its pods name the scheduler {found.scheduler}; Pumice places those of {joined(found.ours)}"


def _search_cut(found: b.SearchCut) -> str:
    steps = counted(found.steps, "step")
    if found.nodes:
        return f"{found.detail}: it was cut off after {steps}, and {counted(found.nodes, 'node')} may fit"
    return f"the search of {found.action} was cut off after {steps}"


_SENTENCES: dict[type[Finding], Callable[[Any], str]] = {
    Admitted: lambda _: "admitted",
    MakesRoom: lambda deed: f"{counted(deed.evicted, 'pod')} are evicted for {deed.pods}",
    **of_nodes.SENTENCES,
    b.QueueLimit: _queue_limit,
    b.BadQueue: _bad_queue,
    b.NotAdmitted: _not_admitted,
    b.Refused: lambda found: found.detail,
    b.GangIncomplete: _gang_incomplete,
    b.Gated: _gated,
    b.Domain: _domain,
    b.Uneven: _uneven,
    b.GangPartial: _partial,
    b.NoCase: lambda _: "evicting others for it is not allowed, or cannot help",
    b.NoVictims: lambda _: "no set of jobs that may be evicted makes room for it",
    b.Behind: _behind,
    b.Protected: _protected,
    b.TooFewVictims: _too_few,
    b.TooSmall: lambda found: f"it would not fit {_where(found.domain)} if all pods that may be looked at left",
    b.OutOfReach: lambda found: f"filters leave none of {counted(found.nodes, 'node')} to it, whatever is evicted",
    b.NeverPreempts: lambda _: "its preemptionPolicy is Never",
    b.RoomIsFree: lambda _: "there is room for it without an eviction",
    b.CannotEvict: _cannot_evict,
    b.Reserved: _reserved,
    b.RoomReserved: lambda found: f"room is reserved for {found.holder}, expected to start at {stamp(found.start)}",
    b.StartReserved: _start_reserved,
    b.Delayed: lambda found: f"nothing is evicted for it before {stamp(found.until)} (its preemption delay)",
    b.SearchCut: _search_cut,
    b.PluginFault: _fault,
    b.Unreadable: lambda found: f"{found.object} cannot be read: {found.detail}",
    b.Missing: _missing,
    b.OtherScheduler: _other_scheduler,
}
