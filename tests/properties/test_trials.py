"""Trials that are recalled instead of repeated decide nothing differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.framework.memo import Memo
from pumice.model.events import Object
from pumice.model.topology import HyperNode
from pumice.testing.build import cluster, hypernode, node, podgroup, pods, queue, resource, run
from pumice.volcano.failures.trials import Trials
from tests.properties.plugins import FewEach

CONF = """
actions: "enqueue, allocate"
tiers:
FIRST- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: nodeorder}, {name: network-topology-aware}MORE]
"""
CONFS = {
    "plain": CONF.replace("FIRST", "").replace("MORE", ""),
    "queues": CONF.replace("FIRST", "").replace("MORE", ", {name: proportion}, {name: binpack}"),
    "limit": CONF.replace("FIRST", "").replace("MORE", ", {name: few-each}"),
    "sla": CONF.replace("FIRST", "- plugins: [{name: sla}]\n").replace("MORE", ", {name: proportion}"),
}


@st.composite
def fabrics(draw: st.DrawFn) -> list[Object]:
    """Racks under spines, and gangs of which many are equal."""
    racks = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    cpus = draw(st.sampled_from([2, 4]))
    found: list[Object] = []
    leaves: list[HyperNode] = []
    for r, size in enumerate(racks):
        names = [f"r{r}n{i}" for i in range(size)]
        found += [node(name, cpus, gpu=draw(st.sampled_from([0, 2]))) for name in names]
        leaves.append(hypernode(f"rack{r}", 1, names))
    found += leaves
    found += [
        hypernode(f"spine{s}", 2, hypernodes=[h.name for h in leaves[2 * s : 2 * s + 2]])
        for s in range((len(leaves) + 1) // 2)
    ]
    found += [queue("a", 2), queue("b", capability=draw(st.sampled_from([None, resource(5)])))]
    for g in range(draw(st.integers(2, 7))):
        size, minimum = draw(st.sampled_from([(3, 2), (4, 4), (6, 5)]))
        cpu, gpu = draw(st.sampled_from([(1, 0), (2, 0), (1, 1)]))
        sla = {"sla-waiting-time": "1s"} if draw(st.integers(0, 3)) == 0 else {}
        group = podgroup(
            f"g{g}",
            minimum,
            draw(st.sampled_from(["a", "b"])),
            creation=float(draw(st.integers(0, 100))),
            tier=draw(st.sampled_from([1, 2])),
            soft=draw(st.booleans()),
            annotations=sla,
        )
        found += [group, *pods(f"g{g}", size, cpu=cpu, gpu=gpu)]
    return found


@pytest.fixture
def recalled() -> Iterator[list[bool]]:
    """Of each time that a trial was asked for, whether it was recalled."""
    found: list[bool] = []
    recall = Trials.recall

    def counting(self: Trials, *args: Any) -> Any:
        trial = recall(self, *args)
        found.append(trial is not None)
        return trial

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trials, "recall", counting)
        yield found


@pytest.mark.parametrize("conf", CONFS.values(), ids=CONFS)
@given(objects=fabrics())
@settings(max_examples=30, deadline=None)
def test_same_decisions_with_and_without(conf: str, objects: list[Object]) -> None:
    ours = run(cluster(objects), conf, now=50.0, plugins=(FewEach,))
    plain = run(cluster(objects), conf, now=50.0, plugins=(FewEach,), memo=Memo(keeps=False))
    assert ours.decisions == plain.decisions
    assert ours.pipelined == plain.pipelined
    assert ours.outcome.writes == plain.outcome.writes


def test_equal_gangs_recall_what_domains_came_to(recalled: list[bool]) -> None:
    objects: list[Object] = [node(f"n{i}", 4) for i in range(6)]
    objects += [hypernode(f"rack{r}", 1, [f"n{2 * r}", f"n{2 * r + 1}"]) for r in range(3)]
    for g in range(3):
        objects += [podgroup(f"g{g}", 2, tier=1), *pods(f"g{g}", 2, cpu=3)]
    assert len(run(cluster(objects), CONFS["plain"]).binds) == 6
    assert any(recalled)
