"""Where a gang is tried for which others are evicted, in order."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.testing.build import cluster, hypernode, node, session
from pumice.volcano.eviction.gangs.places import GangPlace, GangPlaces
from tests.unit.volcano.evicting import LEVELS, PREEMPT, gang
from tests.unit.volcano.topology.test_label_domains import in_rack, racked

RACKS: list[Any] = [
    in_rack("a", 2, "a"),
    in_rack("b0", 1, "b"),
    in_rack("b1", 1, "b"),
    in_rack("c", 1, "c"),
    node("n", 9),
]
FILLED = gang("low", 1, on="b0", cpu=1)


def places(*objects: Any, promised_kept: bool = True) -> list[GangPlace]:
    ssn = session(cluster(LEVELS, *objects), PREEMPT)
    jobs = ssn.tables.jobs
    job = list(jobs.uids).index("ns/g")
    waiting = [row for row in jobs.tasks[job].tolist() if ssn.tables.tasks.node[row] < 0]
    return GangPlaces(ssn, job).of_job(waiting, promised_kept=promised_kept)


def nominated(objects: list[Object], node_name: str) -> list[Object]:
    return [replace(each, nominated_node=node_name) if isinstance(each, Pod) else each for each in objects]


def test_domains_of_a_label_come_with_the_most_room_first_and_are_no_hypernodes() -> None:
    found = places(RACKS, FILLED, racked("g", 2))
    assert [(each.name, each.hypernode) for each in found] == [("a", -1), ("b", -1), ("c", -1)]
    assert [len(each.nodes.rows) for each in found] == [1, 2, 1]


@pytest.mark.parametrize(("kept", "first"), [(True, "c"), (False, "a")])
def test_a_domain_with_the_nominated_nodes_comes_first(kept: bool, first: str) -> None:
    assert places(RACKS, FILLED, nominated(racked("g", 2), "c"), promised_kept=kept)[0].name == first


def test_a_gang_without_topology_has_the_whole_cluster_alone() -> None:
    (found,) = places(RACKS, [hypernode("left", 1, "a"), hypernode("right", 1, "c")], gang("g", 2))
    assert len(found.nodes.rows) == len(RACKS) and found.hypernode >= 0


def test_places_of_a_sub_job_before_trials_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ssn = session(cluster(LEVELS, *RACKS, gang("g", 2)), PREEMPT)
    job = list(ssn.tables.jobs.uids).index("ns/g")
    places, asked = GangPlaces(ssn, job), list[str]()
    (whole,) = places.of_job(ssn.tables.jobs.tasks[job].tolist(), promised_kept=True)
    plain = GangPlaces.of_sub_job

    def of_sub_job(self: GangPlaces, sub: int, place: GangPlace) -> list[GangPlace]:
        asked.append(place.name)
        return plain(self, sub, place)

    monkeypatch.setattr(GangPlaces, "of_sub_job", of_sub_job)
    (sub,) = ssn.tables.jobs.subs[job]
    assert places.before_trials(sub, whole) == places.before_trials(sub, whole) == [whole]
    assert asked == [whole.name]
