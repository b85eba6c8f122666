"""Pods that share no card with each other."""

from __future__ import annotations

from pumice.model.devices import shared_devices as words
from pumice.testing.build import cluster, pod, podgroup, pods, run
from pumice.testing.devices import shared_gpus, vgpu
from tests.unit.volcano.devices.given import cards_of, conf


def test_pods_of_a_group_that_spreads_share_no_card() -> None:
    spread = {words.SPREAD_ANNOTATION: words.SPREAD}
    store = cluster(shared_gpus("n", 2), podgroup("g"), pods("g", 3, devices=vgpu(1), annotations=spread))
    assert sorted(given[:3] for given in cards_of(run(store, conf())).values()) == ["n-0", "n-1"]


def test_pods_that_match_one_rule_share_no_card() -> None:
    rules = [{"app": "training"}]
    training = [pod(f"t{i}", "g", labels={"app": "training"}, devices=vgpu(1)) for i in range(2)]
    other = pod("u", "g", labels={"app": "x"}, devices=vgpu(1))
    store = cluster(shared_gpus("n"), podgroup("g"), [*training, other])
    assert set(cards_of(run(store, conf(VGPUEnable=True, GPUExclusiveRules=rules)))) == {"t0", "u"}
