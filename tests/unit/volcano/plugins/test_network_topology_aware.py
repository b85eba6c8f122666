"""network-topology-aware: weights of tiers, which may be any numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.framework.plugin.plugin import FLOAT_MAX
from pumice.placing.batch import placing_of
from pumice.testing.build import cluster, hypernode, node, podgroup, pods, run, session
from pumice.volcano.plugins.network_topology_aware import tier_weights

CONF = "tiers: [{plugins: [{name: gang}, {name: network-topology-aware, arguments: {FADING}}]}]"


def conf(fading: float) -> str:
    return CONF.replace("FADING", f"hypernode.binpack.normal-pod.fading: {fading:.1e}")


@given(
    tiers=st.sets(st.integers(1, 60), min_size=1, max_size=5).map(sorted),
    fading=st.sampled_from([0.0, 0.1, 0.8, 0.999, 1.0, 1.25, 4.0]),
)
def test_weights_are_powers_of_the_fading(tiers: list[int], fading: float) -> None:
    heaviest = tiers[0] if fading <= 1 else tiers[-1]
    plain = {tier: fading ** (tier - heaviest) for tier in range(tiers[0], tiers[-1] + 1)}
    of_tier, between = tier_weights(tiers, fading)
    assert of_tier == pytest.approx([plain[tier] for tier in tiers], rel=1e-12)
    assert between == pytest.approx(sum(w for tier, w in plain.items() if tier not in tiers), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("fading", [0.0, 0.8, 1.0, 1.5, FLOAT_MAX])
@pytest.mark.parametrize(
    "tiers", [pytest.param((1, 2**31 - 2), id="far-apart"), pytest.param((10**9, 10**9 + 1), id="high")]
)
def test_any_tiers_give_scores(tiers: tuple[int, int], fading: float) -> None:
    state = cluster(
        [node("a1", cpu=4), node("a2", cpu=8)],
        [hypernode("leaf", tiers[0], ["a1"]), hypernode("other", tiers[1], ["a2"])],
        podgroup("g", 1),
        pods("g", 1),
    )
    ssn = session(state, conf(fading))
    scores = placing_of(ssn).feasible.of(int(ssn.tables.tasks.cls[0])).score
    assert np.isfinite(scores).all() and (scores >= 0).all() and (scores <= 100).all()


def test_fuller_hypernodes_are_better() -> None:
    state = cluster(
        [node("a1", cpu=4), node("b1", cpu=4)],
        [hypernode("a", 1, ["a1"]), hypernode("b", 1, ["b1"])],
        podgroup("there", 1, phase="Running"),
        pods("there", 1, on="b1"),
        podgroup("g", 1),
        pods("g", 1),
    )
    assert run(state, conf(0.8), actions="enqueue, allocate").binds == {"ns/g-0": "b1"}
