"""Placing a run of equal tasks in one go gives what placing one after the other gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.columns.dtypes import F64, AnyArray
from pumice.columns.rows import NodeRows
from pumice.columns.views import TaskClass
from pumice.framework import points
from pumice.framework.placing import pick_run
from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.framework.verdict import Unfit, Verdict
from pumice.testing.build import cluster, node, podgroup, pods, session


@plugin("coarse")
@points.node_order
def coarse(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
    """Few distinct scores, so that many nodes tie; some get better with use, some worse."""
    return np.floor(nodes.used[:, 0] / 2000) % 3


@plugin("picky")
@points.predicate
def picky(ssn: Session, cls: TaskClass, nodes: NodeRows) -> Verdict:
    """Objects while a node is used in the middle range: it may open up again as it fills."""
    used = nodes.used[:, 0]
    return Verdict.of((used < 2000) | (used >= 3000), Unfit("half full"))


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


def one_by_one(ssn: Session, cls: int, rows: list[int], domain: AnyArray | None) -> list[int]:
    """The plain way: the best node by everything as it is, first row among equals, then look again."""
    picked = []
    stmt = ssn.statement()
    for row in rows:
        among = NodeRows(ssn.tables, np.arange(len(ssn.all_nodes)) if domain is None else domain)
        allowed, idle_fits, _, score = ssn.feasibility.of(cls).look(among)
        open_rows = [i for i in range(len(among)) if allowed[i] and idle_fits[i]]
        if not open_rows:
            break
        best = max(open_rows, key=lambda i: (score[i], -i))
        picked.append(int(among.rows[best]))
        stmt.allocate([row], [picked[-1]])
    stmt.discard()
    return picked


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
@given(shapes=machines, ask=request, count=st.integers(1, 40), data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_run_is_its_tasks_in_turn(
    scores: str, shapes: list[tuple[int, int, int, int]], ask: tuple[object, ...], count: int, data: st.DataObject
) -> None:
    ssn = opened(shapes, ask, count, scores)
    domain = None
    if data.draw(st.booleans()):
        chosen = data.draw(st.sets(st.integers(0, len(shapes) - 1), min_size=1))
        domain = np.array(sorted(chosen), dtype=np.int64)
    rows = ssn.tables.jobs.tasks[0].tolist()
    cls = int(ssn.tables.tasks.cls[rows[0]])
    wanted = one_by_one(ssn, cls, rows, domain)
    assert pick_run(ssn, cls, count, domain) == wanted
    stmt = ssn.statement()
    for done, row in enumerate(rows):  # and with pick_run itself, which catches up in between
        one = pick_run(ssn, cls, 1, domain)
        assert one == wanted[done : done + 1]
        if not one:
            break
        stmt.allocate([row], one)
        left = min(3, len(rows) - done - 1)
        assert pick_run(ssn, cls, left, domain) == wanted[done + 1 : done + 1 + left]
    stmt.discard()
