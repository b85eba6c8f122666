"""Where a class can go: why nodes are refused, what is kept of the answer, and when rows are computed anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.dtypes import F64
from pumice.columns.rows import NodeRows
from pumice.columns.runs import TaskRun
from pumice.columns.snapshot import Shard
from pumice.columns.views import Node, Queue, Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PluginFault
from pumice.framework.plugin.filter_result import Code, FilterResult, FitErrors, Unfit
from pumice.framework.plugin.plugin import plugin
from pumice.model.blockers import NodeFilter, Shortage
from pumice.placing.batch import placing_of
from pumice.runtime.loop import ListPlanner
from pumice.testing.build import cluster, node, podgroup, pods, policy, session
from pumice.volcano.status.fit_errors import reasons
from tests.unit.framework.kit import anew

NOBODY = "tiers: []"


def errors_of(ssn: Session, nodes: NodeRows | None = None, *more: Any, **how: Any) -> FitErrors:
    """Why the class of the first task finds no node."""
    feasible = placing_of(ssn).feasible
    return feasible.errors_of(Task(ssn.tables, 0).cls, feasible.all_nodes if nodes is None else nodes, *more, **how)


# -- why nodes refuse a task, filter by filter


def picky(name: str, wanted: str, code: Code) -> Any:
    """A filter that lets only the nodes pass whose name has a letter."""

    @plugin(name)
    @points.predicate
    def hook(ssn: Session, cls: TaskClass, node: Node) -> Unfit | None:
        return None if wanted in node.name else Unfit(f"no {wanted}", code)

    return hook


def test_the_first_filter_that_objects_counts_and_room_comes_before_all() -> None:
    @plugin("third")
    @points.predicate
    def late(ssn: Session, task: Task, nodes: NodeRows) -> FilterResult | None:
        two = (Unfit("late", Code.UNRESOLVABLE), Unfit("long"))
        names = [ssn.tables.nodes.facts.names[row] for row in nodes.rows]
        return FilterResult(np.array([name in ("a", "ab") for name in names], dtype=np.int32), ((), two))

    conf = "tiers: [{plugins: [{name: first}, {name: second}, {name: third}]}]"
    plugins = [picky("first", "a", Code.UNRESOLVABLE), picky("second", "b", Code.UNSCHEDULABLE), late]
    machines = [node("ab"), node("a"), node("b"), node("c"), node("small-a", cpu=0.5)]
    ssn = session(cluster(machines, podgroup("g"), pods("g", 1)), conf, plugins=plugins)
    names = ssn.tables.nodes.facts.names
    nodes = placing_of(ssn).feasible.all_nodes
    of_task = ssn.ask(points.task_filters_by_hook, Task(ssn.tables, 0), nodes)
    errors = errors_of(ssn, nodes, ssn.hooks.with_plugins(points.task_filters_by_hook, of_task))
    assert reasons(errors) == {"late": 1, "long": 1, "no b": 1, "no a": 2, "Insufficient cpu": 1}
    by = {each.detail: each.plugin for each in errors.against if isinstance(each, NodeFilter)}
    assert by == {"late": "third", "long": "third", "no b": "second", "no a": "first"}
    assert [each for each in errors.against if isinstance(each, Shortage)] == [
        Shortage("cpu", 1000.0, 1, 32500.0, 8000.0, 1, 5)
    ]
    assert errors.node_rows is not None and errors.codes is not None
    found = {names[row]: Code(code).name for row, code in zip(errors.node_rows, errors.codes, strict=True)}
    assert found == {
        "a": "UNSCHEDULABLE",
        "ab": "UNRESOLVABLE",  # the worse of two reasons
        "b": "UNRESOLVABLE",
        "c": "UNRESOLVABLE",
        "small-a": "UNSCHEDULABLE",
    }
    assert reasons(errors_of(ssn, resources=False)) == {"no b": 2, "no a": 2}
    some = errors_of(ssn, NodeRows(ssn.tables, np.array([names.index("c")])), (), "rack")
    assert (reasons(some), some.node_count, some.hypernode) == ({"no a": 1}, 1, "rack")


@pytest.mark.parametrize(
    ("ask", "short"),
    [
        pytest.param({"cpu": 9}, "Insufficient cpu", id="cpu"),
        pytest.param({"memory": "33Gi"}, "Insufficient memory", id="memory"),
        pytest.param({"gpu": 1}, "Insufficient nvidia.com/gpu", id="what no node offers"),
        pytest.param({"cpu": 9, "memory": "33Gi", "gpu": 1}, "Insufficient cpu", id="the first of several"),
    ],
)
def test_what_is_short(ask: dict[str, Any], short: str) -> None:
    ssn = session(cluster(node("n"), podgroup("g"), pods("g", 1, **ask)), NOBODY)
    assert reasons(errors_of(ssn)) == {short: 1}


def test_a_device_that_others_hold_is_short_by_its_name() -> None:
    state = cluster(node("n", gpu=1), pods("old", 1, gpu=1, on="n"), podgroup("g"), pods("g", 1, gpu=1))
    ssn = session(state, NOBODY)
    row = next(r for r, p in enumerate(ssn.tables.tasks.pods) if p is not None and p.name == "g-0")
    assert reasons(placing_of(ssn).feasible.errors(int(ssn.tables.tasks.cls[row]))) == {
        "Insufficient nvidia.com/gpu": 1
    }


@pytest.mark.parametrize(
    ("hard", "counted"),
    [
        pytest.param(True, {"node isn't in scheduler node shard": 1, "Insufficient cpu": 1}, id="hard"),
        pytest.param(False, {"Insufficient cpu": 2}, id="soft: others' nodes are looked at"),
    ],
)
def test_nodes_of_another_shard(hard: bool, counted: dict[str, int]) -> None:
    store = cluster(node("ours", 1), node("theirs", 1), podgroup("g"), pods("g", 1, cpu=2))
    store.shard = Shard(frozenset({"ours"}), hard)
    assert reasons(errors_of(session(store, NOBODY))) == counted


# -- what is kept


@plugin("counting")
class Counting:
    """Says how full each node is, and remembers how many rows it was asked about."""

    asked: list[int]

    def __init__(self, ssn: Session) -> None:
        pass

    @points.node_order(reads=("rows",))
    def fullness(self, cls: TaskClass, nodes: NodeRows) -> F64:
        type(self).asked.append(len(nodes))
        return nodes.used[:, 0]


def counted(*, conf: str = "tiers: [{plugins: [{name: counting}]}]", memo: Memo | None = None) -> Session:
    Counting.asked = []
    state = cluster([node(f"n{i}") for i in range(10)], podgroup("g"), pods("g", 4))
    return session(state, conf, plugins=[Counting], memo=memo)


def test_a_class_is_asked_about_once_and_then_only_about_what_changed() -> None:
    ssn = counted()
    feasible = placing_of(ssn).feasible
    first = feasible.of(0)
    assert feasible.of(0) is first and Counting.asked == [10]
    stmt = ssn.statement()
    stmt.allocate([0, 1], [3, 7])
    fit = feasible.of(0)
    assert Counting.asked == [10, 2]
    assert fit.score.nonzero()[0].tolist() == [3, 7]
    stmt.discard()
    fit = feasible.of(0)
    assert not fit.score.any(), "what was taken back is seen"
    feasible.of(0)
    assert Counting.asked == [10, 2, 2]


@pytest.mark.parametrize("ahead", [False, True])
def test_what_was_kept_is_what_asking_anew_would_give(ahead: bool) -> None:
    ssn = counted()
    feasible = placing_of(ssn).feasible
    feasible.of(0, ahead=ahead)
    stmt = ssn.statement()
    for row, at in ((0, 3), (1, 3), (2, 5)):
        stmt.allocate([row], [at])
        kept = feasible.of(0, ahead=ahead)
        look = feasible.look(0, feasible.all_nodes)
        assert (kept.allowed == look.allowed).all() and (kept.idle_fits == look.idle_fits).all()
        assert (kept.score == look.score).all() and (kept.idle_score == look.where_idle()).all()
        if ahead:
            after = NodeRows(ssn.tables, np.arange(10), after=np.ones(10), cls=0)
            assert (kept.next_score == feasible.look(0, after).where_idle()).all()


def test_what_was_found_before_a_placement_stays_as_it_was() -> None:
    ssn = counted()
    feasible = placing_of(ssn).feasible
    before = feasible.of(0)
    ssn.statement().allocate([0], [4])
    assert (feasible.of(0).score[4], before.score[4]) == (1000, 0)
    with pytest.raises(ValueError, match="read-only"):
        before.score[4] = 1


def test_the_next_cycle_asks_about_what_changed_since() -> None:
    memo, store = Memo(), cluster([node(f"n{i}") for i in range(10)], podgroup("g"), pods("g", 4))
    conf = policy("tiers: [{plugins: [{name: counting}]}]", actions="allocate", plugins=[Counting])
    Counting.asked = []
    for _ in range(2):
        ssn = Session(store.snapshot(), conf, 0.0, ListPlanner(), memo)
        ssn.open()
        placing_of(ssn).feasible.of(0)
        memo.end(ssn.world)
    assert Counting.asked == [10], "nothing changed in between"


def test_what_could_not_be_found_out_is_not_kept() -> None:
    """A plugin that fails is asked again, and not taken for one that has answered."""
    fails = [True]

    @plugin("moody")
    @points.predicate
    def moody(ssn: Session, cls: TaskClass, nodes: NodeRows) -> FilterResult:
        if fails[0]:
            raise RuntimeError("not now")
        return FilterResult.of(nodes.rows > 0, Unfit("no"))

    state = cluster(node("n0"), node("n1"), podgroup("g"), pods("g", 1))
    ssn = session(state, "tiers: [{plugins: [{name: moody}]}]", plugins=[moody])
    for _ in range(2):
        with pytest.raises(PluginFault):
            placing_of(ssn).feasible.of(0)
    fails[0] = False
    assert placing_of(ssn).feasible.of(0).allowed.tolist() == [False, True]


# -- when a gang may be placed in one go


def with_hook(point: Any, hook: Any, *, keeps_column: bool = False, **mark: Any) -> Any:
    """A plugin with a hook about classes, which hears of placements."""

    class Mine:
        def __init__(self, ssn: Session) -> None:
            self.column = ssn.column("mine.own", "node") if keeps_column else None

        @points.on_allocate
        def came(self, run: TaskRun) -> None: ...

    Mine.hook = (point(**mark) if mark else point)(anew(hook))
    return plugin("mine")(Mine)


def class_score(self: Any, cls: TaskClass, nodes: NodeRows) -> F64:
    return nodes.used[:, 0]


def last_word(self: Any, task: Task, nodes: NodeRows, scores: F64) -> int | None:
    return None


def limit(self: Any, queue: Queue, task: Task) -> bool:
    return True


@pytest.mark.parametrize(
    ("plugins", "at_once"),
    [
        pytest.param([], True, id="nobody"),
        pytest.param([lambda: with_hook(points.node_order, class_score)], True, id="what the rows show"),
        pytest.param(
            [lambda: with_hook(points.node_order, class_score, keeps_column=True)],
            False,
            id="a column of its own that it may read, and may move",
        ),
        pytest.param(
            [lambda: with_hook(points.node_order, class_score, keeps_column=True, reads=("rows",))],
            True,
            id="one that it says it reads by row only",
        ),
        pytest.param([lambda: with_hook(points.best_node, last_word)], False, id="somebody has the last word"),
        pytest.param(
            [lambda: with_hook(points.allocatable, limit)], True, id="a limit of a queue is no matter of nodes"
        ),
    ],
)
def test_when_a_gang_may_be_placed_in_one_go(plugins: list[Any], at_once: bool) -> None:
    made = [make() for make in plugins]
    conf = "tiers: [{plugins: [{name: mine}]}]" if made else NOBODY
    ssn = session(cluster(node("n"), podgroup("g"), pods("g", 1)), conf, plugins=made)
    assert placing_of(ssn).feasible.at_once is at_once


def test_with_a_shard_tasks_are_placed_one_by_one() -> None:
    store = cluster(node("n"), podgroup("g"), pods("g", 1))
    store.shard = Shard(frozenset({"n"}), False)
    assert not placing_of(session(store, NOBODY)).feasible.at_once
