"""What counting refutes is not walked or searched for, and what it lets through is decided as before."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import Mock

import numpy as np
import pytest

from pumice.kai.engine.chunks import chunk_of
from pumice.kai.engine.groups import Group, Subset, groups_of
from pumice.kai.engine.placement.place_part import Placer
from pumice.kai.engine.refutation import is_too_large, lacks_domain, lacks_room
from pumice.kai.engine.replacement import Replacement
from pumice.kai.engine.single_task import Following
from pumice.model.events import Object
from pumice.model.topology import Topology
from pumice.model.workloads.gang import SubGroup, TopologyConstraint
from pumice.state.store import Store
from tests.unit.kai.cluster import cycle, job, node, opened, policy, queue, rows_of, store

HOST = TopologyConstraint("t", "host")


@pytest.mark.parametrize(("gpus", "is_refuted"), [(8, False), (9, True)])
def test_a_task_that_no_node_could_ever_hold_refutes_its_job(gpus: int, is_refuted: bool) -> None:
    ssn = opened(with_victims(gpus))
    row = int(ssn.tables.tasks.job[rows_of(ssn)["new-0"]])
    part = chunk_of(ssn, row)
    assert part is not None
    assert is_too_large(ssn, part) is is_refuted


@pytest.mark.parametrize(("gpus", "searches"), [(8, 1), (9, 0)])
def test_victims_are_sought_only_for_jobs_that_some_node_could_hold(
    monkeypatch: pytest.MonkeyPatch, gpus: int, searches: int
) -> None:
    count, solve = 0, Following.solve

    def counted(*args: object) -> object:
        nonlocal count
        count += 1
        return solve(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(Following, "solve", counted)
    assert len(cycle(with_victims(gpus), policy(["reclaim"])).evicted) == searches
    assert count == searches


def with_victims(gpus: int) -> Store:
    """One node that a job over the share of its queue fills, and a job of another queue that asks for so many GPUs."""
    return store(
        *(node("a"), queue("p", 0), queue("q", 8)), job("runs", "p", ["a"], 8), job("new", "q", [""], gpus, age=-1.0)
    )


@pytest.mark.parametrize(
    ("last", "placed", "walks"),
    [pytest.param([""] * 4, 12, True, id="each fits"), pytest.param([""] * 5, 0, False, id="the last has no host")],
)
def test_a_gang_of_which_one_pod_set_has_no_domain_is_not_walked(
    monkeypatch: pytest.MonkeyPatch, last: list[str], placed: int, walks: bool
) -> None:
    walked: list[Group] = []
    monkeypatch.setattr(Placer, "_place_group", noted(Placer._place_group, walked))
    found = store(*nodes(), queue("q"), gang(last))
    assert len(cycle(found, policy(["allocate"])).decisions) == placed
    assert bool(walked) is walks


def noted(place: Callable[..., object], into: list[Group]) -> Callable[..., object]:
    def noting(self: Placer, stmt: object, group: Group, *more: object) -> object:
        into.append(group)
        return place(self, stmt, group, *more)

    return noting


def test_a_single_kind_of_pod_sets_is_left_to_the_walk() -> None:
    ssn = opened(store(*nodes(), queue("q"), gang([""] * 4)))
    part = chunk_of(ssn, 0)
    assert part is not None
    group = groups_of(ssn.tables, part, lambda member: member.inside)
    assert not lacks_domain(ssn, group, Subset())


@pytest.mark.parametrize(
    ("tasks", "within", "is_refuted"),
    [(8, 2, False), (9, 2, True), (9, 3, False), (5, 1, True)],
)
def test_a_domain_that_holds_fewer_tasks_than_a_gang_has_is_refuted(tasks: int, within: int, is_refuted: bool) -> None:
    ssn = opened(store(*nodes(), queue("q"), job("gang", "q", [""] * tasks)))
    domain = np.arange(ssn.tables.nodes.capacity) < within
    classes = ssn.tables.tasks.cls[ssn.tables.tasks.alive]
    assert lacks_room(ssn, Placer(ssn).feasible, classes, domain) is is_refuted


@pytest.mark.parametrize(("tasks", "is_refuted"), [(4, False), (5, True)])
def test_a_node_that_a_filter_rejects_counts_with_what_its_resources_hold(tasks: int, is_refuted: bool) -> None:
    # A filter may accept a node once an earlier task of the gang is placed.
    ssn = opened(store(*nodes(), queue("q"), job("first", "q", [""], 2), job("gang", "q", [""] * tasks)))
    rows, placer = rows_of(ssn), Placer(ssn)
    classes = ssn.tables.tasks.cls[[rows["first-0"], *(rows[f"gang-{i}"] for i in range(tasks))]]
    domain, rejected = np.arange(ssn.tables.nodes.capacity) == 1, np.full(ssn.tables.nodes.capacity, -1.0)
    feasible = Mock(capacity=lambda cls: rejected if cls == classes[-1] else placer.feasible.capacity(cls))
    assert lacks_room(ssn, feasible, classes, domain) is is_refuted


def test_consolidation_offers_no_victim_a_place_after_one_that_found_none(monkeypatch: pytest.MonkeyPatch) -> None:
    offers: dict[int, list[bool]] = {}
    kept: list[Replacement] = []
    offer = Replacement._offer

    def noting(self: Replacement, victim: int) -> bool:
        kept.append(self)
        found = offer(self, victim)
        offers.setdefault(id(self), []).append(found)
        return found

    monkeypatch.setattr(Replacement, "_offer", noting)
    # With x and y gone from node a, the new job has room; then neither of them has.
    full = [*job("x", "q", ["a"], 3, age=9.0), *job("y", "q", ["a"], 4, age=8.0)]
    others = [each for i in range(3) for each in job(f"z{i}", "q", [f"b{i}"], 6, priority=100)]
    found = store(*map(node, ("a", "b0", "b1", "b2")), queue("q"), full, others, job("new", "q", [""], 7, priority=60))
    assert not cycle(found, policy(["consolidation"])).decisions
    assert offers
    assert all(all(each[:-1]) for each in offers.values())


def nodes() -> list[Object]:
    return [*(node(f"n{i}", 4, labels={"host": f"n{i}"}) for i in range(4)), Topology("t", ("host",))]


def gang(last: list[str]) -> list[Object]:
    """Three pod sets, each within a host. The first two have four tasks."""
    tasks = [*["/a"] * 4, *["/b"] * 4, *(f"{each}/c" for each in last)]
    sets = [SubGroup(name, size, topology=HOST) for name, size in (("a", 4), ("b", 4), ("c", len(last)))]
    return job("gang", "q", tasks, sub_groups=sets)


@pytest.mark.parametrize(("limit", "searches", "moved"), [(3, 0, 0), (4, 1, 1)])
def test_no_job_is_moved_for_one_that_its_queue_may_not_take(
    monkeypatch: pytest.MonkeyPatch, limit: int, searches: int, moved: int
) -> None:
    count, solve = 0, Following.solve

    def counted(*args: object) -> object:
        nonlocal count
        count += 1
        return solve(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(Following, "solve", counted)
    decided = cycle(one_on_each(1, limit), policy(["consolidation"]))
    assert (count, len(decided.evicted)) == (searches, moved)


@pytest.mark.parametrize(("most", "tries", "moved"), [(1, 0, 0), (2, 1, 2)])
def test_no_set_of_few_jobs_is_tried_for_a_gang_that_would_not_fit_without_all_of_them(
    monkeypatch: pytest.MonkeyPatch, most: int, tries: int, moved: int
) -> None:
    count, run = 0, Replacement.run

    def counted(self: Replacement) -> bool:
        nonlocal count
        count += 1
        return run(self)

    monkeypatch.setattr(Replacement, "run", counted)
    moving = policy(["consolidation"], consolidation={"maxConsolidationPreemptees": most})
    decided = cycle(one_on_each(2, None), moving)
    assert (count >= tries, len(decided.evicted)) == (True, moved)
    assert tries or not count


def one_on_each(pods: int, limit: float | None) -> Store:
    """Three nodes of four GPUs, one of them held on each, and a gang whose pods need a node each."""
    held = [each for i in range(3) for each in job(f"x{i}", "p", [f"n{i}"])]
    return store(
        *(node(f"n{i}", 4) for i in range(3)),
        queue("p"),
        queue("q", limit=limit),
        held,
        job("gang", "q", [""] * pods, 4),
    )
