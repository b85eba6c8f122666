"""Allocating a job inside the best hypernode: a dry run a domain, the best plan recovered. Source: Volcano allocate
(spec 03 §2.4, §2.5)."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.views import Job, SubJob
from pumice.framework import points
from pumice.framework.session import Session
from pumice.framework.statement import Plan, Statement
from pumice.volcano.alike import Watch
from pumice.volcano.dry_runs import Candidate, DryRun, DryRuns, Kind
from pumice.volcano.placement import Domain, allocate_tasks, try_nomination
from pumice.volcano.worksheet import Sheet, Worksheet

ALLOCATE, EVICT = "allocate", "evict"


def gradients_for_job(ssn: Session, job: int, purpose: str) -> list[list[int]]:
    """Hypernodes to try for a job, in groups of falling preference."""
    top = ssn.tables.tree.top
    if not ssn.has(points.hyper_node_gradient_for_job):
        return [[top]]
    return ssn.ask(points.hyper_node_gradient_for_job, Job(ssn.tables, job), top, purpose) or []


def gradients_for_sub_job(ssn: Session, sub: int, start: int, purpose: str) -> list[list[int]]:
    """The same for a sub-job, below ``start``."""
    if not ssn.has(points.hyper_node_gradient_for_sub_job):
        return [[start]]
    return ssn.ask(points.hyper_node_gradient_for_sub_job, SubJob(ssn.tables, sub), start, purpose) or []


def hypernode_scores(ssn: Session, sub: int, hypernodes: list[int]) -> AnyArray:
    """Sum of what plugins say about each hypernode for the sub-job."""
    rows = np.array(hypernodes, dtype=np.int32)
    scores = np.zeros(len(rows))
    for tier in ssn.tiers(points.hyper_node_order):
        for _, hook in tier:
            scores = scores + hook(SubJob(ssn.tables, sub), rows)
    return scores


def allocate_for_job(ssn: Session, stmt: Statement, job: int, worksheet: Worksheet, runs: DryRuns) -> Worksheet | None:
    """Place the job in the best domain of the first gradient that has one.

    Returns the worksheet that is left of it, None when no domain would do (then nothing has been placed).
    """
    if not worksheet:
        return None
    kind = runs.kind_of(job, worksheet)
    for gradient in gradients_for_job(ssn, job, ALLOCATE):
        found = [c for h in gradient if (c := _try_domain(ssn, stmt, job, worksheet, h, runs, kind)).works]
        if not found:
            continue
        best = max(found, key=lambda c: c.score).candidate(worksheet)  # of equals the first in the gradient
        if stmt.recover(best.plan) is not None:
            return None
        _decide(ssn, job, best)
        return best.worksheet
    return None


def _try_domain(
    ssn: Session, stmt: Statement, job: int, worksheet: Worksheet, hypernode: int, runs: DryRuns, kind: Kind | None
) -> Candidate | DryRun:
    """What comes of the job in one domain: done before, or done now and undone."""
    known = runs.recall(kind, hypernode)
    if known is not None:
        ssn.fit_notes.reset_job(job)
        (sheet,) = worksheet.sheets.values()
        known.aftermath.befall(ssn, [job], np.array([sheet.rows]))
        ssn.touched[job] = True
        return known
    if kind is None:
        return _dry_run(ssn, stmt, job, worksheet, hypernode)
    (sheet,) = worksheet.sheets.values()
    watch = Watch(ssn, np.array(sheet.rows))
    found = _dry_run(ssn, stmt, job, worksheet, hypernode)
    runs.note(kind, worksheet, found, watch.end(job))
    return found


def _dry_run(ssn: Session, stmt: Statement, job: int, worksheet: Worksheet, hypernode: int) -> Candidate:
    """Place the job in one domain, see what came of it, and undo it."""
    ssn.fit_notes.reset_job(job)
    mark, left = stmt.mark(), worksheet.copy()
    score, subs = _place_sub_jobs(ssn, stmt, job, left, hypernode)
    plan = stmt.save(mark)
    works = bool(plan) and (ssn.job_ready(job) or ssn.job_pipelined(job))
    if plan:
        stmt.rollback(mark)
    return Candidate(hypernode, plan, left, score, works, subs)


def _place_sub_jobs(
    ssn: Session, stmt: Statement, job: int, worksheet: Worksheet, hypernode: int
) -> tuple[float, dict[int, int]]:
    """Place sub-jobs until the job is ready; one that fails is dropped. Sum of scores, and the hypernode of each
    placed sub-job."""
    score = 0.0
    subs: dict[int, int] = {}
    while worksheet:
        sub = worksheet.pop()
        before = len(stmt.operations)
        gained = _allocate_for_sub_job(ssn, stmt, sub, worksheet, hypernode)
        if gained is None or len(stmt.operations) == before:
            continue
        score += gained
        subs[sub] = int(ssn.tables.subs.hypernode[sub])
        if worksheet.sheets[sub]:
            worksheet.push(sub)
        if ssn.job_ready(job):
            break
    return score, subs


def _allocate_for_sub_job(ssn: Session, stmt: Statement, sub: int, worksheet: Worksheet, start: int) -> float | None:
    """Place one sub-job in the best hypernode below ``start``. Its score, None when none would do."""
    sheet = worksheet.sheets[sub]
    if not sheet:
        return None
    if ssn.tables.subs.nominated[sub] >= 0 and try_nomination(ssn, stmt, sub, sheet):
        return 0.0
    for gradient in gradients_for_sub_job(ssn, sub, start, ALLOCATE):
        tried: list[tuple[int, Plan, Sheet]] = []
        for hypernode in gradient:
            ssn.fit_notes.reset_sub(sub)
            mark, own = stmt.mark(), sheet.copy()
            allocate_tasks(ssn, stmt, sub, own, Domain(ssn, hypernode))
            if len(stmt.operations) > mark.operations:
                tried.append((hypernode, stmt.save(mark), own))
            stmt.rollback(mark)
        if tried:
            scores = hypernode_scores(ssn, sub, [h for h, _, _ in tried])
            best = int(scores.argmax())
            hypernode, plan, own = tried[best]
            if stmt.recover(plan) is not None:
                return None
            worksheet.sheets[sub] = own
            tree = ssn.tables.tree
            ssn.journal.put(ssn.tables.subs.hypernode, sub, tree.lca(int(ssn.tables.subs.hypernode[sub]), hypernode))
            return float(scores[best])
    return None


def _decide(ssn: Session, job: int, best: Candidate) -> None:
    """Remember where the job and its sub-jobs are now. Source: Volcano recorder.UpdateDecision.

    It is only written for good when the job is committed; the statement's caller rolls it back otherwise.
    """
    tables, put = ssn.tables, ssn.journal.put
    put(tables.jobs.hypernode, job, tables.tree.lca(int(tables.jobs.hypernode[job]), best.hypernode))
    for sub, hypernode in best.subs.items():
        put(tables.subs.hypernode, sub, tables.tree.lca(int(tables.subs.hypernode[sub]), hypernode))
        put(tables.subs.nominated, sub, -1)
