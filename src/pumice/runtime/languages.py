"""All policy languages there are."""

from __future__ import annotations

from pumice.framework.plugin.on_demand import OnDemand
from pumice.framework.plugin.registry import Dialect, Registry

#: Each imported when a policy is written in it, or reaches into it.
LANGUAGES: OnDemand[Dialect] = OnDemand(
    {"volcano": "pumice.volcano.table:VOLCANO", "kai": "pumice.kai.table:KAI"}, lambda name, dialect: dialect
)


def builtin_registry() -> Registry:
    """A registry with every built-in action and plugin."""
    return Registry(LANGUAGES)
