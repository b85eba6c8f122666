"""Which column of a plain table is which field of a job, and in which unit: as a user says, or by a look at the file.

A mapping is written ``field=column`` or ``field=column@unit``, separated by commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from msgspec import Struct

from pumice.sim.traces.tables import DATE, moment
from pumice.sim.traces.trace import TraceError, spelling_hint

_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0, "d": 86400.0}
_MOMENTS = {**_TIMES, DATE: 1.0}
_MEMORY = {
    "GiB": 2.0**30, "MiB": 2.0**20, "KiB": 2.0**10, "TiB": 2.0**40, "B": 1.0,
    "GB": 1e9, "MB": 1e6, "KB": 1e3, "TB": 1e12,
}  # fmt: skip
_CPUS = {"cores": 1000.0, "milli": 1.0, "percent": 10.0}
_GPUS = {"GPUs": 1.0, "milli": 1e-3, "percent": 1e-2}


class Field(Struct, frozen=True):
    """What a column can say of a job. ``units``: factors to what the simulator counts in (s, bytes, milli-cores, GPUs),
    the first is the default; none for a text or a plain number. ``words``: names of columns that mean it."""

    words: tuple[str, ...]
    units: Mapping[str, float] = {}


#: Fields in the order in which columns are looked for. ``total_…`` is what all pods of a job ask for together.
FIELDS: Mapping[str, Field] = {
    "job": Field(("job", "jobid", "jobname", "id", "name", "taskid", "applicationid")),
    "queue": Field(("queue", "queuename", "team", "vc", "virtualcluster", "partition", "project", "organization",
                    "account", "group", "tenant")),
    "user": Field(("user", "username", "userid", "owner", "submitter")),
    "submitted": Field(("submitted", "submit", "submittime", "submittedtime", "submissiontime", "submittedat",
                        "arrival", "arrivaltime", "arrived", "created", "createdat", "creationtime", "timestamp"),
                       _MOMENTS),
    "started": Field(("started", "start", "starttime", "startedat", "begin", "begintime"), _MOMENTS),
    "ended": Field(("ended", "end", "endtime", "endedat", "finish", "finishtime", "finished", "finishedat",
                    "completiontime", "deletiontime"), _MOMENTS),
    "duration": Field(("duration", "runtime", "run", "elapsed", "elapsedtime", "executiontime", "runseconds"), _TIMES),
    "estimate": Field(("estimate", "requestedtime", "timelimit", "walltime", "walltimelimit", "estimatedruntime"),
                      _TIMES),
    "pods": Field(("pods", "workers", "workernum", "numworkers", "replicas", "instances", "instnum", "nodes", "nodenum",
                   "numnodes", "gangsize", "scalefactor")),
    "minimum": Field(("minimum", "minavailable", "minmember")),
    "total_gpus": Field(("totalgpus", "gputotal"), _GPUS),
    "gpus": Field(("gpus", "gpu", "numgpu", "numgpus", "gpunum", "ngpus", "gpurequest", "gpucount", "gpusperpod",
                   "gpuperworker", "gpupernode", "gpusperworker", "gpuspernode"), _GPUS),
    "gpu_model": Field(("gpumodel", "gputype", "gpuspec", "accelerator")),
    "total_cpus": Field(("totalcpus", "cputotal"), _CPUS),
    "cpus": Field(("cpus", "cpu", "cores", "numcpu", "numcpus", "cpunum", "cpurequest", "vcpus", "cpusperpod",
                   "cpuperworker"), _CPUS),
    "total_memory": Field(("totalmemory", "memorytotal"), _MEMORY),
    "memory": Field(("memory", "mem", "ram", "memoryrequest", "memrequest", "memoryperpod"), _MEMORY),
    "priority": Field(("priority", "prio")),
}  # fmt: skip
_SUFFIXES = {
    "ms": "ms", "us": "us", "s": "s", "sec": "s", "secs": "s", "seconds": "s", "min": "min", "mins": "min",
    "minutes": "min", "h": "h", "hours": "h", "hrs": "h", "d": "d", "days": "d", "gib": "GiB", "mib": "MiB",
    "kib": "KiB", "tib": "TiB", "bytes": "B", "gb": "GB", "mb": "MB", "kb": "KB", "tb": "TB", "milli": "milli",
    "m": "milli", "percent": "percent", "pct": "percent", "cores": "cores",
}  # fmt: skip
_WANTED = "wanted FIELD=COLUMN or FIELD=COLUMN@UNIT, separated by commas"
#: Fields of which a job needs one: what it asks for.
AMOUNTS = ("gpus", "total_gpus", "cpus", "total_cpus", "memory", "total_memory")


class Source(Struct, frozen=True):
    """The column of a field, its unit ("" for none) and the factor to what the simulator counts in. ``values``: the
    numbers that words of the column mean, None for a column of numbers."""

    column: str
    unit: str = ""
    factor: float = 1.0
    values: Mapping[str, int] | None = None

    def __str__(self) -> str:
        return f"{self.column}@{self.unit}" if self.unit else self.column


Columns = Mapping[str, Source]


def parse(text: str) -> dict[str, Source | None]:
    """Return columns by field; None for a field that is to be left out (``user=``). A unit that is not given is "".

    Raises: TraceError with all problems.
    """
    found: dict[str, Source | None] = {}
    problems = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, rest = (part.strip() for part in entry.partition("="))
        column, at, unit = rest.rpartition("@") if "@" in rest else (rest, "", "")
        field = FIELDS.get(name)
        if not equals:
            problems.append(f"found {entry[:60]!r}, {_WANTED}")
        elif field is None:
            problems.append(
                f"found the field {name[:60]!r}{spelling_hint(name, FIELDS)}, wanted one of {', '.join(FIELDS)}"
            )
        elif name in found:
            problems.append(f"found {name} twice")
        elif at and unit not in field.units:
            wanted = f"wanted one of {', '.join(field.units)}" if field.units else "but it has none"
            problems.append(f"{name}: found the unit {unit[:20]!r}, {wanted}")
        else:
            found[name] = Source(column, unit, field.units.get(unit, 1.0)) if column else None
    if problems:
        raise TraceError("columns: " + "; ".join(problems))
    return found


def fixed(text: str) -> dict[str, Source]:
    """Return the columns of a known format, in default units unless it says others."""
    found = {}
    for name, source in parse(text).items():
        assert source is not None, name
        units = FIELDS[name].units
        unit = source.unit or next(iter(units), "")
        found[name] = Source(source.column, unit, units.get(unit, 1.0))
    return found


def chosen(given: str, header: Sequence[str], sample: Iterable[Sequence[str]]) -> dict[str, Source]:
    """Return the columns of a table: those that are given, and for other fields what names and values suggest.

    ``sample``: the first rows. Raises: TraceError for a column that the table does not have, and for a table without a
    length or an amount.
    """
    asked, rows = parse(given), list(sample)
    if both := [name for name, source in asked.items() if source and asked.get(f"total_{name}")]:
        raise TraceError(f"columns: found {both[0]} and total_{both[0]}, wanted one of them")
    if gone := [source.column for source in asked.values() if source and source.column not in header]:
        hints = ", ".join(f"{name[:60]!r}{spelling_hint(name, header)}" for name in gone)
        raise TraceError(f"columns: found no column {hints}; the table has {', '.join(header[:40])}")
    found: dict[str, Source] = {}
    taken = {source.column for source in asked.values() if source}
    for name, field in FIELDS.items():
        # Of two ways to say one thing the one that is given counts, else the first.
        said = _beside(name) in found or asked.get(_beside(name)) is not None
        source = asked[name] if name in asked else None if said else _suggested(field, header, taken)
        if source is None:
            continue
        taken.add(source.column)
        place = header.index(source.column)
        values = [row[place] for row in rows if place < len(row) and row[place].strip()]
        found[name] = source if source.unit or not field.units else _with_unit(field, source.column, values)
    if lacks := _lacks(found):
        known = ", ".join(f"{name}={source}" for name, source in found.items()) or "nothing"
        raise TraceError(
            f"columns: found no column for {lacks}; suggested by their names: {known}; the table has "
            f"{', '.join(header[:40])}; say it with --columns FIELD=COLUMN"
        )
    return found


def _lacks(found: Columns) -> str:
    if "submitted" not in found and "started" not in found:
        return "submitted, when a job arrives"
    if "duration" not in found and not ("ended" in found and ("started" in found or "submitted" in found)):
        return "duration, or started and ended"
    return "" if any(name in found for name in AMOUNTS) else "any of gpus, cpus and memory, which pods ask for"


def _beside(name: str) -> str:
    return name.removeprefix("total_") if name.startswith("total_") else f"total_{name}"


def _suggested(field: Field, header: Sequence[str], taken: set[str]) -> Source | None:
    for word in field.words:
        for column in header:
            if column not in taken and word in (_plain(column), _plain(_stem(column)[0])):
                return Source(column)
    return None


def _plain(column: str) -> str:
    return re.sub(r"[^a-z0-9]", "", column.lower())


def _stem(column: str) -> tuple[str, str]:
    """Return a name without a unit at its end, and the unit."""
    stem, _, last = column.replace("(", "_").replace(")", "").replace(" ", "_").rpartition("_")
    unit = _SUFFIXES.get(last.lower(), "")
    return (stem, unit) if stem and unit else (column, "")


def _with_unit(field: Field, column: str, values: Sequence[str]) -> Source:
    """Return a column with the unit that its name or its values suggest."""
    unit = _stem(column)[1]
    if unit not in field.units:
        unit = _unit_of_values(field, values)
    return Source(column, unit, field.units[unit])


def _unit_of_values(field: Field, values: Sequence[str]) -> str:
    default = next(iter(field.units))
    if DATE in field.units and values and all(moment(value) is not None for value in values[:20]):
        return DATE
    numbers = [abs(number) for number in map(_number, values) if number is not None]
    if not numbers:
        return default
    typical = median(numbers)
    if DATE in field.units:  # seconds since the epoch have 10 digits in this century
        return "us" if typical > 1e14 else "ms" if typical > 1e11 else default
    if field.units is _MEMORY:
        return "B" if typical > 1e7 else "MiB" if typical > 4096 else default
    return "milli" if field.units is _CPUS and typical > 1024 else default


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def described(found: Columns, header: Sequence[str]) -> str:
    """Return the mapping as it can be given, and the columns that are not used."""
    used = {source.column for source in found.values()}
    unused = [column for column in header if column not in used]
    left = f"; not used: {', '.join(unused)}" if unused else ""
    return f"columns: {','.join(f'{name}={source}' for name, source in found.items())}{left}"
