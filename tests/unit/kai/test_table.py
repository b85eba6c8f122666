"""What a conf in KAI's language may say."""

import pytest

from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.policy_file import read_policy
from pumice.kai.accounting import ACCOUNTING
from pumice.kai.table import ACTIONS, DEFAULT_ACTIONS, DEFAULT_CONF, DEFAULT_PLUGINS, PLUGINS
from pumice.model.status import TaskStatus
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from tests.unit.kai.cluster import cycle, job, node, queue, store

REGISTRY = builtin_registry()


def test_the_default_order_of_actions_is_kais() -> None:
    found = read_policy({"dialect": "kai", "tiers": []}, REGISTRY)
    assert tuple(action.name for action in found.actions) == DEFAULT_ACTIONS == tuple(ACTIONS)


def test_one_line_is_kais_default_policy() -> None:
    named, default = policy_of("dialect: kai\n", REGISTRY), policy_of(DEFAULT_CONF, REGISTRY)
    assert [each.spec.name for each in named.options] == [each.spec.name for each in default.options] != []
    assert read_policy({"dialect": "kai", "tiers": []}, REGISTRY).tiers == ()


def test_every_plugin_of_kais_is_there() -> None:
    there = set(REGISTRY.plugins("kai"))
    assert set(DEFAULT_PLUGINS) <= there
    assert len(there - set(REGISTRY.ours)) == len(PLUGINS)


def test_plugins_that_serve_a_page_need_no_hook() -> None:
    pages = {spec.page for spec in REGISTRY.dialects["kai"].plugins.values() if not spec.hooks}
    assert pages == {"/get-snapshot", "/get-job-order"}


def test_the_default_conf_runs() -> None:
    found = policy_of(DEFAULT_CONF, REGISTRY)
    assert cycle(store(node("a"), queue("q"), job("j", "q", [""])), found).binds == {"j-0": "a"}


def test_plugins_of_one_name_in_two_languages_are_two_plugins() -> None:
    tiers = [{"plugins": [{"name": "proportion"}, {"name": "kai/proportion"}]}]
    found = read_policy({"actions": "allocate", "tiers": tiers}, REGISTRY)
    by_point = found.plugins_at(REGISTRY.dialects["kai"].points["on_allocate"])
    assert by_point == [[0, 1]]


def test_arguments_of_another_languages_action_are_taken() -> None:
    conf = {"actions": "allocate, kai/consolidation", "tiers": []}
    settings = [{"name": "kai/consolidation", "arguments": {"maxConsolidationPreemptees": 3}}]
    found = read_policy({**conf, "configurations": settings}, REGISTRY)
    assert found.actions[1].arguments == {"maxConsolidationPreemptees": 3}
    with pytest.raises(PolicyError, match="unknown action"):
        read_policy({**conf, "configurations": [{"name": "kai/nothing"}]}, REGISTRY)


def test_wrong_arguments_are_reported() -> None:
    for name, arguments in (
        ("nodeplacement", {"gpu": "heap"}),
        ("minruntime", {"defaultPreemptMinRuntime": "soon"}),
        ("minruntime", {"defaultReclaimMinRuntime": "-1s"}),
        ("minruntime", {"reclaimResolveMethod": "dice"}),
    ):
        plugins = [{"name": name, "arguments": arguments}]
        with pytest.raises(PolicyError, match="wanted"):
            read_policy({"dialect": "kai", "tiers": [{"plugins": plugins}]}, REGISTRY)


def test_evicted_tasks_may_come_back() -> None:
    assert ACCOUNTING.comes_back
    assert ACCOUNTING.moves[TaskStatus.RELEASING] >= {TaskStatus.RUNNING, TaskStatus.PIPELINED}
