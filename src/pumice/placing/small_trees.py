"""Search a placement for a small tree of groups, also with domains at several of its levels, where placing its groups
in order found none.

A choice says which groups start and in which domains. Choices are made in order, the smallest groups and the domains
with the least room first; what counting refutes in a domain is not chosen there. Source: ``scheduling.k8s.io``,
KEP-6012.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.framework.cycle.session import Session
from pumice.placing.derived import derived
from pumice.placing.feasibility import Feasibility
from pumice.placing.gang_tree import Member, domains_held
from pumice.placing.small_gangs import PODS_MAX, PodsOnNodes, Searched, SmallGangs

#: Choices of one tree that are searched, and of all trees in one run of an action.
CHOICES_MAX, CHOICES_IN_ALL_MAX = 64, 1_000
#: Groups that are counted in a domain, for one tree and for all.
LOOKS_MAX, LOOKS_IN_ALL_MAX = 256, 2_000

#: Returns the tasks that a pod set lacks of its minimum, none if it has that; None if it has too few.
Needed = Callable[[Member], list[int] | None]


class _Cut(Exception):
    """No more groups are counted."""


class SmallTrees:
    """The searches of one run of an action. ``gangs``: those of gangs, which share its steps."""

    def __init__(self, ssn: Session, feasible: Feasibility, gangs: SmallGangs) -> None:
        self.ssn, self.feasible, self._gangs = ssn, feasible, gangs
        self.choices_left, self.looks_left = CHOICES_IN_ALL_MAX, LOOKS_IN_ALL_MAX

    def search(self, root: Member, needed: Needed) -> Searched:
        """Return nodes with idle resources for what a tree lacks of its minimum. Choices with more tasks than are
        searched for are left out, and so are those beyond a number."""
        choices, cut = _Choices(self, needed), None
        for parts in choices.of(root):
            if sum(len(each.rows) for each in parts) > PODS_MAX:
                continue
            found = self._gangs.search_on(parts)
            if found.places:
                return found
            cut = cut or found.cut
        # A tree without a choice fails as it would without this search, and so do trees that equal it.
        return Searched([], cut, is_refuted=not choices.made)


class _Choices:
    """The choices for one tree. ``made``: their number so far."""

    def __init__(self, trees: SmallTrees, needed: Needed) -> None:
        self._ssn, self._feasible, self._left, self._needed = trees.ssn, trees.feasible, trees, needed
        self.made, self._looks, self._rows = 0, 0, dict[int, list[int] | None]()

    def of(self, root: Member) -> Iterator[Sequence[PodsOnNodes]]:
        """Yield which tasks start, and on which nodes they may be."""
        try:
            # A larger tree would be counted in all its domains for nothing.
            for each in self._in_domains(root, None) if 0 < (self._size(root) or 0) <= PODS_MAX else ():
                if self.made >= CHOICES_MAX or self._left.choices_left <= 0:
                    return
                self.made += 1
                self._left.choices_left -= 1
                yield each
        except _Cut:
            return

    def _in_domains(self, member: Member, nodes: Bool | None) -> Iterator[list[PodsOnNodes]]:
        """Yield the choices for a member on these nodes, None: all, in each domain of its label."""
        label = member.topology.required if member.topology is not None else ""
        for within in self._domains(label, member, nodes) if label else (nodes,):
            if not member.is_set:
                rows = self._rows_of(member)
                if rows and self._fit(rows, within):
                    yield [PodsOnNodes(rows, within)]
                continue
            missing = [each for each in member.inside if self._size(each)]
            wanted = member.least - sum(self._size(each) == 0 for each in member.inside)
            # Small groups first: they leave most room for the others.
            for chosen in combinations(sorted(missing, key=self._size_of_missing), max(wanted, 0)):
                yield from self._together(chosen, within)

    def _together(self, members: Sequence[Member], nodes: Bool | None) -> Iterator[list[PodsOnNodes]]:
        """Yield the choices for all of these members together."""
        if not members:
            yield []
            return
        for first in self._in_domains(members[0], nodes):
            for rest in self._together(members[1:], nodes):
                yield [*first, *rest]

    def _size(self, member: Member) -> int | None:
        """Return the tasks that a member lacks at least, 0 if it has its minimum, None if it cannot have that."""
        if not member.is_set:
            rows = self._rows_of(member)
            return None if rows is None else len(rows)
        sizes = sorted(size for size in map(self._size, member.inside) if size is not None)
        return sum(sizes[: member.least]) if len(sizes) >= member.least else None

    def _rows_of(self, member: Member) -> list[int] | None:
        """Return what ``needed`` returns, which is asked once for each pod set."""
        if member.sub not in self._rows:
            self._rows[member.sub] = self._needed(member)
        return self._rows[member.sub]

    def _size_of_missing(self, member: Member) -> int:
        return self._size(member) or 0

    def _domains(self, label: str, member: Member, nodes: Bool | None) -> Iterator[Bool]:
        """Yield the domains of a label on these nodes, that with the fewest nodes first; where the member has tasks,
        theirs alone."""
        codes, tables = derived(self._ssn).label(label).codes, self._ssn.tables
        usable = codes if nodes is None else np.where(nodes, codes, -1)
        there = [row for sub in member.subs for row in tables.subs.tasks[sub].tolist()]
        held = domains_held(tables, there, codes)
        numbers, sizes = np.unique(usable[usable >= 0], return_counts=True)
        for number in numbers[np.argsort(sizes, kind="stable")].tolist():
            if held is None or held == [number]:
                yield usable == number

    def _fit(self, rows: Sequence[int], nodes: Bool | None) -> bool:
        """Return False if these nodes have too few places for the tasks, each class counted by itself."""
        if self._looks >= LOOKS_MAX or self._left.looks_left <= 0:
            raise _Cut
        self._looks += 1
        self._left.looks_left -= 1
        classes, counts = np.unique(self._ssn.tables.tasks.cls[list(rows)], return_counts=True)
        for cls, count in zip(classes.tolist(), counts.tolist(), strict=True):
            places = np.maximum(self._feasible.capacity(cls), 0.0)
            if (places if nodes is None else places[nodes]).sum() < count:
                return False
        return True
