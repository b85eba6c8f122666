"""Read Azure's requests for virtual machines of 2020: an SQLite file, amounts as parts of a machine.

Source: AzureTracesForPacking2020 (Hadary et al., OSDI'20). The tables are found by their columns.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from pumice.model.pod import PodSpec
from pumice.model.queue import PriorityClass, Queue
from pumice.sim.traces.shapes import GI, Shapes
from pumice.sim.traces.tables import LINES_MAX, BadField, number
from pumice.sim.traces.trace import Problems, Trace, TraceError, missing_columns
from pumice.sim.workloads.spans import SPAN_MAX_S
from pumice.sim.workloads.work import FOREVER, SimJob, SimTask

SIGNATURE = b"SQLite format 3\0"
#: What a whole machine is taken for. The published amounts have no unit.
CPU, MEMORY_GI = 64, 512
REQUESTS = ("vmId", "tenantId", "vmTypeId", "priority", "starttime", "endtime")
TYPES = ("vmTypeId", "machineId", "core", "memory", "hdd", "ssd", "nic")
PRIORITIES = {0: PriorityClass("high", 1000), 1: PriorityClass("low", 0)}
_DAY_S = 86_400.0


def read(path: Path) -> Trace:
    """Read the file. All machines are of the one kind on which most requests can run; others are left out."""
    import sqlite3

    problems = Problems()
    try:
        # Read only and never waiting: a file that another program writes is an error.
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            requests = _table(path, database, REQUESTS)
            kinds = _table(path, database, TYPES)
    except sqlite3.Error as error:
        raise TraceError(f"{path}: cannot be read as SQLite: {error}") from None
    specs, machine = _specs(path, kinds, Counter(row["vmTypeId"] for row in requests), problems)
    jobs: dict[str, SimJob] = {}
    early = 0
    for row in requests:
        try:
            job = _job(row, specs)
            if job.name in jobs:
                raise BadField("a vmId occurs twice", str(row["vmId"]))
            jobs[job.name] = job
            early += job.arrival_s == 0
        except BadField as error:
            problems.add(
                str(path),
                error.reason,
                f"vmId {row['vmId']} ({error.found!r})" if error.found else f"vmId {row['vmId']}",
            )
    return Trace(
        name="azure-packing",
        jobs=list(jobs.values()),
        queues=[Queue("default", uid="default")],
        priorities=list(PRIORITIES.values()),
        notes=[
            f"{len(jobs):,} virtual machines, each a job of one pod; {early:,} are there at the start",
            f"all nodes are machines {machine}, taken for {CPU} cores and {MEMORY_GI} GiB: use --nodes, such as "
            f"--nodes 100:cpu={CPU},memory={MEMORY_GI}Gi",
            "a low-priority machine that was evicted lives as long as it did there",
            "cannot be mapped: hdd, ssd, nic, tenantId",
        ],
        problems=problems.listed(),
    )


def _table(path: Path, database: Any, wanted: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the rows of the table with these columns. Raises: TraceError if there is none, or too many rows."""
    names = [name for (name,) in database.execute("select name from sqlite_master where type = 'table' order by name")]
    columns = {name: [row[1] for row in database.execute(f"pragma table_info({_quoted(name)})")] for name in names}
    for name, found in columns.items():
        if set(wanted) <= set(found):
            listed = ", ".join(map(_quoted, wanted))
            query = f"select {listed} from {_quoted(name)} order by rowid limit {LINES_MAX + 1}"
            rows = [dict(zip(wanted, row, strict=True)) for row in database.execute(query)]
            if len(rows) > LINES_MAX:
                raise TraceError(f"{path}: table {name[:60]}: more than {LINES_MAX:,} rows")
            return rows
    best = max(columns.values(), key=lambda found: len(set(found) & set(wanted)), default=[])
    raise missing_columns(str(path), best, wanted)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _specs(
    path: Path, kinds: list[dict[str, Any]], asked: Counter[Any], problems: Problems
) -> tuple[dict[Any, PodSpec], str]:
    """Return specs by VM type on the machine that can run most requests, and that machine."""
    shapes = Shapes()
    by_machine: dict[Any, dict[Any, PodSpec]] = {}
    for row in kinds:
        try:
            core, memory = (_number(row, name, 0, 1) for name in ("core", "memory"))
        except BadField as error:
            problems.add(str(path), error.reason, f"vmTypeId {row['vmTypeId']} ({error.found!r})")
            continue
        spec = shapes.pod(float(round(core * CPU * 1000)), float(round(memory * MEMORY_GI * GI)))
        by_machine.setdefault(row["machineId"], {})[row["vmTypeId"]] = spec
    if not by_machine:
        raise TraceError(f"{path}: found no type of virtual machine that can be used")
    # The first of equals, in the order of the file.
    best = max(by_machine, key=lambda machine: sum(asked[kind] for kind in by_machine[machine]))
    return by_machine[best], str(best)


def _job(row: dict[str, Any], specs: dict[Any, PodSpec]) -> SimJob:
    spec = specs.get(row["vmTypeId"])
    if spec is None:
        raise BadField("a type of virtual machine does not run on the machine that is simulated", str(row["vmTypeId"]))
    priority = PRIORITIES.get(row["priority"])
    if priority is None:
        raise BadField("priority is neither 0 nor 1", str(row["priority"]))
    days = SPAN_MAX_S / _DAY_S
    began = _DAY_S * max(_number(row, "starttime", -days, days), 0.0)
    ended = FOREVER if row["endtime"] is None else _DAY_S * _number(row, "endtime", -days, days)
    if ended < began:
        raise BadField("endtime is before the start", str(row["endtime"]))
    name = f"vm-{number(str(row['vmId']), 'vmId', 0, 2**53):.0f}"
    return SimJob("azure", name, "default", (SimTask("vm", 1, spec),), 1, ended - began, began, priority.name)


def _number(row: dict[str, Any], name: str, low: float, high: float) -> float:
    return number(str(row[name]), name, low, high)
