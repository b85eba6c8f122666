"""What is free of each GPU, and what a class asks for, as policies that place by it see it."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.model.devices.gpu import GpuShare
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.ours.fragments import Ask
from pumice.ours.free_gpus import MODEL_LABEL, FreeGpus, ask_of
from tests.unit.kai.cluster import job, node, opened, queue, rows_of, store


def sharing(objects: list[Object], share: GpuShare | None) -> list[Object]:
    return [replace(e, spec=replace(e.spec, gpu_share=share)) if isinstance(e, Pod) else e for e in objects]


@pytest.mark.parametrize(
    ("gpus", "share", "ask"),
    [
        pytest.param(0, None, Ask(1000.0, 0, 0.0), id="none"),
        pytest.param(2, None, Ask(1000.0, 2, 1000.0), id="whole ones"),
        pytest.param(0, GpuShare(0.25), Ask(1000.0, 1, 250.0), id="a part of one"),
        pytest.param(0, GpuShare(0.5, devices=2), Ask(1000.0, 2, 1000.0), id="parts of two count as two"),
        pytest.param(0, GpuShare(memory_mib=500), Ask(1000.0, 1, 1000.0), id="memory counts as a whole one"),
    ],
)
def test_what_a_class_asks_for(gpus: int, share: GpuShare | None, ask: Ask) -> None:
    ssn = opened(store(node("a", 8), queue("q"), sharing(job("p", "q", [""], gpus), share)))
    assert ask_of(Task(ssn.tables, rows_of(ssn)["p-0"]).cls) == ask


def test_what_is_free_with_most_first_and_what_others_are_leaving_too() -> None:
    models = {"a": "old", "b": "new", "c": "old"}
    nodes = [node(name, gpus, labels={MODEL_LABEL: models[name]}) for name, gpus in (("a", 4), ("b", 2), ("c", 0))]
    ssn = opened(store(nodes, queue("q"), job("x", "q", ["a"], 1), job("y", "q", ["b"], 2)))
    free, rows = FreeGpus(ssn), NodeRows(ssn.tables, np.arange(3))
    assert free.devices.tolist() == [4.0, 2.0, 0.0]
    assert free.models[0] == free.models[2] != free.models[1]
    assert sorted(free.models[free.first_of_models].tolist()) == [0, 1]
    room = free.room(rows)
    assert room.gpus.tolist() == [[1000.0] * 3 + [0.0], [0.0] * 4, [0.0] * 4]
    assert room.milli_cpu.tolist() == [63_000.0, 63_000.0, 64_000.0]
    ssn.statement().evict([rows_of(ssn)["y-0"]], "go")
    assert free.room(rows).gpus[1].tolist() == [1000.0, 1000.0, 0.0, 0.0], "what is kept follows"
