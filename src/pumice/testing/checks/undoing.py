"""Check undo: after a rollback and after a refusal, every answer and every byte is as before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from pumice.columns.tasks import NO_GATE
from pumice.columns.views import Node, Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.plugin.errors import PluginFault
from pumice.model.decisions import Decision, Refusal
from pumice.model.status import PREEMPTABLE_STATUSES, TaskStatus
from pumice.testing.checks.answers import Answers, Asking
from pumice.testing.checks.breach import Breach
from pumice.testing.checks.questions import Question
from pumice.testing.moving import moving_bytes

State = Mapping[str, bytes | int]

_STATE = (
    "What a trial moves has to come back with it: keep it in a column of the session (ssn.column), written through"
    ' ssn.journal; or, for plain Python state, say @plugin(name, keeps="python") and take back in on_deallocate what'
    " on_allocate did, and the other way round."
)


class RefusingPlanner:
    """Refuses every decision."""

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        return dict.fromkeys(range(len(decisions)), Refusal("refused by the check"))


def state_of(ssn: Session) -> State:
    """Return every byte that may be written, and every version."""
    tables = ssn.tables
    named = {
        f"version of {name}.{column}": of[column].version
        for name in ("tasks", "jobs", "subs", "nodes", "queues")
        for of in (getattr(tables, name),)
        for column in of.columns
    }
    own = {f"version of {name}": column.version for name, column in ssn.world.columns.items()}
    return {**moving_bytes(ssn), **named, **own}


def questions_leave_nothing(before: State, asking: Asking, questions: Sequence[Question]) -> None:
    """Raise Breach if asking has changed something."""
    if not _differing(before, state_of(asking.ssn)):
        return
    for question in questions:  # once more, to find the hook
        state = state_of(asking.ssn)
        asking.ask(question)
        moved = _differing(state, state_of(asking.ssn))
        if moved:
            facts = [("asked", question.text), ("moved", ", ".join(moved))]
            raise Breach("trace", question.plugin, question.where, "the question left something behind", facts, _ASKED)
    first = questions[0]
    raise Breach("trace", first.plugin, "its hooks", "a first question left something behind", (), _ASKED)


_ASKED = "Only hooks that are notified (on_allocate, on_deallocate, job_enqueued) may write, and a plugin as it opens."


def rollback_restores(
    asking: Asking, questions: Sequence[Question], answers: Answers, dice: Random, depth: int = 2
) -> None:
    """Do things in a statement, with trials inside and questions between them, and discard it. Raises: Breach."""
    ssn, before = asking.ssn, state_of(asking.ssn)
    done: list[str] = []
    with ssn.statement() as stmt:
        _do(asking, stmt, questions, dice, depth, done)
    _same_bytes(before, ssn, questions, done)
    _same_answers(answers, asking, dice.sample(questions, len(questions)), done, "rollback", "after a rollback")


def refusal_restores(asking: Asking, questions: Sequence[Question], answers: Answers, dice: Random) -> None:
    """Place or evict a few tasks in a session whose planner refuses everything. Raises: Breach."""
    ssn, done = asking.ssn, list[str]()
    with ssn.statement() as stmt:
        for _ in range(dice.randint(1, 2)):
            _do_one(ssn, stmt, dice, done, pipelines=False)
        stmt.commit()
    if done:
        _same_answers(answers, asking, questions, done, "refusal", "after what was committed was refused")


def _same_bytes(before: State, ssn: Session, questions: Sequence[Question], done: list[str]) -> None:
    moved = _differing(before, state_of(ssn))
    if moved:
        plugin = next((name.partition(".")[0] for name in moved if name in ssn.world.columns), "")
        plugin = plugin or (questions[0].plugin if questions else "?")
        facts = [("done", "; ".join(done)), ("not as before", ", ".join(moved))]
        raise Breach("rollback", plugin, "its columns", "a rollback did not restore every byte", facts, _STATE)


def _same_answers(
    answers: Answers, asking: Asking, questions: Sequence[Question], done: list[str], rule: str, when: str
) -> None:
    for question in questions:
        if question not in answers:
            continue
        found = asking.ask(question)
        if found != answers[question]:
            facts = [
                ("asked", question.text),
                ("done", "; ".join(done)),
                ("before", answers[question]),
                ("after", found),
            ]
            problem = f"answers otherwise {when}"
            raise Breach(rule, question.plugin, question.where, problem, facts, _STATE)


def _differing(before: State, after: State) -> list[str]:
    return [name for name, value in after.items() if before.get(name) != value]


# -- things to do ------------------------------------------------------------------------------------------------------


def _do(
    asking: Asking, stmt: Statement, questions: Sequence[Question], dice: Random, depth: int, done: list[str]
) -> None:
    """Do some operations, trials with operations, and questions."""
    for _ in range(dice.randint(1, 3)):
        some = dice.sample(questions, min(len(questions), 8))
        if depth and dice.random() < 0.4:
            answers, inner = asking.all(some), list[str]()
            with stmt.trial():
                _do(asking, stmt, questions, dice, depth - 1, inner)
            _same_answers(answers, asking, some, [*done, *inner], "rollback", "after a rollback")
        else:
            _do_one(asking.ssn, stmt, dice, done)
            _simulate(asking.ssn, dice, done)
            asking.all(some)


def _do_one(ssn: Session, stmt: Statement, dice: Random, done: list[str], *, pipelines: bool = True) -> None:
    """Place a few equal tasks anywhere, or evict one."""
    tasks, names = ssn.tables.tasks, ssn.tables.nodes.facts.names
    runs, victims = list(placeable(ssn)), _victims(ssn)
    try:
        if victims and (not runs or dice.random() < 0.3):
            row = dice.choice(victims)
            done.append(f"evict {tasks.pods[row].key}")
            stmt.evict([row], "check")
        elif runs and names:
            rows = dice.choice(runs)
            rows = rows[: dice.randint(1, len(rows))]
            nodes = [dice.randrange(len(names)) for _ in rows]
            where = ", ".join(f"{tasks.pods[row].key} on {names[node]}" for row, node in zip(rows, nodes, strict=True))
            if pipelines and dice.random() < 0.3:
                done.append(f"pipeline {where}")
                stmt.pipeline(rows, nodes, evicted=dice.random() < 0.5)
            else:
                done.append(f"allocate {where}")
                stmt.allocate(rows, nodes)
    except PluginFault as fault:
        facts = [("done", "; ".join(done)), ("at", fault.where)]
        where = f"{fault.hook} at {fault.point}"
        raise Breach("raises", fault.plugin, where, fault.problem, facts, _NOTIFIED) from fault


_NOTIFIED = "A hook that is notified of placements has to cope with any of them: any pod, any node, a pod of no job."


def _simulate(ssn: Session, dice: Random, done: list[str]) -> None:
    """Simulate that a task is removed or added, within a trial."""
    points: Mapping[str, Any] = ssn.policy.dialect.points
    add, remove = points.get("simulate_add_task"), points.get("simulate_remove_task")
    runs, victims = list(placeable(ssn)), _victims(ssn)
    if dice.random() > 0.3 or not runs or not len(ssn.tables.nodes.facts.names):
        return
    tables, task = ssn.tables, Task(ssn.tables, dice.choice(runs)[0])
    if victims and remove is not None:
        gone = Task(tables, dice.choice(victims))
        done.append(f"simulate that {gone.key} is gone")
        ssn.ask(remove, task, gone, gone.node)
    elif add is not None:
        node = Node(tables, dice.randrange(len(tables.nodes.facts.names)))
        done.append(f"simulate that {task.key} is on {node.name}")
        ssn.ask(add, task, task, node)


def placeable(ssn: Session) -> Iterator[list[int]]:
    """Yield pending tasks without gates, equal ones of one sub-job together. Tasks that share GPUs are left out,
    because they are placed on devices and not on nodes alone."""
    tasks, devices = ssn.tables.tasks, ssn.ledger.devices
    found: dict[tuple[int, int], list[int]] = {}
    for row in ((tasks.status == TaskStatus.PENDING) & (tasks.gate == NO_GATE)).nonzero()[0].tolist():
        if devices is not None and devices.share_of(int(tasks.cls[row])) is not None:
            continue
        if tasks.job[row] >= 0 and ssn.tables.jobs.queue[tasks.job[row]] >= 0:
            found.setdefault((int(tasks.sub[row]), int(tasks.cls[row])), []).append(row)
    yield from found.values()


def _victims(ssn: Session) -> list[int]:
    tasks = ssn.tables.tasks
    rows = [row for status in PREEMPTABLE_STATUSES for row in (tasks.status == status).nonzero()[0].tolist()]
    return sorted(row for row in rows if tasks.job[row] >= 0)
