"""Which tasks may leave for a gang in each place, and how many of them are tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pumice.framework.cycle.session import Session
from pumice.model.events import Object
from pumice.testing.build import cluster, hypernode, node, queue, session
from pumice.volcano.eviction.context import EvictionKind
from pumice.volcano.eviction.gangs.places import GangPlace, GangPlaces
from pumice.volcano.eviction.gangs.victim_sets import amount_of
from pumice.volcano.eviction.gangs.victims_by_place import VictimsByPlace
from tests.unit.volcano.evicting import LEVELS, PREEMPT, gang

RACKS = [hypernode("left", 1, "ab"), hypernode("right", 1, "cd"), hypernode("all", 2, hypernodes=["left", "right"])]
NODES = [node(name, 1, creation=float(i)) for i, name in enumerate("abcd")]


class Looked:
    """The victims for gang ``new`` in the whole cluster, and in each rack."""

    def __init__(self, kind: EvictionKind, *objects: Any, count: int = 2, whole: bool = True) -> None:
        waiting = gang("new", count, count, level="high")
        self.ssn: Session = session(
            cluster(LEVELS, queue("other"), queue("default"), RACKS, NODES, *objects, waiting), PREEMPT
        )
        tables = self.ssn.tables
        job = list(tables.jobs.uids).index("ns/new")
        self.victims = VictimsByPlace(self.ssn, kind, job, whole=whole, agreed=False)
        places, names = GangPlaces(self.ssn, job), tables.tree.names
        self.place = {names[row]: places._at(row) for row in range(len(names))}
        self.need = amount_of(self.ssn, tables.jobs.tasks[job])

    def named(self, rows: Sequence[int]) -> list[str]:
        return sorted(self.ssn.tables.tasks.pods[row].name for row in rows)

    def candidates(self, place: GangPlace) -> list[str]:
        return self.named(self.victims.candidates(place).rows.tolist())


def on(name: str, where: str, **more: Any) -> list[Object]:
    return gang(name, 1, 1, on=where, **more)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(EvictionKind.GANG_PREEMPT, ["low-0"], id="lower priority in the same queue"),
        pytest.param(EvictionKind.GANG_RECLAIM, ["foreign-0"], id="other queues"),
    ],
)
def test_the_kind_of_eviction_says_which_tasks_may_leave(kind: EvictionKind, expected: list[str]) -> None:
    objects = [on("low", "a"), on("equal", "b", level="high"), on("foreign", "c", of="other")]
    looked = Looked(kind, *objects)
    assert looked.candidates(looked.place["all"]) == expected


def test_a_place_has_victims_only_where_candidates_run() -> None:
    looked = Looked(EvictionKind.GANG_PREEMPT, on("low", "a"))
    assert [looked.victims.any_in(looked.place[name]) for name in ("left", "right", "all")] == [True, False, True]


def test_the_first_number_of_victims_is_one_that_may_free_enough() -> None:
    looked = Looked(EvictionKind.GANG_PREEMPT, *(on(f"low-{name}", name) for name in "abc"))
    place = looked.place["all"]
    # Node d is idle, so one of three victims makes two cores, and more follow.
    found = looked.victims.prefixes(place, looked.victims.candidates(place), looked.need)
    assert [len(each) for each in found] == [1, 2, 3]


@pytest.mark.parametrize("whole", [True, False])
def test_jobs_below_their_minimum_leave_only_where_that_is_allowed(whole: bool) -> None:
    looked = Looked(EvictionKind.GANG_PREEMPT, *(on(f"low-{name}", name) for name in "abcd"), whole=whole)
    place = looked.place["left"]
    found = looked.victims.prefixes(place, looked.victims.candidates(place), looked.need)
    assert len(found) == whole and found.finding is not None
