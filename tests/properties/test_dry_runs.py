"""Dry runs that are recalled instead of repeated decide nothing differently."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pumice.model.events import Object
from pumice.model.topology import HyperNode
from pumice.testing.build import Ran, cluster, hypernode, node, podgroup, pods, queue, resource, run
from pumice.volcano.dry_runs import DryRuns
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
    "sla": CONF.replace("FIRST", "- plugins: [{name: sla}]\n").replace("MORE", ", {name: proportion}"),
}
ONE_BY_ONE = CONF.replace("FIRST", "").replace("MORE", ", {name: few-each}")


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


def never(self: DryRuns, kind: object, hypernode: int) -> None:
    """Nothing is recalled."""


def with_and_without(objects: list[Object], conf: str, **more: object) -> tuple[Ran, Ran, int]:
    """The cycle with recalled dry runs and without, and how many were recalled."""
    recalled = []
    real = DryRuns.recall

    def counting(self: DryRuns, kind: object, hypernode: int) -> object:
        found = real(self, kind, hypernode)  # type: ignore[arg-type]
        recalled.append(found is not None)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DryRuns, "recall", counting)
        ours = run(cluster(objects), conf, now=50.0, **more)
        patch.setattr(DryRuns, "recall", never)
        plain = run(cluster(objects), conf, now=50.0, **more)
    return ours, plain, sum(recalled)


@pytest.mark.parametrize("conf", CONFS.values(), ids=CONFS)
@given(objects=fabrics())
@settings(max_examples=60, deadline=None)
def test_same_decisions_with_and_without(conf: str, objects: list[Object]) -> None:
    ours, plain, recalled = with_and_without(objects, conf, plugins=(FewEach,))
    assume(recalled)
    assert ours.decisions == plain.decisions
    assert ours.pipelined == plain.pipelined
    assert ours.outcome.job_hypernodes == plain.outcome.job_hypernodes
    assert ours.outcome.sub_hypernodes == plain.outcome.sub_hypernodes
    assert ours.outcome.groups == plain.outcome.groups


@given(objects=fabrics())
@settings(max_examples=20)
def test_a_limit_asked_for_each_task_is_asked_each_time(objects: list[Object]) -> None:
    _, _, recalled = with_and_without(objects, ONE_BY_ONE, plugins=(FewEach,))
    assert recalled == 0
