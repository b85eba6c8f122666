"""A trace in blocks: which jobs are in which, when they arrive there, and what cannot be cut."""

from __future__ import annotations

import pytest

from pumice.model.pod import PodSpec
from pumice.model.resources import EMPTY
from pumice.sim.scenes.scene import Scene
from pumice.sim.workloads.blocks import BlockError, Blocks
from pumice.sim.workloads.work import SimJob, SimTask
from pumice.testing.build import node

DAY = 86_400.0


def scene(*arrivals: float) -> Scene:
    task = SimTask("t", 1, PodSpec(EMPTY))
    works = tuple(SimJob("ns", f"j{i}", "default", (task,), 1, 60.0, at) for i, at in enumerate(arrivals))
    return Scene((node("n"),), works)


def cut(found: Scene, span_s: float) -> list[dict[str, float]]:
    return [{work.key: work.arrival_s for work in block.works} for block in Blocks(found, span_s)]


def test_each_block_begins_at_its_own_start() -> None:
    found = cut(scene(0.0, 30.0, DAY + 5, 2 * DAY + 1), DAY)
    assert found == [{"ns/j0": 0.0, "ns/j1": 30.0}, {"ns/j2": 5.0}]


def test_blocks_begin_with_the_first_arrival() -> None:
    assert cut(scene(100.0, 100 + DAY, 101 + 2 * DAY), DAY) == [{"ns/j0": 0.0}, {"ns/j1": 0.0}]


def test_the_last_block_is_left_out_where_it_is_not_whole() -> None:
    assert len(cut(scene(0.0, DAY, 2.5 * DAY), DAY)) == 2


def test_jobs_of_the_last_block_are_counted() -> None:
    assert Blocks(scene(0.0, DAY, 2.1 * DAY, 2.5 * DAY), DAY).left_out == 2


def test_a_block_without_jobs_is_left_out() -> None:
    assert cut(scene(0.0, 2.5 * DAY, 3 * DAY), DAY) == [{"ns/j0": 0.0}, {"ns/j1": 0.5 * DAY}]


def test_each_block_has_the_whole_cluster() -> None:
    assert all(block.objects == scene().objects for block in Blocks(scene(0.0, DAY, 2 * DAY), DAY))


@pytest.mark.parametrize(
    ("arrivals", "span_s", "text"),
    [
        ((), DAY, "found no jobs"),
        ((0.0, DAY), DAY, r"found 1 blocks in 1\.0 days of arrivals, wanted 2 to 1000"),
        ((0.0, 2000.0), 1.0, "found 2000 blocks"),
    ],
)
def test_what_cannot_be_cut_is_an_error(arrivals: tuple[float, ...], span_s: float, text: str) -> None:
    with pytest.raises(BlockError, match=text):
        Blocks(scene(*arrivals), span_s)
