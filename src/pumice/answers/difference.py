"""What a change would do: one cycle as things are and one after it, compared by job and by queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from pumice.algorithms.sums import sums_by
from pumice.answers.codes import Code, code_of
from pumice.answers.world import Draft, Trial, Trials, World
from pumice.columns.dtypes import EPS
from pumice.columns.jobs import PENDING_PHASE
from pumice.model.blockers import Blocker
from pumice.model.pod import Pod
from pumice.model.status import PodGroupPhase
from pumice.reasons.nearest import NearestBlockers
from pumice.reasons.sentences import sentence


class Waits(Struct, frozen=True):
    """A job that waits after the change. ``before``: the code of its reason as things are, None where it did not
    wait."""

    job: str
    code: Code
    sentence: str
    before: Code | None


class Share(Struct, frozen=True):
    """What the jobs of a queue hold of a resource after a cycle, in the units of the core."""

    queue: str
    resource: str
    before: float
    after: float


class Difference(Struct, frozen=True):
    """``placed``: more pods of these jobs get a node, or a reservation, than as things are; ``not_placed``: fewer do.
    ``evicted``: pods that are evicted only after the change; ``spared``: only as things are. ``admitted``: jobs whose
    pods are created only after the change; ``not_admitted``: only as things are. ``displaced``: how many pods of these
    jobs have a node as things are, and none after the change, such as those of a drained node."""

    placed: Mapping[str, int]
    not_placed: Mapping[str, int]
    evicted: tuple[str, ...]
    spared: tuple[str, ...]
    admitted: tuple[str, ...]
    not_admitted: tuple[str, ...]
    waits: tuple[Waits, ...]
    shares: tuple[Share, ...]
    before: Trial
    after: Trial
    displaced: Mapping[str, int] = MappingProxyType({})

    @property
    def is_empty(self) -> bool:
        """True if the change changes no decision, and no pod loses its node."""
        same = self.before.decisions == self.after.decisions
        same &= self.before.outcome.pipelined == self.after.outcome.pipelined
        return same and not self.admitted and not self.not_admitted and not self.displaced


def compare(world: World, draft: Draft) -> Difference:
    """Run one cycle on a world, and one on it with changes."""
    trials = Trials(world, 1)
    return difference_of(trials.base, trials.run(draft), world.outside, draft.outside)


def difference_of(
    before: Trial,
    after: Trial,
    outside_before: Mapping[str, Blocker] = MappingProxyType({}),
    outside_after: Mapping[str, Blocker] = MappingProxyType({}),
) -> Difference:
    """Compare two cycles on the same jobs. ``outside_before``, ``outside_after``: as in ``waiting_in``."""
    was, now = before.placed, after.placed
    keys = sorted(was.keys() | now.keys())
    gone_before, gone_after = ({each.pod for each in trial.evicts} for trial in (before, after))
    let_before, let_after = set(_created_in(before)), set(_created_in(after))
    codes = {job: code for job, code, _ in waiting_in(before, outside_before)}
    return Difference(
        {key: now.get(key, 0) - was.get(key, 0) for key in keys if now.get(key, 0) > was.get(key, 0)},
        {key: was.get(key, 0) - now.get(key, 0) for key in keys if now.get(key, 0) < was.get(key, 0)},
        tuple(sorted(gone_after - gone_before)),
        tuple(sorted(gone_before - gone_after)),
        tuple(sorted(let_after - let_before)),
        tuple(sorted(let_before - let_after)),
        tuple(Waits(job, code, text, codes.get(job)) for job, code, text in waiting_in(after, outside_after)),
        tuple(_shares(before, after)),
        before,
        after,
        _displaced(before, after),
    )


def _displaced(before: Trial, after: Trial) -> dict[str, int]:
    """Return by job how many pods have a node as things are, and are there without one after the change."""
    had = {pod.key for pod in _pods(before) if pod.node_name}
    placed = after.binds.keys() | after.outcome.pipelined.keys()
    lost = [pod for pod in _pods(after) if pod.key in had and not pod.node_name and pod.key not in placed]
    return dict(sorted(Counter(pod.group_key or pod.key for pod in lost).items()))


def _pods(trial: Trial) -> list[Pod]:
    tasks = trial.outcome.tables.tasks
    return [tasks.pods[row] for row in tasks.alive.nonzero()[0].tolist()]


def admitted_in(trial: Trial) -> list[int]:
    """Return the rows of the jobs that a cycle admits. KAI's language and native gangs have no admission."""
    jobs, found = trial.outcome.tables.jobs, list[int]()
    for row in trial.outcome.live_jobs.tolist():
        group = jobs.groups[row]
        if group is not None and group.gang is None and jobs.phase[row] != PENDING_PHASE:
            found += [row] * (group.status.phase == PodGroupPhase.PENDING)
    return found


def _created_in(trial: Trial) -> list[str]:
    """Return the jobs without pods that a cycle admits: Volcano's controller creates their pods then."""
    jobs = trial.outcome.tables.jobs
    return [jobs.uids[row] for row in admitted_in(trial) if not jobs.size[row]]


def waiting_in(trial: Trial, outside: Mapping[str, Blocker]) -> list[tuple[str, Code, str]]:
    """Return each job that waits, with the code and the sentence of its nearest blocker. ``outside``: why jobs are not
    in the session, or not with all their pods, by key; this goes before what the session has against them."""
    uids, found, placed = trial.outcome.tables.jobs.uids, NearestBlockers(trial.outcome), trial.placed
    rows = [row for row in found.waiting.tolist() if not placed.get(uids[row])]
    nearest = {uids[row]: outside.get(uids[row]) or found.of(row) for row in rows}
    nearest |= {job: outside[job] for job in sorted(outside.keys() - nearest.keys() - placed.keys())}
    return [(job, code_of(blocker), sentence(blocker)) for job, blocker in nearest.items()]


def _shares(before: Trial, after: Trial) -> list[Share]:
    one, two = _held(before), _held(after)
    keys = sorted(one.keys() | two.keys())
    return [Share(*key, one.get(key, 0.0), two.get(key, 0.0)) for key in keys if one.get(key) != two.get(key)]


def _held(trial: Trial) -> dict[tuple[str, str], float]:
    """Return what the jobs of each queue hold, by queue and resource, without pod slots."""
    tables = trial.outcome.tables
    rows = trial.outcome.live_jobs
    sums = sums_by(tables.jobs.queue[rows], tables.jobs.allocated[rows], len(tables.queues))
    names = tables.axis.names
    return {
        (tables.queues.names[queue], names[d]): float(sums[queue, d])
        for queue, d in np.argwhere(sums >= EPS).tolist()
        if names[d] != "pods"
    }
