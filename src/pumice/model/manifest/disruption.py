"""Decode PodDisruptionBudgets."""

from __future__ import annotations

from pumice.model.disruption import PodDisruptionBudget
from pumice.model.manifest.pods import namespace_of
from pumice.model.manifest.reading.fields import Obj, name, table, whole
from pumice.model.manifest.terms import maybe_label_selector


def read_disruption_budget(obj: Obj) -> PodDisruptionBudget:
    """Return a budget. A budget whose status no controller has written allows no disruption."""
    metadata, status = table(obj, "metadata", ""), table(obj, "status", "")
    return PodDisruptionBudget(
        namespace=namespace_of(metadata),
        name=name(metadata, "name", "metadata"),
        selector=maybe_label_selector(table(obj, "spec", ""), "selector", "spec"),
        # 0 without a status: until the controller has counted, a disruption might break the budget.
        allowed=whole(status, "disruptionsAllowed", "status", 0, 0),
        disrupted=tuple(sorted(table(status, "disruptedPods", "status"))),
    )
