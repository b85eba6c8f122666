"""The policy of a case, and what it names that Pumice does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.policy_file import ActionOption, Policy, read_policy
from pumice.framework.plugin.registry import Registry
from tests.conformance.runner.case import Case
from tests.conformance.runner.doubles import doubles
from tests.conformance.runner.result import NotYet, Unusable

_ANY_ACTION = "allocate"

#: Switches of rules that Pumice has beside Volcano's, as they must be for what Volcano decided (decision 0018).
_AS_VOLCANO: Mapping[str, Mapping[str, Any]] = {"gang": {"finishPartialGangs": False, "oneCondition": False}}


def policy_of_case(case: Case, registry: Registry) -> Policy:
    """What decides in a case.

    Confs of Volcano's own tests describe a session that was built directly: a switch that is not written is off, and
    nothing is checked. Generated ones went through Volcano's loader.
    Raises: NotYet naming what is missing, Unusable for a conf that Volcano itself would refuse.
    """
    registry = registry.with_plugins("volcano", doubles(case.raw.get("fakePlugins") or {}))
    missing = list(missing_names(case, registry))
    if missing:
        raise NotYet(", ".join(missing))
    named = actions_of(case.conf)
    conf = {**case.conf, "actions": ", ".join(named) or _ANY_ACTION, "tiers": _as_volcano(_registered(case))}
    try:
        policy = read_policy(
            conf, registry, strict=False, unset_switches=case.generated, check_conflicts=case.generated
        )
    except PolicyError as error:
        raise Unusable(str(error)) from None
    unknown = [warning for warning in policy.warnings if "unknown" in warning]
    if unknown:
        raise NotYet("; ".join(unknown))
    return policy if named else replace(policy, actions=())


def actions_of(conf: Any) -> list[str]:
    """Names in an ``actions`` text, of a whole conf or of one cycle."""
    return [name.strip() for name in str(conf.get("actions") or "").split(",") if name.strip()]


def step_of(policy: Policy, name: str) -> ActionOption:
    """The policy's step of this name."""
    return next(step for step in policy.actions if step.name == name)


def _registered(case: Case) -> list[Any]:
    """The tiers without plugins that the recorded test did not register: Volcano logs and skips them."""
    absent = set(case.raw.get("pluginsNotRegistered") or ())
    tiers = []
    for tier in case.conf.get("tiers") or ():
        tiers.append({**tier, "plugins": [p for p in tier.get("plugins") or () if p.get("name") not in absent]})
    return tiers


def _as_volcano(tiers: list[Any]) -> list[Any]:
    """The tiers with every rule off that Volcano does not have."""
    return [{**tier, "plugins": [_without_more(plugin) for plugin in tier["plugins"]]} for tier in tiers]


def _without_more(plugin: Mapping[str, Any]) -> Mapping[str, Any]:
    more = _AS_VOLCANO.get(str(plugin.get("name")))
    return plugin if more is None else {**plugin, "arguments": {**more, **(plugin.get("arguments") or {})}}


def missing_names(case: Case, registry: Registry) -> Iterator[str]:
    """Actions and plugins that the case names and Pumice does not have, each once."""
    seen = set()
    cycles = case.raw.get("cycles")
    sources = [case.conf, *(cycles if isinstance(cycles, list) else ())]
    for kind, names, known in (
        ("action", [a for source in sources for a in actions_of(source)], registry.action),
        ("plugin", [p.get("name") for tier in _registered(case) for p in tier["plugins"]], registry.plugin),
    ):
        for name in names:
            if (kind, name) not in seen and known("volcano", str(name)) is None:
                seen.add((kind, name))
                yield f"{kind} {name}"
