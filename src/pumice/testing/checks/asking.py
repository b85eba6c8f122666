"""Check that an answer does not depend on how it is asked for: one row at a time, in another order, or beside
others."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from random import Random
from typing import Any

import numpy as np

from pumice.columns.rows import Candidates, ClassRows, NodeRows, TaskRows
from pumice.columns.views import Task, TaskClass
from pumice.framework.plugin.filter_result import FilterResult
from pumice.framework.plugin.hooks import Hook
from pumice.framework.plugin.incremental import ALONE, FilterInTurn, InTurn, ScoreInTurn
from pumice.placing.batch import placing_of
from pumice.testing.checks.answers import Answers, Asking, by_row, is_by_row, rows_at, said
from pumice.testing.checks.breach import Breach
from pumice.testing.checks.questions import Question, Subject
from pumice.testing.checks.undoing import placeable


def rows_are_single(asking: Asking, questions: Iterable[Question], answers: Answers, dice: Random) -> None:
    """Check that a hook says of many rows what it says of each alone. Raises: Breach."""
    for question in questions:
        hook, arguments = asking.hook(question), asking.arguments(question)
        if hook is None or arguments is None or question not in answers or not is_by_row(hook):
            continue
        at = rows_at(arguments)
        rows: Any = arguments[at]
        together = by_row(answers[question], len(rows))
        if together is None:
            continue
        # Each row alone, and then some together: a hook may only go wrong if rows that it expects are missing.
        for among in (range(len(rows)), [i for i in range(len(rows)) if dice.random() < 0.5]):
            for some in [[i] for i in among] if isinstance(among, range) else [among]:
                apart = _asked_about(asking, hook, question, arguments, at, some)
                wanted = tuple(together[i] for i in some)
                if not some or by_row(apart, len(some)) == wanted:
                    continue
                names = question.subjects[at].names
                facts = [
                    ("asked", question.text),
                    ("together", wanted),
                    ("alone", apart),
                    ("about", [names[i] for i in some]),
                ]
                problem = "says something else of a row when others are asked about with it"
                raise Breach("rows", question.plugin, question.where, problem, facts, _ROW_BY_ROW)


_ROW_BY_ROW = (
    "Answer for each row from that row alone: answers are kept row by row, and asked for again for the rows that"
    " changed. What is scaled over the candidates is a batch_node_order hook that takes Task."
)


def several_are_each(asking: Asking, questions: Iterable[Question]) -> None:
    """Check that ``several`` says of several classes what the hook says of each. Raises: Breach."""
    tables = asking.ssn.tables
    for question in questions:
        hook, arguments = asking.hook(question), asking.arguments(question)
        if hook is None or hook.several is None or arguments is None or not isinstance(arguments[0], TaskClass):
            continue
        classes = ClassRows(tables, np.array([arguments[0].row, *tables.classes.alive.nonzero()[0].tolist()]))
        together = asking.call(hook._replace(call=hook.several), question, [classes, *arguments[1:]])
        for i, cls in enumerate(classes):
            alone = asking.call(hook, question, [cls, *arguments[1:]])
            wanted = alone.codes == 0 if isinstance(alone, FilterResult) else alone
            if not _is_the_same(together, i, wanted):
                facts = [("asked", question.text), ("about the class", cls.row), ("alone", said(wanted))]
                facts.append(("together", said(None if together is None else together[i])))
                problem = f"{hook.several.__name__} says something else of a class than is said of it alone"
                raise Breach("several", question.plugin, question.where, problem, facts, _SEVERAL)


def _is_the_same(together: Any, i: int, alone: Any) -> bool:
    """Return True if the answer for the class at ``i`` is equal to the one about it alone."""
    if together is None or alone is None:
        said_by_one = np.asarray(alone if together is None else together[i])
        nothing = True if said_by_one.dtype == np.bool_ else 0  # no objection, or a score of 0
        return bool((said_by_one == nothing).all()) or together is alone
    return together[i].shape == np.shape(alone) and bool((together[i] == alone).all())


_SEVERAL = "What several= names takes ClassRows, and answers for each class what the hook answers for it: a row each."


def order_does_not_matter(asking: Asking, questions: Iterable[Question], answers: Answers, dice: Random) -> None:
    """Check that the order of rows does not matter. Raises: Breach."""
    for question in questions:
        hook, arguments = asking.hook(question), asking.arguments(question)
        if hook is None or arguments is None or question not in answers:
            continue
        at = rows_at(arguments)
        if at < 0 or hook.point.name in _IN_TURN:
            continue
        count = len(arguments[at])
        order = dice.sample(range(count), count)
        mixed = by_row(_asked_about(asking, hook, question, arguments, at, order), count)
        wanted = by_row(answers[question], count)
        if wanted is not None and mixed != tuple(wanted[i] for i in order):
            facts = [("asked", question.text), ("in order", wanted), ("otherwise", mixed), ("order", order)]
            problem = "the answer depends on the order of the rows"
            raise Breach("order", question.plugin, question.where, problem, facts, _ORDER)


#: Points where tasks are counted in their order, or where arrays go with the rows.
_IN_TURN = (
    "allocatable",
    "preemptable",
    "reclaimable",
    "unified_evictable",
    "preemptive",
    "node_reduce",
    "best_node",
    "victim_tasks",
)
_ORDER = "Rows come in any order, and ties end in age and name: read nodes.rows where the number of a row matters."


def nodes_are_independent(asking: Asking, questions: Iterable[Question], answers: Answers) -> None:
    """Check that a hook says of a node's candidates the same whether or not those of other nodes are asked about too.
    Raises: Breach."""
    for question in questions:
        hook, arguments = asking.hook(question), asking.arguments(question)
        if hook is None or arguments is None or question not in answers or hook.form != "nodes":
            continue
        together: Candidates = arguments[-1]
        wanted = by_row(answers[question], len(together))
        parts = [together.of_node(nth) for nth in range(together.node_count)]
        each = [by_row(said(asking.call(hook, question, [*arguments[:-1], part])), len(part)) for part in parts]
        alone = tuple(one for answer in each for one in answer or ())
        if wanted is not None and alone != wanted:
            facts = [("asked", question.text), ("together", wanted), ("node by node", alone)]
            problem = "says something else of a node's candidates when those of others are asked about with them"
            raise Breach("nodes", question.plugin, question.where, problem, facts, _NODE_BY_NODE)


_NODE_BY_NODE = (
    "Count anew on every node: group by candidates.apart(job), not by the job alone. Or take TaskRows, and be asked"
    " node by node."
)


def comparisons_are_orders(asking: Asking, questions: Iterable[Question]) -> None:
    """Check that two things that change places get the opposite answer. Raises: Breach."""
    for question in questions:
        hook, arguments = asking.hook(question), asking.arguments(question)
        if hook is None or arguments is None or hook.form != "compare" or len(arguments) != 2:
            continue
        ahead, back = (asking.call(hook, question, pair) for pair in (arguments, arguments[::-1]))
        if _sign(ahead) != -_sign(back):
            facts = [("asked", question.text), ("answer", ahead), ("with the two changed", back)]
            problem = "does not say the opposite when the two change places"
            raise Breach("order", question.plugin, question.where, problem, facts, _COMPARE)


_COMPARE = "Below 0: the left one first; above 0: the right one; 0: no opinion, and then both ways."


def _sign(value: Any) -> int:
    """Return -1, 0 or 1."""
    return int(value > 0) - int(value < 0)


def _asked_about(
    asking: Asking, hook: Hook, question: Question, arguments: Sequence[Any], at: int, some: Sequence[int]
) -> Hashable:
    """Return the answer about some of the rows, in this order."""
    rows = arguments[at]
    fewer = type(rows)(rows.tables, rows.rows[np.array(some, dtype=np.int64)])
    return said(asking.call(hook, question, [*arguments[:at], fewer, *arguments[at + 1 :]]))


# -- tasks of one class ------------------------------------------------------------------------------------------------


def rows_after_more_are_what_they_will_be(asking: Asking, dice: Random) -> None:
    """Check that what is said of a node as it would be with more tasks of a class is said when they are there. Raises:
    Breach.

    Only where gangs are placed at once.
    """
    ssn, runs = asking.ssn, [run for run in placeable(asking.ssn) if len(run) > 1]
    if not runs or not placing_of(ssn).feasible.at_once:
        return
    rows = dice.choice(runs)
    rows = rows[: dice.randint(1, len(rows) - 1)]
    tables, node = ssn.tables, dice.randrange(len(ssn.tables.nodes.facts.names))
    cls, here = TaskClass(tables, int(tables.tasks.cls[rows[0]])), np.array([node])
    later = NodeRows(tables, here, after=np.array([float(len(rows))]), cls=cls.row)
    about = [(key, hook) for key, hook in asking.hooks.items() if hook.form == "class" and hook.point.name in _OF_NODES]
    hooks = [hook for _, hook in about]
    asked = Subject("class of", (tables.tasks.pods[rows[0]].key,)), Subject("nodes", (tables.nodes.facts.names[node],))
    questions = [Question(*key, asked) for key, _ in about]
    foreseen = [asking.call(hook, q, [cls, later]) for hook, q in zip(hooks, questions, strict=True)]
    with ssn.statement() as stmt:
        if stmt.allocate(rows, [node] * len(rows)) is not None:
            return
        for hook, question, before in zip(hooks, questions, foreseen, strict=True):
            after = asking.call(hook, question, [cls, NodeRows(tables, here)])
            if not _is_near(said(before), said(after)):
                facts = [("asked", question.text), (f"foreseen after {len(rows)} more", before), ("then", after)]
                problem = "answers otherwise once the tasks are there that it was asked to think of"
                raise Breach("hypothetical", question.plugin, question.where, problem, facts, _HYPOTHETICAL)


_OF_NODES = ("predicate", "node_order", "batch_node_order")
_HYPOTHETICAL = (
    "Read what moves from the rows: nodes.used, nodes.idle, nodes.read(column), and give a column of nodes its"
    " per_task= (what one task of each class adds), so that rows can be read as they would be. Where that is not"
    " possible leave ROWS out of reads=: then the plugin's classes are placed one task after the other."
)


def _is_near(left: Hashable, right: Hashable) -> bool:
    """Return True if answers are equal up to rounding."""
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return all(_is_near(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, int | float) and isinstance(right, int | float):
        return bool(np.isclose(left, right, rtol=1e-9, atol=1e-9))
    return left == right


def tasks_in_turn_follow_placements(asking: Asking, dice: Random) -> None:
    """Check that what is said of tasks placed one after the other is said of each once those before it are placed.
    Raises: Breach."""
    ssn, runs = asking.ssn, [run for run in placeable(asking.ssn) if len(run) > 1]
    if not runs:
        return
    rows, tables = dice.choice(runs)[:4], ssn.tables
    count = len(tables.nodes.facts.names)
    nodes = NodeRows(tables, np.array(sorted(dice.sample(range(count), dice.randint(1, count)))))
    tasks, followers = TaskRows(tables, np.array(rows)), []
    for key, hook in asking.in_turn.items():
        asked = Question(*key, (Subject("task", (tables.tasks.pods[rows[0]].key,)), Subject("nodes", ())))
        follower = asking.call(hook, asked, [tasks, nodes])
        if follower is not ALONE:
            followers.append(_Follower(asking, asking.hooks[key], asked, follower, nodes))
    with ssn.statement() as stmt:
        for step, row in enumerate(rows):
            for each in followers:
                each.check(step, Task(tables, row), dice)
            place = dice.randrange(len(nodes))
            if step + 1 == len(rows) or stmt.allocate([row], [int(nodes.rows[place])]) is not None:
                return
            for each in followers:
                each.go_on(step, place)


class _Follower:
    """What in_turn returned for several tasks (None, a number, or an InTurn), and the hook itself."""

    def __init__(self, asking: Asking, hook: Hook, question: Question, follower: Any, nodes: NodeRows) -> None:
        self._asking, self._hook, self._question, self._follower = asking, hook, question, follower
        self._nodes, self._places = nodes, np.arange(len(nodes))
        self._changes = True
        self._before: Hashable = None

    def check(self, step: int, task: Task, dice: Random) -> None:
        """Compare both at a step. Raises: Breach."""
        if self._is_over(step):
            return
        if self._changes:  # otherwise the last answer must hold for the same candidates
            some = dice.sample(range(len(self._nodes)), dice.randint(1, len(self._nodes)))
            self._places = np.array(sorted(some))
        found, alone = self._followed(step), self._asked(task)
        if not (found == alone and (self._changes or found == self._before)):
            facts = [("asked", self._question.text), ("step", step), ("alone", alone), ("followed", found)]
            if not self._changes:
                facts.append(("said to hold still", self._before))
            problem = "what in_turn gives says something else of a task than is said of it alone"
            raise Breach("steps", self._question.plugin, self._question.where, problem, facts, _STEPS)
        self._before = found

    def _is_over(self, step: int) -> bool:
        """Return True if the follower does not answer for this step."""
        return isinstance(self._follower, InTurn) and step >= self._follower.count

    def _followed(self, step: int) -> Hashable:
        """Return what the follower says of the task at this step."""
        follower, nothing = self._follower, len(self._places)
        if isinstance(follower, FilterInTurn):
            return tuple(follower.open_to(step)[self._places].tolist())
        if isinstance(follower, ScoreInTurn):
            return tuple(follower.score(step, self._places).tolist())
        return (True,) * nothing if self._hook.point.name == "predicate" else (float(follower or 0.0),) * nothing

    def _asked(self, task: Task) -> Hashable:
        """Return what the hook says of the task alone."""
        nodes = NodeRows(self._nodes.tables, self._nodes.rows[self._places])
        alone = self._asking.call(self._hook, self._question, [task, nodes])
        if self._hook.point.name == "predicate":
            return (True,) * len(nodes) if alone is None else tuple((alone.codes == 0).tolist())
        return tuple(np.broadcast_to(np.asarray(alone or 0.0) if np.ndim(alone) == 0 else alone, len(nodes)).tolist())

    def go_on(self, step: int, place: int) -> None:
        """Tell the follower that the task of a step has been placed."""
        if isinstance(self._follower, InTurn) and step + 1 < self._follower.count:
            self._changes = self._follower.placed(step, place)


_STEPS = (
    "What in_turn gives is notified of each placement: open_to(step) and score(step, places) say what the hook says of"
    " that task by then. placed(step, place) is True where that may be something else than before. ``count``: of how"
    " many tasks it can say so."
)


def silence_is_for_the_class(asking: Asking, questions: Iterable[Question], dice: Random) -> None:
    """A hook that has nothing to say (None, or one number for all nodes) of a class, or of a task for equal ones, has
    nothing else to say of further tasks of the class, wherever the first ones go. Raises: Breach."""
    runs = [run for run in placeable(asking.ssn) if len(run) > 1]
    if runs:
        first, second = dice.choice(runs)[:2]
        problem = "had nothing to say of a task, and has of the next one of its class"
        _stays_silent(asking, _about_nodes(asking, questions), (first, second, first), problem, dice)


def silence_lasts(asking: Asking, questions: Iterable[Question], dice: Random) -> None:
    """Check that such a hook still has nothing else to say of a task once another one of its job is placed. Raises:
    Breach."""
    tasks = asking.ssn.tables.tasks
    runs = list(placeable(asking.ssn))
    pairs = [(a[0], b[0]) for a in runs for b in runs if a is not b and tasks.sub[a[0]] == tasks.sub[b[0]]]
    if pairs:
        first, second = dice.choice(pairs)
        problem = "had nothing to say of a task, and has once another one of its job is placed"
        _stays_silent(asking, _about_nodes(asking, questions), (second, second, first), problem, dice)


def _about_nodes(asking: Asking, questions: Iterable[Question]) -> list[Question]:
    """Return questions about a task and nodes to hooks whose silence counts for the whole class."""
    about = [q for q in questions if [each.kind for each in q.subjects[:2]] == ["task", "nodes"]]
    keys = [(q.plugin, q.point, q.hook) for q in about]
    shared = [
        key in asking.in_turn or (asking.hooks[key].form == "task" and asking.hooks[key].for_equals) for key in keys
    ]
    return [q for q, is_shared in zip(about, shared, strict=True) if is_shared and q.point in _OF_NODES]


def _stays_silent(
    asking: Asking, about: Iterable[Question], rows: tuple[int, int, int], problem: str, dice: Random
) -> None:
    """Check that a hook with nothing to say of the first task has nothing else to say of the second once the third is
    placed. Raises: Breach."""
    ssn, names = asking.ssn, asking.ssn.tables.nodes.facts.names
    before_key, after_key, placed = (ssn.tables.tasks.pods[row].key for row in rows)
    pairs = [
        tuple(q._replace(subjects=(Subject("task", (key,)), q.subjects[1])) for key in (before_key, after_key))
        for q in about
    ]
    silent = [(one, two, asking.ask(one)) for one, two in pairs if asking.is_silent(one)]
    with ssn.statement() as stmt:
        if stmt.allocate([rows[2]], [dice.randrange(len(names))]) is not None:
            return
        for one, two, before in silent:
            if (after := asking.ask(two)) != before:
                facts = [("asked", one.text), ("answer", before), (f"of {after_key}, {placed} placed", after)]
                raise Breach("class", one.plugin, one.where, problem, facts, _SILENCE)


_SILENCE = (
    "None, or one number, holds for all tasks of the class, wherever others of the job go: they are placed together"
    " then. Answer an array (or a FilterResult) over the nodes where the single task, or where others are, may matter."
)
