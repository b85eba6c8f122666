"""Hints for pods with parts of GPUs count the devices that have the part free."""

from __future__ import annotations

import pytest

from pumice.model.blockers import Missing, NoPart
from pumice.model.devices.gpu import GPU_RESOURCE, GpuShare
from pumice.reasons.blockers import Blockers
from pumice.reasons.sentences import sentence
from tests.unit.kai.cluster import cycle, node, policy, queue, store
from tests.unit.kai.devices.test_shared_gpus import MEMORY, SHARING, job_of


def nearest(gpus: int, share: GpuShare, running: int, waiting: int) -> object:
    old = job_of("old", ["a"] * running, GpuShare(0.5), "g")
    found = store(node("a", gpus, labels=MEMORY), queue("q"), *old, *job_of("new", [""] * waiting, share))
    outcome = cycle(found, policy(["allocate"], SHARING)).outcome
    (row,) = (row for row in outcome.live_jobs.tolist() if outcome.tables.jobs.uids[row].endswith("new"))
    return Blockers(outcome).nearest(row)


@pytest.mark.parametrize(
    ("gpus", "share", "running", "waiting", "expected"),
    [
        (1, GpuShare(0.5), 1, 2, NoPart("a", 0.5, 1, 1, 0, 1)),
        (1, GpuShare(0.7), 1, 2, NoPart("a", 0.7, 1, 1, 0, 2)),
        (2, GpuShare(0.5), 1, 5, NoPart("a", 0.5, 1, 2, 0, 2)),
        (2, GpuShare(memory_mib=400), 1, 4, NoPart("a", 0.4, 1, 2, 0, 1)),
        (2, GpuShare(0.7, devices=2), 1, 1, NoPart("a", 0.7, 2, 2, 1, 1)),
        (0, GpuShare(0.5), 0, 1, Missing("resource", GPU_RESOURCE)),
    ],
)
def test_the_next_pod_lacks_a_device_with_its_part_free(
    gpus: int, share: GpuShare, running: int, waiting: int, expected: object
) -> None:
    found = nearest(gpus, share, running, waiting)
    assert getattr(found, "first", found) == expected


@pytest.mark.parametrize(
    ("blocker", "text"),
    [
        (NoPart("a", 0.5, 1, 1, 0), "a has 1 GPU, none of them with 0.5 free; it asks for 0.5 of a GPU a pod"),
        (NoPart("a", 0.7, 2, 4, 1), "a has 4 GPUs, 1 of them with 0.7 free; it asks for 0.7 of 2 GPUs a pod"),
        (NoPart("a", 0.5, 1, 0, 0), "a has no GPU; it asks for 0.5 of a GPU a pod"),
    ],
)
def test_a_hint_says_which_part_is_not_free(blocker: NoPart, text: str) -> None:
    assert sentence(blocker) == text
