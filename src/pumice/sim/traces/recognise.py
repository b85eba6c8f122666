"""Recognise traces by content, or by name: ``swf:FILE``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from pumice.sim.traces import acme, openb, philly_gavel, swf, tiresias
from pumice.sim.traces.tables import header_of, lines
from pumice.sim.traces.trace import Trace, TraceError, did_you_mean

#: Readers by kind of trace, which may be written before a path.
READERS: dict[str, Callable[[Path], Trace]] = {
    "philly-gavel": philly_gavel.read,
    "acme": acme.read,
    "tiresias": tiresias.read,
    "swf": swf.read,
    "openb": openb.read,
}

_HEADERS = {"acme": acme.COLUMNS, "tiresias": tiresias.COLUMNS, "openb": openb.COLUMNS}
_NO_TRACE = {".yaml", ".yml", ".json", ".md", ".conf", ".jsonl"}
_NAME_MAX = 20


class Source(Struct, frozen=True):
    """A trace that was recognised and not read yet."""

    kind: str
    path: Path

    def read(self) -> Trace:
        """Return the trace. Raises: TraceError if it cannot be read, or no row of it can be used."""
        trace = READERS[self.kind](self.path)
        if not trace.jobs:
            why = "; ".join(problem.what for problem in trace.problems) or "it has none"
            raise TraceError(f"{self.path}: found no row of a {self.kind} trace that can be used: {why}")
        return trace


def recognise(source: str | Path) -> Source | None:
    """Return the trace at a path, or None if it is something else (manifests, for example).

    Raises: TraceError for ``name:PATH`` with an unknown name or a missing path.
    """
    kind, path = _named(str(source))
    if kind is not None:
        if not path.exists():
            raise TraceError(f"{path}: no such file or folder")
        return Source(kind, path)
    kind = _kind_of_folder(path) if path.is_dir() else _kind_of_file(path) if path.is_file() else None
    return None if kind is None else Source(kind, path)


def _named(source: str) -> tuple[str | None, Path]:
    """Return kind and path of ``kind:path``. A path that exists as it is written has no kind."""
    name, colon, rest = source.partition(":")
    if not colon or not rest or not 2 <= len(name) <= _NAME_MAX or "/" in name or Path(source).exists():
        return None, Path(source)
    if name in READERS:
        return name, Path(rest)
    raise TraceError(
        f"{source}: found trace kind {name!r}{did_you_mean(name, READERS)}, wanted one of {', '.join(READERS)}"
    )


def _kind_of_folder(path: Path) -> str | None:
    if any(path.glob("*.trace")) or any(path.glob("seed0/*.trace")):
        return "philly-gavel"
    if any(path.glob("converted_*_trace.csv")):
        return "acme"
    if any(path.glob("openb_pod_list_*.csv")):
        return "openb"
    if (path / tiresias.CLUSTER_FILE).is_file() or any(path.glob("*_job.csv")):
        return "tiresias"
    return "swf" if any(path.glob("*.swf")) else None


def _kind_of_file(path: Path) -> str | None:
    if path.suffix.lower() in _NO_TRACE:
        return None
    try:
        first = _first_lines(path)
    except TraceError:
        return None
    data = [text for text in first if text.strip() and not text.startswith(";")]
    if data and len(data[0].split("\t")) in philly_gavel.PLACES:
        return "philly-gavel"
    if _is_swf(first, data) or path.suffix.lower() == ".swf":
        return "swf"
    if path.suffix.lower() == ".trace":
        return "philly-gavel"
    return _kind_of_header(path)


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
    """Return the kind with the largest part of its columns in the header, at least half. Its reader names what is
    missing."""
    header = set(header_of(path))
    if set(openb.NODE_COLUMNS) <= header:
        raise TraceError(f"{path}: found a list of nodes, wanted a list of pods (openb_pod_list_*.csv)")
    shares = {kind: len(header & set(columns)) / len(columns) for kind, columns in _HEADERS.items()}
    best = max(shares, key=lambda kind: shares[kind])
    return best if shares[best] >= 0.5 else None
