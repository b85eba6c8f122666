"""Where the pods of a gang could go, counted node by node, and what is in the way on the node that is nearest to taking
one more.

Filters say why each node refuses one pod while other pods of its gang are placed. What is said here rests on the state
after the cycle, in which nothing that is reserved for the gang itself is in its way.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import EPS, F64, AnyArray, Bool
from pumice.model.blockers import Blocker, KeptApart, PortTaken, RoomOnClosed, Shortage, TooManyPods
from pumice.model.pod import PodAffinityTerm
from pumice.model.selectors import matches
from pumice.reasons import room, selection
from pumice.reasons.gpu_parts import GpuParts
from pumice.reasons.view import View


class TooFew(NamedTuple):
    """So many pods of the gang find a place, and what is in the way of one more."""

    places: int
    first: Blocker


class Places:
    """The places of pods like one task of a job. Shapes: N nodes, R resources."""

    def __init__(self, view: View, job: int, row: int) -> None:
        self.view, self._job = view, job
        self._pod, self._spec, self._request = view.tables.tasks.pods[row], view.spec(row), view.request(row)
        self.needed = view.needed(job)

    @property
    def are_apart(self) -> bool:
        """True if no two of the pods can be on one node."""
        return self._has_own_port or bool(self._own_terms)

    def in_the_way(self, within: Bool | None = None) -> TooFew | None:
        """Return how many pods find a place on these nodes, and what is in the way of the next one; None if all of the
        gang find one. Shape (N,)."""
        counts = self.counts(within)
        if counts.sum() >= self.needed:
            return None
        return TooFew(int(counts.sum()), self.next_to(counts, self.nearest(counts, within)))

    def after(self, counts: AnyArray) -> Blocker | None:
        """Return what is in the way of one more pod after ``counts`` pods are placed, or None if it has a place. Shape
        (N,)."""
        node = self.nearest(counts)
        if node >= 0 and not self._cost(np.array([node]), counts)[0]:
            return None
        return self.next_to(counts, node)

    def counts(self, within: Bool | None = None) -> AnyArray:
        """Return how many pods fit on each of these nodes, together. Shape (N,)."""
        may = self._selected & ~self._closed & ~self._port_taken & ~self._near_others
        may = may if within is None else may & within
        most = np.where(may, np.minimum(self._fit, self._slots), 0)
        if self._parts is not None:
            most = np.minimum(most, self._parts.pods)
        if self._has_own_port:
            most = np.minimum(most, 1)
        for term in self._own_terms:
            most = self._one_in_each(term, most)
        return np.minimum(most, self.needed)

    def nearest(self, counts: AnyArray, within: Bool | None = None) -> int:
        """Return the node that has the fewest things in the way of one more pod, after ``counts`` pods are placed, or
        -1 if the pods of the gang keep each other off all nodes. Shape (N,)."""
        view, nodes = self.view, self._selected if within is None else self._selected & within
        used = (counts > 0) & self._has_own_port
        for term in self._own_terms:
            codes = view.derived.label(term.topology_key).codes
            used |= np.isin(codes, codes[counts > 0]) | (codes < 0)
        rows = (nodes & ~used).nonzero()[0]
        if not len(rows):
            return -1
        return int(rows[np.lexsort((rows, self._cost(rows, counts)))[0]])

    def _cost(self, rows: AnyArray, counts: AnyArray) -> AnyArray:
        """Return how many things are in the way on each of these nodes. Shape (rows,)."""
        left = self._left(counts)[rows]
        short = (self._request - left >= EPS)[:, self.view.asked_in(self._request)].sum(axis=1)
        full = self._slots[rows] <= counts[rows]
        # Nodes that are opened must have room for all that is missing: otherwise the gang is short of room anyway.
        closed = 1 if self._closed_room >= self.needed - counts.sum() else 2
        # A taint is removed, and a port freed, more easily than pods that keep others away are moved.
        cost = short + full + closed * self._closed[rows] + self._port_taken[rows] + 3 * self._near_others[rows]
        if self._parts is not None:
            cost += self._parts.pods[rows] <= counts[rows]
        return np.asarray(cost)

    def next_to(self, counts: AnyArray, node: int) -> Blocker:
        """Return what is in the way of one more pod on a node; -1: the pods of the gang themselves. Shape (N,)."""
        missing = self.needed - int(min(counts.sum(), self.needed - 1))
        if node < 0:
            return self._of_own(int(np.count_nonzero(counts)), missing)
        # What is freed on the nodes that there are does not help pods that need more nodes than there are.
        if self._has_own_port and self._selected.sum() < self.needed:
            return self._of_own_ports(int(self._selected.sum()))
        wanted = 1 if self.are_apart else missing
        return self._on_node(node, self._left(counts), int(counts[node]), wanted, missing)

    def _left(self, counts: AnyArray) -> F64:
        """Return what is free on each node after so many pods are placed. Shapes (N,) -> (N, R)."""
        left: F64 = self._room - counts[:, None] * self._request
        return left

    # -- the blocker of one node ---------------------------------------------------------------------------------------

    def _on_node(self, node: int, everywhere: F64, count: int, wanted: int, missing: int) -> Blocker:
        """Return the first thing in the way on a node. ``everywhere``: what is left on all nodes (N, R). ``wanted``:
        how many pods that node should take; ``missing``: how many have no place."""
        view, name, left = self.view, self.view.facts.names[node], everywhere[node]
        if self._closed[node]:
            by, d = selection.blocking(view, self._spec, node), view.scarcest(self._request, left[None])
            elsewhere = float(everywhere[self._selected & ~self._closed, d].clip(min=0).sum())
            return RoomOnClosed(selection.taints(by, 1), (name,), room.amount(view, d, max(left[d], 0.0)), elsewhere)
        if self._near_others[node]:
            own = next((each for each in self._terms if self._is_near(each)[node]), None)
            term = own or next(each for rows, each in self._terms_of_others() if self._is_in_place(rows, each)[node])
            return KeptApart(term.topology_key, 1, selection.selector_text(term.selector), own is None, missing)
        if self._port_taken[node]:
            port = next(each for each in self._spec.host_ports if node in selection.with_port(view, each, self._others))
            return PortTaken(port.port, port.protocol, 1, len(view.facts))
        short = [d for d in view.asked_in(self._request) if self._request[d] - left[d] >= EPS]
        if not short and self._parts is not None and self._parts.pods[node] <= count:
            return self._parts.on_node(node, count, wanted)
        if not short:
            free = view.scarcest(self._request, left[None])
            running, most = int(view.facts.max_pods[node] - self._slots[node]) + count, int(view.facts.max_pods[node])
            return TooManyPods(name, running, most, 0, room.amount(view, free, max(left[free], 0.0)), wanted)
        d = short[0]
        size, free_there = float(view.facts.allocatable[node, d]), float(max(left[d], 0.0))
        amounts = free_there, free_there, 1, 1, size, size
        return Shortage(view.axis.names[d], float(self._request[d]), wanted, *amounts, node=name)

    def _of_own(self, places: int, wanted: int) -> Blocker:
        """Return that the pods of the gang keep each other off, in all of the places that there are."""
        if self._own_terms:
            term = self._own_terms[0]
            return KeptApart(term.topology_key, places, selection.selector_text(term.selector), wanted=wanted)
        if self._has_own_port:
            return self._of_own_ports(places)
        return selection.no_such_node(self.view, self._spec)

    def _of_own_ports(self, places: int) -> PortTaken:
        """Return that the pods of the gang need a node each, of which there are so many."""
        port, wanted = self._spec.host_ports[0], max(1, self.needed - places)
        return PortTaken(port.port, port.protocol, places, len(self.view.facts), own=True, wanted=wanted)

    # -- nodes ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _selected(self) -> Bool:
        return selection.selected(self.view, self._spec)

    @cached_property
    def _closed(self) -> Bool:
        quarantined = self.view.tables.nodes.quarantined_by > 0
        return np.asarray(~selection.open_to(self.view, self._spec) | quarantined)

    @cached_property
    def _closed_room(self) -> int:
        """How many pods closed nodes have room for."""
        return int(np.minimum(self._fit, self._slots)[self._selected & self._closed].clip(min=0).sum())

    @cached_property
    def _reserved(self) -> AnyArray:
        """How many pods of the gang each node is reserved for. Shape (N,)."""
        nodes = np.array(self.view.reserved(self._job), dtype=np.int64)
        return np.bincount(nodes, minlength=len(self.view.facts))

    @cached_property
    def _room(self) -> F64:
        """What is free on each node if nothing is reserved for the gang. Shape (N, R)."""
        room_: F64 = self.view.future + self._reserved[:, None] * self._request
        return room_

    @cached_property
    def _fit(self) -> AnyArray:
        asked = self.view.asked_in(self._request)
        if not asked:
            return np.full(len(self.view.facts), self.needed)
        fit = np.floor((self._room[:, asked] + EPS) / self._request[asked]).clip(min=0).min(axis=1)
        return np.asarray(np.minimum(fit, self.needed).astype(np.int64))

    @cached_property
    def _parts(self) -> GpuParts | None:
        """The room for parts of GPUs, None if the pods ask for none."""
        share = self._spec.gpu_share
        return None if share is None or share.problem else GpuParts(self.view, share)

    @cached_property
    def _slots(self) -> AnyArray:
        return np.asarray(self.view.slots + self._reserved)

    # -- pods that are there -------------------------------------------------------------------------------------------

    @cached_property
    def _others(self) -> AnyArray:
        return self.view.others(self._job)

    @property
    def _has_own_port(self) -> bool:
        return bool(self._spec.host_ports)

    @cached_property
    def _port_taken(self) -> Bool:
        found = np.zeros(len(self.view.facts), dtype=bool)
        for each in self._spec.host_ports:
            found[selection.with_port(self.view, each, self._others)] = True
        return found

    @property
    def _terms(self) -> tuple[PodAffinityTerm, ...]:
        return self._spec.affinity.anti_required

    @cached_property
    def _own_terms(self) -> list[PodAffinityTerm]:
        """The terms that keep the pods of the gang off each other."""
        return [each for each in self._terms if each.selector is not None and matches(each.selector, self._pod.labels)]

    def _is_near(self, term: PodAffinityTerm) -> Bool:
        """Return the nodes in a place with a pod that the term is about. Shape (N,)."""
        codes = self.view.derived.label(term.topology_key).codes
        there = distinct(codes[selection.pods_of(self.view, term, self._pod.namespace, self._others)])
        return np.asarray(np.isin(codes, there) & (codes >= 0))

    @cached_property
    def _near_others(self) -> Bool:
        found = np.zeros(len(self.view.facts), dtype=bool)
        for term in self._terms:
            found |= self._is_near(term)
        # The anti-affinity of pods that run keeps the pod off as well.
        for rows, term in self._terms_of_others():
            found |= self._is_in_place(rows, term)
        return found

    def _is_in_place(self, rows: AnyArray, term: PodAffinityTerm) -> Bool:
        """Return the nodes in the same place as one of these pods, by the topology of a term. Shape (N,)."""
        codes = self.view.derived.label(term.topology_key).codes
        there = distinct(codes[self.view.tables.tasks.view_node[rows]])
        return np.asarray(np.isin(codes, there) & (codes >= 0))

    def _terms_of_others(self) -> Iterator[tuple[AnyArray, PodAffinityTerm]]:
        """Yield the terms of pods on nodes that keep this one off, with the rows of those pods."""
        tasks, specs = self.view.tables.tasks, self.view.tables.classes.specs
        classes = tasks.cls[self._others]
        # By class: a cluster runs many pods, and few kinds of them.
        for cls in distinct(classes).tolist():
            for term in specs[cls].affinity.anti_required:
                if term.selector is None or not matches(term.selector, self._pod.labels):
                    continue
                rows = self._others[classes == cls]
                if term.namespace_selector is None and term.namespaces:
                    rows = rows if self._pod.namespace in term.namespaces else rows[:0]
                elif term.namespace_selector is None:
                    rows = rows[[tasks.pods[row].namespace == self._pod.namespace for row in rows.tolist()]]
                if len(rows):
                    yield rows, term

    def _one_in_each(self, term: PodAffinityTerm, most: AnyArray) -> AnyArray:
        """Return the counts with one pod at most in each place of a term. Shape (N,)."""
        codes = self.view.derived.label(term.topology_key).codes
        found = np.zeros_like(most)
        rows = ((most > 0) & (codes >= 0)).nonzero()[0]
        _, first = np.unique(codes[rows], return_index=True)
        found[rows[first]] = 1
        return found
