"""All policy languages there are."""

from __future__ import annotations

from pumice.framework.registry import Registry
from pumice.kai.table import kai_dialect
from pumice.volcano.table import volcano_registry


def builtin_registry() -> Registry:
    """A registry with every built-in action and plugin."""
    kai = kai_dialect()
    return Registry({**volcano_registry().dialects, kai.name: kai})
