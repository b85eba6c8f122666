"""Single cycles on random clusters: laws that are checked from what the API says, not from our own sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.columns.tables import NAMES
from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.queue import Queue
from pumice.model.resources import Resource
from pumice.state.store import Store
from pumice.testing.build import Ran, cluster, run
from tests import resource_algebra as algebra
from tests.properties.worlds import Shape, groups_of, pods_of, worlds

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: sla}]
- plugins:
  - {name: overcommit}
  - {name: drf}
  - {name: predicates}
  - {name: proportion}
  - {name: nodeorder}
  - {name: binpack}
"""
WIDE = CONF + "  - {name: network-topology-aware}\n"


def used_by_node(objects: list[Object], ran: Ran) -> dict[str, Resource]:
    """What pods on nodes, bound pods included, ask for."""
    used: dict[str, Resource] = {}
    for pod in pods_of(objects):
        where = pod.node_name or ran.binds.get(pod.key, "")
        if where:
            used[where] = used.get(where, Resource()).add(pod.spec.request)
    return used


@given(objects=worlds(Shape()))
@settings(max_examples=50, deadline=None)
def test_a_cycle_keeps_the_laws(objects: list[Object]) -> None:
    """One world and one cycle for all of them: most of what an example costs is drawing it."""
    ran = run(cluster(*objects), CONF)
    no_node_is_overcommitted_and_no_pod_is_bound_twice(objects, ran)
    a_gang_is_bound_whole_or_not_at_all(objects, ran)
    a_queue_stays_within_its_capability(objects, ran)


def no_node_is_overcommitted_and_no_pod_is_bound_twice(objects: list[Object], ran: Ran) -> None:
    assert max(Counter(d.pod for d in ran.decisions).values(), default=1) == 1
    has = {n.name: n.allocatable for n in objects if isinstance(n, Node)}
    for name, used in used_by_node(objects, ran).items():
        names = {"cpu", "memory", *(used.scalars or {})}
        over = {n: used.get(n) for n in names if used.get(n) > has[name].get(n) and used.get(n)}
        assert not over, (name, over, algebra.describe(has[name]))


def a_gang_is_bound_whole_or_not_at_all(objects: list[Object], ran: Ran) -> None:
    for group in groups_of(objects):
        mine = [p for p in pods_of(objects) if p.group_key == group.key]
        bound = [p for p in mine if p.key in ran.binds]
        if not bound:
            continue
        there = [p for p in mine if p.node_name and p.deletion is None]
        asks_nothing = [p for p in mine if not p.node_name and p.spec.request.is_empty() and p not in bound]
        assert len(bound) + len(there) + len(asks_nothing) >= group.min_member
        assert all(p.gates == () for p in bound)
        if sum(group.min_task_member.values()) <= group.min_member:
            roles = Counter(p.role for p in (*bound, *there, *asks_nothing))
            assert all(roles[role] >= n for role, n in group.min_task_member.items())


def a_queue_stays_within_its_capability(objects: list[Object], ran: Ran) -> None:
    queue_of = {g.key: g.queue for g in groups_of(objects)}
    for queue in (q for q in objects if isinstance(q, Queue) and q.capability is not None):
        mine = [p for p in pods_of(objects) if queue_of.get(p.group_key) == queue.name]
        held = sum_of(p.spec.request for p in mine if p.node_name and not p.deletion)  # leaving does not count
        new = sum_of(p.spec.request for p in mine if p.key in ran.binds)
        assert queue.capability is not None
        for name in {"cpu", "memory", *(queue.capability.scalars or {})} - {"pods"}:
            limit = queue.capability.get(name)
            assert new.get(name) == 0 or limit == 0 or held.get(name) + new.get(name) <= limit, (queue.name, name)


def sum_of(amounts: Iterable[Resource]) -> Resource:
    total = Resource()
    for amount in amounts:
        total = total.add(amount)
    return total


@given(objects=worlds(Shape(topology=True)), dice=st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_same_objects_in_any_order_same_decisions(objects: list[Object], dice: Random) -> None:
    wanted = run(cluster(*objects), WIDE)
    for _ in range(2):
        found = run(cluster(dice.sample(objects, len(objects))), WIDE)
        assert found.decisions == wanted.decisions
        assert found.outcome.groups == wanted.outcome.groups
        assert found.outcome.queues == wanted.outcome.queues


def every_byte(store: Store) -> dict[str, bytes]:
    """All columns of the store, moving and fixed."""
    tables = store.snapshot().tables
    found: dict[str, bytes] = {}
    for table in NAMES:
        columns = getattr(tables, table).columns
        found |= {f"{table}.{name}": column.data.tobytes() for name, column in columns.items()}
    for owner in (tables.nodes.facts, tables.tree):
        for slot in owner.__slots__:
            value = getattr(owner, slot)
            if isinstance(value, np.ndarray):
                found[f"{type(owner).__name__}.{slot}"] = value.tobytes()
    return found


@given(objects=worlds(Shape(topology=True)))
@settings(max_examples=40, deadline=None)
def test_a_cycle_leaves_the_snapshot_as_it_is(objects: list[Object]) -> None:
    store = cluster(*objects)
    before = every_byte(store)
    first = run(store, WIDE)
    assert every_byte(store) == before
    assert run(store, WIDE).decisions == first.decisions
