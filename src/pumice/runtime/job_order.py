"""The order in which waiting jobs would be tried if none could be placed."""

from __future__ import annotations

from typing import Any

from pumice.columns.snapshot import Snapshot
from pumice.framework.cycle.closing import looking
from pumice.framework.plugin.policy_file import Policy
from pumice.kai.engine.tree_order import TreeOrder, waiting_jobs


def job_order(snapshot: Snapshot, policy: Policy, now: float) -> dict[str, Any]:
    """Return the order of all queues together and of each queue by its name. Jobs by the UID of their PodGroup, with
    key and priority.

    Raises: PluginFault. Source: KAI reflectjoborder, with its fields; ``name`` is ours.
    """
    ssn, every, by_queue = looking(snapshot, policy, now), [], dict[str, list[dict[str, Any]]]()
    try:
        ssn.open()
        jobs, queues = ssn.tables.jobs, ssn.tables.queues
        for job, _ in TreeOrder(ssn, waiting_jobs(ssn)):
            group = jobs.groups[job]
            entry = {"id": group.uid, "name": group.key, "priority": int(jobs.priority[job])}
            every.append(entry)
            by_queue.setdefault(queues.names[jobs.queue[job]], []).append(entry)
    finally:
        ssn.close()
    return {"global_order": every, "queue_order": by_queue}
