"""Statements: what an operation does at once, what the planner gets at commit, and what an undo leaves.

(For any sequence of operations: tests/properties/test_rollback.py and test_commit.py. What rides along with a bind:
test_bind_context.py.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pumice.columns.nodes import FUTURE, IDLE, PIPELINED, RELEASING, USED
from pumice.columns.placement import Placement
from pumice.columns.runs import TaskRun
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Kind, Operation, Statement
from pumice.framework.cycle.trace import AFTER
from pumice.framework.plugin import points
from pumice.framework.plugin.plugin import plugin
from pumice.model.blockers import BIND, EVICT, Refused
from pumice.model.decisions import Bind, Decision, Evict, Refusal
from pumice.model.events import Object
from pumice.model.status import TaskStatus
from pumice.testing.build import cluster, node, pod, podgroup, pods, session
from pumice.testing.moving import differing, moving_bytes

N0, N1 = 0, 1
CONF = "tiers: [{plugins: [{name: drf}, {name: predicates}]}]"


class Planner:
    """Takes what it does not refuse."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.taken: list[Decision] = []

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        refusals = {i: Refusal(f"not {d.pod}") for i, d in enumerate(decisions) if d.pod in self.refused}
        self.taken += [d for i, d in enumerate(decisions) if i not in refusals]
        return refusals


def opened(*refused: str, conf: str = CONF, **more: Any) -> tuple[Session, Planner]:
    """Nodes n0 and n1 of 8 cpus, gang g of four waiting tasks of 1 cpu, and old-0 of 2 cpus running on n0."""
    planner = Planner(*refused)
    old = [podgroup("old"), pods("old", 1, cpu=2, on="n0")]
    state = cluster(node("n0"), node("n1"), podgroup("g", 2, creation=1.0), pods("g", 4), *old)
    return session(state, conf, planner=planner, **more), planner


def row(ssn: Session, name: str) -> int:
    return [p.name if p else "" for p in ssn.tables.tasks.pods].index(name)


def gang(ssn: Session, count: int) -> list[int]:
    return [row(ssn, f"g-{i}") for i in range(count)]


def where(ssn: Session) -> dict[str, str]:
    """Of every task that is not plainly waiting: ``Status node``."""
    handles = [Task(ssn.tables, r) for r in ssn.tables.tasks.alive.nonzero()[0].tolist()]
    return {
        task.pod.name: f"{task.status.label} {task.node.name}".strip()
        for task in handles
        if task.status is not TaskStatus.PENDING or task.node
    }


def cpus(ssn: Session, at: int) -> dict[str, float]:
    """Cores in each book of a node."""
    books = {"idle": IDLE, "used": USED, "releasing": RELEASING, "pipelined": PIPELINED, "future": FUTURE}
    return {name: float(ssn.tables.nodes.books[at, book, 0]) / 1000 for name, book in books.items()}


def undone(ssn: Session, stmt: Statement) -> list[str]:
    """What was taken back, in that order, as ``Status task node``; ``*`` where a task was evicted for it."""
    names, pods = ssn.tables.nodes.facts.names, ssn.tables.tasks.pods
    return [
        f"{AFTER[op.kind].label} {pods[task].name} {names[at]}{'*' * op.evicted}"
        for op in stmt.undone
        for task, at in zip(op.placement.rows, op.placement.nodes, strict=True)
    ]


OLD = {"old-0": "Running n0"}
TELLING = "tiers: [{plugins: [{name: telling}]}]"


def telling(reports: list[str], *, keeps: str = "columns", most: int = 9) -> Any:
    """A plugin that tells what it hears of, and refuses more tasks than ``most`` in one go."""

    @plugin("telling", keeps=keeps)
    class Telling:
        def __init__(self, ssn: Session) -> None:
            pass

        @points.on_allocate
        def came(self, run: TaskRun) -> Refusal | None:
            reports.append(f"+{len(run)} on {list(run.nodes)}")
            return Refusal("full") if len(run) > most else None

        @points.on_deallocate
        def went(self, run: TaskRun) -> None:
            reports.append(f"-{len(run)} from {list(run.nodes)}")

    return Telling


# -- operations


def test_allocate_takes_what_is_idle() -> None:
    ssn, planner = opened()
    stmt = ssn.statement()
    assert stmt.allocate(gang(ssn, 3), [N0, N1, N0]) is None
    assert where(ssn) == {**OLD, "g-0": "Allocated n0", "g-1": "Allocated n1", "g-2": "Allocated n0"}
    assert cpus(ssn, N0) == {"idle": 4, "used": 4, "releasing": 0, "pipelined": 0, "future": 4}
    assert cpus(ssn, N1) == {"idle": 7, "used": 1, "releasing": 0, "pipelined": 0, "future": 7}
    assert stmt.operations == [Operation(Kind.ALLOCATE, Placement(gang(ssn, 3), [N0, N1, N0]))]
    assert planner.taken == [], "nothing leaves before the commit"


@pytest.mark.parametrize("evicted", [False, True])
def test_pipeline_promises_what_will_be_free(evicted: bool) -> None:
    ssn, _ = opened()
    assert not ssn.world.futures_differ
    stmt = ssn.statement()
    assert stmt.pipeline(gang(ssn, 2), [N0, N1], evicted=evicted) is None
    assert where(ssn) == {**OLD, "g-0": "Pipelined n0", "g-1": "Pipelined n1"}
    assert cpus(ssn, N0) == {"idle": 6, "used": 2, "releasing": 0, "pipelined": 1, "future": 5}
    assert ssn.tables.tasks.evicted_for[gang(ssn, 3)].tolist() == [evicted, evicted, False]
    assert ssn.world.futures_differ


def test_evict_keeps_the_node_until_the_pod_has_left() -> None:
    ssn, planner = opened()
    stmt = ssn.statement()
    stmt.evict([row(ssn, "old-0")], "somebody needs it more")
    assert where(ssn) == {"old-0": "Releasing n0"}
    assert cpus(ssn, N0) == {"idle": 6, "used": 2, "releasing": 2, "pipelined": 0, "future": 8}
    assert (ssn.world.futures_differ, planner.taken) == (True, [])


def two_that_run() -> list[Object]:
    """Gangs a and b of two tasks each on n1."""
    return [each for name in ("a", "b") for each in (podgroup(name, creation=9.0), *pods(name, 2, on="n1"))]


def test_victims_of_several_sub_jobs_are_counted_by_their_own() -> None:
    """Sums are kept by sub-job: those of the first one must not be given the tasks of the others."""
    state = cluster(node("n0"), node("n1"), two_that_run())
    together, apart = session(state, CONF), session(state, CONF)
    names = ["a-0", "b-1", "a-1", "b-0"]
    stmt = together.statement()
    stmt.evict([row(together, name) for name in names], "go")
    assert [len(op.placement.rows) for op in stmt.operations] == [1, 1, 1, 1]
    one_by_one = apart.statement()
    for name in names:
        one_by_one.evict([row(apart, name)], "go")
    differ = differing(moving_bytes(together), moving_bytes(apart))
    assert [what for what in differ if not what.endswith(" stamps")] == [], "two sessions, and no stamps in common"
    assert [str(each) for each in stmt.operations] == [str(each) for each in one_by_one.operations]


def test_those_of_one_sub_job_that_follow_each_other_leave_in_one_operation() -> None:
    ssn = session(cluster(node("n0"), node("n1"), two_that_run()), CONF)
    stmt = ssn.statement()
    stmt.evict([row(ssn, name) for name in ("a-0", "a-1", "b-0", "b-1")], "go")
    assert [len(op.placement.rows) for op in stmt.operations] == [2, 2]


@pytest.mark.parametrize("operation", ["allocate", "pipeline"])
def test_tasks_of_several_sub_jobs_are_not_placed_together(operation: str) -> None:
    ssn = session(cluster(node("n0"), podgroup("a"), pods("a", 1), podgroup("b"), pods("b", 1)), CONF)
    with pytest.raises(AssertionError, match="several sub-jobs"):
        getattr(ssn.statement(), operation)([row(ssn, "a-0"), row(ssn, "b-0")], [N0, N0])


def test_a_refusal_of_an_event_handler_undoes_the_whole_call() -> None:
    reports: list[str] = []
    ssn, _ = opened(conf=TELLING, plugins=[telling(reports, keeps="python", most=2)])
    before = moving_bytes(ssn)
    stmt = ssn.statement()
    assert stmt.allocate(gang(ssn, 3), [N0, N0, N1]) == Refusal("full")
    assert reports == ["+3 on [0, 0, 1]", "-3 from [0, 0, 1]"]
    assert (stmt.operations, differing(before, moving_bytes(ssn))) == ([], [])
    assert stmt.undone == [], "no transaction to tell of"
    assert stmt.pipeline(gang(ssn, 2), [N0, N0]) is None


# -- commit


def test_commit_submits_in_order() -> None:
    ssn, planner = opened()
    stmt = ssn.statement()
    stmt.evict([row(ssn, "old-0")], "why")
    stmt.pipeline([row(ssn, "g-3")], [N0], evicted=True)
    stmt.allocate(gang(ssn, 2), [N1, N0])
    assert stmt.commit() == []
    assert planner.taken == [
        Evict("ns/old-0", "ns-old-0", "n0", "ns/old", "why"),
        Bind("ns/g-0", "ns-g-0", "n1", "ns/g"),
        Bind("ns/g-1", "ns-g-1", "n0", "ns/g"),
    ], "a promise is nobody's business yet"
    assert where(ssn) == {
        "old-0": "Releasing n0",
        "g-0": "Binding n1",
        "g-1": "Binding n0",
        "g-3": "Pipelined n0",
    }
    assert (stmt.operations, ssn.journal.open_statements) == ([], 0)


def test_a_bind_that_is_refused_is_undone_alone() -> None:
    ssn, planner = opened("ns/g-1")
    stmt = ssn.statement()
    stmt.allocate(gang(ssn, 3), [N0, N0, N1])
    assert stmt.commit() == ["ns/g-1"]
    assert [decision.pod for decision in planner.taken] == ["ns/g-0", "ns/g-2"]
    assert where(ssn) == {**OLD, "g-0": "Binding n0", "g-2": "Binding n1"}
    assert cpus(ssn, N0)["idle"] == 5
    assert [entry[1:] for entry in ssn.trace.entries] == [("ns/g-1", Refused(BIND, "not ns/g-1"))]


def test_an_eviction_that_is_refused_runs_on() -> None:
    ssn, planner = opened("ns/old-0")
    before = ssn.world.digest()
    stmt = ssn.statement()
    stmt.evict([row(ssn, "old-0")], "why")
    assert stmt.commit() == ["ns/old-0"]
    assert (planner.taken, where(ssn), ssn.world.digest()) == ([], OLD, before)
    assert [entry[1:] for entry in ssn.trace.entries] == [("ns/old-0", Refused(EVICT, "not ns/old-0"))]


@pytest.mark.parametrize(("phase", "before"), [("Running", "Running"), ("Pending", "Bound")], ids=["running", "bound"])
def test_an_undone_eviction(phase: str, before: str) -> None:
    """A refused one leaves the task Running even if it was Bound, as in Volcano; a discarded one leaves every byte."""
    state = cluster(node("n0"), podgroup("g"), pod("p", "g", on="n0", phase=phase))
    ssn = session(state, CONF, planner=Planner("ns/p"))
    assert where(ssn) == {"p": f"{before} n0"}
    with ssn.statement() as stmt:
        stmt.evict([row(ssn, "p")], "why")
    assert where(ssn) == {"p": f"{before} n0"}
    stmt = ssn.statement()
    stmt.evict([row(ssn, "p")], "why")
    stmt.commit()
    assert where(ssn) == {"p": "Running n0"}


def test_event_handlers_hear_of_what_the_planner_refused() -> None:
    reports: list[str] = []
    ssn, _ = opened("ns/g-1", "ns/old-0", conf=TELLING, plugins=[telling(reports)])
    stmt = ssn.statement()
    stmt.allocate(gang(ssn, 2), [N0, N1])
    stmt.evict([row(ssn, "old-0")], "why")
    stmt.commit()
    assert reports == ["+2 on [0, 1]", "-1 from [0]", "-1 from [1]", "+1 on [0]"]


# -- undo


def test_discard_restores_every_byte_and_remembers_where_tasks_would_have_gone() -> None:
    ssn, planner = opened()
    before = moving_bytes(ssn)
    stmt = ssn.statement()
    stmt.allocate(gang(ssn, 2), [N1, N0])
    stmt.evict([row(ssn, "old-0")], "why")
    stmt.pipeline([row(ssn, "g-2")], [N0], evicted=True)
    stmt.discard()
    assert (differing(before, moving_bytes(ssn)), planner.taken, ssn.journal.open_statements) == ([], [], 0)
    assert undone(ssn, stmt) == ["Pipelined g-2 n0*", "Releasing old-0 n0", "Allocated g-0 n1", "Allocated g-1 n0"]


@pytest.mark.parametrize(
    ("keeps", "heard"),
    [
        pytest.param("python", ["-2 from [0, 1]", "+1 on [0]"], id="plain state: the inverses, newest first"),
        pytest.param("columns", [], id="columns: the journal has restored them"),
    ],
)
def test_who_hears_of_an_undo(keeps: str, heard: list[str]) -> None:
    reports: list[str] = []
    ssn, _ = opened(conf=TELLING, plugins=[telling(reports, keeps=keeps)])
    with ssn.statement() as stmt:
        stmt.evict([row(ssn, "old-0")], "why")
        stmt.allocate(gang(ssn, 2), [N0, N1])
        reports.clear()
    assert reports == heard


def test_a_block_that_fails_leaves_no_trace() -> None:
    ssn, _ = opened()
    before = moving_bytes(ssn)
    with pytest.raises(ZeroDivisionError), ssn.statement() as stmt:
        stmt.allocate(gang(ssn, 2), [N0, N0])
        _ = 1 / 0
    assert (differing(before, moving_bytes(ssn)), ssn.journal.open_statements) == ([], 0)


def test_what_is_kept_uncommitted_stays_and_is_not_sent() -> None:
    ssn, planner = opened()
    with ssn.statement() as stmt:
        stmt.pipeline(gang(ssn, 2), [N0, N1])
        stmt.keep_uncommitted()
    assert where(ssn) == {**OLD, "g-0": "Pipelined n0", "g-1": "Pipelined n1"}
    assert (planner.taken, ssn.journal.open_statements) == ([], 0)


@pytest.mark.parametrize("end", ["commit", "discard", "keep_uncommitted"])
def test_a_statement_ends_once(end: str) -> None:
    ssn, _ = opened()
    stmt = ssn.statement()
    getattr(stmt, end)()
    with pytest.raises(AssertionError, match="a statement ends once"):
        getattr(stmt, end)()
    assert ssn.journal.open_statements == 0


def test_rollback_to_a_mark_leaves_what_came_before() -> None:
    ssn, planner = opened()
    stmt = ssn.statement()
    stmt.allocate(gang(ssn, 1), [N0])
    mark, before = stmt.mark(), moving_bytes(ssn)
    stmt.allocate([row(ssn, "g-1")], [N1])
    stmt.rollback(mark)
    assert (differing(before, moving_bytes(ssn)), where(ssn)) == ([], {**OLD, "g-0": "Allocated n0"})
    stmt.commit()
    assert [decision.pod for decision in planner.taken] == ["ns/g-0"]


@pytest.mark.parametrize(
    ("keep_outer", "keep_inner", "left"),
    [
        pytest.param(False, False, "", id="neither"),
        pytest.param(False, True, "", id="what is kept inside goes with the outside"),
        pytest.param(True, False, "g-0", id="the outer one"),
        pytest.param(True, True, "g-0 g-1", id="both"),
    ],
)
def test_trials_nest(keep_outer: bool, keep_inner: bool, left: str) -> None:
    ssn, _ = opened()
    stmt = ssn.statement()
    with stmt.trial() as outer:
        stmt.allocate(gang(ssn, 1), [N0])
        with stmt.trial() as inner:
            stmt.allocate([row(ssn, "g-1")], [N1])
            if keep_inner:
                inner.keep()
        assert ("g-1" in where(ssn)) is keep_inner
        if keep_outer:
            outer.keep()
    assert where(ssn).keys() - OLD.keys() == set(left.split())
    assert len(stmt.operations) == len(left.split())


def test_a_trial_that_fails_is_rolled_back() -> None:
    ssn, _ = opened()
    stmt = ssn.statement()
    with pytest.raises(ZeroDivisionError), stmt.trial():
        stmt.allocate(gang(ssn, 1), [N0])
        _ = 1 / 0
    assert (where(ssn), stmt.operations) == (OLD, [])


# -- plans


def test_candidate_plans_are_tried_and_the_best_is_recovered() -> None:
    ssn, planner = opened()
    plans = []
    with ssn.statement() as stmt:
        for nodes in ([N0, N0], [N1, N0]):
            with stmt.trial():
                stmt.evict([row(ssn, "old-0")], "for g")
                stmt.pipeline([row(ssn, "g-3")], [N0], evicted=True)
                stmt.allocate(gang(ssn, 2), nodes)
                plans.append((stmt.save(), ssn.world.digest()))
        assert where(ssn) == OLD
        plan, as_tried = plans[1]
        assert stmt.recover(plan) is None
        assert ssn.world.digest() == as_tried
        stmt.commit()
    assert [(type(d), d.pod, d.node) for d in planner.taken] == [
        (Evict, "ns/old-0", "n0"),
        (Bind, "ns/g-0", "n1"),
        (Bind, "ns/g-1", "n0"),
    ]


def test_a_plan_may_leave_out_what_came_before() -> None:
    ssn, _ = opened()
    stmt = ssn.statement()
    stmt.allocate(gang(ssn, 1), [N0])
    mark = stmt.mark()
    stmt.allocate([row(ssn, "g-1")], [N1])
    assert [op.placement.rows for op in stmt.save(mark)] == [[row(ssn, "g-1")]]
    assert [op.placement.rows for op in stmt.save()] == [[row(ssn, "g-0")], [row(ssn, "g-1")]]


def test_recovery_ends_at_the_first_refusal() -> None:
    ssn, _ = opened(conf=TELLING, plugins=[telling([], most=1)])
    stmt = ssn.statement()
    runs = [row(ssn, "g-0")], [row(ssn, "g-1"), row(ssn, "g-2")], [row(ssn, "g-3")]
    plan = tuple(Operation(Kind.ALLOCATE, Placement(rows, [N0] * len(rows))) for rows in runs)
    assert stmt.recover(plan) == Refusal("full")
    assert where(ssn) == {**OLD, "g-0": "Allocated n0"}, "what was done before stays"


def test_merge_takes_the_operations_over() -> None:
    ssn, planner = opened()
    first, second = ssn.statement(), ssn.statement()
    first.allocate(gang(ssn, 1), [N0])
    second.allocate([row(ssn, "g-1")], [N1])
    first.merge(second)
    assert (second.operations, ssn.journal.open_statements) == ([], 1)
    first.commit()
    assert [decision.pod for decision in planner.taken] == ["ns/g-0", "ns/g-1"]


def test_what_merges_with_a_later_statement_goes_with_it() -> None:
    ssn = session(cluster(node("n"), podgroup("g"), pods("g", 2)))
    before = moving_bytes(ssn)
    first = ssn.statement()
    first.allocate([0], [0])
    second = ssn.statement()
    second.merge(first)
    second.discard()
    assert not differing(before, moving_bytes(ssn))
