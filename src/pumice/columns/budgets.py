"""Disruption budgets as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pumice.columns.column import Versions
from pumice.columns.table import Table, objects
from pumice.model.disruption import PodDisruptionBudget


class BudgetTable(Table):
    """One row each, by namespace and name; made anew when a budget comes, goes or changes."""

    objs: Sequence[PodDisruptionBudget] = objects()

    def __init__(self, versions: Versions, budgets: Iterable[PodDisruptionBudget] = ()) -> None:
        super().__init__(versions, stamped=False)
        in_order = sorted(budgets, key=lambda budget: (budget.namespace, budget.name))
        self._resize(len(in_order))
        for row, budget in enumerate(in_order):
            self.write(row, alive=True, objs=budget)
