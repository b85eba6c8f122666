"""Read jobs of Microsoft's Philly clusters as they were published: attempts with the servers and GPUs of each.

Source: ``cluster_job_log`` and ``cluster_machine_list`` of philly-traces (Jeon et al., ATC'19).
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from msgspec import Struct

from pumice.model.node import Node
from pumice.model.plain_words import kind_of
from pumice.model.queue import Queue
from pumice.sim.traces.shapes import GI, PODS_PER_NODE, Shapes, amounts, node_of
from pumice.sim.traces.tables import GPUS_MAX, BadField, Row, Table, instant, name_part, place, read_json
from pumice.sim.traces.trace import Problems, Trace, TraceError
from pumice.sim.workloads.spans import SPAN_MAX_S
from pumice.sim.workloads.work import SimJob, SimTask

FILE, MACHINES = "cluster_job_log", "cluster_machine_list"
#: Cores and GiB of a pod for each of its GPUs, and of a node: enough that GPUs are used up first.
CPU_PER_GPU, MEMORY_GI_PER_GPU = 4, 32
_BYTES_MAX = 512 << 20
_MACHINE_COLUMNS = ("machineId", "number of GPUs", "single GPU mem")


class _Job(Struct, frozen=True):
    name: str
    queue: str
    user: str
    submitted: float
    seconds: float
    gpus: dict[int, int]  # of a server -> servers


def read(path: Path) -> Trace:
    """Read ``cluster_job_log``, or the folder with it, and the list of machines beside it."""
    file = path / FILE if path.is_dir() else path
    problems, found = Problems(), dict[str, _Job]()
    entries = _entries(file)
    for number, entry in enumerate(entries, 1):
        try:
            job = _job(entry)
            if job.name in found:
                raise BadField("a jobid occurs twice", job.name)
            found[job.name] = job
        except BadField as error:
            problems.add(str(file), error.reason, place(number, error).replace("line", "entry"))
    first = min((job.submitted for job in found.values()), default=0.0)
    shapes = Shapes()
    nodes = _nodes(file.parent / MACHINES, problems)
    return Trace(
        name="philly",
        jobs=[_sim_job(job, first, shapes) for job in found.values()],
        nodes=nodes or None,
        queues=[Queue(name, uid=name) for name in sorted({job.queue for job in found.values()})],
        notes=[
            f"{len(found):,} of {len(entries):,} jobs, each virtual cluster a queue of weight 1",
            "a job is a pod for each server of its first attempt, and runs as long as all its attempts together",
            f"only GPUs are known: {CPU_PER_GPU} cores and {MEMORY_GI_PER_GPU} GiB for each are assumed",
            f"{len(nodes):,} nodes" if nodes else f"no {MACHINES} beside it: use --nodes",
            "not used: status, names of servers and GPUs, times between attempts",
        ],
        problems=problems.listed(),
    )


def _entries(path: Path) -> list[Any]:
    found = read_json(path, _BYTES_MAX)
    if not isinstance(found, list):
        raise TraceError(f"{path}: found {kind_of(found)}, wanted a list of jobs")
    return found


def _job(entry: Any) -> _Job:
    if not isinstance(entry, dict):
        raise BadField("an entry is not a job", kind_of(entry))
    name = name_part(_text(entry, "jobid"))
    attempts = entry.get("attempts")
    if not isinstance(attempts, list) or not attempts:
        raise BadField("a job has no attempt", name)
    seconds, servers = 0.0, Counter[int]()
    for attempt in attempts:
        began, ended = (_moment(attempt, name) for name in ("start_time", "end_time"))
        if ended < began:
            raise BadField("an attempt ends before it starts", _text(attempt, "end_time"))
        seconds += ended - began
        servers = servers or _servers(attempt)
    if not servers:
        raise BadField("no attempt names a GPU", name)
    if seconds > SPAN_MAX_S:
        raise BadField("attempts take more than 100 years", name)
    submitted = instant(_text(entry, "submitted_time"), "submitted_time")
    return _Job(
        name, f"vc-{name_part(_text(entry, 'vc'))}", _text(entry, "user")[:60], submitted, seconds, dict(servers)
    )


def _servers(attempt: Any) -> Counter[int]:
    """Return the number of servers by how many GPUs they give."""
    detail = attempt.get("detail")
    counts = (
        [len(each["gpus"]) for each in detail if isinstance(each, dict) and isinstance(each.get("gpus"), list)]
        if isinstance(detail, list)
        else []
    )
    return Counter(count for count in counts if count)


def _moment(attempt: Any, name: str) -> float:
    if not isinstance(attempt, dict):
        raise BadField("an attempt is not an object", kind_of(attempt))
    if attempt.get(name) in (None, "None", ""):
        raise BadField(f"an attempt has no {name} (it still ran, or was not logged)")
    return instant(_text(attempt, name), name)


def _text(entry: dict[str, Any], name: str) -> str:
    found = entry.get(name)
    if not isinstance(found, str):
        raise BadField(f"{name} is not a text", kind_of(found))
    return found


def _sim_job(job: _Job, first: float, shapes: Shapes) -> SimJob:
    tasks = tuple(
        SimTask(f"gpus-{gpus}", count, shapes.pod(1000 * CPU_PER_GPU * gpus, MEMORY_GI_PER_GPU * GI * gpus, gpus))
        for gpus, count in sorted(job.gpus.items())
    )
    size = sum(job.gpus.values())
    return SimJob("philly", job.name, job.queue, tasks, size, job.seconds, job.submitted - first, user=job.user)


def _nodes(path: Path, problems: Problems) -> list[Node]:
    if not path.is_file():
        return []
    return list(Table(path, _MACHINE_COLUMNS, _MACHINE_COLUMNS).by_name(_node, problems, "a machine").values())


def _node(row: Row) -> tuple[str, Node]:
    gpus = row.whole("number of GPUs", 0, GPUS_MAX)
    room = amounts(1000 * CPU_PER_GPU * gpus, MEMORY_GI_PER_GPU * GI * gpus, gpus, PODS_PER_NODE)
    name = name_part(row.text("machineId"))
    return name, node_of(name, room, f"GPU-{row.text('single GPU mem')}")
