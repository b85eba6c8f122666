"""Placing a run of equal tasks in one go gives what placing one after the other gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.columns.dtypes import F64, Bool
from pumice.columns.rows import NodeRows
from pumice.columns.views import TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.framework.plugin import points
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.framework.plugin.plugin import plugin
from pumice.model.events import Object
from pumice.placing.batch import Placing, placing_of
from pumice.testing.build import Ran, cluster, node, pod, podgroup, pods, run, session


@plugin("coarse")
@points.node_order
def coarse(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
    """Few distinct scores, so that many nodes tie; some get better with use, some worse."""
    return np.floor(nodes.used[:, 0] / 2000) % 3


@plugin("picky")
@points.predicate
def picky(ssn: Session, cls: TaskClass, nodes: NodeRows) -> FilterResult:
    """Objects while a node is used in the middle range: it may open up again as it fills."""
    used = nodes.used[:, 0]
    return FilterResult.of((used < 2000) | (used >= 3000), Unfit("half full"))


SCORES = {
    "binpack": "{name: binpack}",
    "nodeorder": "{name: nodeorder}",
    "both": "{name: binpack}, {name: nodeorder}, {name: predicates}",
    "ties": "{name: coarse}",
    "filters": "{name: predicates}, {name: coarse}",
    "reopening": "{name: picky}, {name: binpack}",
    "nothing": "{name: gang}",
}

machines = st.lists(
    st.tuples(st.sampled_from([1, 2, 3, 8]), st.sampled_from([1, 4, 8]), st.sampled_from([0, 1, 4]), st.integers(1, 9)),
    min_size=1,
    max_size=12,
)
request = st.sampled_from([(1, "1Gi", 0), ("500m", "2Gi", 0), (1, "1Gi", 1), (0, "1Gi", 0)])


def opened(shapes: list[tuple[int, int, int, int]], ask: tuple[object, ...], count: int, scores: str) -> Session:
    nodes = [node(f"n{i}", c, f"{m}Gi", gpu=g, pods=p) for i, (c, m, g, p) in enumerate(shapes)]
    gang = pods("g", count, cpu=ask[0], memory=ask[1], gpu=ask[2])
    conf = f"tiers: [{{plugins: [{scores}]}}]"
    return session(cluster(nodes, podgroup("g", count), gang), conf, plugins=(coarse, picky))


def one_by_one(ssn: Session, cls: int, rows: list[int], among: NodeRows) -> list[int]:
    """The plain way: the best node by everything as it is, first row among equals, then look again."""
    picked = []
    stmt = ssn.statement()
    for row in rows:
        look = placing_of(ssn).feasible.look(cls, NodeRows(ssn.tables, among.rows))
        open_rows = [i for i in range(len(among)) if look.allowed[i] and look.idle_fits[i]]
        if not open_rows:
            break
        best = max(open_rows, key=lambda i: (look.score[i], -i))
        picked.append(int(among.rows[best]))
        stmt.allocate([row], [picked[-1]])
    stmt.discard()
    return picked


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
@given(shapes=machines, ask=request, count=st.integers(1, 40), data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_run_is_its_tasks_in_turn(
    scores: str, shapes: list[tuple[int, int, int, int]], ask: tuple[object, ...], count: int, data: st.DataObject
) -> None:
    ssn = opened(shapes, ask, count, scores)
    among = placing_of(ssn).feasible.all_nodes
    if data.draw(st.booleans()):
        chosen = data.draw(st.sets(st.integers(0, len(shapes) - 1), min_size=1))
        among = NodeRows(ssn.tables, np.array(sorted(chosen), dtype=np.int64))
    rows = ssn.tables.jobs.tasks[0].tolist()
    wanted = one_by_one(ssn, int(ssn.tables.tasks.cls[rows[0]]), rows, among)
    assert placing_of(ssn).run(rows, among) == wanted
    stmt = ssn.statement()
    done = 0
    while done < len(rows):  # and in parts, which go on where the last one ended, or look ahead in vain
        asked = data.draw(st.integers(1, len(rows) - done))
        found = placing_of(ssn).run(rows[done : done + asked], among)
        assert found == wanted[done : done + asked]
        taken = found[: data.draw(st.integers(0, len(found)))]
        if taken:
            stmt.allocate(rows[done : done + len(taken)], taken)
        if len(taken) == len(found) == asked:
            placing_of(ssn).took(len(taken))
        done += len(taken)
        if not taken:
            break
    stmt.discard()


# -- tasks of several classes, which are guessed for together

members = st.lists(
    st.tuples(
        st.sampled_from([1, 2, "500m"]),
        st.sampled_from([1, 2]),
        st.sampled_from([0, 1]),
        st.sampled_from(["", "a", "b"]),
    ),
    min_size=2,
    max_size=20,
)


def in_turn(ssn: Session, rows: list[int], among: NodeRows, open_to: dict[int, Bool] | None) -> list[int]:
    """The plain way, for tasks of any class."""
    picked = []
    stmt = ssn.statement()
    for row in rows:
        role = int(ssn.tables.tasks.role[row])
        mask = open_to.get(role) if open_to is not None else None
        choice = placing_of(ssn).choose(row, NodeRows(ssn.tables, among.rows), open_to=mask, explain=False)
        if choice.node < 0 or not choice.idle:
            break
        if open_to is not None and role:
            open_to[role] = choice.passed
        picked.append(choice.node)
        stmt.allocate([row], [choice.node])
    stmt.discard()
    return picked


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
@given(shapes=machines, gang=members, by_role=st.booleans(), releasing=st.booleans())
@settings(max_examples=15, deadline=None)
def test_tasks_that_differ_are_placed_together_as_in_turn(
    scores: str,
    shapes: list[tuple[int, int, int, int]],
    gang: list[tuple[Any, int, int, str]],
    by_role: bool,
    releasing: bool,
) -> None:
    nodes = [node(f"n{i}", c, f"{m}Gi", gpu=g, pods=p) for i, (c, m, g, p) in enumerate(shapes)]
    tasks = [pod(f"g-{i}", "g", c, f"{m}Gi", g, role=role) for i, (c, m, g, role) in enumerate(gang)]
    leaving = [podgroup("old"), pod("old-0", "old", on="n0", deletion=1.0)] if releasing else []
    conf = f"tiers: [{{plugins: [{scores}]}}]"
    ssn = session(cluster(nodes, podgroup("g", len(tasks)), tasks, leaving), conf, plugins=(coarse, picky))
    rows = [row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.name.startswith("g-")]
    among = placing_of(ssn).feasible.all_nodes
    wanted_open: dict[int, Bool] | None = {} if by_role else None
    found_open: dict[int, Bool] | None = {} if by_role else None
    before = ssn.world.digest()
    wanted = in_turn(ssn, rows, among, wanted_open)
    assert placing_of(ssn).run(rows, among, found_open) == wanted
    assert ssn.world.digest() == before
    assert _lists(found_open) == _lists(wanted_open)


def _lists(open_to: dict[int, Bool] | None) -> dict[int, list[bool]]:
    return {role: mask.tolist() for role, mask in (open_to or {}).items()}


# -- placements ahead of need, for equal gangs one after the other

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, SCORES]
"""
CYCLES = {
    "spread": "{name: predicates}, {name: nodeorder}",
    "pack": "{name: predicates}, {name: binpack}",
    "both": "{name: predicates}, {name: binpack}, {name: nodeorder}, {name: proportion}",
    "ties": "{name: coarse}",
    "reopening": "{name: picky}, {name: binpack}",
}
#: (pods, minimum, cpu, gpu): the first is drawn most, so that equal gangs follow each other.
GANGS = [(2, 2, 1, 0), (2, 2, 1, 0), (2, 2, 1, 0), (3, 1, 1, 0), (1, 1, 1, 0), (2, 2, 2, 1), (9, 9, 1, 0)]


@st.composite
def queues_of_gangs(draw: st.DrawFn) -> list[Object]:
    found: list[Object] = [
        node(f"n{i}", cpu, f"{memory}Gi", gpu=gpu, pods=room)
        for i, (cpu, memory, gpu, room) in enumerate(draw(machines))
    ]
    for g, (size, minimum, cpu, gpu) in enumerate(draw(st.lists(st.sampled_from(GANGS), min_size=2, max_size=14))):
        found += [podgroup(f"g{g:02}", minimum, creation=float(g)), *pods(f"g{g:02}", size, cpu=cpu, gpu=gpu)]
    return found


def cycle(objects: list[Object], scores: str, *, keeps: bool) -> Ran:
    conf = CONF.replace("SCORES", scores)
    return run(cluster(objects), conf, memo=Memo(keeps=keeps), plugins=(coarse, picky))


@pytest.mark.parametrize("scores", CYCLES.values(), ids=CYCLES)
@given(objects=queues_of_gangs())
@settings(max_examples=40, deadline=None)
def test_picking_ahead_is_picking_anew(scores: str, objects: list[Object]) -> None:
    ours, plain = cycle(objects, scores, keeps=True), cycle(objects, scores, keeps=False)
    assert ours.decisions == plain.decisions
    assert ours.outcome.groups == plain.outcome.groups
    assert ours.pipelined == plain.pipelined


def test_equal_gangs_go_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    gangs = [[podgroup(f"g{g}", 2, creation=float(g)), *pods(f"g{g}", 2, cpu=1)] for g in range(12)]
    objects = [node(f"n{i}", 8) for i in range(4)] + [obj for gang in gangs for obj in gang]
    climbs = []
    equal = Placing._equal

    def counting(self: Placing, *args: Any) -> list[int]:
        climbs.append(args)
        return equal(self, *args)

    monkeypatch.setattr(Placing, "_equal", counting)
    assert len(cycle(objects, CYCLES["spread"], keeps=True).decisions) == 24
    assert len(climbs) <= 4, "twelve gangs, and nodes are compared for a few of them"
