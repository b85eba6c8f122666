"""SchedulingShards of KAI's as policies: the defaults of its operator, and what a shard says of them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.policy_file import Policy
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry


def shard(**spec: Any) -> str:
    head = {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": "s"}}
    return json.dumps({**head, "spec": spec})


def read(**spec: Any) -> Policy:
    return policy_of(shard(**spec), builtin_registry())


def plugins(policy: Policy) -> list[str]:
    return [option.spec.name for option in policy.options]


def actions(policy: Policy) -> list[str]:
    return [action.name for action in policy.actions]


def arguments(policy: Policy, name: str) -> dict[str, Any]:
    return dict(next(option.arguments for option in policy.options if option.spec.name == name))


def test_a_shard_that_says_nothing_has_the_operators_defaults() -> None:
    found = read()
    assert plugins(found) == [
        *("predicates", "proportion", "priority", "nodeavailability", "resourcetype", "podaffinity", "elastic"),
        *("kubeflow", "ray", "subgrouporder", "taskorder", "nominatednode", "dynamicresources", "minruntime"),
        *("topology", "snapshot", "sg-nodelocalgreedy", "sg-multinodegang"),
        *("gpupack", "nodeplacement", "gpusharingorder"),
    ]
    assert actions(found) == ["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]
    assert found.warnings == ()


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_where_pods_are_spread_nothing_is_consolidated(kind: str) -> None:
    found = read(placementStrategy={kind: "spread"})
    assert actions(found) == ["allocate", "reclaim", "preempt", "stalegangeviction"]
    both = {"gpu": "binpack", "cpu": "binpack"} | {kind: "spread"}
    assert arguments(found, "nodeplacement") == both
    names = {"gpupack", "gpuspread", "gpusharingorder"} & set(plugins(found))
    assert names == ({"gpuspread"} if kind == "gpu" else {"gpupack", "gpusharingorder"})


def test_plugins_and_actions_are_merged_by_name_and_ordered_by_priority() -> None:
    found = read(
        kValue=0.5,
        minRuntime={"preemptMinRuntime": "5m"},
        plugins={
            "ray": {"enabled": False},
            "elastic": {"priority": 5_000},
            "reflectjoborder": {},
            "minruntime": {"arguments": {"reclaimResolveMethod": "queue"}},
        },
        actions={"preempt": {"priority": 350}, "stalegangeviction": {"enabled": False}},
        queueDepthPerAction={"allocate": 7},
    )
    assert actions(found) == ["allocate", "consolidation", "preempt", "reclaim"]
    names = plugins(found)
    assert (names[0], names[-1], "ray" in names) == ("elastic", "reflectjoborder", False)
    assert arguments(found, "proportion")["kValue"] == 0.5
    assert arguments(found, "minruntime") == {"reclaimResolveMethod": "queue"}, "they replace all that was there"
    assert found.section("queueDepthPerAction") == {"allocate": 7}


def test_what_is_a_flag_here_is_reported() -> None:
    found = read(partitionLabelValue="blue", args={"v": "4"})
    assert [each.partition(": ")[2] for each in found.warnings] == [
        "spec.partitionLabelValue: use --partition-label-value=blue",
        "spec.args: v is a flag of KAI's scheduler (ignored)",
    ]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"kvalue": 1}, 'spec: unknown key "kvalue"; did you mean "kValue"?'),
        ({"plugins": 5}, "spec.plugins: found a number, wanted a mapping"),
        ({"plugins": {"ray": 5}}, "spec.plugins.ray: found a number, wanted a mapping"),
        ({"plugins": {"ray": {"enabled": 1}}}, "spec.plugins.ray.enabled: found 1, wanted true or false"),
        (
            {"actions": {"reclaim": {"priority": True}}},
            "spec.actions.reclaim.priority: found True, wanted a whole number",
        ),
        ({"actions": {"reclaim": {"arguments": {}}}}, 'spec.actions.reclaim: unknown key "arguments"'),
        ({"placementStrategy": {"gpu": "both"}}, "spec.placementStrategy: found gpu: both"),
        ({"plugins": {"nosuch": {}}}, 'unknown plugin "nosuch"'),
        ({"usageDBConfig": {"clientType": "influx"}}, "clientType: found 'influx'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(said)):
        read(**spec)
