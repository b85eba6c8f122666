"""vGPUs: which cards pods get, what fits, and what nodes may get wrong."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.model.decisions import Bind
from pumice.model.devices import shared_devices as words
from pumice.model.devices.shared_devices import DeviceAsk
from pumice.testing.build import cluster, node, pod, podgroup, pods, run
from pumice.testing.devices import shared_gpus, vgpu
from tests.unit.volcano.devices.given import cards_of, conf, has, said, why


def test_a_gang_shares_cards_and_each_pod_says_its_own() -> None:
    store = cluster(shared_gpus("n", 2), podgroup("g", 4), pods("g", 4, cpu="1", devices=vgpu(8000, cores=30)))
    ran = run(store, conf(), now=1_234.5)
    assert cards_of(ran) == {f"g-{i}": f"n-{card},NVIDIA,8000,30:" for i, card in enumerate((1, 1, 0, 0))}
    first = next(each for each in ran.decisions if isinstance(each, Bind))
    assert said(first) == {
        words.ASSIGNED_NODE_ANNOTATION: "n",
        words.ASSIGNED_TIME_ANNOTATION: "1234",
        words.ASSIGNED_IDS_ANNOTATION: "n-1,NVIDIA,8000,30:",
        words.TO_ALLOCATE_ANNOTATION: "n-1,NVIDIA,8000,30:",
        words.BIND_PHASE_ANNOTATION: "allocating",
        words.BIND_TIME_ANNOTATION: "1234",
    }


def test_a_gang_that_does_not_fit_the_cards_as_a_whole_leaves_them_to_others() -> None:
    store = cluster(
        shared_gpus("n", 1),
        podgroup("big", 2),
        podgroup("small", 1, creation=1.0),
        pods("big", 2, devices=vgpu(9000)),
        pods("small", 1, devices=vgpu(9000)),
    )
    assert cards_of(run(store, conf())) == {"small-0": "n-0,NVIDIA,9000,0:"}


@pytest.mark.parametrize(
    ("used", "ask", "fits"),
    [
        pytest.param("n-0,NVIDIA,16000,0:", vgpu(384), True, id="the last memory"),
        pytest.param("n-0,NVIDIA,16000,0:", vgpu(385), False, id="more than is left"),
        pytest.param("n-0,NVIDIA,1,60:", vgpu(1, cores=40), True, id="the last cores"),
        pytest.param("n-0,NVIDIA,1,60:", vgpu(1, cores=41), False, id="more cores than are left"),
        pytest.param("n-0,NVIDIA,1,1:", vgpu(1, cores=100), False, id="all cores are a card of its own"),
        pytest.param("n-0,NVIDIA,1,100:", vgpu(1), False, id="a card of which all cores are taken"),
        pytest.param("n-0,NVIDIA,1,1:", vgpu(), False, id="without memory all of it is asked"),
        pytest.param("", vgpu(number=2), False, id="more cards than there are"),
        pytest.param("gone,NVIDIA,16384,100:", vgpu(), True, id="a card that is not there is not in use"),
        pytest.param("n-0,NVIDIA,x,1:n-0,NVIDIA:", vgpu(), True, id="what cannot be read is not in use"),
        pytest.param("", vgpu(1, mode="mig"), False, id="another mode"),
        pytest.param("", vgpu(1, mode="hami-core"), True, id="the mode of the node"),
        pytest.param("", vgpu(1, use_type="v100,a30"), True, id="one of the types, in any case"),
        pytest.param("", vgpu(1, no_use_type="A30"), False, id="not this type"),
        pytest.param("", vgpu(1, use_id="n-1"), False, id="not this card"),
        pytest.param("", vgpu(1, use_id="x" * 5000), False, id="more than is read"),
    ],
)
def test_what_fits_a_card(used: str, ask: DeviceAsk, fits: bool) -> None:
    store = cluster(shared_gpus("n"), has("old", "n", used), podgroup("g"), pods("g", 1, devices=ask))
    assert bool(run(store, conf()).binds) is fits


def test_cards_that_are_ill_take_nothing_new() -> None:
    ill = shared_gpus("n")
    ill = replace(ill, annotations={words.REGISTER_ANNOTATION: "n-0,10,16384,NVIDIA,false,hami-core:"})
    assert not run(cluster(ill, podgroup("g"), pods("g", 1, devices=vgpu(1))), conf()).binds


@pytest.mark.parametrize(("how", "card"), [("binpack", 0), ("spread", 2), ("", 2)])
def test_which_card_is_first(how: str, card: int) -> None:
    there = [has("a", "n", "n-0,NVIDIA,900,1:"), has("b", "n", "n-1,NVIDIA,500,1:n-1,NVIDIA,1,1:")]
    store = cluster(shared_gpus("n", 3), there, podgroup("g"), pods("g", 1, devices=vgpu(100)))
    assert cards_of(run(store, conf(VGPUEnable=True, SchedulePolicy=how)))["g-0"].startswith(f"n-{card},")


@pytest.mark.parametrize(("weight", "where"), [(10, "b"), (0, "a")])
def test_nodes_with_fuller_cards_are_better_where_that_counts(weight: int, where: str) -> None:
    store = cluster(
        [shared_gpus("a"), shared_gpus("b"), has("old", "b", "b-0,NVIDIA,5000,0:")],
        podgroup("g"),
        pods("g", 1, devices=vgpu(100)),
    )
    ran = run(store, conf(VGPUEnable=True, SchedulePolicy="binpack", ScheduleWeight=weight))
    assert ran.binds == {"ns/g-0": where}


def test_containers_of_one_pod_get_what_the_ones_before_them_leave() -> None:
    each = tuple(sorted({words.VGPU_NUMBER: 1, words.VGPU_MEMORY: 9000}.items()))
    store = cluster(shared_gpus("n", 2), podgroup("g"), pods("g", 1, devices=DeviceAsk((each, (), each))))
    assert cards_of(run(store, conf())) == {"g-0": "n-1,NVIDIA,9000,0:;n-0,NVIDIA,9000,0:"}


GEOMETRIES = {
    "nvidia": {
        "knownMigGeometries": [
            {
                "models": ["A30"],
                "allowedGeometries": [
                    {"group": "g1", "geometries": [{"name": "1g", "memory": 6144, "count": 4}]},
                    {"group": "g2", "geometries": [{"name": "2g", "memory": 12_288, "count": 2}]},
                ],
            }
        ]
    }
}


def test_instances_are_of_one_group_and_given_once() -> None:
    there = has("old", "n", "n-0[g1-1],NVIDIA,6144,0:")
    waiting = [*pods("g", 4, devices=vgpu(5000)), pod("large", "g", devices=vgpu(7000))]
    store = cluster(shared_gpus("n", 1, 24_576, mode="mig"), there, podgroup("g", 1), waiting)
    given = cards_of(run(store, conf(VGPUEnable=True, DeviceConfig=GEOMETRIES)))
    assert given == {f"g-{i}": f"n-0[g1-{place}],NVIDIA,6144,0:" for i, place in enumerate((0, 2, 3))}


def test_a_card_that_nobody_can_cut_takes_nobody() -> None:
    store = cluster(shared_gpus("n", mode="mig"), podgroup("g"), pods("g", 1, devices=vgpu(1)))
    assert not run(store, conf()).binds


@pytest.mark.parametrize(
    "register",
    [
        pytest.param("", id="nothing"),
        pytest.param("n-0,10,16384,NVIDIA,true:", id="a field too few"),
        pytest.param("n-0,ten,16384,NVIDIA,true,hami-core:", id="no number"),
        pytest.param("n-0,10,-1,NVIDIA,true,hami-core:", id="a negative one"),
        pytest.param("n-0,10,99999999999999999999,NVIDIA,true,hami-core:", id="a number without end"),
        pytest.param("n-0,1,1,NVIDIA,true,hami-core:" * 2, id="one card twice"),
        pytest.param("".join(f"{i},1,1,NVIDIA,true,hami-core:" for i in range(33)), id="more cards than a machine has"),
    ],
)
def test_a_node_whose_cards_cannot_be_read_has_none_and_says_why(register: str) -> None:
    wrong = replace(shared_gpus("wrong"), annotations={words.REGISTER_ANNOTATION: register})
    store = cluster([wrong, shared_gpus("right")], podgroup("g"), pods("g", 2, devices=vgpu(9000)))
    ran = run(store, conf())
    assert ran.binds == {"ns/g-0": "right"}
    assert f"node not initialized with device hamivgpu: annotation {words.REGISTER_ANNOTATION}: found" in why(
        ran, "g-1"
    )


def test_a_node_without_cards_takes_nobody_who_asks_for_some_and_everybody_else() -> None:
    store = cluster(node("n"), podgroup("g"), [pod("a", "g", devices=vgpu(1)), pod("b", "g")])
    assert run(store, conf()).binds == {"ns/b": "n"}
