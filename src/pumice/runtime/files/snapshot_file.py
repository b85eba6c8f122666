"""A cycle as a file: the snapshot with which it began, the policy and the time. Run again, it decides the same.

    snapshot.json         the head: format, time, policy, number of rows of each table
    objects.json          model values (``runtime.files.model_values``)
    tasks/status.npy, …   one member per column of numbers

in a ``runtime.files.sealed_archive``: JSON and NumPy arrays in a ZIP archive, so that users can examine it before they
send it. What is read is checked as foreign data: sizes before memory is allocated, types, and that rows refer to
existing rows. Nothing in it is code, and nothing that is read can become code.
"""

from __future__ import annotations

import io
import os
from functools import cache, lru_cache
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from pumice import __version__
from pumice.columns.dtypes import NAMES_MAX, AnyArray, ResourceAxis
from pumice.columns.files.parts import ColumnSpec, Parts, put_together, take_apart, wanted_columns
from pumice.columns.files.references import PartsDiffer
from pumice.columns.snapshot import Shard, Snapshot
from pumice.columns.tables import NAMES
from pumice.model.node import Node
from pumice.model.topology import HyperNode
from pumice.model.workloads.gang import DEFAULT_NODE_POOL
from pumice.runtime.files.model_values import ValuesError, decode_values, description_of, encode_values
from pumice.runtime.files.replacing import replacing
from pumice.runtime.files.sealed_archive import Archive, ArchiveError, pack
from pumice.runtime.memory import without_collector

KIND = "application/vnd.pumice.snapshot+zip"
FORMAT = 1
FILE_BYTES_MAX = 256 << 20
HEAD_BYTES_MAX = 8 << 20
OBJECTS_BYTES_MAX = 128 << 20
ROWS_MAX = 4_000_000

_HEAD, _OBJECTS = "snapshot.json", "objects.json"
_OUTSIDE = {"nodes": Node, "hypernodes": HyperNode}  # lists outside the tables
_NPY_HEAD_MAX = 1 << 10


class SnapshotError(ValueError):
    """A file cannot be used: why, as a sentence without a subject."""


class Cycle(Struct, frozen=True):
    """A cycle that can be run again. ``now``: seconds since the epoch. ``conf``: text of the policy file, read strictly
    unless ``lenient``. ``version``: of the Pumice that wrote it."""

    snapshot: Snapshot
    now: float
    conf: str
    lenient: bool = False
    version: str = __version__


class _Shard(msgspec.Struct, forbid_unknown_fields=True):
    nodes: list[str]
    hard: bool


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    """``layout``: see there. ``resources``: those with their own columns. ``rows``: by table, and of the lists outside
    the tables."""

    format: int
    layout: str
    pumice: str
    now: float
    number: int
    lenient: bool
    conf: str
    resources: list[str]
    other_resources: bool
    rows: dict[str, int]
    shard: _Shard | None
    notes: dict[str, float]
    node_pool: str = DEFAULT_NODE_POOL


@cache
def layout() -> str:
    """Return a name for the structure of columns and values. Another structure is another version of the format,
    without a number that must be raised."""
    columns = [
        f"{name} {each.dtype} {len(each.further)} {'' if each.holds is None else description_of(each.holds)}"
        for name, each in wanted_columns(len(ResourceAxis())).items()
    ]
    text = "\n".join((*columns, *map(description_of, _OUTSIDE.values())))
    return sha256(text.encode()).hexdigest()[:16]


# -- writing


def write_cycle(path: Path, cycle: Cycle) -> None:
    """Write the file, readable by its owner only: as a whole or not at all. Raises: SnapshotError, OSError."""
    content = to_bytes(cycle)
    with replacing(path, "wb", private=True) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def to_bytes(cycle: Cycle) -> bytes:
    """Return the content of the file: equal for equal cycles. Raises: SnapshotError if it could not be read again."""
    parts = take_apart(cycle.snapshot)
    wanted = wanted_columns(len(cycle.snapshot.tables.axis))
    lists: dict[str, tuple[Any, Any]] = {
        name: (each.holds, parts.columns[name]) for name, each in wanted.items() if each.holds is not None
    }
    lists |= {"nodes": (Node, parts.nodes), "hypernodes": (HyperNode, parts.hypernodes)}
    try:
        objects = encode_values(lists)
    except ValuesError as error:
        raise SnapshotError(f"would be larger than can be read: {error}") from None
    members = {_HEAD: msgspec.json.format(msgspec.json.encode(_head_of(cycle, parts))), _OBJECTS: objects}
    members |= {_member(name): _npy(parts.columns[name], each) for name, each in wanted.items() if each.holds is None}
    content = pack(KIND, members)
    if len(content) > FILE_BYTES_MAX or len(objects) > OBJECTS_BYTES_MAX:
        raise SnapshotError(f"would be larger than can be read, {FILE_BYTES_MAX >> 20} MB")
    return content


def _head_of(cycle: Cycle, parts: Parts) -> _Head:
    rows = {name: len(parts.columns[f"{name}.alive"]) for name in NAMES} | {"hypernodes": len(parts.hypernodes)}
    return _Head(
        format=FORMAT,
        layout=layout(),
        pumice=cycle.version,
        now=cycle.now,
        number=parts.number,
        lenient=cycle.lenient,
        conf=cycle.conf,
        resources=list(parts.offered),
        other_resources=parts.unoffered,
        rows=rows,
        shard=None if parts.shard is None else _Shard(sorted(parts.shard.nodes), parts.shard.hard),
        notes=dict(sorted(parts.notes.items())),
        node_pool=parts.node_pool,
    )


def _member(column: str) -> str:
    return column.replace(".", "/") + ".npy"


def _npy(array: AnyArray, wanted: ColumnSpec) -> bytes:
    buffer = io.BytesIO()
    little = np.ascontiguousarray(array, wanted.dtype.newbyteorder("<"))
    np.lib.format.write_array(buffer, little, (1, 0), allow_pickle=False)
    return buffer.getvalue()


# -- reading


def read_cycle(path: Path) -> Cycle:
    """Return what ``write_cycle`` wrote. Raises: SnapshotError, OSError."""
    with path.open("rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    return from_bytes(content)


def from_bytes(content: bytes) -> Cycle:
    """Return what ``to_bytes`` encoded. Raises: SnapshotError."""
    if len(content) > FILE_BYTES_MAX:
        raise SnapshotError(f"is larger than {FILE_BYTES_MAX >> 20} MB")
    try:
        archive = Archive(content, KIND)
        head = _head_from(archive)
        with without_collector():
            snapshot = _snapshot_from(archive, head)
        return Cycle(snapshot, head.now, head.conf, head.lenient, head.pumice)
    except ArchiveError as error:
        raise SnapshotError(str(error)) from None
    except (PartsDiffer, ValuesError) as error:
        raise SnapshotError(f"is inconsistent: {error}") from None


def _head_from(archive: Archive) -> _Head:
    try:
        head = msgspec.json.decode(archive.content(_HEAD, HEAD_BYTES_MAX), type=_Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SnapshotError(f"has an unreadable {_HEAD}: {str(error).splitlines()[0][:200]}") from None
    if head.format != FORMAT or head.layout != layout():
        raise SnapshotError(
            f"was written by Pumice {head.pumice[:40]!r}, with other columns than {__version__}: only the version"
            " that wrote a snapshot can read it"
        )
    if head.rows.keys() != {*NAMES, "hypernodes"} or not all(0 <= n <= ROWS_MAX for n in head.rows.values()):
        raise SnapshotError(f"has a table with less than 0 or more than {ROWS_MAX:,} rows")
    if len(head.resources) > NAMES_MAX:
        raise SnapshotError(f"names {len(head.resources):,} resources, of which at most {NAMES_MAX} are read")
    return head


def _snapshot_from(archive: Archive, head: _Head) -> Snapshot:
    wanted = wanted_columns(len(ResourceAxis()) + len(head.resources) + head.other_resources)
    rows = {name: head.rows[name.partition(".")[0]] for name in (*wanted, *_OUTSIDE)}
    numbers = {name: each for name, each in wanted.items() if each.holds is None}
    if archive.names != {_HEAD, _OBJECTS, *map(_member, numbers)}:
        raise SnapshotError("has other members than a snapshot")
    lists = {name: (each.holds, rows[name]) for name, each in wanted.items() if each.holds is not None}
    lists |= {name: (kind, rows[name]) for name, kind in _OUTSIDE.items()}
    columns = {name: _array_from(archive, name, each, rows[name]) for name, each in numbers.items()}
    values = decode_values(archive.content(_OBJECTS, OBJECTS_BYTES_MAX), lists)
    if any(None in values[name] for name in _OUTSIDE):
        raise SnapshotError("is inconsistent: a node or a HyperNode is missing")
    columns |= {name: _objects(values[name]) for name in wanted if name not in numbers}
    return put_together(
        Parts(
            tuple(head.resources),
            head.other_resources,
            columns,
            tuple(values["nodes"]),
            tuple(values["hypernodes"]),
            head.number,
            None if head.shard is None else Shard(frozenset(head.shard.nodes), head.shard.hard),
            head.notes,
            head.node_pool,
        )
    )


def _array_from(archive: Archive, name: str, wanted: ColumnSpec, rows: int) -> AnyArray:
    """Return a column of numbers, read-only. Its size is known before it is unpacked."""
    shape, little = (rows, *wanted.further), wanted.dtype.newbyteorder("<")
    size = prod(shape) * little.itemsize
    content = archive.content(_member(name), size + _NPY_HEAD_MAX)
    start = 10 + int.from_bytes(content[8:10], "little")
    if _array_head(content[:start]) != (shape, False, little) or len(content) - start != size:
        raise SnapshotError(f"has a {_member(name)} that is not an array of {little.name} with the shape {shape}")
    array = np.frombuffer(content, little, offset=start).reshape(shape)
    if wanted.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise SnapshotError(f"has a {_member(name)} with a value other than true and false")
    return array.astype(wanted.dtype, copy=False)


@lru_cache(maxsize=256)
def _array_head(head: bytes) -> Any:
    """Return (shape, whether columns come first, dtype) of an array in NumPy's format, None if invalid. Cached, because
    many columns have the same, and parsing it takes as long as unpacking a small array."""
    file = io.BytesIO(head)
    try:
        return np.lib.format.read_array_header_1_0(file) if np.lib.format.read_magic(file) == (1, 0) else None
    except ValueError:
        return None


def _objects(values: list[Any]) -> AnyArray:
    """Return one value per row, also if all of them are sequences of one length."""
    array = np.empty(len(values), dtype=np.object_)
    for row, value in enumerate(values):
        array[row] = value
    return array
