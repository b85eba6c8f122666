"""GPU sharing by memory and by number."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.model.decisions import Bind
from pumice.model.devices import shared_devices as words
from pumice.model.devices.shared_devices import DeviceAsk
from pumice.model.node import Node
from pumice.testing.build import cluster, node, pod, podgroup, pods, resource, run
from tests.unit.volcano.devices.given import conf, said, why


def _sharing(count: int, memory: int, **annotations: str) -> Node:
    there = resource(8, "32Gi", pods=110, **{words.GPU_MEMORY: memory, words.GPU_NUMBER: count})
    return replace(node("n", annotations=annotations), allocatable=there, capacity=there)


def test_memory_is_of_the_first_card_with_so_much_left() -> None:
    ask = DeviceAsk((((words.GPU_MEMORY, 6),),))
    old = pod("old", on="n", devices=ask, annotations={words.GPU_INDEX_ANNOTATION: "1"})
    store = cluster(
        _sharing(4, 40, **{words.UNHEALTHY_IDS_ANNOTATION: "0,x"}), old, podgroup("g"), pods("g", 3, devices=ask)
    )
    binds = [each for each in run(store, conf(GPUSharingEnable=True), now=2.0).decisions if isinstance(each, Bind)]
    assert [said(each) for each in binds] == [
        {words.GPU_INDEX_ANNOTATION: card, words.PREDICATE_TIME_ANNOTATION: "2000000000"} for card in ("2", "3")
    ]


def test_by_number_cards_are_taken_whole() -> None:
    ask = DeviceAsk((((words.GPU_NUMBER, 2),),))
    old = pod("old", on="n", devices=ask, annotations={words.GPU_INDEX_ANNOTATION: "1"})
    store = cluster(_sharing(4, 40), old, podgroup("g"), pods("g", 2, devices=ask))
    binds = [each for each in run(store, conf(GPUNumberEnable=True)).decisions if isinstance(each, Bind)]
    assert [said(each)[words.GPU_INDEX_ANNOTATION] for each in binds] == ["0,2"]


def test_a_node_of_a_thousand_million_cards_has_none() -> None:
    store = cluster(_sharing(10**9, 10**9), podgroup("g"), pods("g", 1, devices=DeviceAsk((((words.GPU_MEMORY, 1),),))))
    ran = run(store, conf(GPUSharingEnable=True))
    assert "found 1000000000 cards, wanted 1 to 32" in why(ran, "g-0")
