"""The Kalos cluster of Shanghai AI Laboratory: LLM training gangs of up to 1,024 GPUs.

Source: AcmeTrace (NSDI'24), in the form with one row a job and half a second an iteration.
"""

from __future__ import annotations

from pathlib import Path

from pumice.model.queue import Queue
from pumice.sim.traces.shapes import GI, PODS_PER_NODE, Shapes, amounts, uniform_nodes
from pumice.sim.traces.tables import CPU_MILLI_MAX, GANG_PODS_MAX, GPUS_MAX, BadField, Row, Table, one_file
from pumice.sim.traces.trace import Problems, Trace
from pumice.sim.workloads.spans import SPAN_MAX_S
from pumice.sim.workloads.work import SimJob, SimTask

NODES, GPUS_PER_NODE, NODE_CPU, NODE_MEMORY_GI = 302, 8, 128, 2048
SECONDS_PER_ITERATION = 0.5
GB_PER_TENSORSIZE = 100
NAMESPACE = "acme"
COLUMNS = (
    "job_id",
    "arrival_time",
    "num_iteration",
    "gpu_workers",
    "gpu_per_worker",
    "cpu_per_gpu_worker",
    "tensorsizes",
)


def read(path: Path) -> Trace:
    """Read ``converted_*_trace.csv``, or the folder that contains it."""
    file = one_file(path, "converted_*_trace.csv")
    table = Table(file, COLUMNS)
    shapes, problems = Shapes(), Problems()
    jobs = list(table.each(lambda row: _job(row, shapes), problems))
    room = amounts(NODE_CPU * 1000, NODE_MEMORY_GI * GI, GPUS_PER_NODE, PODS_PER_NODE)
    return Trace(
        name="acme",
        jobs=jobs,
        nodes=uniform_nodes(NODES, room),
        queues=[Queue("default", uid="default")],
        notes=[
            f"{len(jobs):,} jobs; duration is num_iteration x {SECONDS_PER_ITERATION} s",
            "a pod has gpu_per_worker GPUs, cpu_per_gpu_worker cores for each of them and tensorsizes x 100 GB",
            f"{NODES} nodes of {GPUS_PER_NODE} GPUs, {NODE_CPU} cores and {NODE_MEMORY_GI} GiB, as Kalos has",
            *table.notes(),
        ],
        problems=problems.listed(),
    )


def _job(row: Row, shapes: Shapes) -> SimJob:
    number = row.whole("job_id", 0, 10**9)
    workers = row.whole("gpu_workers", 1, GANG_PODS_MAX)
    gpus = row.whole("gpu_per_worker", 0, GPUS_MAX)
    cores_each = row.number("cpu_per_gpu_worker", 0, CPU_MILLI_MAX / 1000)
    milli_cpu = float(round(1000 * cores_each * max(gpus, 1)))
    if milli_cpu > CPU_MILLI_MAX:
        raise BadField(
            f"cpu_per_gpu_worker x gpu_per_worker is above {CPU_MILLI_MAX // 1000:,} cores",
            row.text("cpu_per_gpu_worker"),
        )
    memory = row.number("tensorsizes", 0, 1e6) * GB_PER_TENSORSIZE * 1e9
    seconds = row.number("num_iteration", 0, SPAN_MAX_S / SECONDS_PER_ITERATION) * SECONDS_PER_ITERATION
    task = SimTask("worker", workers, shapes.pod(milli_cpu, memory, gpus))
    return SimJob(
        NAMESPACE,
        f"kalos-{row.line:05d}-{number}",
        "default",
        (task,),
        workers,
        seconds,
        row.number("arrival_time", 0, SPAN_MAX_S),
    )
