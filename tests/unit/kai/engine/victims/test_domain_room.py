"""Which sets of victims a gang with required domains passes over."""

from __future__ import annotations

from pumice.kai.engine.chunks import chunk_of
from pumice.kai.engine.victims.domain_room import DomainRoom, has_required_domains
from pumice.model.topology import Topology
from pumice.model.workloads.gang import SubGroup, TopologyConstraint
from tests.unit.kai.cluster import cycle, job, node, opened, queue, rows_of, store

RACKS = Topology("racks", ("rack",))
IN_ONE = TopologyConstraint("racks", "rack")
A, B = {"rack": "a"}, {"rack": "b"}


def test_room_is_what_is_free_and_what_victims_hold_in_one_domain() -> None:
    nodes = [node("a", 3, labels=A), node("b", 4, labels=B)]
    fills = [*job("x", "q", ["a", "a"]), *job("y", "q", ["b", "b"])]
    ssn = opened(store(RACKS, queue("q"), *nodes, fills, job("g", "q", [""] * 3, topology=IN_ONE)))
    rows, row = rows_of(ssn), ssn.tables.jobs.uids.tolist().index("ns/g")
    part = chunk_of(ssn, row)
    assert part is not None
    room = DomainRoom(ssn, part)
    assert not room.allows([]) and not room.allows([rows["x-0"]])
    assert room.allows([rows["x-0"], rows["x-1"]]) and room.allows([rows["y-0"]])


def test_what_the_gang_runs_counts_as_a_need_and_not_as_room() -> None:
    nodes = [node("a", 2, labels=A), node("b", 2, labels=B)]
    gang = job("g", "q", ["a", ""], minimum=1, topology=IN_ONE)
    ssn = opened(store(RACKS, queue("q"), *nodes, job("x", "q", ["a"]), gang))
    row = ssn.tables.jobs.uids.tolist().index("ns/g")
    part = chunk_of(ssn, row)
    assert part is not None and has_required_domains(ssn, row)
    # Rack b is where two pods have room, although this gang cannot use it.
    assert DomainRoom(ssn, part).allows([])
    ssn = opened(store(RACKS, queue("q"), nodes[0], job("x", "q", ["a"]), gang))
    part = chunk_of(ssn, ssn.tables.jobs.uids.tolist().index("ns/g"))
    assert part is not None and not DomainRoom(ssn, part).allows([rows_of(ssn)["x-0"]])


def test_a_job_without_required_domains_passes() -> None:
    ssn = opened(store(queue("q"), node("a", 1), job("g", "q", ["", ""])))
    part = chunk_of(ssn, 0)
    assert part is not None
    assert not has_required_domains(ssn, 0) and DomainRoom(ssn, part).allows([])


def test_a_job_that_grows_comes_after_the_victims_that_lost_their_minimum() -> None:
    """The victim is placed first and takes its place back, so no one is moved for a pod beyond the minimum."""
    victim, elastic = job("v", "q", ["a"], age=1.0), job("e", "q", ["a", ""], minimum=1, age=9.0)
    assert not cycle(store(queue("q"), node("a", 2), victim, elastic)).evicted


def test_sets_that_name_a_level_by_alias_and_by_label_share_its_room() -> None:
    racks = Topology("racks", ("rack",), aliases=("shelf",))
    subs = [
        sub
        for name, level in (("one", "rack"), ("two", "shelf"))
        for sub in (SubGroup(name, topology=TopologyConstraint("racks", level)), SubGroup(f"{name}-leaf", 3, name))
    ]
    gang = job("g", "q", ["/one-leaf"] * 3 + ["/two-leaf"] * 3, sub_groups=subs)
    ssn = opened(store(racks, queue("q"), node("a", 5, labels=A), gang))
    part = chunk_of(ssn, 0)
    assert part is not None
    assert not DomainRoom(ssn, part).allows([]), "5 GPUs are enough for each set, and not for both"
