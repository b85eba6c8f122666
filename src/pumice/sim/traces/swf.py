"""Read the Standard Workload Format: 18 numbers per line, comments behind ``;``. Each processor of a job becomes a pod
with a node of its own.

Source: Feitelson's Parallel Workloads Archive. Fields (1-based) used: 2 submit, 4 run time, 5 allocated and 8 requested
processors, 9 requested time; -1 means unknown.
"""

from __future__ import annotations

import re
from pathlib import Path

from pumice.model.queue import Queue
from pumice.sim.traces.shapes import GI, NODES_MAX, PODS_PER_NODE, Shapes, amounts, uniform_nodes
from pumice.sim.traces.tables import GANG_PODS_MAX, SECONDS_MAX, BadField, lines, number, one_file, place, whole
from pumice.sim.traces.trace import Problems, Trace
from pumice.sim.workloads.spans import SPAN_MAX_S
from pumice.sim.workloads.work import SimJob, SimTask

FIELDS = 18
NODE_CPU, NODE_MEMORY_GI, POD_MEMORY_GI = 64, 192, 128
NAMESPACE = "swf"
#: Machines larger than their logs say, by the start of the file's name. Theta's log says 4,360, with jobs of 4,389
#: nodes.
KNOWN_NODES = {"theta": 4392}

_HEADER = re.compile(r";\s*(MaxNodes|MaxProcs)\s*:\s*(\d{1,9})\b")


def read(path: Path) -> Trace:
    """Read a ``.swf`` file, or a folder with one. Arrivals count from the first submission."""
    path = one_file(path, "*.swf")
    problems = Problems()
    spec = Shapes().pod(NODE_CPU * 1000, POD_MEMORY_GI * GI)
    jobs: list[tuple[int, float, int, float, float | None]] = []  # line, submit, size, run, estimate
    machine = 0
    for line, text in lines(path):
        fields = text.split()
        if not fields:
            continue
        if fields[0].startswith(";"):
            match = _HEADER.match(text)
            machine = max(machine, int(match[2])) if match else machine
            continue
        try:
            jobs.append((line, *_job(fields)))
        except BadField as error:
            problems.add(str(path), error.reason, place(line, error))
    first = min((submit for _, submit, *_ in jobs), default=0.0)
    largest = max((size for _, _, size, *_ in jobs), default=1)
    nodes = max(machine, largest, *(n for stem, n in KNOWN_NODES.items() if path.name.lower().startswith(stem)), 1)
    late = sum(1 for *_, run, estimate in jobs if estimate is not None and run > estimate)
    return Trace(
        name=f"swf {path.stem}",
        jobs=[
            SimJob(
                NAMESPACE,
                f"job-{line:06d}",
                "default",
                (SimTask("node", size, spec),),
                size,
                run,
                submit - first,
                estimate_s=estimate,
            )
            for line, submit, size, run, estimate in jobs
        ],
        nodes=uniform_nodes(min(nodes, NODES_MAX), amounts(NODE_CPU * 1000, NODE_MEMORY_GI * GI, pods=PODS_PER_NODE)),
        queues=[Queue("default", uid="default")],
        notes=[
            f"{len(jobs):,} jobs; each processor asked for is a pod that takes a whole node of {NODE_CPU} cores",
            f"{nodes:,} nodes",
            "fields not used: wait time, CPU time, memory, status, user, group, executable, queue, partition, "
            "preceding job, think time",
            *([f"jobs that ran longer than they had asked for, and do so here: {late:,}"] if late else ()),
        ],
        problems=problems.listed(),
    )


def _job(fields: list[str]) -> tuple[float, int, float, float | None]:
    """Return (submit, size, run time, estimate)."""
    if len(fields) != FIELDS:
        raise BadField(f"a line does not have {FIELDS} fields", f"{len(fields)} fields")
    submit = number(fields[1], "submit time (field 2)", 0, SECONDS_MAX)
    run = number(fields[3], "run time (field 4)", 0, SPAN_MAX_S)
    allocated = whole(fields[4], "allocated processors (field 5)", -1, GANG_PODS_MAX)
    requested = whole(fields[7], "requested processors (field 8)", -1, GANG_PODS_MAX)
    estimate = number(fields[8], "requested time (field 9)", -1, SPAN_MAX_S)
    size = requested if requested > 0 else allocated
    if size < 1:
        raise BadField("neither requested nor allocated processors are at least 1", fields[7])
    return submit, size, run, estimate if estimate > 0 else None
