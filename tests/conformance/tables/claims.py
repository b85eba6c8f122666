"""Checks of the function tables about claims of devices."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.columns.views import Job, Task
from pumice.framework.cycle.session import Session
from pumice.model.devices.claims import DeviceClass
from pumice.model.resources import Resource
from pumice.testing.build import cluster, node, podgroup, queue
from pumice.volcano import points
from pumice.volcano.plugins.capacity import Capacity
from pumice.volcano.queues.device_quota import PREFIX
from tests.conformance.tables.objects import decoded, in_group, job_row, opened, row_of
from tests.conformance.tables.table import Row, difference, disagreement, table

_CLASSES = ("gpu.com", "nic.com")


@table(
    "cache/TestBuildTaskDRAResreq.yaml",
    unread={"Capacity": "quotas count devices, not what is used of them; a policy that asks for that is refused"},
)
def devices_claimed(row: Row) -> str | None:
    """By class, as the quota of a queue counts them. A claim that is not there keeps its pod waiting, and says so; what
    else prevents a claim is not part of this table."""
    (pod,) = in_group(decoded(Pod=[row["pod"]]), "g")
    limits = Resource(scalars={f"{PREFIX}{name}": 1e6 for name in _CLASSES})
    claims = decoded(ResourceClaim=row.get("claims", ()))
    group = podgroup("g", 1, "q", namespace=pod.namespace)
    classes = [DeviceClass(name) for name in _CLASSES]
    ssn = opened(cluster(node("n"), queue("q", capability=limits), group, pod, classes, claims), "capacity, predicates")
    unfit = ssn.ask(points.task_refused, Task(ssn.tables, row_of(ssn, pod.name)))
    is_missing = unfit is not None and "not found" in unfit.reason
    if is_missing != row.get("expectErr", False):
        return f"missing: {disagreement(is_missing, row.get('expectErr', False))}"
    wanted = {name: counted["Count"] for name, counted in row.get("expectedResreq", {}).items()}
    return difference(_counted(ssn, pod.group_key), wanted)


def _counted(ssn: Session, job: str) -> Mapping[str, float]:
    capacity = ssn.hooks.plugin("capacity")
    assert isinstance(capacity, Capacity)
    devices = capacity.devices
    if devices is None:  # no pod claims any
        return {}
    counts = devices.minimum(Job(ssn.tables, job_row(ssn.tables, job))).tolist()
    return {name: count for name, count in zip(_CLASSES, counts, strict=True) if count}
