"""Read the Slurm jobs of SenseTime's Helios clusters: virtual clusters of GPUs, jobs that name their nodes.

Source: ``cluster_log.csv`` and ``cluster_gpu_number.csv`` of HeliosData (Hu et al., SC'21).
"""

from __future__ import annotations

import math
from pathlib import Path

from msgspec.structs import replace

from pumice.model.queue import Queue
from pumice.model.resources import Resource
from pumice.sim.traces.csv_columns import fixed
from pumice.sim.traces.csv_jobs import read_jobs
from pumice.sim.traces.shapes import GI, GPU, NODES_MAX, PODS_PER_NODE, amounts, uniform_nodes
from pumice.sim.traces.tables import GPUS_MAX, Row, Table
from pumice.sim.traces.trace import Problems, Trace, TraceError

FILE, SIZES = "cluster_log.csv", "cluster_gpu_number.csv"
#: A node of Venus and Earth. Source: table 1 of the paper.
GPUS_PER_NODE, NODE_CPU, NODE_MEMORY_GI = 8, 48, 376
COLUMNS = ("job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state", "submit_time", "start_time", "end_time",
           "duration", "queue")  # fmt: skip
_MAPPING = fixed(
    "job=job_id,queue=vc,user=user,submitted=submit_time@date,duration=duration@s,pods=node_num,"
    "total_gpus=gpu_num@GPUs,total_cpus=cpu_num@cores"
)


def read(path: Path) -> Trace:
    """Read ``cluster_log.csv``, or the folder with it, and the sizes of virtual clusters beside it."""
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise TraceError(f"{path}: found no {FILE}")
    table = Table(file, COLUMNS)
    found = read_jobs(table, _MAPPING, "helios")
    sizes = _sizes(file.parent / SIZES, found.problems)
    count = math.ceil(sizes.pop("total", 0.0) / GPUS_PER_NODE)
    return Trace(
        name="helios",
        jobs=found.jobs,
        nodes=uniform_nodes(min(count, NODES_MAX), _room(GPUS_PER_NODE)) if count else None,
        queues=[_queue(queue, sizes.get(queue.name, 0.0)) for queue in found.queues],
        notes=[
            f"{len(found.jobs):,} jobs; each node of a job is a pod with its part of GPUs and cores; no memory known",
            f"{count:,} nodes of {GPUS_PER_NODE} GPUs, {NODE_CPU} cores and {NODE_MEMORY_GI} GiB, and a limit for each "
            f"virtual cluster: the largest of {SIZES}"
            if count
            else f"no {SIZES} beside it: use --nodes",
            *table.notes(),
        ],
        problems=found.problems.listed(),
    )


def _room(gpus: float) -> Resource:
    nodes = gpus / GPUS_PER_NODE
    return amounts(round(NODE_CPU * 1000 * nodes), round(NODE_MEMORY_GI * GI * nodes), gpus, PODS_PER_NODE)


def _queue(queue: Queue, gpus: float) -> Queue:
    """Return a virtual cluster, which may use no GPUs but its own. Without a size it has no limit."""
    return replace(queue, capability=replace(_room(gpus), scalars={GPU: 1000.0 * gpus})) if gpus else queue


def _sizes(path: Path, problems: Problems) -> dict[str, float]:
    """Return the largest number of GPUs by virtual cluster, and in ``total``; none without the file."""
    found: dict[str, float] = {}
    if not path.is_file():
        return found
    table = Table(path, ("date", "total"))

    def sizes(row: Row) -> dict[str, float]:
        return {name: row.number(name, 0, GPUS_MAX) for name in table.columns if name != "date" and row.text(name)}

    for each in table.each(sizes, problems):
        found |= {name: max(found.get(name, 0.0), gpus) for name, gpus in each.items()}
    return found
