"""Init containers and sidecars on shared cards count as they do in sums of nodes, card by card."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from pumice.framework.plugin.filter_result import Unfit
from pumice.model.devices import shared_devices as words
from pumice.model.devices.shared_devices import DeviceAsk, Stage
from pumice.model.manifest.decoder import Decoder
from pumice.model.pod_request import pod_limit
from pumice.testing.build import cluster, pod, podgroup, pods, run
from pumice.testing.devices import shared_gpus
from pumice.volcano.devices.cards import COLUMNS, MEMORY, NUM, CardPlacement, Part, at_peak
from pumice.volcano.devices.config import DeviceConfig
from pumice.volcano.devices.vgpu import Vgpus, listed_cards
from tests.plain_models import MANY_WORLDS
from tests.unit.volcano.devices.given import cards_of, conf
from tests.unit.volcano.devices.test_npus import NPU, npus


def _limits(memory: int) -> dict[str, str]:
    return {words.VGPU_NUMBER: "1", words.VGPU_MEMORY: str(memory)}


def _manifest(dice: Random) -> dict[str, Any]:
    """Make a pod whose containers, sidecars and init containers use memory of one card each."""

    def container(name: str, **more: str) -> dict[str, Any]:
        return {"name": name, "resources": {"limits": _limits(dice.randint(1, 6))}, **more}

    first = [
        container(f"i{i}", **({"restartPolicy": "Always"} if dice.random() < 0.5 else {}))
        for i in range(dice.randint(0, 3))
    ]
    spec = {"initContainers": first, "containers": [container(f"c{i}") for i in range(dice.randint(1, 2))]}
    return {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}


def _plain(manifest: dict[str, Any], placed: CardPlacement, card: int) -> tuple[int, int]:
    """Return how many containers use a card at most at one time, and how much memory: a moment after the other."""
    moments, staying = [(0, 0)], (0, 0)
    each = [*manifest["spec"]["initContainers"], *manifest["spec"]["containers"]]
    for container, parts in zip(each, placed.containers, strict=True):
        here = [part for part in parts if part.card == card]
        now = staying[0] + len(here), staying[1] + sum(part.memory for part in here)
        moments.append(now)
        if container["name"].startswith("c") or container.get("restartPolicy") == "Always":
            staying = now
    return max(count for count, _ in moments), max(memory for _, memory in moments)


@MANY_WORLDS
def test_each_card_holds_the_peak_of_what_runs_at_one_time(seeds: range) -> None:
    family, fitting = Vgpus(DeviceConfig()), 0
    for seed in seeds:
        dice = Random(seed)
        manifest = _manifest(dice)
        spec = Decoder().decode_as("v1", "Pod", manifest).spec
        assert spec.devices is not None
        total = pod_limit(manifest["spec"]).get(words.VGPU_MEMORY) / 1000
        assert spec.devices.most(words.VGPU_MEMORY) == total, seed
        cards = listed_cards("".join(f"g{i},10,{dice.randint(6, 10)},NVIDIA,true,hami-core:" for i in range(2)))
        wanted = family.asked(spec.devices)
        used, excluded = np.zeros((2, COLUMNS), dtype=np.int64), np.zeros(2, dtype=bool)
        placed = family.place(wanted, cards, used, excluded, "")
        if isinstance(placed, Unfit):
            continue
        fitting += 1
        for part in placed.held:
            part.add_to(used)
        assert (used[:, MEMORY] <= [card.memory for card in cards.cards]).all(), seed
        held = [tuple(used[card, [NUM, MEMORY]].tolist()) for card in range(2)]
        assert held == [_plain(manifest, placed, card) for card in range(2)], seed
        text = family.annotations(placed, cards, "n", 0.0)
        had = family.had(text, pod("p"), wanted, cards)
        assert (had.containers, had.held) == (placed.containers, placed.held), seed
        for part in placed.held:
            part.add_to(used, -1)
        assert not used.any()
    assert len(seeds) / 4 < fitting < len(seeds)


def _vgpu(memory: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted({words.VGPU_NUMBER: 1, words.VGPU_MEMORY: memory}.items()))


def test_a_sidecar_counts_beside_containers() -> None:
    """6 and 6 of 8: the sidecar was not counted at all."""
    ask = DeviceAsk((_vgpu(6),), (_vgpu(6),), sidecars=(0,))
    store = cluster(shared_gpus("n", 1, 8), podgroup("g"), pods("g", 1, devices=ask))
    assert not run(store, conf()).binds


def test_an_init_container_needs_room_and_leaves_it_to_containers() -> None:
    ask = DeviceAsk((_vgpu(6),), (_vgpu(7),))
    store = cluster(shared_gpus("n", 1, 8), podgroup("g", 1), pods("g", 2, devices=ask))
    assert cards_of(run(store, conf())) == {"g-0": "n-0,NVIDIA,7,0:;n-0,NVIDIA,6,0:"}


@pytest.mark.parametrize(("sidecars", "bound"), [((), 1), ((0,), 0)], ids=["an init container", "a sidecar"])
def test_one_npu_is_enough_for_containers_that_run_one_after_the_other(sidecars: tuple[int, ...], bound: int) -> None:
    whole = (("huawei.com/Ascend310P", 1),)
    ask = DeviceAsk((whole,), (whole,), sidecars=sidecars)
    store = cluster(npus(f"[{NPU.format(0)}]"), podgroup("g"), pods("g", 1, devices=ask))
    assert len(run(store, conf(AscendHAMiVNPUEnable=True)).binds) == bound


@pytest.mark.parametrize(
    ("sidecars", "most"), [((), 6), ((0,), 8), ((1,), 11), ((0, 1), 13)], ids=["none", "first", "second", "both"]
)
def test_memory_of_one_card_is_the_peak(sidecars: tuple[int, ...], most: int) -> None:
    ask = DeviceAsk(
        (((words.GPU_MEMORY, 4),), ((words.GPU_MEMORY, 2),)), tuple(((words.GPU_MEMORY, n),) for n in (2, 5))
    )
    assert DeviceAsk(ask.containers, ask.first, sidecars=sidecars).most(words.GPU_MEMORY) == most


def test_instances_of_an_init_container_are_held_once() -> None:
    one, other = Part(0, 10, 0, 1, 0), Part(0, 20, 0, 1, 1)
    used = np.zeros((1, COLUMNS), dtype=np.int64)
    for part in at_peak([(one,), (one, other)], (Stage.ONCE, Stage.CONTAINER)) or ():
        part.add_to(used)
    assert used.tolist() == [[2, 30, 0, 1, 0b11]]
