"""pdb: evict no more tasks than PodDisruptionBudgets allow. Source: Volcano pdb plugin."""

from __future__ import annotations

import numpy as np

from pumice.algorithms.groups import distinct, nth_of_its_group
from pumice.api import I32, AnyArray, Bool, Candidates, MayGo, Pod, Session, Task, TaskRows, plugin, points
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.selectors import matches

#: Numbers of two sets of budgets: that of pods without labels, and that of other pods that no budget covers.
_NO_LABELS, _NO_BUDGET = 0, 1
_UNKNOWN = -1


@plugin("pdb")
class Pdb:
    """Protect pods by budgets. ``allowed`` (B,): how many pods each budget allows to evict now."""

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
        self._sets: list[tuple[int, ...]] = [(), ()]
        self._number: dict[object, int] = {}
        self._of_row: I32 = np.full(ssn.tables.tasks.capacity, _UNKNOWN, dtype=np.int32)

    @points.preemptable
    @points.reclaimable
    def evictable(self, evictor: Task, candidates: Candidates) -> Bool:
        """Return the tasks that every budget covering them allows to evict. Shape (rows,)."""
        return self._spared(candidates, candidates.nth)

    @points.victim_tasks
    def victim_tasks(self, tasks: TaskRows) -> MayGo:
        """Return the tasks that budgets allow to evict, over all nodes together."""
        # Budgets allow evictions but ask for none; in Volcano this hook names every pod that they allow (decision
        # 0018).
        return MayGo(self._spared(tasks, np.zeros(len(tasks), dtype=np.int64)))

    def _spared(self, tasks: TaskRows, node: AnyArray) -> Bool:
        """Return the tasks that budgets allow to evict. Shape (rows,)."""
        sets = self._covered_by(tasks)
        # Quirk of Volcano, kept on purpose: a pod without labels is never a victim.
        found = np.asarray(sets != _NO_LABELS)
        covers = np.zeros((len(self._sets), len(self.allowed.array)), dtype=bool)
        for number, budgets in enumerate(self._sets):
            covers[number, list(budgets)] = True
        for budget in np.flatnonzero(covers[distinct(sets)].any(axis=0)).tolist():
            rows = covers[sets, budget].nonzero()[0]
            # Each candidate counts against the budget, whether it becomes a victim or not.
            found[rows] &= nth_of_its_group(node[rows]) < self.allowed.array[budget]
        return found

    def _covered_by(self, tasks: TaskRows) -> I32:
        """Return which set of budgets covers each task, as an index into ``_sets``. Shape (rows,)."""
        unknown = tasks.rows[self._of_row[tasks.rows] == _UNKNOWN]
        pods = tasks.tables.tasks.pods
        for row in unknown.tolist():
            self._of_row[row] = self._set_of(pods[row])
        found: I32 = self._of_row[tasks.rows]
        return found

    def _set_of(self, pod: Pod) -> int:
        """Return which set of budgets covers a pod."""
        if not pod.labels:
            return _NO_LABELS
        budgets = self._budgets.get(pod.namespace)
        if budgets is None:
            return _NO_BUDGET
        # Pods of one controller have equal labels, so selectors are matched once per set of labels.
        key = pod.namespace, tuple(sorted(pod.labels.items()))
        number = self._number.get(key)
        if number is None:
            found = tuple(i for i, budget in budgets if budget.selector and matches(budget.selector, pod.labels))
            number = self._number[key] = self._add(found)
        # A budget has already counted a pod whose disruption is in progress.
        if (pod.namespace, pod.name) in self._leaving:
            counted = {i for i, budget in budgets if pod.name in budget.disrupted}
            return self._add(tuple(i for i in self._sets[number] if i not in counted))
        return number

    def _add(self, budgets: tuple[int, ...]) -> int:
        """Return the number of a set of budgets, added if it is new."""
        number = self._number.get(budgets)
        if number is None:
            number = self._number[budgets] = len(self._sets) if budgets else _NO_BUDGET
            if budgets:
                self._sets.append(budgets)
        return number
