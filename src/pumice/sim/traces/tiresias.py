"""Read Tiresias' sixty deep learning jobs, and its clusters: nodes under switches, which become HyperNodes.

Source: ``simulator/`` of Tiresias (NSDI'19).
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from pumice.model.node import Node
from pumice.model.pod import PodSpec
from pumice.model.queue import Queue
from pumice.model.topology import HyperNode, HyperNodeMember
from pumice.sim.traces.shapes import GI, NODES_MAX, PODS_PER_NODE, Shapes, amounts, uniform_nodes
from pumice.sim.traces.tables import GANG_PODS_MAX, BadField, Row, Table, one_file, place
from pumice.sim.traces.trace import Problems, Trace, TraceError
from pumice.sim.workloads.spans import SPAN_MAX_S
from pumice.sim.workloads.work import SimJob, SimTask

CLUSTER_FILE = "cluster_spec.csv"
POD_CPU, POD_MEMORY_GI = 4, 16
NAMESPACE = "tiresias"
RACK_LABEL = "topology.kubernetes.io/rack"
COLUMNS = ("job_id", "num_gpu", "submit_time", "duration")
CLUSTER_COLUMNS = ("num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node")


def read(path: Path) -> Trace:
    """Read ``*_job.csv``, or the folder that contains it, and the cluster from ``cluster_spec.csv`` beside it."""
    file = one_file(path, "*_job.csv")
    table = Table(file, COLUMNS)
    problems = Problems()
    spec = Shapes().pod(POD_CPU * 1000, POD_MEMORY_GI * GI, 1)
    jobs = list(table.each(lambda row: _job(row, spec), problems))
    cluster = file.parent / CLUSTER_FILE
    nodes, racks = read_cluster(cluster) if cluster.is_file() else (None, [])
    return Trace(
        name="tiresias",
        jobs=jobs,
        nodes=nodes,
        queues=[Queue("default", uid="default")],
        hypernodes=racks,
        notes=[
            f"{len(jobs):,} jobs; only GPUs are given: each pod takes 1, {POD_CPU} cores and {POD_MEMORY_GI} GiB",
            f"nodes: {len(nodes)}, switches: {len(racks)}" if nodes else f"no {CLUSTER_FILE} beside it",
            *table.notes(),
        ],
        problems=problems.listed(),
    )


def _job(row: Row, spec: PodSpec) -> SimJob:
    size, name = row.whole("num_gpu", 1, GANG_PODS_MAX), f"dl-{row.line:05d}"
    seconds, arrival = (row.number(column, 0, SPAN_MAX_S) for column in ("duration", "submit_time"))
    return SimJob(NAMESPACE, name, "default", (SimTask("worker", size, spec),), size, seconds, arrival)


def read_cluster(path: Path) -> tuple[list[Node], list[HyperNode]]:
    """Return the nodes of a cluster, and one HyperNode of tier 1 per switch.

    Raises: TraceError if the file has no usable row.
    """
    for line, row in Table(path, CLUSTER_COLUMNS).rows():
        try:
            if isinstance(row, BadField):
                raise row
            return _cluster(row)
        except BadField as error:
            raise TraceError(f"{path}: {error.reason}: {place(line, error)}") from None
    raise TraceError(f"{path}: found no row below the header, wanted one")


def _cluster(row: Row) -> tuple[list[Node], list[HyperNode]]:
    switches = row.whole("num_switch", 1, NODES_MAX)
    per_switch = row.whole("num_node_p_switch", 1, NODES_MAX)
    if switches * per_switch > NODES_MAX:
        raise BadField(f"num_switch x num_node_p_switch is above {NODES_MAX:,}", f"{switches} x {per_switch}")
    room = amounts(
        1000 * row.whole("num_cpu_p_node", 1, 10**6),
        GI * row.whole("mem_p_node", 1, 10**8),
        row.whole("num_gpu_p_node", 0, 10**6),
        PODS_PER_NODE,
    )
    nodes, racks = [], []
    for i, node in enumerate(uniform_nodes(switches * per_switch, room)):
        rack = f"rack-{i // per_switch:03d}"
        nodes.append(replace(node, labels={**node.labels, RACK_LABEL: rack}))
    for s in range(switches):
        members = tuple(HyperNodeMember("Node", exact=n.name) for n in nodes[s * per_switch : (s + 1) * per_switch])
        racks.append(HyperNode(f"rack-{s:03d}", 1, members, tier_name="rack"))
    return nodes, racks
