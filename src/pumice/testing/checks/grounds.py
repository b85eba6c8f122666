"""Equal ground, equal answer: what changed between two sessions, and whether a hook may therefore answer differently.

An answer rests on node objects and the topology, on the class, and on what the hook declares: by default the rows that
it was asked about and the columns of its own plugin, else what ``reads=`` names. A job, a sub-job or a task represents
its whole job: the job's row, those of its sub-jobs, and those of its tasks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pumice.columns.table import Table
from pumice.framework.plugin.hooks import Hook
from pumice.framework.plugin.point import JOBS, NOW, PODS, QUEUES, ROWS
from pumice.testing.checks.answers import Answers, Asking, by_row, is_by_row
from pumice.testing.checks.breach import Breach
from pumice.testing.checks.questions import Question, Subject, asked_for

Rows = dict[str, tuple[Hashable, ...]]

#: Kinds of subjects that are jobs, or parts of a job.
_JOBS = ("job", "jobs", "each job", "victims for", "group", "amount of")
_AXIS = {"tasks": "task", "jobs": "job", "subs": "sub", "queues": "queue", "nodes": "node"}


class Seen:
    """Everything that hooks can see in one session, by name."""

    def __init__(self, asking: Asking) -> None:
        self.ssn, self.names = asking.ssn, asking.names
        self.tables, self.world = asking.ssn.tables, asking.ssn.world

    def rows(self, table: str) -> Rows:
        """Return the contents of each row of a table, with plugins' columns on the same axis."""
        of: Table = getattr(self.tables, table)
        arrays = [column.array for column in (*of.columns.values(), *self.world.columns_on(_AXIS[table]))]
        named: dict[str, int] = getattr(self.names, table)
        return {name: tuple(_value(array[row]) for array in arrays) for name, row in named.items()}

    @cached_property
    def columns(self) -> dict[str, bytes]:
        return {name: column.array.tobytes() for name, column in self.world.columns.items()}

    @cached_property
    def tree(self) -> tuple[Hashable, ...]:
        tree = self.tables.tree
        return tuple(tree.names), tree.tier.tobytes(), tree.ancestors.tobytes(), tree.leaf_of.tobytes(), tree.ready

    @cached_property
    def topologies(self) -> dict[str, Hashable]:
        """Levels of node labels, by name."""
        table = self.tables.topologies
        return {
            each.name: each.levels for each in (table.objs[row] for row in range(table.capacity)) if each is not None
        }

    def job_of(self, task: str) -> str:
        """Return the job of a task, or ""."""
        row = self.names.tasks.get(task, -1)
        job = int(self.tables.tasks.job[row]) if row >= 0 else -1
        return self.tables.jobs.uids[job] if job >= 0 else ""


def _value(value: Any) -> Hashable:
    return value.tobytes() if isinstance(value, np.ndarray | np.generic) else value


class Difference:
    """What differs between two sessions, by the words of ``reads=``."""

    def __init__(self, before: Asking, after: Asking) -> None:
        self.before, self.after = Seen(before), Seen(after)
        self.now = before.ssn.now != after.ssn.now
        left, right = self.before.tables.nodes.facts, self.after.tables.nodes.facts
        trees_moved = self.before.tree != self.after.tree or self.before.topologies != self.after.topologies
        self.everybody = left.objs != right.objs or trees_moved

    @cached_property
    def tasks(self) -> set[str]:
        return _differing(self.before.rows("tasks"), self.after.rows("tasks"))

    @cached_property
    def queues(self) -> set[str]:
        return _differing(self.before.rows("queues"), self.after.rows("queues"))

    @cached_property
    def nodes(self) -> set[str]:
        return _differing(self.before.rows("nodes"), self.after.rows("nodes"))

    @cached_property
    def jobs(self) -> set[str]:
        """Whole jobs that differ."""
        found = _differing(self.before.rows("jobs"), self.after.rows("jobs"))
        for seen in (self.before, self.after):
            found |= {seen.job_of(task) for task in self.tasks}
            subs = seen.tables.subs
            moved = [seen.names.subs[uid] for uid in self._subs if uid in seen.names.subs]
            found |= {seen.tables.jobs.uids[int(subs.job[row])] for row in moved}
        return found - {""}

    @cached_property
    def _subs(self) -> set[str]:
        return _differing(self.before.rows("subs"), self.after.rows("subs"))

    @cached_property
    def columns(self) -> set[str]:
        left, right = self.before.columns, self.after.columns
        return {name for name in left.keys() | right.keys() if left.get(name) != right.get(name)}

    # -- for one hook -------------------------------------------------------------------------------------------------

    def is_same_question(self, question: Question) -> bool:
        """Return True if what is passed as a value is equal in both: the class, an amount."""
        return all(_handed(self.before, s) == _handed(self.after, s) for s in question.subjects)

    def lets(self, hook: Hook, question: Question) -> bool:
        """Return True if something that the hook declares has changed, apart from rows that it answers one by one."""
        words = (ROWS,) if hook.reads is None else hook.reads
        columns = _own(hook.plugin, self.columns) if hook.reads is None else self.columns & set(words)
        return bool(
            self.everybody
            or columns
            or (NOW in words and self.now)
            or (QUEUES in words and self.queues)
            or (JOBS in words and self.jobs)
            or (PODS in words and self.tasks)
            or (ROWS in words and self._rows_moved(question.subjects, is_by_row(hook)))
        )

    def _rows_moved(self, subjects: Iterable[Subject], one_by_one: bool) -> bool:
        return any(
            self.has_moved(subject.kind, name)
            for subject in subjects
            for name in subject.names
            if not (one_by_one and subject.kind in ("nodes", "jobs", "tasks"))
        )

    def has_moved(self, kind: str, name: str) -> bool:
        """Return True if the row of a subject has changed."""
        if kind in ("node", "nodes", "all nodes", "scores of"):
            return name in self.nodes
        if kind == "queue":
            return name in self.queues
        if kind == "queue request":
            return name in self.queues or name in self.jobs
        if kind in ("hypernode", "hypernodes"):
            tree, facts = self.before.tables.tree, self.before.tables.nodes.facts
            return any(facts.names[row] in self.nodes for row in tree.nodes[tree.row_of[name]].tolist())
        return any(job in self.jobs for job in self._jobs_of(Subject(kind, (name,)))) or name in self.tasks

    def _jobs_of(self, subject: Subject) -> list[str]:
        if subject.kind in ("task", "tasks"):
            return [seen.job_of(name) for name in subject.names for seen in (self.before, self.after)]
        if subject.kind == "scenario":
            return [seen.job_of(name) or name for name in subject.names for seen in (self.before, self.after)]
        if subject.kind == "sub-job":
            subs = self.before.tables.subs
            return [self.before.tables.jobs.uids[int(subs.job[self.before.names.subs[name]])] for name in subject.names]
        return list(subject.names) if subject.kind in _JOBS else []

    # -- what to write ------------------------------------------------------------------------------------------------

    def undeclared(self, hook: Hook, question: Question) -> list[str]:
        """Return what has changed and is not declared, as written in ``reads=``: words, and if none has changed,
        columns."""
        has = (ROWS,) if hook.reads is None else hook.reads
        moved = {
            ROWS: self._rows_moved(question.subjects, False),
            NOW: self.now,
            QUEUES: bool(self.queues),
            JOBS: bool(self.jobs),
            PODS: bool(self.tasks),
        }
        words = [word.upper() for word, has_moved in moved.items() if has_moved and word not in has]
        others = self.columns - set(has) - set(_own(hook.plugin, self.columns))
        return words or [f'"{name}"' for name in sorted(others)]


def _own(plugin: str, columns: Iterable[str]) -> list[str]:
    return [name for name in columns if name.partition(".")[0] == plugin]


def _differing(left: Rows, right: Rows) -> set[str]:
    return {name for name in left.keys() | right.keys() if left.get(name) != right.get(name)}


def _handed(seen: Seen, subject: Subject) -> object:
    names, tables = seen.names, seen.tables
    if subject.kind == "class of":
        return tables.classes.specs[int(tables.tasks.cls[names.tasks[subject.names[0]]])]
    if subject.kind == "minResources of":
        return tables.jobs.min_resources[names.jobs[subject.names[0]]].tolist()
    if subject.kind in ("queue request", "amount of"):
        amount = asked_for(names, subject.names[-1])
        return None if amount is None else amount.tolist()
    return None


# -- the rule ----------------------------------------------------------------------------------------------------------


def answers_rest_on_what_is_declared(
    before: Asking, after: Asking, answered: Answers, now_answered: Answers, what: str
) -> None:
    """Compare answers before and after ``what`` happened. Raises: Breach for one that changed although nothing has
    changed that its hook declares."""
    moved: Difference | None = None
    for question, new in now_answered.items():
        if question not in answered or answered[question] == new:
            continue
        moved = moved or Difference(before, after)
        hook = after.hook(question)
        assert hook is not None, question
        if not moved.is_same_question(question) or moved.lets(hook, question):
            continue
        old = answered[question]
        if is_by_row(hook) and _only_moved_rows(hook, question, moved, old, new):
            continue
        raise _breach(hook, question, moved, old, new, what)


def _only_moved_rows(hook: Hook, question: Question, moved: Difference, old: Hashable, new: Hashable) -> bool:
    """Return True if the answer changed only for rows that have changed themselves, and these are declared."""
    if hook.reads is not None and ROWS not in hook.reads:
        return False
    rows = next(subject for subject in question.subjects if subject.kind in ("nodes", "jobs", "tasks"))
    left, right = by_row(old, len(rows.names)), by_row(new, len(rows.names))
    if left is None or right is None:
        return any(moved.has_moved(rows.kind, name) for name in rows.names)
    each = zip(rows.names, left, right, strict=True)
    return all(moved.has_moved(rows.kind, name) for name, a, b in each if a != b)


def _breach(hook: Hook, question: Question, moved: Difference, old: Hashable, new: Hashable, what: str) -> Breach:
    missing = moved.undeclared(hook, question)
    facts = [("asked", question.text), ("moved", what), ("before", old), ("after", new), ("reads", _declared(hook))]
    if not missing:
        problem = "the answer changed although nothing moved that it may read"
        return Breach("reads", question.plugin, question.where, problem, facts, NOTHING)
    own = [f'"{name}"' for name in sorted(_own(hook.plugin, moved.after.columns))]
    declared = ["ROWS", *own] if hook.reads is None else [_written(word) for word in hook.reads]
    choice = "" if len(missing) == 1 else f" (of {', '.join(missing)} what it really reads)"
    advice = (
        f"An answer is kept for as long as what it reads stays the same. Write @points.{question.point}(reads="
        f"({_listed([*declared, *missing])})){choice}, or read it as the plugin opens into a column of its own"
        " (ssn.column)."
    )
    return Breach("reads", question.plugin, question.where, "reads what it does not declare", facts, advice)


NOTHING = (
    "A hook may read what its parameters and columns say: not what is taken on other nodes, not the number of the"
    " session, not plain Python state. Keep what it needs in a column of the plugin (ssn.column), filled as the"
    " plugin opens."
)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words) if len(words) > 1 else f"{words[0]},"


def _written(word: str) -> str:
    return word.upper() if "." not in word else f'"{word}"'


def _declared(hook: Hook) -> str:
    if hook.reads is None:
        return "by default: the rows asked about, the class, the plugin's own columns"
    return f"({_listed([_written(word) for word in hook.reads] or ['nothing'])})"
