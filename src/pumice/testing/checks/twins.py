"""Jobs with one signature, and their tasks: a hook whose answer is shared answers equally about each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.testing.checks.answers import Asking
from pumice.testing.checks.breach import Breach
from pumice.testing.checks.questions import Question, Subject


def jobs_like_it_fare_alike(asking: Asking, questions: Iterable[Question]) -> None:
    """Check that a hook whose answer holds for equal jobs answers equally about another job with the signature. Raises:
    Breach."""
    twins = dict(_twins(asking.ssn))
    for question in dict.fromkeys(questions):
        hook = asking.hook(question)
        if hook is None or not hook.for_equals:
            continue
        if question.point in _SHARED_BY_TASKS and hook.form not in ("class", "class_node"):
            _tasks_like_it_fare_alike(asking, question, twins)
        if question.subjects[0].kind != "job":
            continue
        (job,) = question.subjects[0].names
        for twin in twins.get(job, ()):
            other = question._replace(subjects=(Subject("job", (twin,)), *question.subjects[1:]))
            one, two = asking.ask(question), asking.ask(other)
            if one != two:
                facts = [("asked", question.text), ("answer", one), (f"of {twin}", two)]
                problem = "is listed as answering equally for equal jobs and tells two of them apart"
                raise Breach("signature", question.plugin, question.where, problem, facts, _SIGNATURE)


#: Points at which one answer about tasks is shared by tasks of all jobs with the signature.
_SHARED_BY_TASKS = ("allocatable", "pre_predicate")


def _tasks_like_it_fare_alike(asking: Asking, question: Question, twins: Mapping[str, list[str]]) -> None:
    """Ask about equal tasks of each twin: names, labels and age may differ. Raises: Breach."""
    tables, rows = asking.ssn.tables, asking.names.tasks
    at = next(i for i, subject in enumerate(question.subjects) if subject.kind in ("task", "tasks"))
    subject = question.subjects[at]
    known = [rows[name] for name in subject.names if name in rows]
    jobs = set(tables.tasks.job[known].tolist())
    if len(known) < len(subject.names) or len(jobs) != 1 or -1 in jobs:
        return
    names = {row: name for name, row in rows.items()}
    job = jobs.pop()
    own = tables.jobs.tasks[job].tolist()
    for twin in twins.get(tables.jobs.uids[job], ()):
        theirs = tables.jobs.tasks[asking.names.jobs[twin]]
        pairs = [(row, int(theirs[own.index(row)])) for row in known]
        if any((column[a] != column[b]).any() for a, b in pairs for column in _alike_in(tables.tasks)):
            continue
        swapped = list(question.subjects)
        swapped[at] = subject._replace(names=tuple(names[row] for _, row in pairs))
        other = question._replace(subjects=tuple(swapped))
        one, two = asking.ask(question), asking.ask(other)
        if one != two:
            facts = [("asked", question.text), ("answer", one), (f"of {twin}", two)]
            problem = "is listed as answering equally for equal tasks and tells two of them apart"
            raise Breach("signature", question.plugin, question.where, problem, facts, _SIGNATURE)


def _alike_in(tasks: Any) -> tuple[AnyArray, ...]:
    """Return columns in which tasks at the same position of two jobs must be equal to be compared."""
    return tasks.cls, tasks.status, tasks.role, tasks.gate


_SIGNATURE = (
    "Equal jobs have equal tasks, minimums and counts; names, labels, age and priority may differ. Take the hook off"
    " the language's table of equal answers."
)


def _twins(ssn: Session) -> Iterator[tuple[str, list[str]]]:
    """Yield jobs, with those that have the same signature and counts."""
    jobs, live = ssn.tables.jobs, ssn.tables.jobs.live.tolist()
    like: dict[str, list[str]] = {}
    for a, b in combinations([row for row in live if jobs.signature[row] >= 0], 2):
        if jobs.signature[a] == jobs.signature[b] and (jobs.counts[a] == jobs.counts[b]).all():
            like.setdefault(jobs.uids[a], []).append(jobs.uids[b])
            like.setdefault(jobs.uids[b], []).append(jobs.uids[a])
    yield from like.items()
