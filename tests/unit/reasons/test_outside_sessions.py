"""Pods that no session sees say why they wait: their PodGroup, or its queue, does not exist."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.cycle import run_cycle
from pumice.framework.plugin.policy_file import Policy
from pumice.kai.table import DEFAULT_CONF as KAI_CONF
from pumice.model.events import Object, Seen
from pumice.model.pod import NATIVE_GROUP_MARK, Pod
from pumice.model.queue import QueueSharing
from pumice.model.workloads.gang import Gang
from pumice.model.workloads.native_group import INITIALLY_SCHEDULED, SCHEDULER_ERROR, NativeGroup
from pumice.model.workloads.podgroup import OUT_OF_REACH, PodGroup, PodGroupCondition, PodGroupStatus
from pumice.reasons.outside_sessions import GRACE_S, notices_outside, notices_passed_over, unreadable_groups
from pumice.runtime.loop import ListPlanner
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store
from pumice.testing.build import node, pod, podgroup, queue
from pumice.volcano.table import DEFAULT_CONF

NOW = 1_000.0
POLICIES = [
    pytest.param(policy_of(conf, builtin_registry()), id=name)
    for name, conf in (("volcano", DEFAULT_CONF), ("kai", KAI_CONF))
]
CREATED = pod("p", "g", creation=NOW)
NATIVE = replace(CREATED, annotations={**CREATED.annotations, NATIVE_GROUP_MARK: ""})
NO_NATIVE_GROUP = (
    "PodGroup ns/g, which spec.schedulingGroup names, does not exist in a version of scheduling.k8s.io that is read"
    " (v1, v1beta1, v1alpha3, v1alpha2)"
)
LOST = replace(podgroup("g"), queue="nowhere")
LOST_OF_KAI = replace(LOST, gang=Gang())


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("objects", "said"),
    [
        pytest.param([pod("p", "g")], {"ns/p": "PodGroup ns/g does not exist"}, id="no PodGroup"),
        pytest.param([pod("p", "g"), LOST], {"ns/p": "Queue nowhere does not exist"}, id="no queue"),
        pytest.param([pod("p", "g"), LOST_OF_KAI], {"ns/p": "Queue nowhere does not exist"}, id="no queue of KAI's"),
        pytest.param([pod("p", "g"), podgroup("g")], {}, id="all there"),
        pytest.param([pod("p", "g", on="n")], {}, id="on a node"),
        pytest.param([pod("p", "g", gates=("g",))], {}, id="held back"),
        pytest.param([pod("p", "g", creation=NOW - GRACE_S + 1)], {}, id="just created"),
        pytest.param([pod("p")], {}, id="of no gang"),
        pytest.param([NATIVE], {"ns/p": NO_NATIVE_GROUP}, id="just created, of a group in its spec"),
        pytest.param([NATIVE, podgroup("g")], {}, id="of a group in its spec that exists"),
    ],
)
def test_pods_outside_of_all_sessions(policy: Policy, objects: list[Object], said: dict[str, str]) -> None:
    store = Store(scheduler_names=("volcano",))
    for each in (node("n"), queue("default"), *objects):
        store.apply(Seen(each))
    outcome = run_cycle(store.snapshot(), policy, NOW, ListPlanner())
    found = {each.pod: each.message for each in notices_outside(outcome)}
    assert {key: text.lower() for key, text in found.items()} == {key: text.lower() for key, text in said.items()}


PROBLEM = "spec.parentCompositePodGroupName: found a circle"
BROKEN = replace(
    podgroup("g"),
    min_member=OUT_OF_REACH,
    unparsable=(PROBLEM,),
    native=NativeGroup("scheduling.k8s.io/v1beta1"),
)
WRITTEN = PodGroupStatus(conditions=(PodGroupCondition(INITIALLY_SCHEDULED, "False", SCHEDULER_ERROR, PROBLEM),))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("group", "said"),
    [
        pytest.param(BROKEN, {"ns/g": PROBLEM}, id="unreadable"),
        pytest.param(replace(BROKEN, status=WRITTEN), {}, id="its condition is written"),
        pytest.param(replace(BROKEN, native=None), {}, id="not of Kubernetes"),
        pytest.param(replace(BROKEN, min_member=1), {}, id="an unreadable field that forbids nothing"),
    ],
)
def test_unreadable_native_groups_say_why_until_it_is_written(
    policy: Policy, group: PodGroup, said: dict[str, str]
) -> None:
    store = Store(scheduler_names=("volcano",))
    for each in (node("n"), queue("default"), group):
        store.apply(Seen(each))
    outcome = run_cycle(store.snapshot(), policy, NOW, ListPlanner())
    assert {each.job: each.error for each in unreadable_groups(outcome)} == said


OLD = tuple(pod(f"p{i}", "g", creation=NOW - GRACE_S) for i in range(2))
NEW = replace(OLD[1], creation=NOW)
GANG = replace(podgroup("g", 3), gang=Gang())


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        pytest.param([*OLD, GANG], "2 of the 3 pods of minMember exist", id="too few pods"),
        pytest.param([OLD[0], NEW, GANG], "", id="pods are still being created"),
        pytest.param([*OLD, replace(GANG, min_member=2)], "", id="enough pods"),
        pytest.param(
            [*OLD, replace(GANG, gang=Gang(mark_unschedulable=False))], "", id="a gang that wants no such text"
        ),
        pytest.param([NEW, replace(BROKEN, gang=Gang())], f"PodGroup ns/g cannot be read: {PROBLEM}", id="unreadable"),
    ],
)
def test_gangs_that_kai_passes_over_say_why(objects: list[Object], said: str) -> None:
    store = Store(scheduler_names=("volcano",))
    for each in (node("n"), replace(queue("default"), sharing=QueueSharing()), *objects):
        store.apply(Seen(each))
    outcome = run_cycle(store.snapshot(), policy_of(KAI_CONF, builtin_registry()), NOW, ListPlanner())
    pods = [each.key for each in objects if isinstance(each, Pod)]
    assert {each.pod: each.message for each in notices_passed_over(outcome)} == (
        dict.fromkeys(pods, said) if said else {}
    )
