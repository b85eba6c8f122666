"""The policy that a case was recorded under, and what of it Pumice does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.framework.plugin.registry import Registry
from tests.conformance.runner.result import NotYet

Raw = Mapping[str, Any]

DIALECT = "kai"
_DEFAULT = (
    *("predicates", "proportion", "priority", "elastic", "kubeflow", "ray", "nodeavailability", "gpusharingorder"),
    *("gpupack", "resourcetype", "subgrouporder", "taskorder", "nominatednode", "dynamicresources"),
    *("nodeplacement", "minruntime", "topology", "snapshot"),
)
_ARGUMENTS: Raw = {"nodeplacement": {"gpu": "binpack", "cpu": "binpack"}}
#: What was in force for all cases, by argument of an action, where the action has it.
_IN_FORCE: Raw = {
    "useSchedulingSignatures": False,
    "maxConsolidationPreemptees": -1,
    "allowConsolidatingReclaim": True,
}
_GRACE = "defaultStalenessGracePeriod"


def policy_of_case(case: Raw, registry: Registry) -> tuple[Policy, list[str]]:
    """The policy, and the plugins that it goes without because Pumice does not have them, of those that could have
    decided something in this case.

    Raises: NotYet naming the actions that are missing.
    """
    # As FORMAT.md of kai-0.17 says: the plugin is on where a node has zones.
    zones = [{"name": "numa"}] if any("numa" in node for node in case["nodes"]) else []
    named = [*_plugins(case["config"]), *zones]
    missing = [f"action {name}" for name in case["actions"] if registry.action(DIALECT, name) is None]
    if missing:
        raise NotYet(", ".join(missing))
    plugins = [each for each in named if registry.plugin(DIALECT, each["name"]) is not None]
    idle = {"snapshot"} | (set() if case.get("dra") else {"dynamicresources"})
    without = [f"plugin {each['name']}" for each in named if each not in plugins and each["name"] not in idle]
    conf = {
        "dialect": DIALECT,
        "actions": ", ".join(case["actions"]),
        "tiers": [{"plugins": plugins}],
        "configurations": [
            {"name": name, "arguments": arguments}
            for name in case["actions"]
            if (arguments := dict(_settings(case["config"], registry, name)))
        ],
    }
    return read_policy({key: value for key, value in conf.items() if value}, registry), without


def _plugins(config: Raw) -> Iterator[Raw]:
    named = config["plugins"]
    listed = [{"name": name, "args": _ARGUMENTS.get(name)} for name in _DEFAULT] if named == "default" else named
    for each in listed:
        if each["name"] == "predicates" and not config["k8s_predicates"]:
            continue
        yield {"name": each["name"], **({"arguments": each["args"]} if each.get("args") else {})}


def _settings(config: Raw, registry: Registry, action: str) -> Iterator[tuple[str, Any]]:
    spec = registry.action(DIALECT, action)
    known = spec.arguments if spec is not None else {}
    for name, value in {**_IN_FORCE, _GRACE: config["staleness_grace_s"]}.items():
        if name in known:
            yield name, value
