"""A pod is put on a node only where a plain model of what containers use in time says that there is room, and always
where it does: init containers, sidecars and resizes, in both languages."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.events import Object
from pumice.model.manifest.decoder import Decoder
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.testing import build
from tests.plain_models import MANY_WORLDS
from tests.unit.kai import cluster as kai

CORES = 14
REFUSED = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]


class Container:
    """A container. ``stays``: it runs as long as the pod. ``held``: what the kubelet says of one that was resized."""

    def __init__(self, dice: Random, name: str, *, first: bool, runs: bool) -> None:
        self.name, self.cores, self.stays = name, dice.randint(1, 4), not first or dice.random() < 0.5
        self.is_sidecar = first and self.stays
        # The API server lets no init container be resized that ends.
        self.held = dice.randint(0, 4) if runs and self.stays and dice.random() < 0.5 else None

    def manifest(self) -> dict[str, Any]:
        always = {"restartPolicy": "Always"} if self.is_sidecar else {}
        return {"name": self.name, "resources": {"requests": {"cpu": str(self.cores)}}, **always}

    def status(self) -> dict[str, Any]:
        return {"name": self.name, "resources": {"requests": {"cpu": str(self.held)}}}

    def uses(self, *, refused: bool) -> int:
        """Return the cores that it may use: what it asks for and what it has, the latter if its resize is refused."""
        if self.held is None:
            return self.cores
        return self.held if refused else max(self.cores, self.held)


class PodModel:
    """A pod, and what it uses at most at one time."""

    def __init__(self, dice: Random, *, runs: bool) -> None:
        self.refused = runs and dice.random() < 0.3
        self.first = [Container(dice, f"i{i}", first=True, runs=runs) for i in range(dice.randint(0, 3))]
        self.main = [Container(dice, f"c{i}", first=False, runs=runs) for i in range(dice.randint(1, 2))]

    def peak(self) -> int:
        moments, staying = [0], 0
        for each in self.first:
            moments.append(staying + each.uses(refused=self.refused))
            staying += each.uses(refused=self.refused) if each.stays else 0
        return max(*moments, staying + sum(each.uses(refused=self.refused) for each in self.main))

    def pod(self, name: str, *, on: str = "") -> Pod:
        spec = {
            "initContainers": [each.manifest() for each in self.first],
            "containers": [each.manifest() for each in self.main],
            **({"nodeName": on} if on else {}),
        }
        status: dict[str, Any] = {"phase": "Running" if on else "Pending"}
        status["containerStatuses"] = [each.status() for each in self.main if each.held is not None]
        status["initContainerStatuses"] = [each.status() for each in self.first if each.held is not None]
        if self.refused:
            status["conditions"] = REFUSED
        metadata = {"name": name, "namespace": "ns", "uid": name, "annotations": {GROUP_NAME_ANNOTATION: name}}
        found = Decoder().decode_as("v1", "Pod", {"metadata": metadata, "spec": spec, "status": status})
        assert isinstance(found, Pod)
        return found


def is_bound_by_volcano(pods: list[Pod]) -> bool:
    groups = [build.podgroup(each.name, 1) for each in pods]
    scheduled = [replace(each, scheduler_name="volcano") for each in pods]
    machine = build.node("n", CORES, "64Gi")
    return "ns/new" in build.run(build.cluster(machine, groups, scheduled), actions="allocate").binds


def is_bound_by_kai(pods: list[Pod]) -> bool:
    found: list[Object] = [kai.queue("q")]
    machine = kai.node("n", 0)
    found.append(replace(machine, allocatable=replace(machine.allocatable, milli_cpu=1000.0 * CORES)))
    for each in pods:
        found += [obj for obj in kai.job(each.name, "q", [""]) if not isinstance(obj, Pod)]
        found.append(replace(each, scheduler_name="kai-scheduler"))
    assert sum(isinstance(obj, PodGroup) for obj in found) == len(pods)
    return "new" in kai.cycle(kai.store(*found), kai.policy(("allocate",))).binds


@MANY_WORLDS
@pytest.mark.parametrize("is_bound", [is_bound_by_volcano, is_bound_by_kai], ids=["volcano", "kai"])
def test_a_node_takes_a_pod_where_the_plain_model_has_room(is_bound: Any, seeds: range) -> None:
    bound = 0
    for seed in seeds:
        dice = Random(seed)
        running, new = [PodModel(dice, runs=True) for _ in range(dice.randint(1, 2))], PodModel(dice, runs=False)
        pods = [each.pod(f"old{i}", on="n") for i, each in enumerate(running)] + [new.pod("new")]
        fits = sum(each.peak() for each in (*running, new)) <= CORES
        assert is_bound(pods) == fits, seed
        bound += fits
    assert len(seeds) / 5 < bound < len(seeds) * 4 / 5
