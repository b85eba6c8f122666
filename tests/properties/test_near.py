"""Equal tasks with terms about pods that are placed in one go are where one after the other puts them."""

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
from pumice.framework.plugin import points
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.framework.plugin.plugin import plugin
from pumice.model.node import Node, Taint
from pumice.model.pod import (
    Affinity,
    HostPort,
    LabelSelector,
    Pod,
    PodAffinityTerm,
    Requirement,
    TopologySpreadConstraint,
)
from pumice.placing.batch import placing_of
from pumice.testing.build import NAMESPACE, cluster, node, pod, podgroup, session

HOST = "kubernetes.io/hostname"


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


POLICIES = {
    "spread": "{name: predicates}, {name: nodeorder}",
    "pack": "{name: predicates}, {name: binpack}",
    "preferred terms first": "{name: nodeorder}, {name: binpack}, {name: predicates}",
    "ties": "{name: predicates}, {name: coarse}, {name: nodeorder, arguments: {podtopologyspread.weight: 1}}",
    "reopening": "{name: predicates}, {name: picky}, {name: binpack}",
    "no term looks at where pods are": "{name: nodeorder}",
}

KEYS = st.sampled_from([HOST, "zone", "rack"])
PLACES = st.fixed_dictionaries({}, optional={"zone": st.sampled_from("xyz"), "rack": st.sampled_from("rst")})
APPS = st.sampled_from(["a", "a", "a", "b"])
SELECTORS = st.builds(lambda app: LabelSelector((Requirement("app", "In", (app,)),)), APPS)
TERMS = st.builds(lambda key, selector: PodAffinityTerm(key, selector, (NAMESPACE,)), KEYS, SELECTORS)
PREFERRED = st.builds(
    lambda key, selector, weight: PodAffinityTerm(key, selector, (NAMESPACE,), weight=weight),
    KEYS,
    SELECTORS,
    st.sampled_from([1, 7, 50]),
)
CONSTRAINTS = st.builds(
    TopologySpreadConstraint,
    st.integers(1, 2),
    KEYS,
    st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
    SELECTORS,
    st.sampled_from([1, 2, 3]),
)


def some(each: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(each, min_size=1, max_size=2).map(tuple)


#: What a pod says of others, one thing or several.
TELLS = {
    "anti_required": some(TERMS),
    "pod_required": some(TERMS),
    "pod_preferred": some(PREFERRED),
    "anti_preferred": some(PREFERRED),
}
ALONE = [st.fixed_dictionaries({name: terms}) for name, terms in TELLS.items()]
AFFINITIES = st.one_of(*ALONE, st.fixed_dictionaries({}, optional=TELLS)).map(lambda fields: Affinity(**fields))
OTHERS = {"spread": some(CONSTRAINTS), "host_ports": st.just((HostPort(80),))}
SPECS = st.one_of(
    st.fixed_dictionaries({"affinity": AFFINITIES}),
    st.fixed_dictionaries({"affinity": AFFINITIES}),
    st.fixed_dictionaries({"spread": OTHERS["spread"]}),
    st.fixed_dictionaries({}, optional={"affinity": AFFINITIES, **OTHERS}),
)


@st.composite
def machines(draw: st.DrawFn) -> list[Node]:
    taint = Taint("busy", "", "PreferNoSchedule")
    return [
        node(
            f"n{i}", draw(st.sampled_from([1, 2, 4, 8])), labels=draw(PLACES), taints=[taint] * draw(st.integers(0, 1))
        )
        for i in range(draw(st.integers(1, 10)))
    ]


@st.composite
def others(draw: st.DrawFn, nodes: int) -> list[Pod]:
    """Pods that are there, and some that are leaving."""
    return [
        pod(
            f"old-{i}",
            "old",
            on=f"n{draw(st.integers(0, nodes - 1))}",
            labels={"app": draw(APPS)},
            deletion=draw(st.sampled_from([None, None, 1.0])),
            **draw(SPECS),
        )
        for i in range(draw(st.integers(0, 4)))
    ]


def one_by_one(ssn: Session, rows: list[int], among: NodeRows, open_to: dict[int, Bool] | None) -> list[int]:
    """The plain way: each is chosen for when those before it are placed."""
    picked = []
    with ssn.statement() as stmt:
        for row in rows:
            choice = chosen(ssn, row, among, open_to)
            if choice < 0:
                break
            picked.append(choice)
            stmt.allocate([row], [choice])
    return picked


def chosen(ssn: Session, row: int, among: NodeRows, open_to: dict[int, Bool] | None) -> int:
    role = int(ssn.tables.tasks.role[row])
    mask = open_to.get(role) if open_to is not None else None
    choice = placing_of(ssn).choose(row, among, open_to=mask, explain=False)
    if choice.node < 0 or not choice.idle:
        return -1
    if open_to is not None and role:
        open_to[role] = choice.passed
    return choice.node


def in_runs(ssn: Session, rows: list[int], among: NodeRows, open_to: dict[int, Bool] | None) -> list[int]:
    """As many as can be at a time, and what has to be placed by itself."""
    picked: list[int] = []
    with ssn.statement() as stmt:
        while len(picked) < len(rows):
            left = rows[len(picked) :]
            found = placing_of(ssn).run(left, among, open_to)
            if not found:
                found = [one for one in [chosen(ssn, left[0], among, open_to)] if one >= 0]
            if not found or stmt.allocate(left[: len(found)], found) is not None:
                break
            picked += found
    return picked


@pytest.mark.parametrize("scores", POLICIES.values(), ids=POLICIES)
@given(
    nodes=machines(),
    spec=SPECS,
    apps=st.lists(APPS, min_size=2, max_size=12) | st.integers(2, 12).map(lambda count: ["a"] * count),
    roles=st.sampled_from(["", "w", "wp"]),
    by_role=st.booleans(),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_tasks_with_terms_about_pods_are_placed_together_as_in_turn(
    scores: str,
    nodes: list[Node],
    spec: dict[str, Any],
    apps: list[str],
    roles: str,
    by_role: bool,
    data: st.DataObject,
) -> None:
    there = data.draw(others(len(nodes)))
    gang = [
        pod(f"g-{i}", "g", role=roles[i % len(roles)] if roles else "", labels={"app": app}, **spec)
        for i, app in enumerate(apps)
    ]
    conf = f"tiers: [{{plugins: [{scores}]}}]"
    store = cluster(nodes, podgroup("old"), there, podgroup("g", len(gang)), gang)
    ssn = session(store, conf, plugins=(coarse, picky))
    rows = [row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.name.startswith("g-")]
    among = placing_of(ssn).feasible.all_nodes
    if data.draw(st.booleans()):
        chosen_ones = data.draw(st.sets(st.integers(0, len(nodes) - 1), min_size=1))
        among = NodeRows(ssn.tables, np.array(sorted(chosen_ones), dtype=np.int64))
    wanted_open: dict[int, Bool] | None = {} if by_role else None
    found_open: dict[int, Bool] | None = {} if by_role else None
    before = ssn.world.digest()
    wanted = one_by_one(ssn, rows, among, wanted_open)
    assert in_runs(ssn, rows, among, found_open) == wanted
    assert ssn.world.digest() == before
    if found_open is not None and wanted_open is not None:
        assert {role: mask.tolist() for role, mask in found_open.items()} == {
            role: mask.tolist() for role, mask in wanted_open.items()
        }
