"""Read Alibaba's GPU cluster of 2026: jobs of high priority and on spot GPUs, and nodes with GPUs of six models.

Source: ``job_info_df.csv`` and ``node_info_df.csv`` of clusterdata, cluster-trace-v2026-spot-gpu (ASPLOS'26).
"""

from __future__ import annotations

from pathlib import Path

from pumice.model.node import Node
from pumice.sim.traces.csv_columns import Source, fixed
from pumice.sim.traces.csv_jobs import read_jobs
from pumice.sim.traces.shapes import GI, PODS_PER_NODE, amounts, node_of
from pumice.sim.traces.tables import CPU_MILLI_MAX, GPUS_MAX, Row, Table
from pumice.sim.traces.trace import Problems, Trace, TraceError

FILE, NODES = "job_info_df.csv", "node_info_df.csv"
COLUMNS = ("job_name", "organization", "gpu_model", "cpu_request", "gpu_request", "worker_num", "submit_time",
           "duration", "job_type")  # fmt: skip
NODE_COLUMNS = ("node_name", "gpu_model", "gpu_capacity_num", "cpu_num")
PRIORITIES = {"HP": 1000, "Spot": 0}
MEMORY_GI_PER_CORE = 8
_MAPPING = {
    **fixed(
        "job=job_name,queue=organization,gpu_model=gpu_model,cpus=cpu_request@cores,gpus=gpu_request@GPUs,"
        "pods=worker_num,submitted=submit_time@s,duration=duration@s"
    ),
    "priority": Source("job_type", values=PRIORITIES),
}


def read(path: Path) -> Trace:
    """Read ``job_info_df.csv``, or the folder with it, and the nodes beside it."""
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise TraceError(f"{path}: found no {FILE}")
    table = Table(file, COLUMNS)
    found = read_jobs(table, _MAPPING, "alibaba", queue_prefix="org-")
    nodes = _nodes(file.parent / NODES, found.problems)
    return Trace(
        name="alibaba-spot-2026",
        jobs=found.jobs,
        nodes=nodes or None,
        queues=found.queues,
        priorities=found.priorities,
        notes=[
            f"{len(found.jobs):,} jobs; cpu_request and gpu_request are those of each worker, which run together",
            "each organization is a queue of weight 1; spot jobs have a lower priority",
            f"{len(nodes):,} nodes; no memory is known: a node has {MEMORY_GI_PER_CORE} GiB for each core"
            if nodes
            else f"no {NODES} beside it: use --nodes",
            *table.notes(),
        ],
        problems=found.problems.listed(),
    )


def _nodes(path: Path, problems: Problems) -> list[Node]:
    if not path.is_file():
        return []
    return list(Table(path, NODE_COLUMNS).by_name(_node, problems, "a node").values())


def _node(row: Row) -> tuple[str, Node]:
    name, cores = f"node-{row.text('node_name')}", row.number("cpu_num", 0, CPU_MILLI_MAX / 1000)
    gpus = row.whole("gpu_capacity_num", 0, GPUS_MAX)
    room = amounts(round(1000 * cores), round(MEMORY_GI_PER_CORE * GI * cores), gpus, PODS_PER_NODE)
    return name, node_of(name, room, row.text("gpu_model"))
