"""Group victims into lumps, the units in which reclaim subtracts them from their queues. Source: KAI proportion
plugin, reclaimable.
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.columns.tables import Tables
from pumice.kai.engine.parts import active_of


def victim_lumps(tables: Tables, gone: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return evicted tasks by queue, in the order in which they are subtracted.

    Tasks of a job above its minimums are lumps of their own. All other tasks of the job form one lump, since a gang
    cannot lose a part of it.
    """
    tasks, jobs, subs = tables.tasks, tables.jobs, tables.subs
    # In the order of eviction: whether a queue may lose one more lump depends on what it has lost before.
    by_job: dict[int, list[int]] = {}
    gone = list(gone)
    for row, job in zip(gone, tasks.job[gone].tolist(), strict=True):
        by_job.setdefault(job, []).append(row)
    lumps = []
    for rows, queue in zip(by_job.values(), jobs.queue[list(by_job)].tolist(), strict=True):
        # One task is one lump either way; this is the usual case and skips the counts.
        if len(rows) == 1:
            lumps.append((queue, rows))
            continue
        lost: dict[int, int] = {}
        for row in rows:
            lost[int(tasks.sub[row])] = lost.get(int(tasks.sub[row]), 0) + 1
        # The tasks are evicted already, so the surplus before the eviction is what is active now plus what was lost.
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
