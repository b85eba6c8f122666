"""Fragments of GPUs against the plain definition, pod by pod and device by device; and the scores of the baselines."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.algorithms.dice import rolled
from pumice.ours.fragments import WHOLE, Ask, Room, Shape, Typical
from pumice.ours.gpu_packing import best_fit, clustering, descent, dot_product, packing

SHAPES = [
    Shape(Ask(4000.0, 1, 500.0), (True, True), 40.0),
    Shape(Ask(8000.0, 1, WHOLE), (True, True), 30.0),
    Shape(Ask(32000.0, 4, WHOLE), (True, True), 10.0),
    Shape(Ask(4000.0, 1, 250.0), (False, True), 12.0),
    Shape(Ask(16000.0, 0, 0.0), (True, True), 8.0),
]


def plain_fragment(cores: float, gpus: list[float], model: int, shapes: list[Shape]) -> float:
    """The definition: all that is free for a pod that does not fit, the devices that are too full for one that does."""
    pods = sum(shape.pods for shape in shapes)
    found = 0.0
    for shape in shapes:
        ask = shape.ask
        enough = [free for free in gpus if free >= ask.milli]
        fits = ask.devices and shape.models[model] and cores >= ask.milli_cpu and len(enough) >= ask.devices
        found += shape.pods / pods * (sum(free for free in gpus if free < ask.milli) if fits else sum(gpus))
    return found


def a_room(dice: np.random.Generator, nodes: int = 30) -> Room:
    gpus = np.where(dice.random((nodes, 4)) < 0.4, WHOLE, 10.0 * dice.integers(0, 100, (nodes, 4)))
    return Room(1000.0 * dice.integers(0, 60, nodes), gpus, dice.integers(0, 2, nodes))


def test_fragments_are_those_of_the_definition() -> None:
    room = a_room(np.random.default_rng(1))
    wanted = [
        plain_fragment(cores, gpus, model, SHAPES)
        for cores, gpus, model in zip(room.milli_cpu, room.gpus.tolist(), room.model, strict=True)
    ]
    assert Typical(SHAPES, 2, 1.0).fragment(room) == pytest.approx(wanted)


@pytest.mark.parametrize("ask", [shape.ask for shape in SHAPES])
def test_the_gradient_is_the_fragment_before_less_the_one_after(ask: Ask) -> None:
    room = a_room(np.random.default_rng(2), 200)
    enough = (room.gpus >= max(ask.milli, 1.0)).sum(axis=1) >= ask.devices
    room = room.part(enough & (room.milli_cpu >= ask.milli_cpu))
    found = Typical(SHAPES, 2, 1.0).gradient(room, ask)
    assert len(found) and found.shape[1] == (room.gpus.shape[1] if 0 < ask.milli < WHOLE else 1)
    for row, (cores, gpus, model) in enumerate(zip(room.milli_cpu, room.gpus.tolist(), room.model, strict=True)):
        before = plain_fragment(cores, gpus, model, SHAPES)
        for device, gradient in enumerate(found[row].tolist()):
            later = list(gpus)
            if 0 < ask.milli < WHOLE:
                later[device] -= ask.milli
            for _ in range(ask.devices if ask.milli == WHOLE else 0):
                later.remove(WHOLE)
                later.append(0.0)
            if min(later) < 0:
                assert gradient == -np.inf
            else:
                assert gradient == pytest.approx(before - plain_fragment(cores - ask.milli_cpu, later, model, SHAPES))


def test_the_commonest_shapes_are_typical_as_many_as_make_up_the_part() -> None:
    assert Typical(SHAPES, 2, 0.7).millis.tolist() == [500.0, WHOLE]
    assert Typical(SHAPES, 2, 0.71).counts.tolist() == [1.0, 1.0, 1.0]  # the twelve with 250 come before the ten
    assert Typical([], 1).usable(Room(np.ones(2), np.ones((2, 3)), np.zeros(2, dtype=np.int64))).tolist() == [0.0, 0.0]


def test_dice_are_the_same_in_any_order_and_even() -> None:
    rows = np.arange(20_000)
    found = rolled(7, "ns/pod", rows)
    assert rolled(7, "ns/pod", rows[::-1])[::-1].tolist() == found.tolist()
    assert found.min() >= 0 and found.max() < 1 and abs(found.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(found, rolled(8, "ns/pod", rows))[0, 1]) < 0.03
    assert abs(np.corrcoef(found, rolled(7, "ns/other", rows))[0, 1]) < 0.03


#: Nodes: empty with 8 GPUs, one with a used part, one with two whole GPUs left of four.
ROOM = Room(
    np.array([96000.0, 40000.0, 20000.0]),
    np.array([[WHOLE] * 8, [WHOLE, 400.0, 0, 0, 0, 0, 0, 0], [WHOLE, WHOLE, 0, 0, 0, 0, 0, 0]]),
    np.zeros(3, dtype=np.int64),
)
DEVICES = np.array([8.0, 2.0, 4.0])
PART, ONE, CORES = Ask(8000.0, 1, 300.0), Ask(8000.0, 1, WHOLE), Ask(8000.0, 0, 0.0)


def test_scores_of_the_baselines_worked_out_by_hand() -> None:
    assert packing(ROOM, PART, DEVICES).tolist() == [33.0 - 8, 96.0, 49.0]  # 100 - 40 % / 10; one fresh GPU
    assert packing(ROOM, ONE, DEVICES).tolist() == [25.0, 49.0, 49.0]
    assert packing(ROOM, CORES, DEVICES).tolist() == [0.0] * 3
    # (96 - 8) / 128 and (8 - 0.3) / 8 are left of an empty node, half the weight each
    assert best_fit(ROOM, PART).tolist() == [np.floor(100 * (1 - (88 / 128 + 7.7 / 8) / 2)), 80.0, 84.0]
    assert dot_product(ROOM, ONE).tolist() == [np.floor(100 * (1 - (96 / 128 * 8 / 128 + 1 / 8) / 2)), 97.0, 97.0]
    kinds = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]])
    assert clustering(ROOM, PART, kinds, 0).tolist() == [25.0, 75.0 + 20, 50.0 + 18]
    assert clustering(ROOM, ONE, kinds, 1).tolist() == [25.0, 20.0, 50.0 + 18]
    assert clustering(ROOM, CORES, kinds, -1).tolist() == [0.0] * 3
    assert descent(np.array([0.0, 1000.0, -1000.0])).tolist() == [50.0, 73.0, 26.0]


def test_pods_that_ask_for_the_same_are_of_one_shape_however_they_were_counted() -> None:
    """Classes of pods differ in more than what counts here: in memory, say."""
    room, whole = a_room(np.random.default_rng(5)), Typical(SHAPES, 2, 0.5)
    parts = [each._replace(pods=each.pods / 4) for each in SHAPES[:1]] * 4 + SHAPES[1:]
    assert Typical(parts, 2, 0.5).fragment(room) == pytest.approx(whole.fragment(room))
    assert whole.millis.tolist() == [500.0, WHOLE]


def test_of_equally_common_shapes_the_larger_is_typical() -> None:
    """As the study sorts them: cores, then the part of a GPU, then how many."""
    equal = [
        Shape(Ask(4000.0, 1, 500.0), (True,), 1.0),
        Shape(Ask(4000.0, 1, WHOLE), (True,), 1.0),
        Shape(Ask(2000.0, 8, WHOLE), (True,), 1.0),
        Shape(Ask(4000.0, 2, 500.0), (True,), 1.0),
    ]
    assert Typical(equal, 1, 0.25).counts.tolist() == [1.0]
    two = Typical(equal, 1, 0.5)
    assert list(zip(two.counts.tolist(), two.millis.tolist(), strict=True)) == [(1.0, WHOLE), (2.0, 500.0)]
