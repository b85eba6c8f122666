"""priority: larger first, and larger may take from smaller."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.columns.job_rows import JobRows
from pumice.columns.rows import Candidates, TaskRows
from pumice.columns.views import Job, Task
from pumice.framework.cycle.session import Session
from pumice.model.queue import PriorityClass
from pumice.testing.build import cluster, node, pod, podgroup, session
from pumice.volcano.eviction.context import EvictionContext, EvictionKind

LEVELS = [PriorityClass("low", 1), PriorityClass("mid", 5), PriorityClass("high", 9)]


def opened() -> Session:
    """Three jobs of a level each; a pod of each runs, and one with priority 3 of ``mid`` waits."""
    groups = [podgroup(each.name, 1, priority_class=each.name) for each in LEVELS]
    running = [pod(f"{each.name}-0", each.name, priority=each.value, on="n") for each in LEVELS]
    least = pod("mid-1", "mid", priority=2, on="n")
    objects = LEVELS, node("n"), groups, running, least, pod("mid-2", "mid", priority=3)
    return session(cluster(*objects), "tiers: [{plugins: [{name: priority}]}]")


def rows_of(ssn: Session, names: str) -> np.ndarray:
    row_of = {each.name: row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None}
    return np.array([row_of[name] for name in names.split()])


def job_row(ssn: Session, name: str) -> int:
    return list(ssn.tables.jobs.uids).index(f"ns/{name}")


def test_larger_comes_first() -> None:
    ssn = opened()
    plugin, jobs = (
        ssn.hooks.plugin("priority"),
        JobRows(ssn.tables, np.array([job_row(ssn, each.name) for each in LEVELS])),
    )
    assert plugin.job_order(jobs).argsort().tolist() == [2, 1, 0]
    tasks = TaskRows(ssn.tables, rows_of(ssn, "mid-2 high-0 mid-1"))
    assert plugin.task_order(tasks).argsort().tolist() == [1, 0, 2]


def test_a_task_takes_from_lower_jobs_and_from_lower_tasks_of_its_own() -> None:
    ssn, names = opened(), "low-0 mid-0 mid-1 high-0"
    preemptor = Task(ssn.tables, int(rows_of(ssn, "mid-2")[0]))
    found = ssn.hooks.plugin("priority").preemptable(preemptor, Candidates(ssn.tables, rows_of(ssn, names)))
    assert dict(zip(names.split(), found.tolist(), strict=True)) == {
        "low-0": True,
        "mid-0": False,
        "mid-1": True,
        "high-0": False,
    }


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        pytest.param(EvictionKind.GANG_PREEMPT, [True, False, False], id="lower jobs"),
        pytest.param(EvictionKind.GANG_RECLAIM, [True, True, True], id="between queues any"),
    ],
)
def test_whom_a_gang_may_evict(kind: EvictionKind, found: list[bool]) -> None:
    ssn = opened()
    context = EvictionContext(kind, Job(ssn.tables, job_row(ssn, "mid")), hypernode=ssn.tables.tree.top)
    tasks = TaskRows(ssn.tables, rows_of(ssn, "low-0 mid-0 high-0"))
    assert ssn.hooks.plugin("priority").unified_evictable(context, tasks).tolist() == found


def test_a_job_starves_while_a_task_has_no_place() -> None:
    ssn = opened()
    plugin = ssn.hooks.plugin("priority")
    assert [plugin.job_starving(Job(ssn.tables, job_row(ssn, name))) for name in ("mid", "high")] == [True, False]
    ssn.statement().pipeline(rows_of(ssn, "mid-2").tolist(), [0])
    assert not plugin.job_starving(Job(ssn.tables, job_row(ssn, "mid"))), "it is promised one"
