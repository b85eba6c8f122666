"""Owners whose pods KAI's pod-grouper refuses or leaves as others wrote them, since version 0.17."""

from __future__ import annotations

import pytest

from pumice.runtime.controllers.kai.groups import GroupingSettings, reconcile_grouping
from pumice.runtime.controllers.kai.plan import NoGang
from pumice.runtime.controllers.writes import Patch
from tests.unit.runtime.controllers.test_kai_groups import (
    LWS,
    Obj,
    grouped,
    owner,
    pod,
    replicas,
    with_annotations,
    with_spec,
)

_REPLICA, _LWS = "training.kubeflow.org", "leaderworkerset.sigs.k8s.io"
PYTORCH = owner("kubeflow.org/v1", "PyTorchJob", spec={"pytorchReplicaSpecs": replicas(Worker=30_000)})
SEGMENTED = with_annotations(LWS, segment_size="2")
ALONE = owner("x.io/v1", "Any")


def worker(index: str) -> Obj:
    made = pod(labels={f"{_REPLICA}/replica-type": "worker", f"{_REPLICA}/replica-index": index})
    return with_annotations(made, segment_size="2")


def lws_pod(index: str) -> Obj:
    return pod(labels={f"{_LWS}/group-index": "0", f"{_LWS}/worker-index": index})


@pytest.mark.parametrize(
    ("of", "top", "said"),
    [
        pytest.param(
            worker("-1"),
            with_spec(PYTORCH, {"pytorchReplicaSpecs": replicas(Worker=4)}),
            "replica-index: found '-1', wanted an integer from 0",
            id="a negative index of PyTorch",
        ),
        pytest.param(worker("0"), PYTORCH, "found 15002 groups of pods, wanted at most", id="too many segments"),
        pytest.param(
            lws_pod("-1"),
            SEGMENTED,
            "worker-index: found '-1', wanted an integer from 0",
            id="a negative index of a LeaderWorkerSet",
        ),
        pytest.param(
            pod(),
            owner("amlarc.azureml.com/v1alpha1", "AmlJob"),
            "envs.AZUREML_NODE_COUNT: found none, wanted an integer from 1",
            id="an AmlJob without its number of nodes",
        ),
        pytest.param(
            pod(),
            with_annotations(owner("apps/v1", "StatefulSet"), min_member="2"),
            "spec.podManagementPolicy: found OrderedReady, wanted Parallel",
            id="a minimum of a StatefulSet whose pods come one after the other",
        ),
    ],
)
def test_what_cannot_be_grouped_is_refused(of: Obj, top: Obj, said: str) -> None:
    with pytest.raises(NoGang) as error:
        grouped(of, top)
    assert said in str(error.value)


def test_a_topology_that_others_set_stays_while_the_workload_names_none() -> None:
    settings, found = GroupingSettings(), grouped(pod(), ALONE)
    place = {"topology": "cluster", "requiredTopologyLevel": "rack"}
    there = {**found.group, "metadata": {**found.group["metadata"], "uid": "g"}}
    there["spec"] = {**found.group["spec"], "topologyConstraint": place}
    assert not [each for each in reconcile_grouping(pod(), there, found, settings) if isinstance(each, Patch)][1:]
    named = with_annotations(ALONE, **{"topology": "cluster", "topology_required_placement": "zone"})
    change, _ = reconcile_grouping(pod(), there, grouped(pod(), named), settings)
    assert isinstance(change, Patch)
    assert change.merge["spec"]["topologyConstraint"]["requiredTopologyLevel"] == "zone"
