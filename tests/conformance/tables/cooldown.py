"""Checks of the function table of cdp."""

from __future__ import annotations

from pumice.model.pod import Pod
from pumice.volcano.plugins.cdp import cooldown
from tests.conformance.tables.objects import decoded
from tests.conformance.tables.table import Row, disagreement, table


@table("plugins-cdp/Test_CooldownTimePlugin_podPreemptStableTime.yaml")
def how_long_a_pod_is_spared(row: Row) -> str | None:
    (pod,) = decoded(Pod=[row["args"]["pod"]])
    assert isinstance(pod, Pod)
    found = cooldown(pod)
    return disagreement((found > 0, found * 1e9), (row.get("wantEnabled", False), row.get("wantValue", 0)))
