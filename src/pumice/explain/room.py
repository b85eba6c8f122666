"""Hints where nodes have too little room, in all or in the wrong pieces."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from pumice.columns.dtypes import EPS, F64, AnyArray, Bool
from pumice.explain.view import View
from pumice.explain.words import amount, are, counted, is_free, joined, names, number, unit, verb
from pumice.model.status import TaskStatus
from pumice.volcano.topology.rules import job_bound


def not_there(view: View, row: int) -> str:
    """There are no nodes, or none has what it asks for; empty where some has."""
    if not len(view.facts):
        return "there are no nodes"
    asked = view.spec(row).request.scalars or {}
    missing = [n for n in sorted(asked) if n != "pods" and asked[n] and not _somebody_has(view, n)]
    return f"no node has {joined(missing[:3])}" if missing else ""


def _somebody_has(view: View, name: str) -> bool:
    column = view.axis.column.get(name)
    return column is not None and bool((view.facts.allocatable[:, column] >= EPS).any())


def too_large(view: View, request: F64, nodes: Bool, which: str) -> str:
    """The pod is larger than every node that it may go to. ``which``: how these are called."""
    for d in view.asked_in(request):
        most, name = float(view.facts.allocatable[nodes, d].max()), view.axis.names[d]
        if request[d] - most >= EPS:
            ask = f"asks for {amount(name, request[d], of_memory=True)} a pod"
            return f"{ask}; the largest node{which} has {number(name, most)}"
    return ""


def all_slots_used(view: View, rows: AnyArray, request: F64) -> str:
    """Nodes with room run as many pods as they may."""
    counts, most = view.tables.nodes.view[rows, -1], view.facts.max_pods[rows]
    if not len(rows) or (counts < most).any():
        return ""
    d = view.scarcest(request, view.future[rows])
    name, free = view.axis.names[d], view.future[rows, d].sum()
    first = f"{view.facts.names[rows[0]]} runs {counts[0]:,.0f} of at most {counted(int(most[0]), 'pod')}"
    more = f", and {counted(len(rows) - 1, 'more node')} likewise" if len(rows) > 1 else ""
    return f"{first}{more}; {is_free(name, free)}"


def some_fit(view: View, placed: int, needed: int, request: F64, rows: AnyArray) -> str:
    """Part of the gang has room."""
    d, left = view.scarcest(request, view.future[rows]), needed - placed
    ask = amount(view.axis.names[d], request[d])
    each = f"the other {left} ask for {ask} each" if left > 1 else f"the other one asks for {ask}"
    return f"{placed} of {counted(needed, 'pod')} fit; {each}"


# -- topology


def in_one_hypernode(view: View, job: int) -> str:
    """The gang must be within one HyperNode, and no one has so much, or so much of it free."""
    tables, tree = view.tables, view.tables.tree
    bound = job_bound(tables, job)
    if bound is None or bound >= int(tree.tier[-1]):
        return ""
    asked = view.asks(job)
    rows = [row for row in range(len(tree) - 1) if tree.tier[row] <= bound]
    if not rows:
        return f"there is no HyperNode of tier {bound} or less, and it must be within one"
    for room, is_size in ((view.facts.allocatable, True), (view.future, False)):
        for d in view.asked_in(asked):
            most = max(float(room[tree.nodes[row], d].clip(min=0).sum()) for row in rows)
            if asked[d] - most < EPS:
                continue
            name, ask = view.axis.names[d], number(view.axis.names[d], asked[d])
            if is_size:
                largest = f"the largest HyperNode of tier {bound} has {amount(name, most)}"
                return f"{largest}, it asks for {ask} within one{_tier_above(view, bound, d, asked[d])}"
            free = amount(name, view.future[:, d].clip(min=0).sum())
            limit = f"at most {number(name, most)} in one HyperNode of tier {bound}"
            return f"{free} are free, {limit}, it asks for {ask} within one"
    return ""


def _tier_above(view: View, bound: int, d: int, asked: float) -> str:
    """The next tier in which it would have room."""
    tree = view.tables.tree
    sizes: dict[int, float] = defaultdict(float)
    for row in range(len(tree) - 1):
        size = float(view.facts.allocatable[tree.nodes[row], d].sum())
        sizes[int(tree.tier[row])] = max(sizes[int(tree.tier[row])], size)
    higher = [tier for tier in sorted(sizes) if tier > bound and asked - sizes[tier] < EPS]
    return f"; tier {higher[0]} has {number(view.axis.names[d], sizes[higher[0]])}" if higher else ""


# -- amounts


def taken_in_turn(view: View, job: int, request: F64, rows: AnyArray) -> str:
    """It would have fitted, had others of its queue not come first in this cycle."""
    tables = view.tables
    tasks, queue = tables.tasks, int(tables.jobs.queue[job])
    now = (tasks.alive & (tasks.status == TaskStatus.BINDING) & np.isin(tasks.node, rows)).nonzero()[0]
    now = now[[not tasks.pods[row].node_name for row in now.tolist()]] if len(now) else now
    now = now[(tasks.job[now] >= 0) & (tables.jobs.queue[tasks.job[now]] == queue) & (tasks.job[now] != job)]
    if not len(now):
        return ""
    d, asked = view.shortest(request, view.future[rows]), view.asks(job)
    taken = tables.classes.req[tasks.cls[now], d].sum()
    before = view.future[rows, d].clip(min=0).sum() + taken
    if asked[d] - before >= EPS:
        return ""
    keys = sorted({tables.jobs.uids[each] for each in tasks.job[now].tolist()})
    name = view.axis.names[d]
    who = f"{counted(len(keys), 'older gang')} of queue {view.queue_of(job)}"
    first = f"{who} {verb(len(keys), 'takes', 'take')} them first"
    ask = f"{names(keys, 1)} {verb(len(keys), 'asks', 'ask')} for {number(name, taken)}"
    return f"{is_free(name, before)} and {first}: {ask}"


def of_other_schedulers(view: View, own: str, request: F64, rows: AnyArray) -> str:
    """Without pods that schedulers other than its ``own`` placed there would be room."""
    tasks, d = view.tables.tasks, view.shortest(request, view.future[rows])
    there = (tasks.alive & np.isin(tasks.node, rows) & (tasks.job < 0)).nonzero()[0]
    there = there[[tasks.pods[row].scheduler_name != own for row in there.tolist()]] if len(there) else there
    if not len(there):
        return ""
    by_whom = Counter(tasks.pods[row].scheduler_name for row in there.tolist())
    who = sorted(by_whom, key=lambda name: (-by_whom[name], name))[0]
    theirs = [row for row in there.tolist() if tasks.pods[row].scheduler_name == who]
    held, freed = view.tables.classes.req[tasks.cls[theirs], d], view.future[rows].copy()
    np.add.at(freed, np.searchsorted(rows, tasks.node[theirs]), view.tables.classes.req[tasks.cls[theirs]])
    if not held.sum() or not view.fits(request, freed).any():
        return ""
    name = view.axis.names[d]
    free, total = view.future[rows, d].clip(min=0).sum(), view.facts.allocatable[rows, d].sum()
    by = f"{counted(len(theirs), 'pod')} that {who or 'another scheduler'} placed"
    theirs_of_it = f"{number(name, held.sum())} of {number(name, total)} are held by {by}"
    return f"{is_free(name, free)}; {theirs_of_it}; it asks for {number(name, request[d])}"


def not_enough(view: View, request: F64, rows: AnyArray) -> str:
    """How much is free, in which pieces, and what is asked for."""
    asked, future = view.asked_in(request), view.future[rows].clip(min=0)
    short = [d for d in asked if request[d] - future[:, d].max() >= EPS]
    if not short:
        return _apart(view, request, rows, asked)
    d = short[0]
    name = view.axis.names[d]
    free, ask = future[:, d].sum(), amount(name, request[d])
    plenty = [o for o in asked if o not in short]
    if len(rows) == 1 and plenty:
        o = plenty[0]
        other = amount(view.axis.names[o], future[:, o].sum())
        return f"{other} but only {amount(name, free, of_memory=True)} are free; it asks for {ask} a pod"
    if free - request[d] >= -EPS:
        most = f"at most {number(name, future[:, d].max())} on one node"
        return f"{is_free(name, free)}, {most}, it asks for {number(name, request[d])} a pod"
    total, count = number(name, view.facts.allocatable[rows, d].sum()), number(name, free)
    share = f"{count} of {total} {unit(name, total)} {are(count)} free"
    return f"{share}, it asks for {number(name, request[d])} a pod"


def _apart(view: View, request: F64, rows: AnyArray, asked: list[int]) -> str:
    """Each resource is free somewhere, and nowhere all of them."""
    future = view.future[rows].clip(min=0)
    parts, seen = [], set()
    for d in sorted(asked, reverse=True):
        at = int(future[:, d].argmax())
        if at in seen:
            continue
        seen.add(at)
        name = view.axis.names[d]
        others = [o for o in asked if o != d and request[o] - future[at, o] >= EPS]
        lacks = [_left_of(view.axis.names[o], float(future[at, o])) for o in others]
        has = f"{view.facts.names[rows[at]]} has the {unit(name)} ({number(name, future[at, d])} free)"
        parts.append(" and ".join((has, *lacks)))
    ask = joined([amount(view.axis.names[d], request[d]) for d in asked])
    return f"{', '.join(parts[:2])}; it asks for {ask} a pod"


def _left_of(name: str, free: float) -> str:
    """``2 cores free``, ``no GPU``"""
    return f"{amount(name, free)} free" if free >= EPS else f"no {unit(name, '1')}"
