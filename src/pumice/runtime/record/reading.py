"""Read a record: what is whole of each file, and where a file ends that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from pumice.model.events import News
from pumice.runtime.record.events import EventError, EventReader, layout
from pumice.runtime.record.form import CycleRecord, Frame, Head, decode, decode_step
from pumice.runtime.record.frames import FrameError, frames_of
from pumice.runtime.record.recorder import SUFFIX, files_of

FILE_BYTES_MAX = 1 << 30
T = TypeVar("T")
Text = TypeVar("Text")


class RecordError(ValueError):
    """A folder has no record that can be used. One sentence."""


class Begin(Struct, frozen=True):
    """A file begins: a new store, which is given what follows. ``path``: of the file."""

    path: Path
    head: Head


class Conf(Struct, frozen=True):
    """The policy from here on. ``lenient``: unknown parts of it are left out."""

    text: str
    lenient: bool


class Step(Struct, frozen=True):
    """Events, and the cycle after them if there was one."""

    news: list[News]
    cycle: CycleRecord | None


class End(Struct, frozen=True):
    """A file ends before it should: why, as a sentence."""

    path: Path
    why: str


Entry = Begin | Conf | Step | End


def read_record(folder: Path, from_file: Path | None = None) -> Iterator[Entry]:
    """Yield what a record has, the oldest first. Of a damaged file, yield what is whole, and then its ``End``.
    ``from_file``: begin with this one.

    Raises: RecordError if the folder has no files of a record, or they were written by another version. OSError.
    """
    paths = files_of(folder)
    if not folder.is_dir():
        raise RecordError(f"{folder}: no such folder")
    if not paths:
        raise RecordError(f"{folder}: found no file of a record ({SUFFIX})")
    if from_file is not None and from_file not in paths:
        raise RecordError(f"{from_file}: was deleted meanwhile, because the record is still written")
    last = 0
    for path in paths if from_file is None else paths[paths.index(from_file) :]:
        for entry in _entries(path):
            if isinstance(entry, Begin) and last and entry.head.cycle > last + 1:
                yield End(path, f"cycles {last + 1:,} to {entry.head.cycle - 1:,} are missing before {path.name}")
            if isinstance(entry, Step) and entry.cycle is not None:
                last = entry.cycle.number
            yield entry


def _entries(path: Path) -> Iterator[Entry]:
    with path.open("rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    reader, is_first = EventReader(), True
    try:
        if len(content) > FILE_BYTES_MAX:
            raise FrameError(f"is larger than {FILE_BYTES_MAX >> 20} MB")
        for packed in frames_of(content):
            frame = _decoded(decode, packed)
            if is_first:
                yield Begin(path, _head(path, frame))
            is_first = False
            if frame.conf is not None:
                yield Conf(*frame.conf)
            reader.add_values(frame.values)
            for text in frame.steps:
                step = _decoded(decode_step, text)
                yield Step(reader.read(step.events), step.cycle)
        if is_first:
            raise FrameError("has no frame")
    except (FrameError, EventError) as error:
        yield End(path, f"{path.name} {error}")


def _decoded(decode_text: Callable[[Text], T], text: Text) -> T:
    try:
        return decode_text(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(f"has a frame that cannot be read: {str(error)[:200]}") from None


def _head(path: Path, frame: Frame) -> Head:
    if frame.head is None:
        raise FrameError("does not say how it began")
    if frame.head.layout != layout():
        raise RecordError(f"{path}: was written by pumice {frame.head.pumice}, whose objects have another structure")
    return frame.head
