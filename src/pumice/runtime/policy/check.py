"""What a policy that can be read means, and what in it is likely a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pumice.framework.plugin.policy_file import PluginOption, Policy

_EVICTING = ("preempt", "reclaim", "gangpreempt", "gangreclaim")


def warnings_of(policy: Policy) -> list[str]:
    """Return what is likely not meant, a sentence each."""
    return [*policy.warnings, *_ignored_budgets(policy)]


def _ignored_budgets(policy: Policy) -> Iterator[str]:
    """Yield a warning for actions that evict pods of Volcano's jobs although no plugin asks disruption budgets."""
    if policy.dialect.name == "kai" or any(option.spec.name == "pdb" for option in policy.options):
        return
    evicting = [action.name for action in policy.actions if action.name in _EVICTING]
    if evicting:
        actions = ", ".join(evicting)
        yield f"{actions}: no tier has the plugin pdb, so pods are evicted that a PodDisruptionBudget protects"


def described(policy: Policy) -> dict[str, Any]:
    """Return a policy as ``pumice check-conf --json`` prints it."""
    return {
        "dialect": policy.dialect.name,
        "actions": [{"name": action.name, "arguments": dict(action.arguments)} for action in policy.actions],
        "tiers": [
            [
                {
                    "name": o.spec.name,
                    "arguments": arguments_of(o),
                    "off": switched_off(o),
                    "on": [s for s, on in o.switches.items() if on],
                }
                for o in tier
            ]
            for tier in policy.tiers
        ],
    }


def arguments_of(option: PluginOption) -> dict[str, Any]:
    """Return what is given, and the default of what is not, under the names that policy files spell. Of an argument
    with a former name there is the name that is given."""
    known, former = option.spec.arguments, former_names(option)
    shown = {
        key: argument
        for key, argument in known.items()
        if key != "hierarchy"
        and (key in option.arguments or not (argument.now_called or argument.name in former.values()))
    }
    return {argument.name: option.arguments.get(key, argument.default) for key, argument in shown.items()}


def former_names(option: PluginOption) -> dict[str, str]:
    """Return the former names of arguments that are given, each with the present one."""
    return {
        argument.name: argument.now_called
        for key, argument in option.spec.arguments.items()
        if argument.now_called and key in option.arguments
    }


def switched_off(option: PluginOption) -> list[str]:
    """Switches that are off and would matter: the plugin has hooks behind them."""
    points = {point for point, *_ in option.spec.hooks}
    return sorted({switch for point in points for switch in point.any_switch if not option.switches.get(switch, False)})
