"""Arguments of plugins are shown as a policy file spells them, and what is shown can be read again."""

from __future__ import annotations

import pytest

from pumice.framework.plugin.policy_file import Policy
from pumice.runtime.policy.check import arguments_of, described
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.volcano.table import VOLCANO


def policy_with(text: str) -> Policy:
    return policy_of(f"actions: allocate\ntiers: [{{plugins: [{text}]}}]", builtin_registry())


@pytest.mark.parametrize(
    ("plugin", "spelled"),
    [
        ("predicates", "predicate.NodePortsEnable"),
        ("predicates", "volumebinding.bindTimeoutSeconds"),
        ("overcommit", "overcommit-factor"),
        ("sla", "sla-waiting-time"),
        ("nodeorder", "leastrequested.weight"),
        ("binpack", "binpack.cpu"),
        ("network-topology-aware", "hypernode.binpack.normal-pod.enable"),
        ("tdm", "tdm.revocable-zone."),
        ("task-topology", "task-topology.weight"),
        ("gang", "finishPartialGangs"),
    ],
)
def test_an_argument_is_shown_as_volcanos_conf_spells_it(plugin: str, spelled: str) -> None:
    ((option,),) = policy_with(f"{{name: {plugin}}}").tiers
    assert spelled in arguments_of(option)


def test_what_was_given_is_shown_under_the_same_name() -> None:
    given = "{name: predicates, arguments: {predicate.NodePortsEnable: false}}"
    (((shown,),),) = (described(policy_with(given))["tiers"],)
    assert shown["arguments"]["predicate.NodePortsEnable"] is False


@pytest.mark.parametrize("name", sorted(VOLCANO.plugins))
def test_names_that_are_shown_are_known(name: str) -> None:
    ((option,),) = policy_with(f"{{name: {name}}}").tiers
    names = {key: value for key, value in arguments_of(option).items() if not key.endswith(".") and value is not None}
    quoted = ", ".join(f'"{key}": {value!r}' for key, value in names.items() if isinstance(value, int | float))
    policy_with(f"{{name: {name}, arguments: {{{quoted}}}}}".replace("True", "true").replace("False", "false"))
