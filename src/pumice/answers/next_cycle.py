"""What the next cycle would do: whose pods get which node, who is evicted, who is admitted, and who still waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from pumice.answers.codes import Code
from pumice.answers.difference import admitted_in, waiting_in
from pumice.answers.world import Trial
from pumice.model.blockers import Blocker


class NextCycle(Struct, frozen=True):
    """``binds``, ``reserves``: by job, how many of its pods get each node, or wait for one that is being freed.
    ``evicts``: (pod, node, reason). ``admits``: jobs. ``waits``: (job, code, sentence) of those that get nothing."""

    binds: Mapping[str, Mapping[str, int]]
    reserves: Mapping[str, Mapping[str, int]]
    evicts: tuple[tuple[str, str, str], ...]
    admits: tuple[str, ...]
    waits: tuple[tuple[str, Code, str], ...]


def next_cycle(trial: Trial, outside: Mapping[str, Blocker]) -> NextCycle:
    """Return what a cycle did. ``outside``: as in ``waiting_in``."""
    tables = trial.outcome.tables
    pods = [tables.tasks.pods[row] for row in tables.tasks.alive.nonzero()[0].tolist()]
    job_of = {pod.key: pod.group_key for pod in pods}
    return NextCycle(
        _by_job(trial.binds, job_of),
        _by_job(trial.outcome.pipelined, job_of),
        tuple((each.pod, each.node, each.reason) for each in trial.evicts),
        tuple(sorted(tables.jobs.uids[row] for row in admitted_in(trial))),
        tuple(waiting_in(trial, outside)),
    )


def _by_job(node_of: Mapping[str, str], job_of: Mapping[str, str]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for pod, node in node_of.items():
        found.setdefault(job_of[pod] or pod, Counter())[node] += 1
    return {job: dict(sorted(counts.items())) for job, counts in sorted(found.items())}
