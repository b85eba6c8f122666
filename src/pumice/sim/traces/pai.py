"""Read jobs of Alibaba's platform for AI: tasks with parts of GPUs, in tables without a header.

Source: ``pai_task_table.csv``, ``pai_job_table.csv`` and ``pai_machine_spec.csv`` of clusterdata,
cluster-trace-gpu-v2020 (Weng et al., NSDI'22).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from pumice.model.node import Node
from pumice.model.queue import Queue
from pumice.sim.traces.shapes import PODS_PER_NODE, Shapes, amounts, node_of
from pumice.sim.traces.tables import CPU_MILLI_MAX, GANG_PODS_MAX, GPUS_MAX, BadField, Row, Table, name_part, plain_name
from pumice.sim.traces.trace import Problems, Trace, TraceError
from pumice.sim.workloads.spans import SPAN_MAX_S
from pumice.sim.workloads.work import SimJob, SimTask

TASKS_FILE, JOBS_FILE, MACHINES_FILE = "pai_task_table.csv", "pai_job_table.csv", "pai_machine_spec.csv"
TASKS = ("job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
         "gpu_type")  # fmt: skip
JOBS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
MACHINES = ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu")
GB = 10**9
_MEMORY_GB_MAX = 1e9


class _Task(Struct, frozen=True):
    task: SimTask
    began: float
    ended: float


def read(path: Path) -> Trace:
    """Read ``pai_task_table.csv``, or the folder with it, and the tables of jobs and machines beside it."""
    file = path / TASKS_FILE if path.is_dir() else path
    if not file.is_file():
        raise TraceError(f"{path}: found no {TASKS_FILE}")
    problems = Problems()
    table = Table(file, TASKS, TASKS)
    tasks = _tasks(table, problems)
    submitted = _submitted(file.parent / JOBS_FILE, problems)
    nodes = _nodes(file.parent / MACHINES_FILE, problems)
    first = min((_arrival(name, listed, submitted)[0] for name, listed in tasks.items()), default=0.0)
    jobs = [_job(name, listed, _arrival(name, listed, submitted), first) for name, listed in tasks.items()]
    known = sum(name in submitted for name in tasks)
    return Trace(
        name="pai-2020",
        jobs=jobs,
        nodes=nodes or None,
        queues=[Queue("default", uid="default")],
        notes=[
            f"{len(jobs):,} jobs, all tasks of which start together and run as long as the longest did",
            f"{known:,} arrivals are from {JOBS_FILE}; other jobs arrive when their first task started",
            "a missing plan_cpu, plan_mem or plan_gpu is 0; the type of GPU is where a task ran, and is not asked for",
            f"{len(nodes):,} nodes from {MACHINES_FILE}" if nodes else f"no {MACHINES_FILE} beside it: use --nodes",
            *table.notes(),
        ],
        problems=problems.listed(),
    )


def _tasks(table: Table, problems: Problems) -> dict[str, list[_Task]]:
    """Return tasks by job. A job with a task that cannot be used is left out with all its tasks."""
    shapes = Shapes()
    found: dict[str, list[_Task]] = {}
    incomplete: set[str] = set()

    def read_task(row: Row) -> tuple[str, _Task]:
        name = plain_name(row.text("job_name"))
        try:
            return name, _task(row, shapes, len(found.get(name, ())))
        except BadField:
            incomplete.add(name)
            raise

    for name, task in table.each(read_task, problems):
        found.setdefault(name, []).append(task)
    return {name: listed for name, listed in found.items() if listed and name not in incomplete}


def _task(row: Row, shapes: Shapes, number: int) -> _Task:
    for name in ("start_time", "end_time"):
        if not row.text(name):
            raise BadField(f"{name} is missing (the task had not ended, or never ran)", row.text("status"))
    began, ended = row.number("start_time", 0, SPAN_MAX_S), row.number("end_time", 0, SPAN_MAX_S)
    if ended < began:
        raise BadField("end_time is before start_time", row.text("end_time"))
    percent = _amount(row, "plan_gpu", 100 * GPUS_MAX)
    whole, part = divmod(percent, 100.0)
    if part and whole:
        raise BadField("plan_gpu is neither a multiple of 100 nor below 100", row.text("plan_gpu"))
    spec = shapes.pod(
        float(round(10 * _amount(row, "plan_cpu", CPU_MILLI_MAX / 10))),
        float(round(GB * _amount(row, "plan_mem", _MEMORY_GB_MAX))),
        whole,
        fraction=round(part / 100, 4),
    )
    count = row.whole("inst_num", 1, GANG_PODS_MAX)
    # Roles are parts of the names of pods, and a job may have two tasks of one name.
    role = name_part(row.text("task_name"), 40, "task")
    return _Task(SimTask(f"{role}-{number}" if number else role, count, spec), began, ended)


def _amount(row: Row, name: str, high: float) -> float:
    return row.number(name, 0, high) if row.text(name) else 0.0


def _job(name: str, tasks: Sequence[_Task], arrival: tuple[float, str], first: float) -> SimJob:
    size = sum(each.task.replicas for each in tasks)
    seconds = max(each.ended for each in tasks) - min(each.began for each in tasks)
    submitted, user = arrival
    return SimJob(
        "pai", name, "default", tuple(each.task for each in tasks), size, seconds, submitted - first, user=user
    )


def _arrival(name: str, tasks: Sequence[_Task], submitted: dict[str, tuple[float, str]]) -> tuple[float, str]:
    """Return when a job arrived, and its user."""
    began = min(each.began for each in tasks)
    when, user = submitted.get(name, (began, ""))
    return min(when, began), user


def _submitted(path: Path, problems: Problems) -> dict[str, tuple[float, str]]:
    """Return (arrival, user) by job; none without the file."""
    if not path.is_file():
        return {}
    return dict(Table(path, JOBS, JOBS).each(_submission, problems))


def _submission(row: Row) -> tuple[str, tuple[float, str]]:
    return plain_name(row.text("job_name")), (row.number("start_time", 0, SPAN_MAX_S), row.text("user")[:60])


def _nodes(path: Path, problems: Problems) -> list[Node]:
    if not path.is_file():
        return []
    return list(Table(path, MACHINES, MACHINES).by_name(_node, problems, "a machine").values())


def _node(row: Row) -> tuple[str, Node]:
    name = plain_name(row.text("machine"))
    cpu = round(1000 * row.number("cap_cpu", 0, CPU_MILLI_MAX / 1000))
    memory = GB * row.number("cap_mem", 0, _MEMORY_GB_MAX)
    room = amounts(cpu, memory, row.whole("cap_gpu", 0, GPUS_MAX), PODS_PER_NODE)
    return name, node_of(name, room, row.text("gpu_type"))
