"""A short soak: gangs come and go by the hundred, and the scheduler keeps none of them."""

from __future__ import annotations

from pathlib import Path

from bench.kube_soak import BALLAST_BYTES, soak
from tests.kube.server import ApiServer

PODS, WARM_UP = 4_000, 1_000


async def test_churn_loses_nothing_and_leaves_nothing_behind(assets_server: ApiServer, tmp_path: Path) -> None:
    """A pod that is kept anywhere keeps its ballast. It may leave one line of its events behind."""
    found = await soak(assets_server, tmp_path, pods=PODS, rate=200.0, warm_up=WARM_UP, every_s=0.0)

    assert found["pods_bound"] >= PODS
    assert found["withdrawn"]
    assert found["changes"] > 5
    assert (found["lost"], found["bound_twice"], found["errors"]) == (0, 0, 0)
    assert found["after_warm_up"]["bytes_per_pod"] < BALLAST_BYTES / 2
