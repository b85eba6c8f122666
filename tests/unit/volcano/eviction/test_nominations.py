"""Whether a task may have others evicted, or waits for the node that it is nominated to."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.blockers import Blocker, CannotEvict, Missing, NeverPreempts, Reserved
from pumice.model.pod import PodCondition
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.testing.build import cluster, node, pod, run
from tests.unit.volcano.evicting import LEVELS, PREEMPT, gang


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        pytest.param({"preemption_policy": "Never"}, NeverPreempts(), id="never"),
        pytest.param({"nominated_node": "gone"}, Missing("Node", "gone"), id="no such node"),
        pytest.param({"nominated_node": "n"}, None, id="nobody has looked at nodes for it"),
        pytest.param({"nominated_node": "other"}, Reserved("", ("other",), leaving=True), id="others are leaving"),
    ],
)
def test_who_may_preempt(changed: dict[str, Any], why: Blocker | None) -> None:
    condition = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")
    leaving = pod("leaving", "low", on="other", deletion=1.0, conditions=(condition,), priority=1)
    state = cluster(
        LEVELS,
        node("n", 1),
        node("other", 1),
        gang("low", 1, on="n"),
        leaving,
        gang("high", 1, 1, level="high", **changed),
    )
    as_volcano = PREEMPT + "configurations: [{name: preempt, arguments: {promisedKept: false}}]\n"
    ran = run(state, as_volcano)
    found = [entry.finding for entry in ran.outcome.entries if isinstance(entry.finding, CannotEvict)]
    assert [each.because for each in found] == ([why] if why else [])
    assert bool(ran.evicted) is not bool(why)


def test_only_the_pod_that_is_nominated_to_a_node_that_is_gone_is_not_promised_another() -> None:
    """It waits until its nomination is taken back; pods equal to it do not."""
    group, *members = gang("high", 3, 2, level="high")
    members = [replace(each, nominated_node="gone") if i == 1 else each for i, each in enumerate(members)]
    ran = run(cluster(LEVELS, node("n", 3), gang("low", 3, on="n"), group, *members), PREEMPT)
    assert sorted(ran.pipelined) == ["ns/high-0", "ns/high-2"]
    assert sorted(ran.evicted) == ["ns/low-1", "ns/low-2"]


def test_nothing_is_evicted_for_a_native_group_that_never_preempts() -> None:
    group, *members = gang("high", 1, 1, level="high")
    assert isinstance(group, PodGroup)
    never = replace(group, native=NativeGroup("scheduling.k8s.io/v1beta1", never_preempts=True))
    others = LEVELS, node("n", 3), gang("low", 3, on="n")
    assert not run(cluster(*others, never, *members), PREEMPT).evicted
    assert run(cluster(*others, group, *members), PREEMPT).evicted
