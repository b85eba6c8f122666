"""Requests to KAI's binder: what is asked for, what confirms a decision, and what comes of those that fail for ever."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.kube.api.codec import Codec
from pumice.kube.api.encode_kai import kai_bind_request
from pumice.kube.api.kinds import BIND_REQUESTS
from pumice.kube.binding.bind_requests import request_of
from pumice.kube.scheduler.cluster import KubeCluster
from pumice.kube.writers.writing import Requests, Writing
from pumice.model.bind_request import BindRequest
from pumice.model.decisions import GPU_GROUPS, Bind, Refusal
from pumice.model.devices.gpu import GpuShare
from pumice.model.events import Gone, Seen
from pumice.model.manifest import Decoder
from pumice.model.pod import PodSpec
from pumice.model.resources import Resource
from pumice.testing.build import node, pod
from tests.unit.kube.silence import SILENT

_P = pod("p", resource_version="1")
BIND = Bind(_P.key, _P.uid, "n1", "ns/job")
REQUEST = BindRequest("ns", "p", "p", "n1", pod_uid=_P.uid, uid="r")


def asking() -> KubeCluster:
    made = KubeCluster(SILENT, Writing(requests=Requests()))
    made.sink([Seen(node("n1")), Seen(_P)])
    return made


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (PodSpec(Resource(1.0, 1.0)), {"received_type": "Regular", "gpu_count": 0, "gpu_portion": ""}),
        (PodSpec(Resource(1.0, 1.0, {"nvidia.com/gpu": 2000.0})), {"gpu_count": 2, "gpu_portion": "1"}),
        (
            PodSpec(Resource(1.0, 1.0), gpu_share=GpuShare(fraction=0.5, devices=2)),
            {"received_type": "Fraction", "gpu_count": 2, "gpu_portion": "0.50", "gpu_groups": ("a", "b")},
        ),
        (
            PodSpec(Resource(1.0, 1.0), gpu_share=GpuShare(memory_mib=4000)),
            {"received_type": "Fraction", "gpu_count": 1, "gpu_portion": "0.25"},
        ),
        (PodSpec(Resource(1.0, 1.0, {"nvidia.com/mig-1g.5gb": 1000.0})), {"received_type": "MigInstance"}),
    ],
)
def test_what_is_asked_for(spec: PodSpec, found: dict[str, Any]) -> None:
    request = request_of(BIND._replace(context={GPU_GROUPS: ("a", "b")}), replace(_P, spec=spec), 16_000, 3)
    assert {key: getattr(request, key) for key in found} == found
    assert (request.pod_key, request.node, request.backoff_limit, request.pod_uid) == ("ns/p", "n1", 3, _P.uid)
    assert Decoder().decode(kai_bind_request(request)) == request


def test_a_request_that_is_heard_of_confirms_the_decision() -> None:
    cluster = asking()
    woken: list[bool] = []
    cluster.changed = lambda: woken.append(True)
    assert cluster.bind(BIND) is None
    cluster.sink([Seen(REQUEST)])
    assert cluster.in_flight.of(_P.key) is None and not woken


def test_a_request_of_somebody_else_is_news() -> None:
    cluster = asking()
    woken: list[bool] = []
    cluster.changed = lambda: woken.append(True)
    cluster.sink([Seen(replace(REQUEST, node="n2"))])
    assert woken


def test_who_fails_for_ever_waits_longer_each_time_and_leaves_nothing_behind() -> None:
    cluster, refused = asking(), 0
    for _ in range(20):
        if isinstance(cluster.bind(BIND), Refusal):
            refused += 1
            continue
        cluster.sink([Seen(REQUEST)])
        cluster.sink([Seen(replace(REQUEST, phase="Failed", reason="no device"))])
        cluster.sink([Gone(BindRequest, REQUEST.key)])
    assert refused >= 18
    assert cluster._request_binder is not None and cluster._request_binder.deletes.left == 1
    assert "failed recently" in str(cluster.bind(BIND))


def test_further_tries_of_the_binder_are_no_failure_yet() -> None:
    cluster = asking()
    assert cluster.bind(BIND) is None
    cluster.sink([Seen(REQUEST), Seen(replace(REQUEST, phase="Failed", backoff_limit=3, failed_attempts=1))])
    assert cluster._request_binder is not None and cluster._request_binder.deletes.left == 0


def test_requests_for_nodes_that_stay_away_are_deleted() -> None:
    cluster = asking()
    assert cluster._request_binder is not None
    cluster.sink([Seen(replace(REQUEST, node="away"))])
    cluster._request_binder.sweep()
    assert cluster._request_binder.deletes.left == 0
    cluster._request_binder.sweep()
    assert cluster._request_binder.deletes.left == 1


def test_a_request_that_cannot_be_read_holds_nothing() -> None:
    found = Codec(BIND_REQUESTS, Decoder()).read(
        b'{"metadata":{"name":"p","namespace":"ns"},"spec":{"podName":"p","selectedNode":["n"]}}'
    )
    assert isinstance(found.value, BindRequest) and found.bad is not None and not found.value.is_live
