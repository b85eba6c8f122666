"""A gang for which too little was found is not placed first, once jobs like it have shown that it cannot stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pumice.api import Job, Queue, Refusal, Session, Task, TaskRun, Unfit, Vote, plugin, points
from pumice.framework.cycle.statement import Statement
from pumice.framework.memo import Memo
from pumice.model.events import Object, Seen
from pumice.runtime.why import why_jobs_wait, why_pods_wait
from pumice.testing.build import Ran, cluster, node, podgroup, pods, policy, queue, resource, run
from tests.unit.volcano.evicting import gang as running_gang

CONF = """
actions: allocate
tiers:
- plugins: [{name: gang}, {name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}MORE]
"""


@plugin("by-name")
@points.job_pipelined
def by_name(ssn: Session, job: Job) -> Vote:
    """Says what it says of each job."""
    return Vote.ABSTAIN


@plugin("one-by-one")
@points.allocatable
def one_by_one(ssn: Session, queue: Queue, task: Task) -> bool:
    """Answers for one task."""
    return True


@plugin("fussy")
@points.pre_predicate
def fussy(ssn: Session, task: Task) -> Unfit | None:
    """Looks at each task."""
    return None


@plugin("refuses")
@points.on_allocate
def refuses(ssn: Session, run: TaskRun) -> Refusal | None:
    """May refuse a placement."""
    return None


@plugin("listens")
@points.on_allocate
def listens(ssn: Session, run: TaskRun) -> None:
    """Hears of placements."""


PLUGINS: tuple[Callable[..., Any], ...] = (by_name, one_by_one, fussy, refuses, listens)


def gang(name: str, count: int, minimum: int, of: str, **more: Any) -> list[Object]:
    return [podgroup(name, minimum, of, phase="Inqueue"), *pods(name, count, **more)]


def gangs(count: int, minimum: int, **more: Any) -> list[Object]:
    """One like the other, each in a queue of its own, and three nodes with room for six pods of one cpu."""
    nodes = [node(f"n{n}", cpu) for n, cpu in enumerate((3, 2, 1))]
    return [*nodes, *(each for of in "abc" for each in (queue(of, **more), *gang(f"g{of}", count, minimum, of)))]


@pytest.fixture
def booked() -> Iterator[list[int]]:
    """How many tasks were placed, each time."""
    found: list[int] = []
    allocate = Statement.allocate

    def noting(self: Statement, rows: list[int], nodes: list[int]) -> Any:
        found.append(len(rows))
        return allocate(self, rows, nodes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Statement, "allocate", noting)
        yield found


def all_that_is_said(ran: Ran) -> list[Any]:
    outcome = ran.outcome
    undone = [outcome.trace.undone_of(job) for job in outcome.live_jobs.nonzero()[0].tolist()]
    traces = [last_trial and [each.tolist() for each in last_trial] for last_trial in undone]
    told = outcome.groups, list(outcome.notices()), outcome.entries, traces
    return [ran.decisions, *told, why_jobs_wait(outcome), why_pods_wait(outcome)]


@pytest.mark.parametrize(
    ("objects", "more", "placed"),
    [
        pytest.param(gangs(8, 8), "", [6], id="the nodes are too few"),
        pytest.param(gangs(8, 8, capability=resource(4, "99Gi")), "", [4], id="the queue gives too little"),
        pytest.param(gangs(6, 6, capability=resource(4, "99Gi")), "", [4], id="the queue does, the nodes would do"),
        pytest.param(gangs(9, 7), "", [6], id="it may do without some, not so many"),
        pytest.param(
            gangs(9, 7, capability=resource(4, "99Gi")), "", [4], id="the queue gives less than it may do with"
        ),
        pytest.param(gangs(8, 8), ", {name: listens}", [6], id="a plugin that only listens"),
        pytest.param(gangs(8, 8), ", {name: by-name}", [6] * 3, id="a vote on each job"),
        pytest.param(gangs(8, 8), ", {name: one-by-one}", [1] * 18, id="a queue that is asked task by task"),
        pytest.param(gangs(8, 8), ", {name: fussy}", [6] * 3, id="each task is looked at"),
        pytest.param(gangs(8, 8), ", {name: refuses}", [6] * 3, id="a placement may be refused"),
        pytest.param(
            [*gangs(8, 8), *running_gang("old", 1, on="n0", deletion=5.0)], "", [5] * 3, id="somebody is leaving"
        ),
    ],
)
def test_what_cannot_stand_is_not_placed(
    booked: list[int], objects: list[Object], more: str, placed: list[int]
) -> None:
    """The first of three gangs shows it to the others; what is said of them is what placing them would have said."""
    under = policy(CONF.replace("MORE", more), plugins=PLUGINS)
    ours = all_that_is_said(run(cluster(*objects), under, memo=Memo()))
    assert booked == placed
    assert ours == all_that_is_said(run(cluster(*objects), under, memo=Memo(keeps=False)))


def test_gangs_that_can_stand_are_placed_in_later_cycles(booked: list[int]) -> None:
    """What is known is how many are too few, whatever nodes there are."""
    under, store, memo = policy(CONF.replace("MORE", ""), plugins=PLUGINS), cluster(*gangs(8, 8)), Memo()
    assert not run(store, under, memo=memo).decisions
    store.apply(Seen(node("n3", 1)))
    assert not run(store, under, memo=memo).decisions
    store.apply(Seen(node("n4", 1)))
    assert len(run(store, under, memo=memo).binds) == 8
    assert booked == [6, 7, 8], "seven were looked at for the first time, then six are left out"
