"""Room for a whole gang: where it is looked for, who would leave, and that nothing is left where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import Session
from pumice.framework.cycle.budget import Budget
from pumice.model.blockers import RECLAIM, QueueLimit, RoomIsFree, TooFewVictims, TooSmall
from pumice.model.events import Object
from pumice.model.status import TaskStatus
from pumice.testing.build import cluster, hypernode, node, pod, podgroup, queue, session
from pumice.volcano.eviction.context import EvictionKind
from pumice.volcano.eviction.gangs.search import GangSearch, Limits
from tests.unit.volcano.evicting import LEVELS, gang

PLUGINS = "{name: priority}, {name: gang}, {name: predicates}, {name: proportion}, {name: network-topology-aware}"
CONF = f"tiers: [{{plugins: [{PLUGINS}]}}]"
RACKS = [hypernode("left", 1, "ab"), hypernode("right", 1, "cd"), hypernode("all", 2, hypernodes=["left", "right"])]
NODES = [node(name, 1, creation=float(i)) for i, name in enumerate("abcd")]


LEVEL = ("low", "high")
ALL = Limits(8, whole=True)


class Tried:
    """One search for ``new``; what it evicts, where it would be, in which hypernodes, and what it says."""

    def __init__(
        self, *objects: Any, kind: EvictionKind = EvictionKind.GANG_PREEMPT, limits: Limits = ALL, conf: str = CONF
    ) -> None:
        ssn: Session = session(cluster(LEVELS, queue("q"), queue("default"), *objects), conf)
        tables, budget = ssn.tables, Budget(ssn, ssn.jobs.rows, 0)
        self.search = GangSearch(ssn, kind, "go", limits, budget, cached=True)
        job, before = list(tables.jobs.uids).index("ns/new"), ssn.world.digest()
        with ssn.statement() as stmt:
            found = self.search.make_room(stmt, job)
            self.unchanged = ssn.world.digest() == before
            names = {row: each.name for row, each in enumerate(tables.tasks.pods) if each is not None}
            self.leave = sorted(n for row, n in names.items() if tables.tasks.status[row] == TaskStatus.RELEASING)
            self.placed = {
                name: tables.nodes.facts.names[tables.tasks.node[row]]
                for row, name in names.items()
                if tables.tasks.status[row] == TaskStatus.PIPELINED
            }
        self.hypernodes = [tables.tree.names[each] for each in found.values()]
        self.said = self.search.findings


def old(*nodes: str, of: str = "default") -> list[Object]:
    """Jobs of one on each node."""
    return [each for n in nodes for each in gang(f"old-{n}", 1, 1, of, on=n)]


def new(count: int, **more: Any) -> list[Object]:
    tier = more.pop("tier", None)
    group = podgroup("new", count, priority_class="high", phase="Inqueue", tier=tier)
    return [group, *gang("new", count, count, level="high", **more)[1:]]


@pytest.mark.parametrize(
    ("objects", "leave", "said"),
    [
        pytest.param([NODES[:2], old("a", "b"), new(2)], ["old-a-0", "old-b-0"], [], id="all that is there"),
        pytest.param([NODES[:3], old("a", "b"), new(2)], 1, [], id="no more than it takes beside idle room"),
        pytest.param([NODES[:2], old("a"), new(3)], [], [TooSmall], id="too little"),
        pytest.param([NODES[:2], new(3)], [], [(0, 0, False)], id="nobody there"),
        pytest.param(
            [NODES[:2], old("a", "b"), new(1, cpu=2)],
            [],
            [TooSmall],
            id="on no one node",
        ),
        pytest.param(
            [NODES[:2], old("a", "b"), new(1, node_selector=(("x", "y"),))],
            [],
            [TooSmall],
            id="filters keep it off",
        ),
    ],
)
def test_who_would_leave(objects: list[Any], leave: list[str] | int, said: list[object]) -> None:
    found = Tried(*objects)
    assert (len(found.leave) if isinstance(leave, int) else found.leave) == leave
    assert [
        (each.tasks, each.bundles, each.enough) if isinstance(each, TooFewVictims) else type(each)
        for each in found.said
    ] == said
    assert bool(found.placed) is bool(leave)
    assert found.unchanged is not bool(leave), "what is not kept leaves nothing behind"


@pytest.mark.parametrize(
    ("tier", "count", "racks"),
    [
        pytest.param(1, 2, [{"a", "b"}, {"c", "d"}], id="within a rack"),
        pytest.param(2, 3, [{"a", "b", "c"}, {"a", "b", "d"}, {"a", "c", "d"}, {"b", "c", "d"}], id="across racks"),
        pytest.param(1, 3, [set()], id="a rack is too small"),
    ],
)
def test_it_stays_in_its_domain(tier: int, count: int, racks: list[set[str]]) -> None:
    found = Tried(NODES, RACKS, old(*"abcd"), new(count, tier=tier))
    assert set(found.placed.values()) in racks
    assert {name.removeprefix("old-").removesuffix("-0") for name in found.leave} == set(found.placed.values())


@pytest.mark.parametrize(("domains", "leaves"), [(1, False), (2, True)])
def test_so_many_domains_are_tried(domains: int, leaves: bool) -> None:
    """The first one is too small for the gang, even if all tasks leave."""
    nodes = [node("a", 1), node("b", 1), node("c", 2), node("d", 2)]
    found = Tried(nodes, RACKS, old(*"abcd"), new(2, tier=1, cpu=2), limits=Limits(domains, whole=True))
    assert set(found.placed.values()) == ({"c", "d"} if leaves else set())


@pytest.mark.parametrize(
    ("kind", "of", "leaves"),
    [
        pytest.param(EvictionKind.GANG_PREEMPT, "default", True, id="preempts in its queue"),
        pytest.param(EvictionKind.GANG_PREEMPT, "q", False, id="and in no other"),
        pytest.param(EvictionKind.GANG_RECLAIM, "default", False, id="reclaims not in its queue"),
        pytest.param(EvictionKind.GANG_RECLAIM, "q", True, id="but in others"),
    ],
)
def test_from_which_queue(kind: EvictionKind, of: str, leaves: bool) -> None:
    """Both queues deserve half of the node."""
    assert len(Tried(node("a", 2), gang("old", 2, 1, of, on="a"), new(1), kind=kind).leave) == leaves


def test_a_queue_takes_no_more_back_than_it_deserves() -> None:
    objects = node("a", 2), gang("old", 2, 1, "q", on="a"), new(2)
    found = Tried(*objects, kind=EvictionKind.GANG_RECLAIM)
    assert (found.leave, found.said) == ([], [QueueLimit("default", RECLAIM)])


def test_only_in_need_nobody_leaves_for_a_gang_that_has_room() -> None:
    objects = NODES[:3], old("a"), new(2)
    found = Tried(*objects, limits=Limits(8, whole=True, only_in_need=True))
    assert (found.leave, found.said) == ([], [RoomIsFree()])
    assert Tried(*objects).leave == ["old-a-0"]


def test_a_job_that_is_whole_is_broken_only_where_that_is_allowed() -> None:
    objects = [node("a", 2)], gang("pair", 2, 2, on="a"), new(1)
    assert Tried(*objects).leave == ["pair-0", "pair-1"]
    assert Tried(*objects, limits=Limits(8, whole=False)).leave == []


def test_a_gang_with_nothing_to_place_asks_for_nothing() -> None:
    held = [podgroup("new", 1, priority_class="high", phase="Inqueue"), pod("new-0", "new", gates=("wait",))]
    found = Tried(NODES[:1], old("a"), held)
    assert (found.leave, found.said, found.unchanged) == ([], [], True)


def test_none_of_its_own_rank_is_preempted_whatever_plugins_say() -> None:
    without = CONF.replace("{name: priority}, ", "")
    found = {level: Tried(NODES[:1], gang("x", 1, 1, level=level, on="a"), new(1), conf=without) for level in LEVEL}
    assert {level: tried.leave for level, tried in found.items()} == {"low": ["x-0"], "high": []}


def test_a_node_with_room_now_is_taken_rather_than_one_that_is_being_left() -> None:
    """A task leaves in any case, unless only need counts; the gang goes where it need not wait."""
    found = Tried(NODES[:2], old("a"), new(1))
    assert (found.leave, found.placed) == (["old-a-0"], {"new-0": "b"})
