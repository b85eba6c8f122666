"""What counting refutes is not walked or searched for, and what it lets through is decided as before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pumice.kai.engine.chunks import chunk_of
from pumice.kai.engine.groups import Group, Subset, groups_of
from pumice.kai.engine.place_part import Placer
from pumice.kai.engine.refutation import is_too_large, lacks_domain
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


def noted(place: Callable[..., bool], into: list[Group]) -> Callable[..., bool]:
    def noting(self: Placer, stmt: object, group: Group, *more: object) -> bool:
        into.append(group)
        return place(self, stmt, group, *more)

    return noting


def test_a_single_kind_of_pod_sets_is_left_to_the_walk() -> None:
    ssn = opened(store(*nodes(), queue("q"), gang([""] * 4)))
    part = chunk_of(ssn, 0)
    assert part is not None
    group = groups_of(ssn.tables, part, lambda member: member.inside)
    assert not lacks_domain(ssn, group, Subset())


def nodes() -> list[Object]:
    return [*(node(f"n{i}", 4, labels={"host": f"n{i}"}) for i in range(4)), Topology("t", ("host",))]


def gang(last: list[str]) -> list[Object]:
    """Three pod sets, each within a host. The first two have four tasks."""
    tasks = [*["/a"] * 4, *["/b"] * 4, *(f"{each}/c" for each in last)]
    sets = [SubGroup(name, size, topology=HOST) for name, size in (("a", 4), ("b", 4), ("c", len(last)))]
    return job("gang", "q", tasks, sub_groups=sets)
