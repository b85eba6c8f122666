"""The code of what is nearest in the way of each job that waits, cheap enough to be read after every cycle.

Jobs of one queue with equal requests have one code if they failed as one, with equal findings, or none was tried.
Only codes are shared: the blockers of a job, which have its amounts and names, are made for that job
(``reasons.blockers``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from pumice.answers.codes import Code, code_of
from pumice.columns.dtypes import Bool
from pumice.columns.jobs import PENDING_PHASE
from pumice.framework.cycle.outcome import Outcome
from pumice.model.blockers import GangPartial
from pumice.model.status import TaskStatus
from pumice.reasons.blockers import Blockers


def waiting_codes(outcome: Outcome, only: Bool | None = None) -> Iterator[tuple[int, Code]]:
    """Yield the row and the code of each job that waits. ``only``: these rows of jobs. Shape (J,)."""
    blockers = Blockers(outcome)
    rows = blockers.waiting
    rows = rows if only is None else rows[only[rows]]
    codes: dict[Hashable, Code] = {}
    for row in rows.tolist():
        kind = _kind(outcome, blockers, row)
        if kind is None:
            yield row, code_of(blockers.nearest(row))
            continue
        if kind not in codes:
            codes[kind] = code_of(blockers.nearest(row))
        yield row, codes[kind]


def _kind(outcome: Outcome, blockers: Blockers, row: int) -> Hashable | None:
    """Return what the code of a job depends on, None if on its own pods."""
    jobs, failed_like = outcome.tables.jobs, outcome.trace.failed_like(row)
    if jobs.counts[row, TaskStatus.PIPELINED] or jobs.groups[row].unparsable:
        return None
    own = tuple((type(each), getattr(each, "kind", "")) for each in blockers.findings(row))
    queue, phase = int(jobs.queue[row]), int(jobs.phase[row])
    if phase == PENDING_PHASE and not blockers.is_gang(row):
        first = blockers.rejections(row)[:1]
        return queue, own, tuple((type(each), getattr(each, "kind", "")) for each in first)
    # The code of a part that is placed is that of what stopped the next pod, which differs between such jobs.
    if jobs.signature[row] < 0 or jobs.gated[row] or any(kind is GangPartial for kind, _ in own):
        return None
    if not failed_like and (own or not _is_untried(outcome, blockers, row)):
        return None
    return queue, own, phase, failed_like, int(jobs.signature[row]), blockers.labels_that_matter(row)


def _is_untried(outcome: Outcome, blockers: Blockers, row: int) -> bool:
    """Return True if no pod of a job has a node and none was tried: what its blockers rest on is equal for all such
    jobs of one queue and signature."""
    jobs, trace = outcome.tables.jobs, outcome.trace
    is_whole = jobs.counts[row, TaskStatus.PENDING] == jobs.size[row]
    # Of gangs of KAI the cycle keeps reasons of their own.
    return bool(is_whole) and row not in trace.tried and not blockers.is_gang(row)
