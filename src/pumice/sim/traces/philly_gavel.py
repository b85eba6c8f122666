"""Read Philly jobs as published by Gavel: a file per virtual cluster, a line per job, durations from measured
throughputs.

Source: ``scheduler/traces/msr`` and ``simulation_throughputs.json`` of Gavel (OSDI'20), from Microsoft Philly (ATC'19).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from pumice.model.plain_words import kind_of
from pumice.model.queue import Queue
from pumice.sim.traces.shapes import GI, PODS_PER_NODE, Shapes, amounts, uniform_nodes
from pumice.sim.traces.tables import GANG_PODS_MAX, BadField, lines, name_part, number, place, read_json, whole
from pumice.sim.traces.trace import Problems, Trace, TraceError, spelling_hint
from pumice.sim.workloads.spans import SPAN_MAX_S
from pumice.sim.workloads.work import SimJob, SimTask

NODES, GPUS_PER_NODE, NODE_CPU, NODE_MEMORY_GI = 125, 4, 32, 256
POD_CPU, POD_MEMORY_GI = 4, 32
GPU_TYPE = "v100"
THROUGHPUTS = "simulation_throughputs.json"
NAMESPACE = "philly"
_THROUGHPUTS_BYTES_MAX = 64 * 2**20
_LEVELS_UP = 3

#: Columns of (total steps, arrival, gang size) by the number of columns. 10 are those of the physical cluster.
PLACES = {7: (4, 5, 6), 10: (5, 9, 6)}


def read(path: Path) -> Trace:
    """Read a folder of ``*.trace`` files (or with them in ``seed0/``), or one such file."""
    files = trace_files(path)
    throughputs = Throughputs(_find_throughputs(files[0].parent))
    shapes, problems = Shapes(), Problems()
    spec = shapes.pod(POD_CPU * 1000, POD_MEMORY_GI * GI, 1)
    workers = cache(lambda size: (SimTask("worker", size, spec),))  # gangs of one size share them
    jobs: list[SimJob] = []
    names: dict[str, Path] = {}
    for file in files:
        stem = name_part(file.stem)
        if stem in names:
            raise TraceError(f"{file}: its queue vc-{stem} is that of {names[stem]} already")
        names[stem] = file
        for line, text in lines(file):
            if not text.strip():
                continue
            try:
                jobs.append(_job(text, f"{stem}-{line:05d}", f"vc-{stem}", workers, throughputs))
            except BadField as error:
                problems.add(str(file), error.reason, place(line, error))
    room = amounts(NODE_CPU * 1000, NODE_MEMORY_GI * GI, GPUS_PER_NODE, PODS_PER_NODE)
    return Trace(
        name="philly-gavel",
        jobs=jobs,
        nodes=uniform_nodes(NODES, room),
        queues=[Queue(f"vc-{stem}", uid=f"vc-{stem}") for stem in names],
        notes=[
            f"{len(jobs):,} jobs of {len(names)} virtual clusters, each a queue of weight 1",
            f"durations are total_steps / throughput on {GPU_TYPE}, from {throughputs.source}",
            *throughputs.notes(),
            "columns not used: command, argument of steps, data directory; of the physical cluster mode, weight, SLO",
            f"the trace has GPUs only: each pod takes 1 GPU, {POD_CPU} cores and {POD_MEMORY_GI} GiB; "
            f"a node has {GPUS_PER_NODE} GPUs, {NODE_CPU} cores and {NODE_MEMORY_GI} GiB",
        ],
        problems=problems.listed(),
    )


def trace_files(path: Path) -> list[Path]:
    """Return the trace files at a path, by name.

    Raises: TraceError if there is none.
    """
    if path.is_file():
        return [path]
    for folder in (path, path / "seed0"):
        found = sorted(folder.glob("*.trace"))
        if found:
            return found
    raise TraceError(f"{path}: found no *.trace file, in it or in seed0/")


class Throughputs:
    """Steps per second by job type and gang size. For a size that was not measured, the throughput of one GPU is
    multiplied, and counted as a guess."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self._rates = _load(source)
        self._guessed: Counter[int] = Counter()

    def rate(self, job_type: str, size: int) -> float:
        """Return steps per second. Raises: BadField for an unknown job type, or one that makes no progress."""
        rate = self._rates.get((job_type, size))
        if rate is None:
            alone = self._rates.get((job_type, 1))
            if alone is None:
                hint = spelling_hint(job_type, sorted({name for name, _ in self._rates}))
                raise BadField(f"no throughput for the job type in {self.source.name}", f"{job_type[:40]}{hint}")
            self._guessed[size] += 1
            rate = alone * size
        if not rate > 0:
            raise BadField(f"throughput of the job type is 0 on {GPU_TYPE}", job_type)
        return rate

    def notes(self) -> list[str]:
        """Return what was guessed."""
        if not self._guessed:
            return []
        sizes = ", ".join(f"{size}: {count}" for size, count in sorted(self._guessed.items()))
        return [
            f"{self._guessed.total():,} jobs have a gang size without a measured throughput: that of one GPU times the "
            f"size was taken (jobs by size: {sizes})"
        ]


def _job(
    text: str, name: str, queue: str, workers: Callable[[int], tuple[SimTask, ...]], throughputs: Throughputs
) -> SimJob:
    fields = text.split("\t")
    places = PLACES.get(len(fields))
    if places is None:
        raise BadField(f"a line does not have {' or '.join(map(str, PLACES))} columns", f"{len(fields)} columns")
    size = whole(fields[places[2]], "scale_factor", 1, GANG_PODS_MAX)
    steps = number(fields[places[0]], "total_steps", 0, 1e18)
    arrival = number(fields[places[1]], "arrival_time", 0, SPAN_MAX_S)
    seconds = steps / throughputs.rate(fields[0], size)
    if seconds > SPAN_MAX_S:
        raise BadField("total_steps take more than 100 years", fields[places[0]])
    return SimJob(NAMESPACE, name, queue, workers(size), size, seconds, arrival)


def _find_throughputs(folder: Path) -> Path:
    for levels in range(_LEVELS_UP + 1):
        found = folder.joinpath(*[".."] * levels, THROUGHPUTS)
        if found.is_file():
            return found
    raise TraceError(
        f"{folder}: found no {THROUGHPUTS} beside the traces or in the {_LEVELS_UP} folders above; durations need it"
    )


def _load(path: Path) -> dict[tuple[str, int], float]:
    """Return rates of jobs that run alone, from ``{gpu type: {"('job type', size)": {"null": rate, …}}}``."""
    table = read_json(path, _THROUGHPUTS_BYTES_MAX)
    rows = table.get(GPU_TYPE) if isinstance(table, dict) else None
    if not isinstance(rows, dict):
        found = sorted(table)[:10] if isinstance(table, dict) else kind_of(table)
        raise TraceError(f"{path}: found {found}, wanted a table with {GPU_TYPE!r}")
    return dict(_rates(path, rows.items()))


_ROW_KEY = re.compile(r"\('(.*)', (\d{1,9})\)")


def _rates(path: Path, rows: Iterable[tuple[str, Any]]) -> Iterable[tuple[tuple[str, int], float]]:
    for key, row in rows:
        match = _ROW_KEY.fullmatch(key)
        rate = row.get("null") if isinstance(row, dict) else None
        if match is None or isinstance(rate, bool) or not isinstance(rate, (int, float)):
            raise TraceError(f'{path}: row {key[:60]!r}: wanted "(\'job type\', size)" with a number under "null"')
        yield (match[1], int(match[2])), float(rate)
