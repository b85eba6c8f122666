"""Hints where a queue, or admission over all of the cluster, says no. The queue is named, with limit, use and ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pumice.columns.counting import HELD
from pumice.columns.dtypes import EPS, F64, AnyArray
from pumice.columns.nodes import USED
from pumice.explain.view import View
from pumice.explain.words import amount, joined, meant, names, number, unit

_OVERCOMMIT_DEFAULT = 1.2
_NAMED_MAX = 2


def missing(queue: str, there: Sequence[str]) -> str:
    """The queue that a job names does not exist."""
    other = meant(queue, there)
    return f"queue {queue}: is not there" + (f"; did you mean {other}?" if other else "")


def not_admitted(view: View, job: int) -> str:
    """Why a job is not admitted; empty where nothing here stands against it now."""
    tables, asked = view.tables, view.tables.jobs.min_resources[job]
    queue = int(tables.jobs.queue[job])
    if not tables.queues.open[queue]:
        return f"queue {view.queue_of(job)}: is closed"
    dims = view.asked_in(asked)
    if view.has_plugin("proportion", "capacity"):
        for row in _line(view, queue):
            said = _over_limit(view, row, asked, dims)
            if said:
                return said
    beyond = [d for d in dims if asked[d] - view.total[d] >= EPS]
    if beyond:
        name = view.axis.names[beyond[0]]
        return f"the cluster has {amount(name, view.total[beyond[0]])}, it asks for {number(name, asked[beyond[0]])}"
    return _over_cluster(view, asked, dims)


def _line(view: View, queue: int) -> Iterator[int]:
    """The queue, and where queues are a tree those above it."""
    yield queue
    above, seen = int(view.tables.queues.parent[queue]), {queue}
    while view.argument("capacity", "hierarchy") and above >= 0 and above not in seen:
        yield above
        seen.add(above)
        above = int(view.tables.queues.parent[above])


def _below(view: View, queue: int) -> AnyArray:
    """Rows of the queue and all below it, where queues are a tree."""
    return np.array([row for row in range(len(view.tables.queues)) if queue in _line(view, row)])


def _over_limit(view: View, queue: int, asked: F64, dims: list[int]) -> str:
    """The queue may not have so much: its capability, or what others' guarantees leave to it."""
    queues, limits = view.tables.queues, view.outcome.figures.get("queue.real_capacity")
    if limits is None:
        return ""
    rows, wanted = view.promised
    inside = np.isin(view.tables.jobs.queue[rows], _below(view, queue))
    held, promised = view.held[_below(view, queue)].sum(axis=0), wanted[inside].sum(axis=0)
    limit = limits[queue]
    over = [d for d in dims if asked[d] + held[d] + promised[d] - limit[d] >= EPS and limit[d] - view.total[d] < EPS]
    over = [d for d in over if view.total[d] - limit[d] >= EPS or queues.capability[queue, d] <= limit[d]]
    if not over:
        return ""
    left = [d for d in over if queues.capability[queue, d] - limit[d] >= EPS]
    who = rows[inside][(wanted[inside][:, over] >= EPS).any(axis=1)]
    used = _used(view, over, held, promised, limit, who, "left to it " if left else "")
    why = _guaranteed(view, queue, left[0]) if left else ""
    ever = "" if left or (asked[over] - limit[over] < EPS).all() else ": more than it may ever have"
    return f"queue {queues.names[queue]}: {used}{why}, asks for {_ask(view, over, asked)}{ever}"


def _used(view: View, dims: list[int], held: F64, promised: F64, limit: F64, who: AnyArray, which: str) -> str:
    """``2 of 8 cores used and 4 promised to ns/next``"""
    parts, any_promised = [], False
    for d in dims:
        name = view.axis.names[d]
        most = number(name, limit[d])
        parts.append(f"{number(name, held[d])} of {most} {unit(name, most)} {which}".rstrip())
        if promised[d] >= EPS:
            parts[-1] += f" used and {number(name, promised[d])} promised"
            any_promised = True
    if not any_promised:
        return f"{joined(parts)} used"
    return f"{joined(parts)}{_to_whom(view, who)}"


def _to_whom(view: View, jobs: AnyArray) -> str:
    """`` to ns/next``; where they are many, how many."""
    if len(jobs) > _NAMED_MAX:
        return f" to {len(jobs):,} jobs"
    return f" to {names([view.tables.jobs.uids[job] for job in jobs.tolist()])}" if len(jobs) else ""


def _ask(view: View, dims: list[int], asked: F64) -> str:
    if len(dims) == 1:
        return number(view.axis.names[dims[0]], asked[dims[0]])
    return joined([amount(view.axis.names[d], asked[d]) for d in dims])


def _guaranteed(view: View, queue: int, d: int) -> str:
    queues, name = view.tables.queues, view.axis.names[d]
    others = [row for row in range(len(queues)) if row != queue and queues.guarantee[row, d] >= EPS]
    total = number(name, view.total[d])
    if len(others) > 1:
        together = number(name, queues.guarantee[others, d].sum())
        return f" ({len(others)} others are guaranteed {together} of {total})"
    return "".join(
        f" ({queues.names[row]} is guaranteed {number(name, queues.guarantee[row, d])} of {total})" for row in others
    )


def _over_cluster(view: View, asked: F64, dims: list[int]) -> str:
    """No more is admitted than a factor of what there is."""
    jobs, factor, given = view.tables.jobs, 1.0, view.argument("overcommit", "overcommit_factor")
    if view.has_plugin("overcommit"):
        factor = float(given) if isinstance(given, int | float) and given >= 1 else _OVERCOMMIT_DEFAULT
    elif not view.has_plugin("proportion", "capacity"):
        return ""
    used = view.tables.nodes.books[:, USED].sum(axis=0)
    rows, wanted = view.promised
    waits = jobs.counts[rows] @ HELD < jobs.min_available[rows]
    wanted = np.where(waits[:, None], jobs.min_resources[rows], wanted)
    promised, limit = wanted.sum(axis=0), factor * view.total
    over = [d for d in dims if used[d] + promised[d] + asked[d] - limit[d] >= EPS]
    if not over:
        return ""
    d = over[0]
    name, who = view.axis.names[d], rows[wanted[:, d] >= EPS]
    most, ask = number(name, limit[d]), number(name, asked[d])
    why = f" ({factor:g} × {number(name, view.total[d])})" if factor != 1 else ""
    never = [job for job in who.tolist() if not view.can_ever_run(job)]
    note = ", which can never run" if never and len(never) == len(who) <= _NAMED_MAX else ""
    if used[d] < EPS:
        given_to = f"{number(name, promised[d])} of {most} {unit(name, most)}{why} promised{_to_whom(view, who)}{note}"
        return f"cluster: {given_to}, asks for {ask}"
    if promised[d] < EPS:
        return f"cluster: {number(name, used[d])} of {most} {unit(name, most)}{why} used, asks for {ask}"
    given_to = (
        f"{amount(name, used[d])} used and {number(name, promised[d])} promised{note and _to_whom(view, who)}{note}"
    )
    return f"cluster: {given_to} of {most}{why}, asks for {ask}"


# -- what it deserves


def turned_away(view: View, job: int) -> str:
    """The queue may hold no more at the moment, of what it deserves or of what it may have."""
    tables, figures = view.tables, view.outcome.figures
    queue, rows = int(tables.jobs.queue[job]), view.waiting_rows(job)
    deserves = view.has_plugin("proportion") and "queue.deserved" in figures
    limits = figures.get("queue.deserved" if deserves else "queue.real_capacity")
    if limits is None or not rows:
        return ""
    if not tables.queues.open[queue]:
        return f"queue {view.queue_of(job)}: is closed"
    held, limit = figures["queue.allocated"][queue], limits[queue]
    one, all_of_it = view.request(rows[0]), view.asks(job)
    over = [d for d in view.asked_in(one) if held[d] + one[d] - limit[d] >= EPS]
    pod_is_too_much = [d for d in over if limit[d] - held[d] >= EPS]
    over = over or [d for d in view.asked_in(all_of_it) if held[d] + all_of_it[d] - limit[d] >= EPS]
    if not over:
        return ""
    d = (pod_is_too_much or over)[0]
    if view.total[d] - limit[d] < EPS:
        return ""  # it may have all there is: the queue is not what stands in the way
    name = view.axis.names[d]
    most, of = number(name, limit[d]), "deserved " if deserves else ""
    ask = f"{number(name, one[d])} a pod" if pod_is_too_much else number(name, all_of_it[d])
    others = _others_want(view, queue, d, limit) if deserves else ""
    used = f"{number(name, held[d])} of {most} {of}{unit(name, most)} used"
    return f"queue {view.queue_of(job)}: {used}, asks for {ask}{others}"


def _others_want(view: View, queue: int, d: int, limit: F64) -> str:
    names_of, request = view.tables.queues.names, view.outcome.figures["queue.request"]
    others = [row for row in range(len(names_of)) if row != queue and request[row, d] >= EPS]
    left = number(view.axis.names[d], max(view.total[d] - limit[d], 0.0))
    if not others or left == "0":
        return ""
    if len(others) == 1:
        return f"; queue {names_of[others[0]]} wants the other {left}"
    return f"; {len(others)} other queues want the other {left}"
