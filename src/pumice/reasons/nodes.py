"""Why nodes do not take a pod, as the one blocker that is nearest to its being placed."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from pumice.columns.dtypes import EPS, Bool
from pumice.model.blockers import Blocker, Domain, GangPartial, NodeFilter, NoNode, Shortage, TooManyPods
from pumice.model.blockers.changes import AttachMore, OfferDevices, OfferVolume
from pumice.model.pod import PodSpec
from pumice.model.status import TaskStatus
from pumice.reasons import domains, room, selection
from pumice.reasons.places import Places
from pumice.reasons.spread import spread
from pumice.reasons.view import View

Refusing = TypeVar("Refusing", NodeFilter, NoNode)


def against(view: View, job: int, row: int) -> Blocker | None:
    """Return the objection to a task on all nodes, the last that the policy would ask about, or None."""
    spec, request, wanted = view.spec(row), view.request(row), view.needed(job) - len(placed(view, job))
    missing = room.not_there(view, row)
    if missing is not None:
        return missing
    nodes = selection.selected(view, spec)
    if not nodes.any():
        return selection.no_such_node(view, spec)
    too_large = room.too_large(view, request, nodes, wanted)
    if too_large is not None:
        return _of_selected(too_large, spec, nodes)
    may = nodes & selection.open_to(view, spec) & (view.tables.nodes.quarantined_by == 0)
    if not may.any():
        return selection.all_closed(view, spec, nodes)
    return room.in_one_hypernode(view, job) or _among(view, job, row, nodes, may)


def on_nearest(view: View, job: int, row: int) -> Shortage | None:
    """Return what is short on the node that lacks least of what a task asks for, of those that do not refuse it for
    good, or None if one of them has room."""
    spec, request = view.spec(row), view.request(row)
    may = selection.selected(view, spec) & selection.open_to(view, spec) & (view.tables.nodes.quarantined_by == 0)
    rows, asked = (may & view.not_given_up(job, row)).nonzero()[0], view.asked_in(request)
    if not len(rows) or not asked or view.fits(request, view.future)[rows].any():
        return None
    lacks = (1 - view.future[rows][:, asked].clip(min=0) / request[asked]).clip(min=0)
    at = int(lacks.sum(axis=1).argmin())
    node, d = int(rows[at]), asked[int(lacks[at].argmax())]
    found = room.shortage(view, request, rows[at : at + 1], d, 1)
    return replace(found, node=view.facts.names[node])


def _among(view: View, job: int, row: int, nodes: Bool, may: Bool) -> Blocker | None:
    """Return why of the nodes that it ``may`` use none has room, or why the room is no use."""
    spec, request = view.spec(row), view.request(row)
    # No room is of use while a pod that it must be near runs nowhere.
    alone = selection.near_none(view, spec, view.tables.tasks.pods[row].namespace)
    if alone is not None:
        return alone
    fits = view.fits(request, view.future)
    closed = (nodes & fits & ~may).nonzero()[0].tolist()
    # Claims of volumes and devices refuse nodes too, which are of no use then.
    left = may & view.not_given_up(job, row)
    may = left if left.any() else may
    rows = may.nonzero()[0]
    wanted = view.needed(job) - len(placed(view, job))
    if (may & fits).any():
        claims = _claims(view, job, row)
        if claims is not None:
            return claims
        despite = _despite_room(view, job, row, may, fits) or _in_hypernodes(view, job, row)
        despite = despite or _after_some(view, job, row)
        if despite is not None:
            return despite
        too_few = Places(view, job, row).in_the_way()
        return None if too_few is None else too_few.first
    if closed:
        return selection.room_on_closed(view, spec, closed, rows, request)
    own = view.tables.tasks.pods[row].scheduler_name
    before = room.taken_in_turn(view, job, request, rows) or room.of_other_schedulers(view, own, request, rows)
    if before is not None:
        return before
    if nodes.all():
        return room.not_enough(view, request, rows, wanted)
    rows = nodes.nonzero()[0]
    short = room.shortage(view, request, rows, view.shortest(request, view.future[rows]), wanted)
    return _of_selected(short, spec, nodes)


def _claims(view: View, job: int, row: int) -> NodeFilter | None:
    """Return what keeps a task off nodes and would be lifted by volumes or devices that a plugin names, or None."""
    errors, wanted = view.trace.errors_of(job).get(row), view.needed(job) - len(placed(view, job))
    against = () if errors is None else errors.against
    found = next((each for each in against if isinstance(each, NodeFilter) and each.changes), None)
    apart = Places(view, job, row).are_apart
    return None if found is None else for_pods(found, max(1, wanted), apart=apart)


def for_pods(found: Refusing, wanted: int, *, apart: bool) -> Refusing:
    """Return an objection with the changes that so many equal pods need. ``apart``: each on a node of its own."""
    # Pods that keep each other off a node need what they claim on several nodes.
    more = {"nodes": wanted} if apart and wanted > 1 else {}
    each = tuple(
        replace(change, count=change.count if more else wanted * change.count, **more)
        if isinstance(change, OfferDevices | OfferVolume | AttachMore)
        else change
        for change in found.changes
    )
    return replace(found, changes=each) if each else found


def _after_some(view: View, job: int, row: int) -> Blocker | None:
    """Return what was in the way of the next pod after some of the gang were placed, in the try that was undone, or
    None."""
    got = placed(view, job)
    if not got or view.needed(job) <= len(got):
        return None
    # The pods of a gang may differ; each is taken for the one that found no node.
    return Places(view, job, row).after(np.bincount(got, minlength=len(view.facts)))


def _in_hypernodes(view: View, job: int, row: int) -> Domain | None:
    found = domains.in_hypernodes(view, job, row)
    # How many pods are left over is said of the last try, where pods of the gang were placed.
    if found is None or not placed(view, job) or not isinstance(found.first, GangPartial):
        return found
    return replace(found, first=found.first.first)


def _despite_room(view: View, job: int, row: int, may: Bool, fits: Bool) -> Blocker | None:
    """Return what other pods have against the nodes with room, or None."""
    spec, request, there = view.spec(row), view.request(row), may & fits
    pod, got = view.tables.tasks.pods[row], placed(view, job) or view.reserved(job)
    wanted = max(1, view.needed(job) - len(placed(view, job)))
    return (
        selection.ports(view, spec, there, view.others(job))
        or selection.keeps_apart(view, pod, there, view.others(job), wanted)
        or spread(view, job, row, there, got)
        or room.all_slots_used(view, there.nonzero()[0], request, view.needed(job))
    )


def too_few_fit(view: View, job: int, row: int) -> GangPartial | TooManyPods | None:
    """Return that fewer pods like this task fit together on the nodes that it may use than the gang needs, or None."""
    spec, request, needed = view.spec(row), view.request(row), view.needed(job)
    may = selection.selected(view, spec) & selection.open_to(view, spec) & (view.tables.nodes.quarantined_by == 0)
    rows, asked = may.nonzero()[0], view.asked_in(request)
    if not len(rows) or not asked:
        return None
    fit = np.floor((view.future[rows][:, asked] + EPS) / request[asked]).clip(min=0).min(axis=1)
    slots = view.slots[rows]
    if fit.sum() < needed:
        count = int(fit.sum())
        short = view.scarcest(request, view.future[rows])
        first = room.shortage(view, request, rows, short, needed - count)
        return GangPartial(count, needed, first)
    if np.minimum(fit, slots).sum() < needed:
        at = int(rows[int((fit - slots).argmax())])
        most = view.facts.max_pods[at]
        counts = most - view.slots[at]
        free = room.amount(view, asked[0], view.future[rows, asked[0]].sum())
        return TooManyPods(view.facts.names[at], int(counts), int(most), len(rows) - 1, free, needed)
    return None


def too_few_places(view: View, job: int, row: int) -> GangPartial | None:
    """Return what is in the way of the next pod after as many as find a place together, or None if all do."""
    places = Places(view, job, row)
    found = places.in_the_way()
    return None if found is None else GangPartial(found.places, places.needed, found.first)


def _of_selected(found: Shortage, spec: PodSpec, nodes: Bool) -> Shortage:
    """Return a shortage with the labels of the nodes that it is about, unless these are all nodes."""
    if nodes.all():
        return found
    labels = tuple(selection.requirement_text(each) for each in selection.wanted_labels(spec))
    return replace(found, labels=labels, all_nodes=len(nodes))


def placed(view: View, job: int) -> list[int]:
    """Return the nodes of the tasks that the last try had placed before it was undone."""
    last_trial = view.trace.undone_of(job)
    if last_trial is None:
        return []
    found: list[int] = last_trial.node[last_trial.status == TaskStatus.ALLOCATED].tolist()
    return found
