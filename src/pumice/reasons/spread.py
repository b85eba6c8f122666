"""Blockers of spread constraints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.model.blockers import Amount, Blocker, Closed, RoomOnClosed, Shortage, Uneven
from pumice.model.pod import PodAffinityTerm
from pumice.placing.filters.spread import HARD, prepare
from pumice.reasons.places import Places
from pumice.reasons.selection import pods_of, selector_text
from pumice.reasons.view import View


def spread(view: View, job: int, row: int, with_room: Bool, placed: Sequence[int]) -> Uneven | None:
    """Return a spread constraint that forbids what room there is, or None. ``with_room``: the nodes that the pod may
    use and that have room (N,). ``placed``: nodes that pods of the gang would have got."""
    pod, spec, request = view.tables.tasks.pods[row], view.spec(row), view.request(row)
    for prepared in prepare(view.derived, spec, HARD):
        rule, column = prepared.constraint, view.derived.label(prepared.constraint.topology_key)
        domains = prepared.domains[:-1].nonzero()[0]
        if len(domains) < 2:
            continue
        term = PodAffinityTerm(rule.topology_key, rule.selector)
        there = column.codes[[*pods_of(view, term, pod.namespace, view.others(job)), *placed]]
        counts = np.bincount(there[there >= 0], minlength=len(prepared.domains))
        fewest = domains[counts[domains] == counts[domains].min()]
        least = min(fewest.tolist(), key=column.values.__getitem__)
        usable = np.zeros(len(prepared.domains), dtype=bool)
        usable[column.codes[with_room]] = True
        usable = domains[usable[domains] & (domains != least)]
        skews = counts[usable] + 1 - counts[least]
        if not len(skews) or skews.min() <= rule.max_skew:
            continue
        at = int(skews.argmin())
        skew, most = int(skews[at]), int(usable[at])
        within = np.asarray(column.codes == least)
        d = view.scarcest(request, view.future[within])
        free = Amount(view.axis.names[d], float(view.future[within, d].clip(min=0).sum()))
        places, taken = Places(view, job, row), np.bincount(placed, minlength=len(view.facts))
        first: Blocker | None = places.next_to(taken, places.nearest(taken, within))
        if isinstance(first, Shortage) and first.resource == free.resource and np.count_nonzero(within) == 1:
            first = None  # the amount that is free says it
        if isinstance(first, RoomOnClosed):
            first = Closed(int(np.count_nonzero(within)), (first.by,))
        names = column.values[most], column.values[least]
        what = selector_text(rule.selector)
        return Uneven(rule.topology_key, *names, skew, rule.max_skew, what, free, float(request[d]), first)
    return None
