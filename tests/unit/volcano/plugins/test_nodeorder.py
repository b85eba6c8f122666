"""nodeorder: its scores together, against kube-scheduler's integer arithmetic. Each by itself: ``scorers/``."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.placing.filters.preferred_terms import HARD_POD_AFFINITY_WEIGHT
from tests.unit.volcano import reference
from tests.unit.volcano.cluster import Cluster, node, pod
from tests.unit.volcano.scorers.scoring import only
from tests.unit.volcano.worlds import World, worlds


def test_without_preferred_terms_the_answer_is_one_number() -> None:
    """So a gang may be placed in one go; None when there is nothing to score."""
    for arguments, expected in ((only(tainttoleration=3, podaffinity=2), 300.0), (only(leastrequested=1), None)):
        cluster = Cluster([node("n"), node("m")], [pod("p")], "nodeorder", **arguments)
        among_candidates = cluster.plugin("nodeorder").among_candidates
        assert among_candidates(cluster.task("p").cls) == expected


@settings(max_examples=200, deadline=None)
@given(worlds(), st.data())
def test_as_kube_scheduler(world: World, data: st.DataObject) -> None:
    """Over any candidates, with weights that keep the scores apart."""
    candidates = data.draw(st.lists(st.sampled_from(world.nodes), min_size=1, unique_by=lambda n: n.name))
    arguments = only(tainttoleration=1, podaffinity=1000, podtopologyspread=1000_000)
    cluster = Cluster(world.nodes, world.pods, "nodeorder", **arguments)
    parts = zip(
        reference.taint_scores(world.pending, candidates),
        reference.inter_pod_scores(world.pending, candidates, world.placed, HARD_POD_AFFINITY_WEIGHT),
        reference.spread_scores(world.pending, candidates, world.nodes, world.placed),
        strict=True,
    )
    expected = {n.name: t + 1000 * p + 1000_000 * s for n, (t, p, s) in zip(candidates, parts, strict=True)}
    assert cluster.scores(world.pending.name, *expected) == expected
