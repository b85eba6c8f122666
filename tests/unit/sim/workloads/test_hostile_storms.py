"""Storms by seed: equal seeds give equal storms, within what a tenant may create, and each field is used."""

from __future__ import annotations

import pytest

from pumice.model.devices.claims import ResourceClaim
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.sim.fuzz.dice import Dice
from pumice.sim.workloads.hostile import KAI, VOLCANO, build_storm
from pumice.sim.workloads.hostile_storms import FIELDS, PODS_MAX, draw_storm

STORMS = {seed: draw_storm(Dice(seed)) for seed in range(60)}


def test_equal_seeds_give_equal_storms() -> None:
    assert {seed: draw_storm(Dice(seed)) for seed in STORMS} == STORMS


def test_storms_are_as_large_as_a_tenant_may_make_them_and_no_larger() -> None:
    sizes = [sum(len(gang.cores) for gang in storm.gangs) for storm in STORMS.values()]
    assert PODS_MAX // 2 < max(sizes) <= PODS_MAX


def test_each_field_is_used_beside_another() -> None:
    used = [storm.fields for storm in STORMS.values() if len(storm.fields) > 1]
    assert {name for fields in used for name in fields} == {*FIELDS, "topology", "shares"}


@pytest.mark.parametrize("language", [VOLCANO, KAI])
def test_a_storm_is_read_as_it_is_meant(language: str) -> None:
    seed, storm = next(each for each in STORMS.items() if "claims" in each[1].fields and len(each[1].gangs) <= 30)
    made = [*build_storm(storm, language, 20)]
    groups = {each.key: each for each in made if isinstance(each, PodGroup)}
    pods = [each for each in made if isinstance(each, Pod) and each.namespace == "tenant"]
    assert len(pods) == sum(len(gang.cores) for gang in storm.gangs), seed
    assert {pod.group_key for pod in pods} <= groups.keys()
    assert sum(isinstance(each, ResourceClaim) for each in made) == len(storm.gangs)
