"""Recognise traces by content, or by name: ``swf:FILE``, ``csv(queue=team):FILE``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from pumice.sim.traces import (
    acme,
    alibaba_dlrm,
    alibaba_spot,
    azure_packing,
    csv_columns,
    csv_jobs,
    google_2019,
    helios,
    openb,
    pai,
    philly,
    philly_gavel,
    swf,
    tiresias,
)
from pumice.sim.traces.tables import header_of, lines
from pumice.sim.traces.trace import Trace, TraceError, spelling_hint

#: A plain table with a row for each job.
CSV = "csv"
#: Readers by kind of trace, which may be written before a path.
READERS: dict[str, Callable[[Path], Trace]] = {
    "philly-gavel": philly_gavel.read,
    "acme": acme.read,
    "tiresias": tiresias.read,
    "swf": swf.read,
    "openb": openb.read,
    "philly": philly.read,
    "helios": helios.read,
    "pai-2020": pai.read,
    "alibaba-dlrm-2025": alibaba_dlrm.read,
    "alibaba-spot-2026": alibaba_spot.read,
    "google-2019": google_2019.read,
    "azure-packing": azure_packing.read,
}
#: Names of files by which a folder is recognised.
_FILES = {
    philly.FILE: "philly",
    helios.FILE: "helios",
    pai.TASKS_FILE: "pai-2020",
    alibaba_dlrm.FILE: "alibaba-dlrm-2025",
    alibaba_spot.FILE: "alibaba-spot-2026",
}

_HEADERS = {
    "acme": acme.COLUMNS,
    "tiresias": tiresias.COLUMNS,
    "openb": openb.COLUMNS,
    "helios": helios.COLUMNS,
    "alibaba-dlrm-2025": alibaba_dlrm.COLUMNS,
    "alibaba-spot-2026": alibaba_spot.COLUMNS,
    "google-2019": google_2019.COLUMNS,
}
#: Columns of a table of executions without arrivals. Source: Alibaba's cluster-trace-gpu-v2026, docs/schema.md.
_WITHOUT_ARRIVALS = {"pod_id", "gpu_spec_public", "duration_hours"}
_NO_TRACE = {".yaml", ".yml", ".json", ".md", ".conf", ".jsonl"}
_NAME_MAX = 20


class Source(Struct, frozen=True):
    """A trace that was recognised and not read yet. ``columns``: those of a plain table, as a user says them.
    ``by_header``: its format was taken from names of columns."""

    kind: str
    path: Path
    columns: str = ""
    by_header: bool = False

    def read(self) -> Trace:
        """Return the trace. Raises: TraceError if it cannot be read, or no row of it can be used."""
        plain = f"{CSV}:{self.path} reads it as a plain table"
        try:
            trace = csv_jobs.read(self.path, self.columns) if self.kind == CSV else READERS[self.kind](self.path)
        except TraceError as error:
            if self.by_header:
                raise TraceError(f"{error}; its columns are most like those of {self.kind}; {plain}") from None
            raise
        if not trace.jobs:
            why = "; ".join(problem.what for problem in trace.problems) or "it has none"
            raise TraceError(f"{self.path}: found no row of a {self.kind} trace that can be used: {why}")
        if self.by_header:
            taken = f"{self.path}: recognised as {self.kind} by the names of its columns; {plain}"
            return replace(trace, notes=[taken, *trace.notes])
        return trace


def recognise(source: str | Path) -> Source | None:
    """Return the trace at a path, or None if it is something else (manifests, for example).

    Raises: TraceError for ``name:PATH`` with an unknown name or a missing path.
    """
    named = split(str(source))
    path = Path(source)
    if named is not None:
        prefix, path = named
        kind, columns = (CSV, prefix[len(CSV) + 1 : -1]) if prefix.startswith(f"{CSV}(") else (prefix, "")
        if kind not in READERS and kind != CSV:
            known = (*READERS, CSV)
            raise TraceError(
                f"{source}: found trace kind {kind!r}{spelling_hint(kind, known)}, wanted one of {', '.join(known)}"
            )
        if not path.exists():
            raise TraceError(f"{path}: no such file or folder")
        return Source(kind, path, columns)
    if path.is_dir():
        kind_there = _kind_of_folder(path)
        return None if kind_there is None else Source(kind_there, path)
    return _source_of_file(path) if path.is_file() else None


def split(source: str) -> tuple[str, Path] | None:
    """Return (kind, path) of ``kind:path``, and (``csv(columns)``, path) of ``csv(columns):path``; None for a path.

    A path that exists as it is written has no kind.
    """
    if source.startswith(f"{CSV}(") and "):" in source:
        columns, _, rest = source.partition("):")
        return (f"{columns})", Path(rest)) if rest else None
    name, colon, rest = source.partition(":")
    if not colon or not rest or not 2 <= len(name) <= _NAME_MAX or "/" in name or Path(source).exists():
        return None
    return name, Path(rest)


def with_columns(sources: Sequence[str], columns: str) -> list[str]:
    """Return inputs in which each plain table has these columns. Raises: TraceError if there is no plain table."""
    if not columns:
        return list(sources)
    found, tables = [], 0
    for source in sources:
        kind, path = split(source) or ("", Path(source))
        if kind == CSV or (not kind and path.suffix.lower() == ".csv"):
            tables += 1
            source = f"{CSV}({columns}):{path}"
        found.append(source)
    if not tables:
        raise TraceError(f"columns: found no plain table among the inputs, wanted one as {CSV}:FILE")
    csv_columns.parse(columns)
    return found


def _kind_of_folder(path: Path) -> str | None:
    if any(path.glob("*.trace")) or any(path.glob("seed0/*.trace")):
        return "philly-gavel"
    if any(path.glob("converted_*_trace.csv")):
        return "acme"
    if any(path.glob("openb_pod_list_*.csv")):
        return "openb"
    if (path / tiresias.CLUSTER_FILE).is_file() or any(path.glob("*_job.csv")):
        return "tiresias"
    if kind := next((kind for name, kind in _FILES.items() if (path / name).is_file()), None):
        return kind
    return "swf" if any(path.glob("*.swf")) else None


def _source_of_file(path: Path) -> Source | None:
    if path.name in _FILES:
        return Source(_FILES[path.name], path)
    if path.suffix.lower() in _NO_TRACE:
        return None
    if _is_sqlite(path):
        return Source("azure-packing", path)
    try:
        first = _first_lines(path)
    except TraceError:
        return None
    kind = _kind_of_lines(path, first)
    if kind is None and (kind := _kind_of_header(path)) is not None:
        return Source(kind, path, by_header=True)
    if kind is None and path.suffix.lower() == ".csv":
        return Source(CSV, path)
    return None if kind is None else Source(kind, path)


def _kind_of_lines(path: Path, first: list[str]) -> str | None:
    data = [text for text in first if text.strip() and not text.startswith(";")]
    if data and len(data[0].split("\t")) in philly_gavel.PLACES:
        return "philly-gavel"
    if _is_swf(first, data) or path.suffix.lower() == ".swf":
        return "swf"
    return "philly-gavel" if path.suffix.lower() == ".trace" else None


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(azure_packing.SIGNATURE)) == azure_packing.SIGNATURE
    except OSError:
        return False


def _first_lines(path: Path, count: int = 50) -> list[str]:
    found = []
    for number, text in lines(path):
        found.append(text)
        if number == count:
            break
    return found


def _is_swf(first: list[str], data: list[str]) -> bool:
    if not data:
        return any(text.startswith(";") for text in first)
    fields = data[0].split()
    return len(fields) == swf.FIELDS and all(field.lstrip("-").replace(".", "", 1).isdigit() for field in fields)


def _kind_of_header(path: Path) -> str | None:
    """Return the kind with the largest part of its columns in the header, more than half. Its reader names what is
    missing."""
    header = set(header_of(path))
    if set(openb.NODE_COLUMNS) <= header:
        raise TraceError(f"{path}: found a list of nodes, wanted a list of pods (openb_pod_list_*.csv)")
    if header >= _WITHOUT_ARRIVALS:
        raise TraceError(
            f"{path}: found executions without arrivals, which cannot be simulated, wanted {alibaba_spot.FILE}"
        )
    shares = {kind: len(header & set(columns)) / len(columns) for kind, columns in _HEADERS.items()}
    best = max(shares, key=lambda kind: shares[kind])
    return best if shares[best] > 0.5 else None
