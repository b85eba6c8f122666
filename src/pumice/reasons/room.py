"""Blockers of nodes with too little room, in all or in the wrong pieces."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from msgspec.structs import replace

from pumice.columns.dtypes import EPS, F64, AnyArray, Bool
from pumice.kai.label_trees import node_label
from pumice.model.blockers import (
    ALL_NODES,
    LOW_HYPERNODES,
    RESOURCE,
    Amount,
    Behind,
    Domain,
    Fragments,
    HeldByOthers,
    Missing,
    Part,
    Shortage,
    TooManyPods,
)
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.status import TaskStatus
from pumice.reasons.view import View
from pumice.volcano.topology.rules import kept_bound


def not_there(view: View, row: int) -> Missing | None:
    """Return what no node has of what a task asks for, or that there are no nodes, or None."""
    if not len(view.facts):
        return Missing(ALL_NODES)
    spec = view.spec(row)
    asked = dict(spec.request.scalars or {})
    if spec.gpu_share is not None and not spec.gpu_share.problem:
        asked[GPU_RESOURCE] = 1.0
    missing = [name for name in sorted(asked) if name != "pods" and asked[name] and not _is_offered(view, name)]
    return Missing(RESOURCE, missing[0]) if missing else None


def _is_offered(view: View, name: str) -> bool:
    column = view.axis.column.get(name)
    return column is not None and bool((view.facts.allocatable[:, column] >= EPS).any())


def amount(view: View, d: int, value: float) -> Amount:
    return Amount(view.axis.names[d], float(value))


def shortage(view: View, request: F64, rows: AnyArray, d: int, wanted: int, future: F64 | None = None) -> Shortage:
    """Return a shortage of one resource over some nodes. ``future``: what will be free on these nodes, the state after
    the cycle without it. Shape (rows, R)."""
    free, size = (view.future[rows] if future is None else future)[:, d].clip(min=0), view.facts.allocatable[rows, d]
    short = int(np.count_nonzero(request[d] - free >= EPS))
    amounts = float(free.sum()), float(free.max(initial=0.0))
    sizes = float(size.sum()), float(size.max(initial=0.0))
    return Shortage(view.axis.names[d], float(request[d]), wanted, *amounts, short, len(rows), *sizes)


def too_large(view: View, request: F64, nodes: Bool, wanted: int) -> Shortage | None:
    """Return of which resource the pod asks for more than any of the nodes has when it is empty, or None."""
    for d in view.asked_in(request):
        if request[d] - float(view.facts.allocatable[nodes, d].max()) >= EPS:
            return shortage(view, request, nodes.nonzero()[0], d, wanted)
    return None


def all_slots_used(view: View, rows: AnyArray, request: F64, wanted: int) -> TooManyPods | None:
    """Return that nodes with room run as many pods as they may, or None."""
    most = view.facts.max_pods[rows]
    counts = most - view.slots[rows]
    if not len(rows) or (counts < most).any():
        return None
    d = view.scarcest(request, view.future[rows])
    free = amount(view, d, view.future[rows, d].sum())
    return TooManyPods(view.facts.names[rows[0]], int(counts[0]), int(most[0]), len(rows) - 1, free, wanted)


# -- topology


def in_one_hypernode(view: View, job: int) -> Domain | Missing | None:
    """Return how much of what the gang asks for fits within one HyperNode of the tier that it allows, or None."""
    tables, tree = view.tables, view.tables.tree
    bound = kept_bound(view.outcome.policy, tables, job)
    if bound is None or bound >= int(tree.tier[-1]):
        return None
    asked = view.asks(job)
    rows = [row for row in range(len(tree) - 1) if tree.tier[row] <= bound]
    if not rows:
        return Missing(LOW_HYPERNODES, str(bound))
    for is_size in (True, False):
        for d in view.asked_in(asked):
            sums = [view.in_hypernodes(d, of_size=is_size)[row] for row in rows]
            most = max(sums)
            if asked[d] - most >= EPS:
                free = float(view.future[:, d].clip(min=0).sum())
                above = _tier_above(view, bound, d, asked[d]) if is_size else None
                name = tree.names[rows[sums.index(most)]]
                return Domain(name, bound, amount(view, d, asked[d]), free, most, is_size, above)
    return None


def in_one_label_domain(view: View, job: int) -> Domain | None:
    """Return how much of what a gang of KAI asks for fits within one domain of the label that it requires, or None."""
    group = view.tables.jobs.groups[job]
    constraint = group.gang.topology if group.gang is not None else None
    if constraint is None or not constraint.required:
        return None
    label = node_label(view.tables, constraint.topology, constraint.required)
    column, asked = view.derived.label(label), view.asks(job)
    there = column.codes >= 0
    codes = column.codes[there]
    for room, is_size in ((view.facts.allocatable, True), (view.future, False)):
        for d in view.asked_in(asked):
            # In one step for all domains: a tenant's gangs ask for those of hosts, as many as there are nodes.
            sums = np.bincount(codes, room[there, d].clip(min=0))
            most = float(sums.max(initial=0.0))
            if asked[d] - most >= EPS:
                free = float(view.future[:, d].clip(min=0).sum())
                asks = amount(view, d, asked[d])
                name = column.values[int(sums.argmax())] if len(sums) else ""
                return Domain(name, asks=asks, free=free, best=most, is_size=is_size, label=label)
    return None


def of_its_domain(view: View, job: int) -> Domain | None:
    """Return the domain that took a part of a gang, and to which its other pods are bound, or None."""
    tables, row = view.tables, int(view.tables.jobs.hypernode[job])
    # Of pods that a search over domains leaves out, Volcano keeps no errors.
    return None if row < 0 else Domain("" if row == tables.tree.top else tables.tree.names[row])


def _tier_above(view: View, bound: int, d: int, asked: float) -> tuple[int, float] | None:
    """Return the next tier in which it would have room, and how much the largest HyperNode of it has."""
    tree = view.tables.tree
    sizes: dict[int, float] = defaultdict(float)
    for row in range(len(tree) - 1):
        size = float(view.facts.allocatable[tree.nodes[row], d].sum())
        sizes[int(tree.tier[row])] = max(sizes[int(tree.tier[row])], size)
    higher = [tier for tier in sorted(sizes) if tier > bound and asked - sizes[tier] < EPS]
    return (higher[0], sizes[higher[0]]) if higher else None


# -- amounts


def taken_in_turn(view: View, job: int, request: F64, rows: AnyArray) -> Behind | None:
    """Return the jobs of its queue that took the room in this cycle, which would have been enough, or None."""
    tables = view.tables
    tasks, queue = tables.tasks, int(tables.jobs.queue[job])
    now = (tasks.alive & (tasks.status == TaskStatus.BINDING) & np.isin(tasks.node, rows)).nonzero()[0]
    now = now[[not tasks.pods[row].node_name for row in now.tolist()]] if len(now) else now
    now = now[(tasks.job[now] >= 0) & (tables.jobs.queue[tasks.job[now]] == queue) & (tasks.job[now] != job)]
    if not len(now):
        return None
    d, asked = view.shortest(request, view.future[rows]), view.asks(job)
    taken = float(tables.classes.req[tasks.cls[now], d].sum())
    before = float(view.future[rows, d].clip(min=0).sum()) + taken
    if asked[d] - before >= EPS:
        return None
    keys = sorted({tables.jobs.uids[each] for each in tasks.job[now].tolist()})
    # Where enough is left in all, it is in pieces that are too small.
    best = float(view.future[rows, d].max(initial=0.0)) if before - taken - asked[d] >= -EPS else None
    return Behind(tuple(keys), view.queue_of(job), amount(view, d, before), taken, best)


def of_other_schedulers(view: View, own: str, request: F64, rows: AnyArray) -> HeldByOthers | None:
    """Return the pods that another scheduler than its ``own`` placed, without which there would be room, or None."""
    tasks, d = view.tables.tasks, view.shortest(request, view.future[rows])
    there = (tasks.alive & np.isin(tasks.node, rows) & (tasks.job < 0)).nonzero()[0]
    there = there[[tasks.pods[row].scheduler_name != own for row in there.tolist()]] if len(there) else there
    if not len(there):
        return None
    by_whom = Counter(tasks.pods[row].scheduler_name for row in there.tolist())
    who = sorted(by_whom, key=lambda name: (-by_whom[name], name))[0]
    theirs = [row for row in there.tolist() if tasks.pods[row].scheduler_name == who]
    held, freed = view.tables.classes.req[tasks.cls[theirs], d], view.future[rows].copy()
    np.add.at(freed, np.searchsorted(rows, tasks.node[theirs]), view.tables.classes.req[tasks.cls[theirs]])
    if not held.sum() or not view.fits(request, freed).any():
        return None
    free, total = view.future[rows, d].clip(min=0), float(view.facts.allocatable[rows, d].sum())
    amounts = float(free.sum()), float(held.sum()), total, float(request[d]), float(free.max())
    return HeldByOthers(who, len(theirs), view.axis.names[d], *amounts)


def not_enough(view: View, request: F64, rows: AnyArray, wanted: int) -> Shortage | Fragments:
    """Return which resource is short on every node; where none is, on which node which is."""
    asked, future = view.asked_in(request), view.future[rows].clip(min=0)
    short = [d for d in asked if request[d] - future[:, d].max() >= EPS]
    if not short:
        return _fragments(view, request, rows, asked)
    found = shortage(view, request, rows, short[0], wanted)
    plenty = [d for d in asked if d not in short]
    if len(rows) > 1 or not plenty:
        return found
    return replace(found, beside=amount(view, plenty[0], future[:, plenty[0]].sum()))


def _fragments(view: View, request: F64, rows: AnyArray, asked: list[int]) -> Fragments:
    """Return nodes that have enough of one resource each."""
    future, parts = view.future[rows].clip(min=0), dict[int, Part]()
    for d in sorted(asked, reverse=True):
        at = int(future[:, d].argmax())
        if at not in parts:
            lacks = tuple(amount(view, o, future[at, o]) for o in asked if o != d and request[o] - future[at, o] >= EPS)
            parts[at] = Part(view.facts.names[rows[at]], amount(view, d, future[at, d]), lacks)
    return Fragments(tuple(amount(view, d, request[d]) for d in asked), tuple(parts.values()))
