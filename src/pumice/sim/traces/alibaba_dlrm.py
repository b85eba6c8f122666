"""Read Alibaba's inference instances of recommendation models: pods on CPU nodes and on GPU nodes.

Source: ``disaggregated_DLRM_trace.csv`` of clusterdata, cluster-trace-gpu-v2025 (NSDI'25).
"""

from __future__ import annotations

from pathlib import Path

from pumice.model.queue import Queue
from pumice.sim.traces.shapes import GI, Shapes
from pumice.sim.traces.tables import CPU_MILLI_MAX, GPUS_MAX, BadField, Row, Table, plain_name
from pumice.sim.traces.trace import Problems, Trace, TraceError
from pumice.sim.workloads.spans import SPAN_MAX_S
from pumice.sim.workloads.work import FOREVER, SimJob, SimTask

FILE = "disaggregated_DLRM_trace.csv"
COLUMNS = ("instance_sn", "role", "app_name", "cpu_request", "gpu_request", "rdma_request", "memory_request",
           "disk_request", "max_instance_per_node", "creation_time", "scheduled_time", "deletion_time")  # fmt: skip
ROLES = {"CN": "cpu-node", "HN": "gpu-node"}
_MEMORY_GI_MAX = 2.0**30


def read(path: Path) -> Trace:
    """Read the table, or the folder with it. What was there before the trace comes at its start; what outlives it, or
    has no end in it, never ends."""
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise TraceError(f"{path}: found no {FILE}")
    table, shapes, problems = Table(file, COLUMNS), Shapes(), Problems()
    found = table.by_name(lambda row: _instance(row, shapes), problems)
    jobs, dense = [job for job, _ in found.values()], sum(is_dense for _, is_dense in found.values())
    return Trace(
        name="alibaba-dlrm-2025",
        jobs=jobs,
        queues=[Queue("default", uid="default")],
        notes=[
            f"{len(jobs):,} instances, each a job of one pod; those of the time before the trace come at its start",
            f"cannot be mapped: RDMA and disk requests, most instances of an application on a node ({dense:,} rows)",
            "the role is the task's name, and no pod is bound to a kind of node; no nodes are published: use --nodes",
            *table.notes(),
        ],
        problems=problems.listed(),
    )


def _instance(row: Row, shapes: Shapes) -> tuple[str, tuple[SimJob, bool]]:
    """Return an instance by its name, and whether the number of those on a node is bounded."""
    job = _job(row, shapes)
    return job.name, (job, row.number("max_instance_per_node", -1, 1e6) > 0)


def _job(row: Row, shapes: Shapes) -> SimJob:
    name, role = plain_name(row.text("instance_sn").replace("_", "-"), "instance_sn"), row.text("role")
    if role not in ROLES:
        raise BadField("role is neither CN nor HN", role)
    spec = shapes.pod(
        1000.0 * row.number("cpu_request", 0, CPU_MILLI_MAX / 1000),
        GI * row.number("memory_request", 0, _MEMORY_GI_MAX),
        row.whole("gpu_request", 0, GPUS_MAX),
    )
    for name_of in ("rdma_request", "disk_request"):
        row.number(name_of)  # read, so that a broken row is seen, and named as not mapped
    created = _moment(row, "creation_time", 0.0)
    began = _moment(row, "scheduled_time", created)
    ended = _moment(row, "deletion_time", FOREVER)
    if ended < began:
        raise BadField("deletion_time is before the start", row.text("deletion_time"))
    return SimJob("dlrm", name, "default", (SimTask(ROLES[role], 1, spec),), 1, ended - began, created)


def _moment(row: Row, name: str, missing: float) -> float:
    """Return a time, or ``missing`` for NaN and for an empty field, which mean: outside of the trace."""
    return missing if row.text(name).lower() in ("", "nan") else row.number(name, 0, SPAN_MAX_S)
