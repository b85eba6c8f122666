"""Picking ahead for equal gangs gives what picking for each anew gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.framework.placing import Plans, pick_run
from pumice.model.events import Object
from pumice.testing.build import Ran, cluster, node, podgroup, pods, run
from tests.properties.test_one_is_many import coarse, machines, picky

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, SCORES]
"""
SCORES = {
    "spread": "{name: predicates}, {name: nodeorder}",
    "pack": "{name: predicates}, {name: binpack}",
    "both": "{name: predicates}, {name: binpack}, {name: nodeorder}, {name: proportion}",
    "ties": "{name: coarse}",
    "reopening": "{name: picky}, {name: binpack}",
}
#: (pods, minimum, cpu, gpu): the first is drawn most, so that equal gangs follow each other.
GANGS = [(2, 2, 1, 0), (2, 2, 1, 0), (2, 2, 1, 0), (3, 1, 1, 0), (1, 1, 1, 0), (2, 2, 2, 1), (9, 9, 1, 0)]


@st.composite
def queues_of_gangs(draw: st.DrawFn) -> list[Object]:
    found: list[Object] = [
        node(f"n{i}", cpu, f"{memory}Gi", gpu=gpu, pods=room)
        for i, (cpu, memory, gpu, room) in enumerate(draw(machines))
    ]
    for g, (size, minimum, cpu, gpu) in enumerate(draw(st.lists(st.sampled_from(GANGS), min_size=2, max_size=14))):
        found += [podgroup(f"g{g:02}", minimum, creation=float(g)), *pods(f"g{g:02}", size, cpu=cpu, gpu=gpu)]
    return found


def with_and_without(objects: list[Object], conf: str) -> tuple[Ran, Ran, int]:
    """The cycle with plans and without, and how often a plan was gone on with."""
    gone_on = []
    real = Plans.pick

    def counting(self: Plans, cls: int, count: int) -> list[int]:
        plan = self._known.get(cls)
        now = self._ssn.tables.nodes.changed.stamp
        gone_on.append(plan is not None and plan.holds_at == now and len(plan.nodes) >= count)
        return real(self, cls, count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plans, "pick", counting)
        ours = run(cluster(objects), conf, plugins=(coarse, picky))
        patch.setattr(Plans, "pick", lambda self, cls, count: pick_run(self._ssn, cls, count, None))
        patch.setattr(Plans, "placed", lambda self, cls, count: None)
        plain = run(cluster(objects), conf, plugins=(coarse, picky))
    return ours, plain, sum(gone_on)


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
@given(objects=queues_of_gangs())
@settings(max_examples=60)
def test_same_decisions_with_and_without(scores: str, objects: list[Object]) -> None:
    ours, plain, _ = with_and_without(objects, CONF.replace("SCORES", scores))
    assert ours.decisions == plain.decisions
    assert ours.outcome.groups == plain.outcome.groups
    assert ours.pipelined == plain.pipelined


def test_plans_are_gone_on_with() -> None:
    gangs = [[podgroup(f"g{g}", 2, creation=float(g)), *pods(f"g{g}", 2, cpu=1)] for g in range(12)]
    objects = [node(f"n{i}", 8) for i in range(4)] + [obj for gang in gangs for obj in gang]
    ours, plain, gone_on = with_and_without(objects, CONF.replace("SCORES", SCORES["spread"]))
    assert ours.decisions == plain.decisions
    assert len(ours.decisions) == 24
    assert gone_on >= 8
