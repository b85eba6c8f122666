"""Which tasks of a job are tried next, and which leave next: the minimum at once, what is beyond it one by one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.policy_file import read_policy
from pumice.kai.engine.chunks import active_tasks, chunk_of, tasks_in_order, victims_of
from pumice.model.pod import QUEUE_GATE, Pod
from pumice.model.workloads.gang import SubGroup
from pumice.runtime.policy.languages import builtin_registry
from tests.unit.kai.cluster import cycle, job, node, opened, queue, rows_of, store

PARTS = SubGroup("p", 1), SubGroup("q", 2)
#: Two sets of two pod sets each.
SETS = (
    *(SubGroup("x"), SubGroup("y")),
    *(SubGroup("xa", 1, "x"), SubGroup("xb", 1, "x"), SubGroup("ya", 1, "y"), SubGroup("yb", 1, "y")),
)
ONE_OF_X = (SubGroup("x", min_sub_group=1), *SETS[1:])
OPTIONAL = SubGroup("a", 0), SubGroup("b", 1)
OF_EACH = ["/xa", "/xb", "/ya", "/yb"]


def session(tasks: list[str], minimum: int, **more: Any) -> Session:
    return opened(store(node("a", 16), queue("q"), job("g", "q", tasks, minimum=minimum, **more)))


def names(ssn: Session, rows: list[int]) -> str:
    by_row = {row: name for name, row in rows_of(ssn).items()}
    return " ".join(by_row[row].removeprefix("g-") for row in rows)


@pytest.mark.parametrize(
    ("tasks", "minimum", "more", "chunk"),
    [
        pytest.param(["", "", ""], 2, {}, "0 1", id="the minimum at once"),
        pytest.param(["a", "", ""], 2, {}, "1", id="what is missing of it"),
        pytest.param(["a", "a", "", ""], 2, {}, "2", id="then one"),
        pytest.param(["a", "a"], 2, {}, None, id="nothing is left"),
        pytest.param(["/p", "/p", "/q", "/q", "/q"], 3, {"sub_groups": PARTS}, "0 2 3", id="of each part its minimum"),
        pytest.param(["a/p", "/p", "a/q", "/q", "/q"], 3, {"sub_groups": PARTS}, "3", id="of the part that is short"),
        pytest.param(["a/p", "a/p", "/p", "a/q", "a/q", "/q"], 3, {"sub_groups": PARTS}, "5", id="the least full"),
        pytest.param(OF_EACH, 1, {"sub_groups": SETS}, "0 1 2 3", id="every set"),
        pytest.param(OF_EACH, 1, {"sub_groups": SETS, "min_sub_group": 1}, "0 1", id="as many sets as the gang needs"),
        pytest.param(OF_EACH, 1, {"sub_groups": ONE_OF_X}, "0 2 3", id="as many members as a set needs"),
        pytest.param(
            ["a/xa", "a/xb", "/ya", "/yb"],
            1,
            {"sub_groups": SETS, "min_sub_group": 1},
            "2 3",
            id="a set that is not needed grows whole",
        ),
        pytest.param(
            ["a/xa", "a/xa", "a/xb", "/xb", "/xa", "a/ya", "a/yb", "/yb"],
            1,
            {"sub_groups": ONE_OF_X},
            "7",
            id="the set with the lower share of its minimum, and in it the emptiest",
        ),
        pytest.param(["/a", "/b", "/b"], 1, {"sub_groups": OPTIONAL}, "1", id="a pod set without a minimum waits"),
        pytest.param(["/a", "a/b", "/b"], 1, {"sub_groups": OPTIONAL}, "2", id="and comes after the others"),
        pytest.param(["/a", "a/b"], 1, {"sub_groups": OPTIONAL}, "0", id="and then grows one by one"),
    ],
)
def test_what_is_tried_next(tasks: list[str], minimum: int, more: dict[str, Any], chunk: str | None) -> None:
    ssn = session(tasks, minimum, **more)
    part = chunk_of(ssn, 0)
    assert (None if part is None else names(ssn, part.rows)) == chunk


def test_a_pod_that_was_evicted_a_moment_ago_is_placed_again() -> None:
    ssn = session(["a", "a", ""], 2)
    rows = rows_of(ssn)
    ssn.statement().evict([rows["g-0"]], "try")
    part = chunk_of(ssn, 0, {rows["g-0"]})
    assert part is not None
    assert names(ssn, part.rows) == "0"


@pytest.mark.parametrize("gate", ["wait", QUEUE_GATE])
def test_a_pod_with_a_gate_is_not_placed(gate: str) -> None:
    objects = job("g", "q", ["", "", ""], minimum=2)
    gated = [replace(each, gates=(gate,)) if getattr(each, "name", "") == "g-0" else each for each in objects]
    held = opened(store(node("a"), queue("q"), gated))
    part = chunk_of(held, 0)
    assert part is not None
    assert names(held, part.rows) == "1 2"
    assert cycle(store(node("a"), queue("q"), job("g", "q", ["", "a"], pod={"gates": (gate,)}))).binds == {}


@pytest.mark.parametrize(
    ("tasks", "minimum", "more", "victims"),
    [
        pytest.param(["a", "a", "a"], 2, {}, ["2", "1 0"], id="the last that is spare, then all"),
        pytest.param(["a", "a"], 2, {}, ["1 0"], id="all at once"),
        pytest.param(
            ["a/p", "a/p", "a/q", "a/q"],
            3,
            {"sub_groups": PARTS},
            ["1", "3 2 0"],
            id="of the part that can",
        ),
        pytest.param(
            ["a/xa", "a/xb", "a/xb", "a/ya", "a/yb"],
            1,
            {"sub_groups": SETS, "min_sub_group": 1},
            ["2", "4 3", "1 0"],
            id="what a pod set can spare, then a set that is not needed, then all",
        ),
        pytest.param(["a/a", "a/a", "a/b"], 1, {"sub_groups": OPTIONAL}, ["1", "0", "2"], id="optional ones first"),
    ],
)
def test_who_leaves_next(tasks: list[str], minimum: int, more: dict[str, Any], victims: list[str]) -> None:
    ssn = session(tasks, minimum, **more)
    left, found = active_tasks(ssn, 0), list[str]()
    while any(left.values()):
        rows = victims_of(ssn, 0, left)
        found.append(names(ssn, rows))
        left = {sub: [row for row in each if row not in rows] for sub, each in left.items()}
    assert found == victims


def test_tasks_are_in_order_of_age_and_then_of_their_uid() -> None:
    ages = {"g-0": 3.0, "g-1": 1.0, "g-2": 2.0, "g-3": 1.0}
    objects = [
        replace(each, creation=ages[each.name]) if isinstance(each, Pod) else each
        for each in job("g", "q", [""] * 4, minimum=1)
    ]
    ssn = opened(store(node("a"), queue("q"), objects))
    assert names(ssn, tasks_in_order(ssn, ssn.tables.jobs.subs[0][0])) == "1 3 2 0"


@plugin("last-first")
@points.task_order
def last_first(ssn: Session, left: Task, right: Task) -> int:
    return (left.name < right.name) - (left.name > right.name)


def test_a_plugin_that_compares_pairs_orders_the_tasks() -> None:
    registry = builtin_registry().with_plugins("kai", (last_first,))
    conf = {"dialect": "kai", "actions": "allocate", "tiers": [{"plugins": [{"name": "last-first"}]}]}
    waits = store(node("a", 16), queue("q"), job("g", "q", ["", "", ""], minimum=2))
    ssn = opened(waits, read_policy(conf, registry))
    part = chunk_of(ssn, 0)
    assert part is not None
    assert names(ssn, part.rows) == "2 1"
