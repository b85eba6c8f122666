"""Checks of the function table of task-topology."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pumice.volcano.topology.task_groups import TaskTopologyError, topology_of
from tests.conformance.tables.table import Row, difference, table


@table(
    "plugins-task-topology/Test_readTopologyFromPgAnnotations.yaml",
    unread={"": "a name that is empty means nothing"},
    wants=("topology", "err"),
)
def groups_of_roles(row: Row) -> str | None:
    """Leave out empty names, which mean nothing."""
    job = row["job"]
    group = (job.get("PodGroup") or {}).get("PodGroup") or {}
    roles = {task["TaskRole"] for task in (job.get("Tasks") or {}).values()}
    key = f"{job.get('Namespace', '')}/{job.get('Name', '')}"
    try:
        found = topology_of((group.get("metadata") or {}).get("annotations") or {}, roles, key)
    except TaskTopologyError as error:
        said = {"error": (row.get("err") or {}).get("$error"), "topology": row.get("topology")}
        return difference({"error": str(error), "topology": None}, said)
    wanted = row.get("topology")
    if row.get("err"):
        return f"found no error, wanted {row['err']}"
    reports = found and {"Affinity": found.affinity, "AntiAffinity": found.anti_affinity, "TaskOrder": found.order}
    if wanted is None or reports is None:
        return difference(reports, wanted)
    plain = {"Affinity": _some(wanted["Affinity"]), "AntiAffinity": _some(wanted["AntiAffinity"])}
    return difference(reports, {**plain, "TaskOrder": _names(wanted["TaskOrder"])})


def _some(groups: Iterable[Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(group for names in groups if (group := _names(names)))


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name)
