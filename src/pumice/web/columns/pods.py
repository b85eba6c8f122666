"""The pods of a cycle as plain columns, for the pages of one job and of one node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import I8, I32
from pumice.columns.tables import Tables


class PodColumns(Struct, frozen=True):
    """The pods (P). ``job``: into the jobs of the summary, -1 for none of them. ``node``: into its nodes, -1 for none.
    ``status``: a TaskStatus."""

    names: Sequence[str]
    job: I32
    node: I32
    status: I8


def pod_columns(tables: Tables, jobs: Sequence[int]) -> PodColumns:
    """Return the pods of a cycle. ``jobs``: rows of the jobs that the summary has, in its order."""
    tasks = tables.tasks
    rows = tasks.alive.nonzero()[0]
    place = np.full(len(tables.jobs.uids) + 1, -1, dtype=np.int32)
    place[np.asarray(jobs, dtype=np.int64)] = np.arange(len(jobs))
    pods = tasks.pods
    return PodColumns(
        [pods[row].name for row in rows.tolist()],
        place[tasks.job[rows]],
        tasks.node[rows].copy(),
        tasks.status[rows].copy(),
    )
