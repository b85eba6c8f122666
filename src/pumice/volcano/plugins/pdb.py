"""pdb: evict no more tasks than PodDisruptionBudgets allow. Source: Volcano pdb plugin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pumice.algorithms.groups import distinct, nth_of_its_group
from pumice.api import I32, AnyArray, Bool, Candidates, MayGo, Pod, Session, Task, TaskRows, plugin, points
from pumice.framework.memo import ground
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.selectors import matches

#: Numbers of two sets of budgets: that of pods without labels, and that of other pods that no budget covers.
_NO_LABELS, _NO_BUDGET = 0, 1


class Cover(NamedTuple):
    """Which budgets cover which pods: the number of a set of budgets for each task (T,), and the budgets of each set
    (sets, B)."""

    of_row: I32
    budgets: Bool


@plugin("pdb")
class Pdb:
    """Protect pods by budgets. ``allowed`` (B,): how many pods each budget allows to evict now."""

    spares = "that budgets cover"

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self._budgets: dict[str, list[tuple[int, PodDisruptionBudget]]] = {}
        self._leaving: set[tuple[str, str]] = set()
        allowed: list[int] = []
        for budget in ssn.tables.budgets.objs:
            # A budget with an empty selector covers no pod, as in Volcano.
            if budget.selector is not None and budget.selector.requirements:
                self._budgets.setdefault(budget.namespace, []).append((len(allowed), budget))
                allowed.append(budget.allowed)
                self._leaving.update((budget.namespace, name) for name in budget.disrupted)
        self.allowed = ssn.column("pdb.allowed", values=np.array(allowed, dtype=np.int64))
        # No code reads this column. It makes memoized answers rest on the budgets.
        self.made = ssn.column("pdb.made", values=np.array([ssn.tables.budgets["objs"].version]))

    @points.preemptable
    @points.reclaimable
    def evictable(self, evictor: Task, candidates: Candidates) -> Bool:
        """Return the tasks that every budget covering them allows to evict. Shape (rows,)."""
        return self._spared(candidates, candidates.nth)

    @points.victim_tasks
    def victim_tasks(self, tasks: TaskRows) -> MayGo:
        """Return the tasks that budgets allow to evict, over all nodes together."""
        # Budgets allow evictions but ask for none; in Volcano this hook names every pod that they allow (see
        # decision 0017).
        return MayGo(self._spared(tasks, np.zeros(len(tasks), dtype=np.int64)))

    def protectors(self, tasks: TaskRows) -> Iterator[str]:
        """Yield the budgets that cover some tasks, the one that covers the most of them first."""
        of_row, covers = self._cover()
        counts = covers[of_row[tasks.rows]].sum(axis=0).tolist()
        names = {i: f"{budget.namespace}/{budget.name}" for each in self._budgets.values() for i, budget in each}
        for i in sorted(range(len(counts)), key=lambda i: (-counts[i], names[i])):
            if counts[i]:
                yield f"PodDisruptionBudget {names[i]}: {counts[i]}, {int(self.allowed.array[i])} may be evicted"

    def _spared(self, tasks: TaskRows, node: AnyArray) -> Bool:
        """Return the tasks that budgets allow to evict. Shape (rows,)."""
        of_row, covers = self._cover()
        sets = of_row[tasks.rows]
        # Quirk of Volcano, kept on purpose: a pod without labels is never a victim.
        found = np.asarray(sets != _NO_LABELS)
        for budget in np.flatnonzero(covers[distinct(sets)].any(axis=0)).tolist():
            rows = covers[sets, budget].nonzero()[0]
            # Each candidate counts against the budget, whether it becomes a victim or not.
            found[rows] &= nth_of_its_group(node[rows]) < self.allowed.array[budget]
        return found

    def _cover(self) -> Cover:
        """Return which budgets cover which pods."""
        tables = self.ssn.tables
        rests_on = ground(tables.tasks["pods"], tables.budgets["objs"])
        return self.ssn.memo.get("pdb.cover", rests_on, self._build_cover, tables.tasks.capacity)

    def _build_cover(self) -> Cover:
        """Find the budgets of each pod."""
        tasks = self.ssn.tables.tasks
        number: dict[tuple[int, ...] | None, int] = {None: _NO_LABELS, (): _NO_BUDGET}
        matching: dict[object, tuple[int, ...]] = {}
        of_row = np.zeros(tasks.capacity, dtype=np.int32)
        for row in tasks.alive.nonzero()[0].tolist():
            of_row[row] = number.setdefault(self._budgets_of(tasks.pods[row], matching), len(number))
        covers = np.zeros((len(number), len(self.allowed.array)), dtype=bool)
        for budgets, i in number.items():
            covers[i, list(budgets or ())] = True
        return Cover(of_row, covers)

    def _budgets_of(self, pod: Pod, matching: dict[object, tuple[int, ...]]) -> tuple[int, ...] | None:
        """Return the budgets that cover a pod, None for a pod without labels. ``matching``: those of earlier pods, by
        namespace and labels."""
        if not pod.labels:
            return None
        budgets = self._budgets.get(pod.namespace)
        if budgets is None:
            return ()
        # Pods of one controller have equal labels, so selectors are matched once per set of labels.
        key = pod.namespace, tuple(sorted(pod.labels.items()))
        found = matching.get(key)
        if found is None:
            found = tuple(i for i, budget in budgets if budget.selector and matches(budget.selector, pod.labels))
            matching[key] = found
        # A budget has already counted a pod whose disruption is in progress.
        if (pod.namespace, pod.name) in self._leaving:
            counted = {i for i, budget in budgets if pod.name in budget.disrupted}
            return tuple(i for i in found if i not in counted)
        return found
