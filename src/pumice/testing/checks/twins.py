"""Two jobs that differ in exactly one field: hooks whose answer is shared answer equally, and the memo changes nothing.

A copy of a waiting job comes into the cluster. Its pods and its group have names of their own, and differ in one more
field at most. Every hook whose answer about one job is used for equal ones is asked the same about both, wherever it
takes a task, tasks, a job or a sub-job.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from pumice.columns.tables import Tables
from pumice.framework.plugin.hooks import Hook
from pumice.model.events import Object
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod
from pumice.model.status import TaskStatus
from pumice.model.workloads.podgroup import PodGroup
from pumice.testing.checks.answers import Asking
from pumice.testing.checks.breach import Breach
from pumice.testing.checks.questions import Question, draw_context, questions_of
from pumice.testing.fields import FIELDS

#: In what else than its name the copy differs: changes of its pods.
CHANGES: Mapping[str, Callable[[Pod], Pod]] = {**FIELDS, "name": lambda pod: pod}


class Twins(NamedTuple):
    """Objects of a cluster with a copy of one job: the keys of both, and in what they differ."""

    objects: tuple[Object, ...]
    job: str
    twin: str
    field: str


def with_twin(objects: Iterable[Object], dice: Random, field: str = "") -> Twins | None:
    """Add a copy of a job of which all pods wait, which differs in a field, drawn if none is given. None if there is no
    such job."""
    objects = tuple(objects)
    pods: dict[str, list[Pod]] = {}
    for obj in objects:
        if isinstance(obj, Pod) and obj.group_key:
            pods.setdefault(obj.group_key, []).append(obj)
    groups = {f"{obj.namespace}/{obj.name}": obj for obj in objects if isinstance(obj, PodGroup)}
    waiting = [key for key in groups if key in pods and not any(pod.node_name for pod in pods[key])]
    if not waiting:
        return None
    key, drawn = dice.choice(waiting), dice.choice(list(CHANGES))
    field = field or drawn
    group = groups[key]
    name = f"{group.name}-twin"
    copies = [CHANGES[field](_renamed(pod, name)) for pod in pods[key]]
    copy = replace(group, namespace=copies[0].namespace, name=name, uid=f"{group.uid}-twin")
    return Twins((*objects, copy, *copies), key, f"{copy.namespace}/{name}", field)


def _renamed(pod: Pod, group: str) -> Pod:
    """Return a pod of the copy. The number at the end of the name stays, since tasks are ordered by it."""
    stem, dash, number = pod.name.rpartition("-")
    name = f"{stem}-twin-{number}" if dash else f"{pod.name}-twin"
    return replace(pod, name=name, uid=f"{pod.uid}-twin", annotations={**pod.annotations, GROUP_NAME_ANNOTATION: group})


def equal_jobs_are_answered_equally(asking: Asking, twins: Twins, dice: Random) -> set[str]:
    """Ask every hook whose answer is shared about both jobs, if they are equal. Return the hooks that were asked, each
    with its plugin. Raises: Breach."""
    pairs, asked = _pairs(asking, twins), set[str]()
    context = draw_context(asking.names, dice, twins.job) if pairs else None
    if pairs is None or context is None:
        return asked
    for (_, _, name), hook in asking.hooks.items():
        shared = hook.for_equals or (hook.for_equal_tasks and _equal_in_columns(asking, twins, hook))
        question = questions_of(hook, name, context) if shared else None
        if question is None:
            continue
        other = _of_twin(question, pairs)
        if other != question:
            asked.add(f"{question.plugin}: {question.where}")
        if other != question and (one := asking.ask(question)) != (two := asking.ask(other)):
            facts = [
                ("asked", question.text),
                ("answer", one),
                (f"of {twins.twin}, which differs in {twins.field}", two),
            ]
            raise Breach("signature", question.plugin, question.where, _TELLS_APART, facts, _TABLE)
    return asked


def _equal_in_columns(asking: Asking, twins: Twins, hook: Hook) -> bool:
    """Return True if both jobs have equal values in the columns of jobs that the hook reads by name."""
    world, (one, two) = asking.ssn.world, (asking.names.jobs[key] for key in (twins.job, twins.twin))
    names = [name for name in hook.reads or () if name in world.columns and world.axis_of(name) == "job"]
    return all(world.columns[name].array[one] == world.columns[name].array[two] for name in names)


_TELLS_APART = "is listed as answering equally for equal jobs and tells two of them apart"
_TABLE = (
    "Equal jobs have equal tasks, minimums and counts; names, labels, age and owner may differ. Take the hook off the"
    " language's table of equal answers."
)


def _of_twin(question: Question, pairs: dict[str, str]) -> Question:
    """Return the question about the other job. Victims and the rows of all jobs stay."""
    about = ("task", "tasks", "class of", "job", "sub-job", "victims for")
    subjects = tuple(
        subject._replace(names=tuple(pairs.get(name, name) for name in subject.names))
        if subject.kind in about
        else subject
        for subject in question.subjects
    )
    return question._replace(subjects=subjects)


def _pairs(asking: Asking, twins: Twins) -> dict[str, str] | None:
    """Return the names of the copy for those of the job, its tasks and sub-jobs; None if the two are not equal."""
    tables, jobs = asking.ssn.tables, asking.names.jobs
    if twins.job not in jobs or twins.twin not in jobs:
        return None
    one, two = jobs[twins.job], jobs[twins.twin]
    if _equal_in(tables, one) != _equal_in(tables, two):
        return None
    pods, uids = tables.tasks.pods, tables.subs.uids
    tasks: Sequence[tuple[int, int]] = list(
        zip(tables.jobs.tasks[one].tolist(), tables.jobs.tasks[two].tolist(), strict=True)
    )
    subs = zip(tables.jobs.subs[one], tables.jobs.subs[two], strict=True)
    return {
        twins.job: twins.twin,
        **{pods[a].key: pods[b].key for a, b in tasks},
        **{uids[a]: uids[b] for a, b in subs},
    }


def _equal_in(tables: Tables, job: int) -> Hashable:
    """Return what equal jobs agree in, as far as an answer is shared for them: queue, priority, tasks, sub-jobs."""
    jobs, tasks, subs = tables.jobs, tables.tasks, tables.subs
    rows, of = jobs.tasks[job], list(jobs.subs[job])
    waits = bool((tasks.status[rows] == TaskStatus.PENDING).all() and (tasks.nominated[rows] < 0).all())
    classes = tuple(tables.classes.identity(cls) for cls in tasks.cls[rows].tolist())
    columns = (tasks.role, tasks.priority, tasks.gate)
    of_tasks = (classes, *(tuple(column[rows].tolist()) for column in columns))
    of_subs = tuple((subs.min_available[row], repr(subs.topologies[row]), subs.hypernode[row]) for row in of)
    # Each job that has something placed is one of its own.
    own = "" if waits else jobs.uids[job]
    return own, int(jobs.queue[job]), int(jobs.priority[job]), int(jobs.min_available[job]), of_tasks, of_subs
