"""Jobs of a run, why they waited, and their queues."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from pumice.library.column import count, flag, number, text
from pumice.report.job_table import job_rows
from pumice.report.summary import QueueSummary
from pumice.sim.run import Run

JOB_COLUMNS = (
    text("job", "namespace/name"),
    text("queue", "its queue"),
    count("pods", "pods", "size; missing for jobs that had not arrived"),
    text("state", "done, running, waiting (again, after it was broken up), never (it cannot run), to come"),
    flag("measured", "it arrived in the time that figures are about"),
    number("submitted_s", "s", "arrival, from the start"),
    number("admitted_s", "s", "when its queue admitted it; missing for never"),
    number("started_s", "s", "when its gang ran for the first time; missing for never"),
    number("ended_s", "s", "end; missing for not yet"),
    number("run_s", "s", "how long it takes undisturbed; missing if it runs for ever"),
    number("wait_s", "s", "from arrival to the first start; missing if it never started"),
    number("completion_s", "s", "from arrival to the end; missing if it has not ended"),
    number("slowdown", "times", "completion over run time of at least 10 s (bounded slowdown); missing for not ended"),
    count("restarts", "times", "how often its gang started over"),
    count("evicted", "pods", "evicted pods"),
    number("lost_s", "s", "how long its gang ran without result"),
    text("waited_for", "code of the reason for which it waited longest; missing if no cycle considered it"),
)
WAIT_COLUMNS = (
    text("job", "namespace/name"),
    text("queue", "its queue"),
    number("from_s", "s", "since when, from the start"),
    number("to_s", "s", "until when: the next reason, the start of the job, or the end of the run"),
    number("seconds", "s", "to_s less from_s"),
    text("code", "code of the reason why it waited; the first 32 changes of a job are kept"),
    text("why", "what is nearest in the way of a job that waits at the end, in its last row; else missing"),
)
QUEUE_COLUMNS = (
    text("queue", "name"),
    count("jobs", "jobs", "jobs that arrived"),
    count("completed", "jobs", "jobs that ended"),
    count("running", "jobs", "jobs that run at the end"),
    count("waiting", "jobs", "jobs that wait at the end"),
    number("wait_mean_s", "s", "mean wait; where jobs still wait, a lower bound"),
    number("wait_p50_s", "s", "median wait; missing where too few jobs had started to tell"),
    number("wait_p90_s", "s", "90 % of jobs waited no longer"),
    number("wait_p99_s", "s", "99 % of jobs waited no longer"),
    number("completion_mean_s", "s", "mean time from arrival to the end"),
    number("slowdown_mean", "times", "mean bounded slowdown"),
    number("share", "share 0 to 1", "mean share of the cluster that it held"),
    number("deserved", "share 0 to 1", "mean share of the cluster that it deserved"),
)


def run_job_rows(run: Run) -> list[tuple[object, ...]]:
    """Return a row for each job in order of arrival, those that have not arrived last."""
    measured = [column.name for column in JOB_COLUMNS].index("measured")
    return [(*row[:measured], bool(row[measured]), *row[measured + 1 :]) for row in job_rows(run)]


def wait_rows(run: Run) -> list[tuple[object, ...]]:
    """Return a row for each stretch of time in which one job waited for reasons of one code."""
    start, now = run.history.start, run.history.now
    why = {each.job: each.why for each in run.waiting}
    rows: list[tuple[object, ...]] = []
    for each in run.history.jobs:
        over = each.started if each.started is not None else each.ended
        until = now if over is None else over
        stretches = list(pairwise([*each.codes, (until, "")]))
        for i, ((since, code), (end, _)) in enumerate(stretches):
            at_end = i == len(stretches) - 1 and over is None
            last = why.get(each.key) if at_end else None
            rows.append((each.key, each.queue, since - start, end - start, end - since, code, last))
    return rows


def queue_rows(queues: Iterable[QueueSummary]) -> list[tuple[object, ...]]:
    return [
        (
            each.name,
            each.jobs,
            each.completed,
            each.running,
            each.pending,
            *((each.wait.mean, each.wait.p50, each.wait.p90, each.wait.p99) if each.wait else (None,) * 4),
            each.completion.mean if each.completion else None,
            each.slowdown.mean if each.slowdown else None,
            each.share,
            each.deserved,
        )
        for each in queues
    ]
