"""Filling a cluster: who arrives, what the curves say, and the fragments that are read off the decisions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.algorithms.go_random import GoRandom
from pumice.model.pod import PodSpec
from pumice.ours.fragments import Ask, Room, Shape, Typical
from pumice.ours.typical_pods import TypicalPods
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.fills.fill import Arrivals, FillResult, arrivals_of, ask_of_spec, fill, policy_text, typical_of
from pumice.sim.fills.fragments import fragments
from pumice.sim.traces.fill_published import ALLOCATION, PublishedError, read_published
from pumice.sim.traces.shapes import Shapes, amounts, node_of

GI = 2**30
SHAPES = Shapes()
PART, WHOLE, CORES = (
    SHAPES.pod(4000, GI, 0, (), 0.6),
    SHAPES.pod(4000, GI, 1, ("T4",)),
    SHAPES.pod(4000, GI),
)
NODES = [node_of(f"n{i}", amounts(32_000, 64 * GI, 2, 110), "T4" if i % 2 else "P100") for i in range(6)]


def some(until: float = 1.3, seed: int = 1, specs: tuple[PodSpec, ...] = (PART, PART, WHOLE, CORES)) -> Arrivals:
    return arrivals_of(specs * 3, NODES, until, seed)


def filled(name: str, arrivals: Arrivals) -> FillResult:
    return fill(arrivals, policy_of(policy_text(name, 0), builtin_registry()))


def test_all_pods_come_once_then_drawn_ones_until_as_much_is_asked_for() -> None:
    found = some()
    assert sorted(spec.milli_gpus for spec in found.specs[:12]) == sorted(
        spec.milli_gpus for spec in (PART, PART, WHOLE, CORES) * 3
    )
    assert 12_000 * 1.3 - 1000 < sum(found.gpus) <= 12_000 * 1.3
    assert some() == found != some(seed=2)
    assert sorted(node.name.partition("-")[2] for node in found.nodes) == [node.name for node in NODES]
    fewer = some(until=0.2)
    assert len(fewer.specs) < 12 and sum(fewer.gpus) <= 2400


def test_a_seed_is_that_of_the_study() -> None:
    """By its artifact: one number, the shuffle, the draws, a number for each watch, the nodes."""
    dice = GoRandom(1)
    dice.int63()
    order, specs = dice.shuffled(12), (PART, PART, WHOLE, CORES) * 3
    total = sum(spec.milli_gpus for spec in specs)
    while total + ask_of_spec(specs[drawn := dice.below(12)]).milli <= 12_000 * 1.3:
        total += specs[drawn].milli_gpus
        order.append(drawn)
    for _ in range(10):
        dice.int63()
    assert some().specs == tuple(specs[i] for i in order)
    assert [node.name for node in some().nodes] == [f"{rank:06d}-n{i}" for i, rank in enumerate(dice.permutation(6))]


def test_typical_pods_of_a_trace_are_counted_by_what_they_ask_for_not_by_memory() -> None:
    more = SHAPES.pod(4000, 9 * GI, 0, (), 0.6)
    assert typical_of([PART, WHOLE, more, CORES, CORES]) == [
        TypicalPods(2.0, Ask(4000.0, 1, 600.0), ()),
        TypicalPods(1.0, Ask(4000.0, 1, 1000.0), ("T4",)),
        TypicalPods(2.0, Ask(4000.0, 0, 0.0), ()),
    ]
    assert policy_of(policy_text("fgd", 1, typical_of([PART])), builtin_registry()) is not None


def test_what_fills_nothing_or_never_ends_is_refused() -> None:
    with pytest.raises(ValueError, match="no pod asks for GPUs"):
        some(specs=(CORES,))
    with pytest.raises(ValueError, match="no node has GPUs"):
        arrivals_of([PART], [replace(NODES[0], allocatable=amounts(1000, GI))], 1.3, 1)
    with pytest.raises(ValueError, match="more than 1,000,000 pods"):
        some(specs=(*[CORES] * 100_000, SHAPES.pod(1, 1, 0, (), 0.01)))
    with pytest.raises(ValueError, match="more than 62 GPUs"):
        arrivals_of([PART], [node_of("n", amounts(1000, GI, 63))], 1.3, 1)


def test_a_fill_overcommits_nothing_and_honours_models_and_what_did_not_fit_did_not_fit() -> None:
    found = filled("fgd", some(until=2.0))
    model = {node.name: node.labels["nvidia.com/gpu.product"] for node in found.arrivals.nodes}
    used: dict[str, float] = {}
    for spec, name in zip(found.arrivals.specs, found.node_of, strict=True):
        if name is not None:
            used[name] = used.get(name, 0.0) + spec.milli_gpus
            assert spec is not WHOLE or model[name] == "T4"
    assert max(used.values()) <= 2000
    assert sum(used.values()) == found.allocated[-1] < found.arrived[-1]
    refused = [i for i, name in enumerate(found.node_of) if name is None]
    assert refused, "more was asked for than there is"


def test_curves_round_and_average_as_the_study_does() -> None:
    arrivals = replace(some(), specs=(), gpus=())
    steps = (30.0, 60.0, 90.0, 180.0, 400.0)  # of 12,000: 0.25, 0.5, 0.75, 1.5 and 3.33 per cent
    made = FillResult(arrivals, (), (), steps, (30.0, 60.0, 60.0, 120.0, 240.0))
    # 0.5 and 1.5 round to the even one; level 1 has 0.75 alone, level 2 has 1.5
    assert made.allocation() == [round((0.25 + 0.5) / 2, 2), 0.5, 1.0, 2.0]
    gap = FillResult(arrivals, (), (), (0.0, 1200.0), (0.0, 1200.0))
    assert [math.isnan(value) for value in gap.allocation()] == [False, False, *[True] * 7, False, False]


def test_fragments_are_what_typical_pods_cannot_use_after_each_pod() -> None:
    found = filled("bestfit", some(until=1.0))
    specs = found.arrivals.specs
    kinds = {id(spec): spec for spec in specs}
    typical = Typical(
        [
            Shape(ask_of_spec(spec), (spec is not WHOLE, True), float(sum(each is spec for each in specs)))
            for spec in kinds.values()
        ],
        2,
    )
    cores = {node.name: 32_000.0 for node in found.arrivals.nodes}
    free = {node.name: [1000.0, 1000.0] for node in found.arrivals.nodes}
    device: dict[tuple[str, str], int] = {}
    expected = []
    for spec, name, groups in zip(specs, found.node_of, found.groups, strict=True):
        if name is not None:
            cores[name] -= spec.request.milli_cpu
            if spec.milli_gpus:
                key = (name, groups[0] if groups else "")
                slot = device.get(key, free[name].index(1000.0) if key not in device else 0)
                if groups:
                    device[key] = slot
                free[name][slot] = round(free[name][slot] - spec.milli_gpus)
        room = Room(
            np.array(list(cores.values())),
            np.array(list(free.values())),
            np.array([int(node.labels["nvidia.com/gpu.product"] == "T4") for node in found.arrivals.nodes]),
        )
        expected.append(float(typical.fragment(room).sum()))
    assert fragments(found, typical_of(specs)).tolist() == pytest.approx(expected)


def test_what_a_spec_asks_for() -> None:
    assert ask_of_spec(PART) == Ask(4000.0, 1, 600.0)
    assert ask_of_spec(WHOLE) == Ask(4000.0, 1, 1000.0)
    assert ask_of_spec(CORES) == Ask(4000.0, 0, 0.0)


def test_published_tables_are_read_by_workload_and_policy(tmp_path: Path) -> None:
    (tmp_path / ALLOCATION).write_text(
        "workload,sc_policy,tune,seed,total_gpus,0,1\nw,06-FGD,1.3,42,10,0.2,90\nw,06-FGD,1.3,43,10,,92\nv,06-FGD,1,1,1,1,1\n"
    )
    found = read_published(tmp_path, ALLOCATION, "w")
    assert list(found) == ["fgd"]
    assert found["fgd"].at(1) == (91.0, pytest.approx(math.sqrt(2.0)))
    assert found["fgd"].at(0) == (0.2, 0.0)
    assert math.isnan(found["fgd"].at(7)[0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n", "wanted columns workload"),
        ("workload,sc_policy,1,2\n", "wanted columns 0 to 1"),
        ("workload,sc_policy,0\nw,06-FGD,x\n", "line 2: found 'x', wanted a number"),
        ("workload,sc_policy,0\nw,\xff,1\n", "is not a table in UTF-8"),
        (f"workload,sc_policy,0\nw,{'x' * 200_000},1\n", "is not a table in UTF-8: field larger than field limit"),
    ],
)
def test_published_tables_that_mean_nothing_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / ALLOCATION).write_text(text, encoding="latin-1")
    with pytest.raises(PublishedError, match=said):
        read_published(tmp_path, ALLOCATION, "w")
    with pytest.raises(PublishedError, match="found no"):
        read_published(tmp_path / "none", ALLOCATION, "w")
