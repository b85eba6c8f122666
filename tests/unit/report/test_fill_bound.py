"""The bound: what can be worked out by hand, and never below what a policy did."""

from __future__ import annotations

import pytest

from pumice.model.pod import PodSpec
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.fills.fill import Arrivals, arrivals_of, fill, policy_text
from pumice.sim.traces.shapes import Shapes, amounts, node_of

pytest.importorskip("highspy")

from pumice.report.fill_bound import bound

GI = 2**30
SHAPES = Shapes()
NODES = tuple(node_of(f"n{i}", amounts(32_000, 64 * GI, 2, 110), "T4" if i % 2 else "P100") for i in range(6))


def arrived(*specs: tuple[PodSpec, int]) -> Arrivals:
    listed = tuple(spec for spec, count in specs for _ in range(count))
    return Arrivals(NODES, listed, tuple(spec.milli_gpus for spec in listed))


def pod(part: float = 0.0, gpus: int = 0, models: tuple[str, ...] = (), cores: float = 1000.0) -> PodSpec:
    return SHAPES.pod(cores, GI, gpus, models, part)


def test_a_device_holds_one_part_of_six_tenths() -> None:
    assert bound(arrived((pod(0.6), 12)), 1e9) == pytest.approx(60.0)
    assert bound(arrived((pod(0.6), 12), (pod(0.4), 12)), 1e9) == pytest.approx(100.0)


def test_models_cores_and_what_was_asked_for_bound_too() -> None:
    assert bound(arrived((pod(gpus=1, models=("T4",)), 12)), 1e9) == pytest.approx(50.0)
    assert bound(arrived((pod(gpus=1, cores=32_000.0), 12)), 1e9) == pytest.approx(50.0)
    assert bound(arrived((pod(gpus=2), 3)), 1e9) == pytest.approx(50.0)
    assert bound(arrived((pod(gpus=1), 12)), 50.0) == pytest.approx(50.0), "as far as so much was asked for"


@pytest.mark.parametrize("policy", ["bestfit", "priced"])
def test_no_policy_places_more(policy: str) -> None:
    specs = [pod(0.6), pod(0.3), pod(gpus=1, models=("T4",)), pod(0.5, models=("P100",)), pod(cores=8000.0)] * 4
    arrivals = arrivals_of(specs, NODES, 2.0, 3)
    filled = fill(arrivals, policy_of(policy_text(policy, 0), builtin_registry()))
    assert 100 * filled.allocated[-1] / arrivals.capacity <= bound(arrivals, 1e9) + 1e-6 <= 100.0 + 1e-5
