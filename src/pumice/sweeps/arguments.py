"""Arguments of plugins in the text of a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from pumice.runtime.policy.conf import document_of
from pumice.runtime.policy.languages import LANGUAGES
from pumice.sweeps.universe import Value


def with_arguments(text: str, arguments: Mapping[str, Value]) -> str:
    """Return the text of a policy with arguments set: ``plugin.argument`` -> value.

    Raises: ValueError for a name without a point, a plugin that the policy does not name, or a text that is no plain
    policy file. Whether the plugin has the argument is checked when the policy is read.
    """
    if not arguments:
        return text
    document = document_of(text, "policy")
    if not isinstance(document, Mapping) or "kind" in document:
        raise ValueError("arguments can be set in a plain policy file, not in an object that contains one")
    document = dict(document)
    if not document.get("tiers"):
        dialect = document.get("dialect", "volcano")
        document["tiers"] = list(LANGUAGES[dialect].default_tiers) if dialect in LANGUAGES else []
    # Written and read once, so that defaults of a language, which all policies share, are not changed in place.
    document = yaml.safe_load(yaml.safe_dump(document, sort_keys=False))
    for name, value in arguments.items():
        plugin, point, argument = name.partition(".")
        if not point or not argument:
            raise ValueError(f"found {name[:60]!r}, wanted PLUGIN.ARGUMENT, such as binpack.weight")
        entries = [entry for entry in _plugins(document) if entry.get("name") == plugin]
        if not entries:
            known = ", ".join(dict.fromkeys(str(entry.get("name")) for entry in _plugins(document)))
            raise ValueError(f"{name}: the policy does not name the plugin {plugin}; it names {known}")
        for entry in entries:
            entry["arguments"] = {**(entry.get("arguments") or {}), argument: value}
    return yaml.safe_dump(document, sort_keys=False)


def _plugins(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for tier in document["tiers"] if isinstance(document["tiers"], list) else ():
        for entry in (tier.get("plugins") if isinstance(tier, dict) else None) or ():
            if isinstance(entry, dict):
                yield entry
