"""What went wrong in the core before it was rebuilt, one test each, in the order in which it was found.

 1. A trial was recalled although a plugin's own numbers said otherwise by now.
 2. What a rollback took back, a plugin's plain flag still took for news.
 3. A snapshot changed after it was taken; a second cycle on it spent the memory of the first.
 4. A question that was asked a thousand times in trials left a thousand answers behind.
 5. A hook of the wrong type was not reported.
 6. Pods that came and went left their classes for ever.
 7. A question had one answer at a time, so two that took turns were answered anew each time.
 8. A plugin that failed ended the cycle.
 9. One plugin that looks at single jobs, or at single nodes, made all jobs slow.
10. Admission by a plugin that takes a Job cost the square of the jobs that wait.

Each is impossible by construction now; what makes it so is tested beside its module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.columns.dtypes import F64, I32
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import NodeRows
from pumice.columns.runs import TaskRun
from pumice.columns.views import Job, Node, SubJob, Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Attempt
from pumice.framework.memo import Memo
from pumice.framework.plugin.combine import Vote
from pumice.framework.plugin.errors import PluginError
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.framework.plugin.plugin import plugin
from pumice.model.events import Gone, Object, Seen
from pumice.model.pod import Pod
from pumice.placing.batch import placing_of
from pumice.testing.build import Ran, cluster, hypernode, node, pod, podgroup, pods, queue, resource, run, session
from pumice.volcano import points
from pumice.volcano.failures.failures import Failures
from tests.unit.framework.kit import anew, answers_equally


def conf(*plugins: str, actions: str = "allocate") -> str:
    """A policy of plugins with their defaults, after gang and priority."""
    named = ", ".join(f"{{name: {name}}}" for name in plugins)
    return f'actions: "{actions}"\ntiers:\n- plugins: [{{name: priority}}, {{name: gang}}]\n- plugins: [{named}]\n'


# -- 1


class TakeTurns:
    """Each gang of two goes to the rack that is used less, and in it to the other node than the gang before it, by a
    count of the plugin's own; looks at the single task."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self.placed = ssn.column("take-turns.placed", "", 1)

    def in_turn(self, task: Task, nodes: NodeRows) -> F64:
        number = np.array([int(name[-1]) for name in nodes.facts.names])[nodes.rows]
        return (number == self.placed.array[0] // 2 % 2).astype(np.float64)

    @points.hyper_node_order
    def less_used(self, sub: SubJob, hypernodes: I32) -> F64:
        tree, used = self.ssn.tables.tree, self.ssn.tables.nodes.used[:, 0]
        return np.array([-used[tree.nodes[row]].sum() for row in hypernodes.tolist()])

    @points.on_allocate
    def came(self, run: TaskRun) -> None:
        self.ssn.journal.add(self.placed, 0, float(len(run)))

    @points.on_deallocate
    def went(self, run: TaskRun) -> None:
        self.ssn.journal.add(self.placed, 0, -float(len(run)))


SAYS = ("rows", "take-turns.placed")


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("reads", [None, SAYS], ids=["of whatever it likes", "of a number that it names"])
def test_1_a_trial_is_not_recalled_when_a_plugin_would_answer_otherwise(
    reads: tuple[str, ...] | None, keeps: bool
) -> None:
    """The second gang was tried where the first one did not stay, and would have gone to the other node there."""
    hook = anew(TakeTurns.in_turn)
    in_turn = points.node_order(hook) if reads is None else points.node_order(reads=reads)(hook)
    take_turns = plugin("take-turns")(type("Mine", (TakeTurns,), {"in_turn": in_turn}))
    if reads is not None:
        take_turns = answers_equally(take_turns, "in_turn", "less_used")
    objects: list[Object] = [node(f"rack{r}-{i}", 8) for r in range(2) for i in range(2)]
    objects += [hypernode(f"rack{r}", 1, [f"rack{r}-0", f"rack{r}-1"]) for r in range(2)]
    for g in range(2):
        objects += [podgroup(f"g{g}", 2, tier=1, creation=float(g)), *pods(f"g{g}", 2, cpu=1)]
    ran = run(
        cluster(objects), conf("take-turns", "network-topology-aware"), plugins=[take_turns], memo=Memo(keeps=keeps)
    )
    assert list(ran.binds.values()) == ["rack0-0", "rack0-0", "rack1-1", "rack1-1"]


# -- 2


def test_2_after_a_rollback_a_plugin_answers_as_if_nothing_had_been() -> None:
    annotations = {
        f"q{i}": {"volcano.sh/hierarchy": f"root/q{i}", "volcano.sh/hierarchy-weights": "1/1"} for i in (1, 2)
    }
    objects = [node("n", 8), *(queue(name, annotations=notes) for name, notes in annotations.items())]
    for i, held in ((1, 3), (2, 2)):
        objects += [podgroup(f"g{i}", 1, f"q{i}", phase="Running"), *pods(f"g{i}", held, on="n")]
        objects += [podgroup(f"w{i}", 1, f"q{i}"), *pods(f"w{i}", 1)]
    under = "tiers: [{plugins: [{name: drf, enableHierarchy: true}]}]"
    ssn = session(cluster(objects), under)
    one, two = (ssn.tables.queues.row_of[name] for name in ("q1", "q2"))
    fresh = ssn.order.compare_queues(one, two)
    rows = [r for r, p in enumerate(ssn.tables.tasks.pods) if p is not None and p.name.startswith("g1-")]
    stmt = ssn.statement()
    stmt.evict(rows[:2], "test")
    assert ssn.order.compare_queues(one, two) == -fresh, "the eviction is seen"
    stmt.discard()
    assert ssn.order.compare_queues(one, two) == fresh


# -- 3


def test_3_a_snapshot_stays_what_it_was_and_may_be_decided_on_again() -> None:
    store = cluster(node("n", 4), podgroup("g", 2), pods("g", 2))
    snapshot, memo = store.snapshot(), Memo()
    first = run(snapshot, conf("predicates"), memo=memo)
    for event in (Seen(node("n", 1)), Gone(Pod, "ns/g-1"), Seen(pod("h-0", "h", on="n", cpu=4)), Seen(podgroup("h"))):
        store.apply(event)
    run(store, conf("predicates"), memo=memo)
    for again in (Memo(), memo, None):
        ran = run(snapshot, conf("predicates"), memo=again)
        assert ran.decisions == first.decisions and ran.outcome.groups == first.outcome.groups


# -- 4


def test_4_a_question_leaves_nothing_behind() -> None:
    memo = Memo()
    store = cluster([node(f"n{i}") for i in range(4)], podgroup("g", 2), pods("g", 2))
    ssn = session(store, conf("predicates", "nodeorder", "binpack"), memo=memo)
    known = []
    for number in range(1000):
        with ssn.statement() as stmt:
            nodes = placing_of(ssn).run([0, 1], placing_of(ssn).feasible.all_nodes)
            stmt.allocate([0, 1], nodes)
        if number in (9, 999):
            known.append((len(memo._young), len(memo._older), ssn.journal.mark(), len(ssn.world.columns)))
    assert known[0] == known[1]


# -- 5


def banana(ssn: Session, banana: str) -> int:
    return 0


def test_5_a_hook_of_the_wrong_type_is_an_error_at_load() -> None:
    """And for who checks types (test_point.py); that every point is asked through its combinator is tested in
    tests/tidy/test_points.py."""
    with pytest.raises(PluginError, match=r"hook banana at point job_order: found parameters \(str\), wanted"):
        points.job_order(banana)  # type: ignore[call-overload]


# -- 6

COUNT = 2000


@pytest.mark.parametrize(
    "of_its_own",
    [
        pytest.param(lambda i: {"claim_names": (f"scratch-{i}",)}, id="a claim of its own"),
        pytest.param(lambda i: {"memory": 2**20 + i}, id="a request of its own"),
    ],
)
def test_6_pods_that_came_and_went_leave_no_class(of_its_own: Callable[[int], dict[str, Any]]) -> None:
    store = cluster(node("n"), podgroup("g"), pods("g", 1))
    before = int(store.snapshot().tables.classes.alive.sum())
    for i in range(COUNT):
        store.apply(Seen(pod(f"one-{i}", "g", **of_its_own(i))))
        store.apply(Gone(Pod, f"ns/one-{i}"))
    tables = store.snapshot().tables
    assert int(tables.classes.alive.sum()) == before
    assert tables.classes.capacity < COUNT / 10, "and rows are used again"


# -- 7


def test_7_alternating_questions_are_each_answered_once() -> None:
    memo, answered = Memo(), []

    def build(number: int) -> int:
        answered.append(number)
        return number

    for _ in range(5):
        for level in range(20):
            assert memo.get(("filled", level), (1,), lambda level=level: build(level)) == level  # type: ignore[misc]
    assert answered == list(range(20))


# -- 8


def raises(ssn: Session, task: Task, nodes: NodeRows) -> FilterResult:
    if task.pod.group_key == "ns/bad":
        raise RuntimeError("out of\nluck")
    return FilterResult.of(np.ones(len(nodes), dtype=bool), Unfit("no"))


def says_false(ssn: Session, task: Task, nodes: NodeRows) -> FilterResult:
    if task.pod.group_key == "ns/bad":
        return False  # type: ignore[return-value]
    return FilterResult.of(np.ones(len(nodes), dtype=bool), Unfit("no"))


def no_number(ssn: Session, task: Task, nodes: NodeRows) -> F64:
    return np.full(len(nodes), np.nan if task.pod.group_key == "ns/bad" else 1.0)


def too_many(ssn: Session, task: Task, nodes: NodeRows) -> F64:
    return np.ones(len(nodes) + (task.pod.group_key == "ns/bad"))


def class_no_number(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
    return np.full(len(nodes), np.nan if cls.spec.priority == 7 else 1.0)


FAULTS = [
    pytest.param(points.predicate, raises, "RuntimeError: out of", id="raises"),
    pytest.param(points.predicate, says_false, "answered False, wanted a FilterResult", id="answers False"),
    pytest.param(points.node_order, no_number, "wanted finite numbers", id="a score that is no number"),
    pytest.param(points.node_order, class_no_number, "wanted finite numbers", id="a class's score that is no number"),
    pytest.param(points.node_order, too_many, "wanted one number for each of", id="scores of other rows"),
]


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(("point", "hook", "problem"), FAULTS)
def test_8_a_job_is_skipped_if_a_plugin_fails_for_it(point: Any, hook: Any, problem: str, size: int) -> None:
    one_more = plugin("one-more")(point(hook))
    objects: list[Object] = [node("n0", 32), node("n1", 32)]
    for g, name in enumerate(("early", "bad", "late")):
        objects += [podgroup(name, size, creation=float(g)), *pods(name, size, priority=7 if name == "bad" else None)]
    ran = run(cluster(objects), conf("one-more", "predicates"), plugins=[one_more])
    assert {name.partition("-")[0] for name in ran.binds} == {"ns/early", "ns/late"}
    assert len(ran.binds) == 2 * size
    (fault,) = ran.outcome.faults
    assert (fault.subject, fault.plugin, fault.point, fault.hook) == ("ns/bad", "one-more", point.name, hook.__name__)
    assert problem in fault.problem
    file, _, line = fault.where.rpartition(":")
    first = hook.__code__.co_firstlineno
    assert file == __file__ and first <= int(line) <= first + 3


@pytest.mark.parametrize("size", [1, 3])
def test_8_rows_of_nodes_can_be_gone_through_for_one_pod_and_for_a_gang(size: int) -> None:
    """For a gang the rows are hypothetical; a handle of one says what they say."""
    seen = []

    @plugin("by-hand")
    @points.node_order
    def by_hand(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
        found = np.array([each.used[0] for each in nodes])
        assert (found == nodes.used[:, 0]).all() and len(list(nodes)) == len(nodes)
        seen.append(len(nodes))
        return -found

    store = cluster(node("n0", 32), node("n1", 32), podgroup("g", size), pods("g", size))
    assert len(run(store, conf("by-hand"), plugins=[by_hand]).binds) == size
    assert seen


# -- 9


def hopeless(**first: Any) -> list[Object]:
    found: list[Object] = [node("n", 4)]
    for g in range(6):
        found += [podgroup(f"g{g}", 1, **(first if not g else {})), *pods(f"g{g}", 1, cpu=9)]
    return found


@pytest.mark.parametrize(
    ("objects", "tried"),
    [
        pytest.param(hopeless(), 1, id="none has a deadline"),
        pytest.param(hopeless(annotations={"sla-waiting-time": "1h"}), 6, id="one has: each is asked about"),
    ],
)
def test_9_sla_leaves_jobs_their_failures_in_common_while_none_has_a_deadline(
    monkeypatch: pytest.MonkeyPatch, objects: list[Object], tried: int
) -> None:
    failed, keep = [], Failures.keep

    def noting(self: Failures, job: int, attempt: Attempt, *more: int) -> None:
        failed.append(job)
        keep(self, job, attempt, *more)

    monkeypatch.setattr(Failures, "keep", noting)
    run(cluster(objects), conf("sla", "predicates"), now=50.0)
    assert len(failed) == tried


def test_9_a_hook_about_single_nodes_leaves_gangs_placed_in_one_go() -> None:
    asked = []

    @plugin("node-by-node")
    @points.node_order
    def node_by_node(ssn: Session, cls: TaskClass, node: Node) -> float:
        asked.append(node.name)
        return -float(node.used[0])

    store = cluster([node(f"n{i}", 32) for i in range(3)], podgroup("g", 30), pods("g", 30))
    ssn = session(store, conf("node-by-node"), plugins=[node_by_node])
    assert placing_of(ssn).feasible.at_once
    rows = ssn.tables.jobs.tasks[0].tolist()
    assert sorted(placing_of(ssn).run(rows, placing_of(ssn).feasible.all_nodes)) == [0] * 10 + [1] * 10 + [2] * 10


# -- 10


def cost_of_admission(count: int) -> tuple[int, Ran]:
    """Calls of functions in a cycle in which so many jobs wait and none is admitted."""

    @plugin("nobody")
    @points.job_enqueueable
    def nobody(ssn: Session, job: Job) -> Vote:
        return Vote.REJECT

    objects = [podgroup(f"g{i}", 1, min_resources=resource(1)) for i in range(count)]
    store = cluster(node("n"), objects)
    calls = 0

    def count_calls(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    snapshot = store.snapshot()
    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        ran = run(snapshot, conf("nobody", actions="enqueue"), plugins=[nobody])
    finally:
        sys.setprofile(before)
    return calls, ran


def test_10_admission_costs_as_much_as_there_are_jobs() -> None:
    """Neither are calls made, nor rows handed on, that grow with the square of the jobs."""
    (few, _), (many, ran) = cost_of_admission(100), cost_of_admission(400)
    assert many < 5 * few
    assert not any(phase == "Inqueue" for phase in ran.phases.values())
    assert sum(len(rows) for rows, _ in ran.outcome.trace.rejected) <= 400


def test_10_jobs_are_handed_to_hooks_about_many_together() -> None:
    sizes = []

    @plugin("by-age")
    @points.job_order
    def by_age(ssn: Session, jobs: JobRows) -> F64:
        sizes.append(len(jobs))
        return jobs.creation

    objects = [podgroup(f"g{i}", 1, min_resources=resource(1)) for i in range(50)]
    run(cluster(node("n"), objects), conf("by-age", actions="enqueue"), plugins=[by_age])
    assert sizes == [50]
