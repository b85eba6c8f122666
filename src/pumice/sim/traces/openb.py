"""Read Alibaba's GPU cluster of 2023: pods with requests for cores, memory and GPUs, some for certain models, and
nodes.

A row may request a part of a GPU. Source: openb, Weng et al., USENIX ATC'23.
"""

from __future__ import annotations

from pathlib import Path

from pumice.model.node import Node
from pumice.model.pod import PodSpec
from pumice.model.queue import Queue
from pumice.runtime.problems.problem import Problem
from pumice.sim.traces.shapes import PODS_PER_NODE, Shapes, amounts, node_of
from pumice.sim.traces.tables import CPU_MILLI_MAX, GPUS_MAX, BadField, Row, Table, plain_name
from pumice.sim.traces.trace import Problems, Trace, TraceError
from pumice.sim.workloads.spans import SPAN_MAX_S
from pumice.sim.workloads.work import FOREVER, SimJob, SimTask

NODE_FILES = ("openb_node_list_gpu_node.csv", "openb_node_list_all_node.csv")
POD_FILE = "openb_pod_list_default.csv"
COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
WHOLE_GPU = 1000
NAMESPACE = "openb"
MIB = 2**20
MEMORY_MIB_MAX = 2**40


def read(path: Path) -> Trace:
    """Read a pod list, or the folder with the default one, and the node list beside it.

    In lists without times, one pod arrives each second, in their order, and runs forever.
    """
    file = trace_file(path)
    table = Table(file, COLUMNS)
    timed = {"creation_time", "deletion_time"} <= set(table.columns)
    shapes, problems = Shapes(), Problems()
    jobs = list(table.by_name(lambda row: _job(row, shapes, timed), problems).values())
    nodes, node_problems, node_file = _nodes_beside(file)
    return Trace(
        name=f"openb {file.stem.removeprefix('openb_pod_list_')}",
        jobs=jobs,
        nodes=nodes,
        queues=[Queue("default", uid="default")],
        notes=[
            f"{len(jobs):,} jobs of one pod each"
            + ("" if timed else "; the list has no times: one arrives each second and never ends"),
            f"{len(nodes):,} nodes from {node_file}"
            if nodes
            else f"no {' or '.join(NODE_FILES)} beside it: use --nodes",
            *table.notes(),
        ],
        problems=problems.listed() + node_problems,
    )


def trace_file(path: Path) -> Path:
    """Return the pod list at a path.

    Raises: TraceError if there is none.
    """
    if path.is_file():
        return path
    if (path / POD_FILE).is_file():
        return path / POD_FILE
    found = [p.name for p in sorted(path.glob("openb_pod_list_*.csv"))]
    raise TraceError(f"{path}: found no {POD_FILE}; name one of {', '.join(found[:10]) or 'the pod lists'}")


def read_specs(path: Path) -> tuple[list[PodSpec], list[Problem]]:
    """Return the requests of the pods in a list, including parts of GPUs, in its order. Equal ones are one object."""
    file = trace_file(path)
    shapes, problems = Shapes(), Problems()
    found = Table(file, COLUMNS).by_name(lambda row: (plain_name(row.text("name")), _spec(row, shapes)), problems)
    return list(found.values()), problems.listed()


def node_list(path: Path, *, every_node: bool = False) -> Path:
    """Return the list beside a pod list of the nodes with GPUs, or of all. Raises: TraceError if there is none."""
    file = trace_file(path).parent / NODE_FILES[every_node]
    if not file.is_file():
        raise TraceError(f"{file.parent}: found no {file.name}")
    return file


def read_nodes(path: Path) -> tuple[list[Node], list[Problem]]:
    """Return the nodes of a node list."""
    problems = Problems()
    nodes = Table(path, NODE_COLUMNS).by_name(_node, problems, "a node")
    return list(nodes.values()), problems.listed()


def _node(row: Row) -> tuple[str, Node]:
    name, milli_cpu = plain_name(row.text("sn")), row.whole("cpu_milli", 0, CPU_MILLI_MAX)
    memory = MIB * row.whole("memory_mib", 0, MEMORY_MIB_MAX)
    room = amounts(milli_cpu, memory, row.whole("gpu", 0, GPUS_MAX), PODS_PER_NODE)
    return name, node_of(name, room, row.text("model"))


def _nodes_beside(file: Path) -> tuple[list[Node] | None, list[Problem], str]:
    for name in NODE_FILES:
        if (file.parent / name).is_file():
            return *read_nodes(file.parent / name), name
    return None, [], ""


def _job(row: Row, shapes: Shapes, timed: bool) -> tuple[str, SimJob]:
    name = plain_name(row.text("name"))
    spec = _spec(row, shapes)
    arrival, seconds = _times(row) if timed else (float(row.line - 2), FOREVER)
    task = SimTask("pod", 1, spec)
    return name, SimJob(NAMESPACE, name, "default", (task,), 1, seconds, arrival)


def _spec(row: Row, shapes: Shapes) -> PodSpec:
    gpus = row.whole("num_gpu", 0, GPUS_MAX)
    milli = row.whole("gpu_milli", 0, WHOLE_GPU)
    if gpus > 1 and milli < WHOLE_GPU:
        raise BadField("parts of several GPUs", str(milli))
    milli_cpu = row.whole("cpu_milli", 0, CPU_MILLI_MAX)
    memory = MIB * row.whole("memory_mib", 0, MEMORY_MIB_MAX)
    models = tuple(sorted({model for part in row.text("gpu_spec").split("|") if (model := part.strip())}))
    if gpus and milli < WHOLE_GPU:
        if not milli:
            raise BadField("a GPU with a share of 0", "0")
        return shapes.pod(milli_cpu, memory, 0, models, milli / WHOLE_GPU)
    return shapes.pod(milli_cpu, memory, gpus, models)


def _times(row: Row) -> tuple[float, float]:
    """Return (arrival, run time): from scheduling, or from creation if never scheduled, to deletion."""
    created = row.number("creation_time", 0, SPAN_MAX_S)
    deleted = row.number("deletion_time", 0, SPAN_MAX_S)
    began = row.number("scheduled_time", 0, SPAN_MAX_S) if row.text("scheduled_time") else created
    if deleted < began:
        raise BadField("deletion_time is before the start", row.text("deletion_time"))
    return created, deleted - began
