"""A ResourceQuota admits what a plain sum admits, and with ``ownCountedOnce`` no pod of a group counts twice."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import pytest

from pumice.columns.jobs import INQUEUE_PHASE
from pumice.model.events import Object
from pumice.testing.build import Ran, cluster, node, podgroup, pods, quota, resource, run
from tests.plain_models import MANY_WORLDS

CONF = "actions: enqueue\ntiers: [{plugins: [{name: resourcequota, arguments: {ownCountedOnce: %s}}]}]"


class Group(NamedTuple):
    """A group that waits for admission: ``minimum`` pods of ``cpu`` cores, of which ``exist`` exist and ``ended`` more
    have ended."""

    name: str
    cpu: int
    minimum: int
    exist: int
    ended: int


class World:
    """Groups of one namespace with a quota of cores, which counts the pods that exist and not those that ended."""

    def __init__(self, dice: Random) -> None:
        self.groups = [
            Group(f"g{i}", dice.randint(1, 3), least := dice.randint(1, 4), dice.randint(0, least), dice.randint(0, 2))
            for i in range(dice.randint(1, 5))
        ]
        self.others = dice.randint(1, 4)
        self.used = self.others + sum(each.cpu * each.exist for each in self.groups)
        self.limit = self.used + dice.randint(0, 8)

    def objects(self) -> list[Object]:
        found: list[Object] = [node("n", 99), quota("q", resource(self.limit), resource(self.used))]
        for i, each in enumerate(self.groups):
            least = resource(each.cpu * each.minimum)
            found.append(podgroup(each.name, each.minimum, min_resources=least, creation=float(i)))
            found += pods(each.name, each.exist, cpu=each.cpu)
            found += pods(each.name, each.ended, first=each.exist, cpu=each.cpu, on="n", phase="Succeeded")
        return found

    def admitted(self, *, once: bool) -> list[str]:
        """Return which groups the quota has room for, one after the other."""
        left, found = self.limit - self.used, list[str]()
        for each in self.groups:
            asks = each.cpu * (each.minimum - each.exist if once else each.minimum)
            if asks <= left or asks == 0:
                left -= asks
                found.append(each.name)
        return found


def admitted(ran: Ran) -> list[str]:
    jobs = ran.outcome.tables.jobs
    rows = (jobs.alive & (jobs.phase == INQUEUE_PHASE)).nonzero()[0]
    return sorted(jobs.groups[row].name for row in rows.tolist())


@MANY_WORLDS
@pytest.mark.parametrize("once", [True, False], ids=["own counted once", "as Volcano"])
def test_a_quota_admits_what_a_plain_sum_admits(once: bool, seeds: range) -> None:
    refused = differs = 0
    for seed in seeds:
        world = World(Random(seed))
        found = admitted(run(cluster(*world.objects()), CONF % str(once).lower()))
        assert found == world.admitted(once=once), seed
        refused += len(found) < len(world.groups)
        differs += world.admitted(once=True) != world.admitted(once=False)
        # What the quota would count if all admitted groups had their minimum.
        whole = sum(each.cpu * max(each.minimum - each.exist, 0) for each in world.groups if each.name in found)
        assert world.used + whole <= world.limit, seed
    assert refused > len(seeds) / 5
    assert differs > len(seeds) / 5
