"""In which lumps victims are counted off their queues. Source: KAI reclaimable."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.columns.tables import Tables
from pumice.kai.engine.parts import active_of


def victim_lumps(tables: Tables, gone: Sequence[int]) -> list[tuple[int, list[int]]]:
    """The tasks that are gone, by queue and in the order of leaving, as they are counted off: those of a job above its
    minimums one by one, then all others of it at once."""
    tasks, jobs, subs = tables.tasks, tables.jobs, tables.subs
    by_job: dict[int, list[int]] = {}
    gone = list(gone)
    for row, job in zip(gone, tasks.job[gone].tolist(), strict=True):
        by_job.setdefault(job, []).append(row)
    lumps = []
    for rows, queue in zip(by_job.values(), jobs.queue[list(by_job)].tolist(), strict=True):
        if len(rows) == 1:
            lumps.append((queue, rows))
            continue
        lost: dict[int, int] = {}
        for row in rows:
            lost[int(tasks.sub[row])] = lost.get(int(tasks.sub[row]), 0) + 1
        extra = {
            sub: max(0, active_of(tables, sub) + count - int(subs.min_available[sub])) for sub, count in lost.items()
        }
        core = []
        for row in rows:
            sub = int(tasks.sub[row])
            if extra[sub] > 0:
                extra[sub] -= 1
                lumps.append((queue, [row]))
            else:
                core.append(row)
        if core:
            lumps.append((queue, core))
    return lumps
