"""A small cluster that pages show: gangs that run, start, lack room, and are over the limit of their queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pumice.answers.world import Trial, Trials, World
from pumice.model.events import Object
from pumice.model.pod import EMPTY_MAP, Pod
from pumice.runtime.cycle_end import CycleEnd
from pumice.runtime.digest import digest_of
from pumice.testing.build import node, pod, podgroup, policy, queue, resource
from pumice.web.sample import CycleSample, amounts_of, sample_of
from pumice.web.summary import CycleSummary, summarize

CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
RACK = "topology.kubernetes.io/rack"


def world() -> World:
    objects: list[Object] = [
        queue("default"),
        queue("team", parent="org", capability=resource(2, "8Gi")),
        queue("org"),
        node("n0", 4, gpu=2, labels={RACK: "a"}),
        node("n1", 4, gpu=2, labels={RACK: "b"}),
        node("n2", 4, labels={RACK: "b"}, unschedulable=True),
        *_gang("runs", 2, on="n0"),
        *_gang("starts", 2, created=10.0),
        *_gang("large", 6, created=20.0),
        *_gang("below", 3, of="team", created=30.0),
    ]
    return World(objects, policy(CONF), 100.0, ("volcano",))


def summary_of(found: World) -> CycleSummary:
    base = Trials(found, 1).base
    return summarize(base.outcome, base.decisions, digest_of(found.now, base.decisions))


def base() -> Trial:
    """Return the cycle on the world."""
    return Trials(world(), 1).base


def summary() -> CycleSummary:
    return summary_of(world())


def sample(spans: Mapping[str, float] = EMPTY_MAP) -> CycleSample:
    """Return the sums of the cycle on the world."""
    base = Trials(world(), 1).base
    return sample_of(CycleEnd(1, base.outcome, base.decisions, "d", spans), amounts_of(base.outcome))


async def expected() -> dict[str, Any]:
    """Return when jobs of the world are expected to start: of one that is known, of another that is not."""
    ahead = {"middle_s": 120.0, "interval_80_s": [60.0, None], "why_not": ""}
    stays = {"middle_s": None, "interval_80_s": [None, None], "why_not": "in 8 of 8 simulations it does not start"}
    return {"at": 100.0, "samples": 8, "until_s": 3600.0, "jobs": {"ns/large": ahead, "ns/below": stays}}


def _gang(name: str, count: int, of: str = "default", on: str = "", created: float = 0.0) -> list[Object]:
    pods: list[Pod] = [pod(f"{name}-{i}", name, on=on) for i in range(count)]
    group = podgroup(
        name,
        count,
        queue=of,
        min_resources=resource(count, f"{count}Gi"),
        phase="Running" if on else "Pending",
        creation=created,
    )
    return [group, *pods]
