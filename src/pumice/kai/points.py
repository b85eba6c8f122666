"""List the extension points of KAI's policy language: those shared with Volcano's, and those of the victim search.
Source: KAI session functions.
"""

from __future__ import annotations

from pumice.framework.plugin.point import Question
from pumice.framework.plugin.points import (
    batch_node_order,
    bind_context,
    consolidate_victims,
    job_order,
    node_order,
    on_allocate,
    on_deallocate,
    pre_predicate,
    predicate,
    session_close,
    task_order,
    waits,
)
from pumice.kai.engine.points import (
    consolidate_valid,
    device_order,
    keeps_placement,
    may_reclaim,
    may_take,
    node_subsets,
    pod_set_order,
    preempt_valid,
    preempt_victims,
    queue_request_order,
    reclaim_valid,
    reclaim_victims,
    solution_start,
    victim_sets,
)

POINTS: dict[str, Question] = {p.name: p for p in list(globals().values()) if isinstance(p, Question)}

__all__ = [
    "POINTS",
    "batch_node_order",
    "bind_context",
    "consolidate_valid",
    "consolidate_victims",
    "device_order",
    "job_order",
    "keeps_placement",
    "may_reclaim",
    "may_take",
    "node_order",
    "node_subsets",
    "on_allocate",
    "on_deallocate",
    "pod_set_order",
    "pre_predicate",
    "predicate",
    "preempt_valid",
    "preempt_victims",
    "queue_request_order",
    "reclaim_valid",
    "reclaim_victims",
    "session_close",
    "solution_start",
    "task_order",
    "victim_sets",
    "waits",
]
