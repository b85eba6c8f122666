"""The policy language ``pumice``: Volcano's session under a default policy that places GPUs by price.

A policy file may consist of ``dialect: pumice`` alone. The default policy evicts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from pumice.framework.plugin.registry import action_spec, tables_over
from pumice.ours.second_tries import allocate
from pumice.volcano.table import VOLCANO

DEFAULT_ACTIONS = ("enqueue", "allocate", "backfill")
DEFAULT_TIERS: tuple[Mapping[str, Any], ...] = (
    {"plugins": [{"name": name} for name in ("priority", "gang", "conformance")]},
    {
        "plugins": [
            *({"name": name} for name in ("overcommit", "drf", "predicates", "proportion")),
            # gpuplacement keeps nodes whole; leastrequested would spread what it packs.
            {"name": "nodeorder", "arguments": {"leastrequested.weight": 0}},
            {"name": "gpuplacement", "arguments": {"policy": "priced"}},
        ]
    },
)

# Objects and the scheduler name in pods are Volcano's: workloads need no change.
PUMICE = replace(
    VOLCANO,
    actions=tables_over({"allocate": action_spec("allocate", allocate, only_for_waiting=True)}, VOLCANO.actions),
    plugins={},
    name="pumice",
    builds_on=VOLCANO.name,
    default_actions=DEFAULT_ACTIONS,
    default_tiers=DEFAULT_TIERS,
)
