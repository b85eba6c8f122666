"""Nodes whose GPUs are cut into MIG instances: who may go there."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.columns.views import Task
from pumice.kai.mig import MigRules
from pumice.model.devices.gpu import MIG_STRATEGY_LABEL, GpuShare
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.resources import Resource
from tests.unit.kai.cluster import job, node, opened, queue, rows_of, store

MIG = "nvidia.com/mig-1g.5gb"
NODES = [node("plain"), *(node(name, labels={MIG_STRATEGY_LABEL: name}) for name in ("single", "mixed"))]
NODES[2] = replace(NODES[2], allocatable=Resource(64_000.0, 1e12, {"pods": 110.0, MIG: 2000.0}, 110))


def one(name: str, on: str = "", *, gpus: int = 0, mig: float = 0.0, share: GpuShare | None = None) -> list[Object]:
    """A job of one pod."""
    objects = job(name, "q", [on], gpus)
    (pod,) = [each for each in objects if isinstance(each, Pod)]
    asked = pod.spec.request
    more = Resource(asked.milli_cpu, asked.memory, {**(asked.scalars or {}), **({MIG: mig} if mig else {})})
    return [*objects[:2], replace(pod, spec=replace(pod.spec, request=more, gpu_share=share))]


OLD = GpuShare(legacy_mig=True)


@pytest.mark.parametrize(
    ("asks", "nodes"),
    [
        pytest.param({}, ["plain", "single", "mixed"], id="asks for no GPU"),
        pytest.param({"gpus": 1}, ["plain", "single"], id="a whole GPU"),
        pytest.param({"share": GpuShare(0.5)}, ["plain"], id="a part of one"),
        pytest.param({"mig": 1000.0}, ["mixed"], id="an instance"),
        pytest.param({"share": OLD}, [], id="an instance of the old kind"),
    ],
)
def test_where_a_pod_may_go(asks: dict[str, object], nodes: list[str]) -> None:
    ssn = opened(store(NODES, queue("q"), one("p", **asks), one("other", mig=1000.0)))  # type: ignore[arg-type]
    against = MigRules(ssn).against(Task(ssn.tables, rows_of(ssn)["p-0"]).cls)
    names = ssn.tables.nodes.facts.names
    assert sorted(names[row] for row in np.flatnonzero(~against).tolist()) == sorted(nodes)


def test_where_instances_of_the_old_kind_are_no_others_go() -> None:
    ssn = opened(store(NODES, queue("q"), one("old", "mixed", share=OLD), one("p", mig=1000.0)))
    assert MigRules(ssn).against(Task(ssn.tables, rows_of(ssn)["p-0"]).cls).all()
