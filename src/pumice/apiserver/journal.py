"""Persistence: every change as a line of JSON, and from time to time all objects in a new file.

A change is written before it is answered, so a killed process loses nothing. It is forced to the disk once a second, so
a power failure loses a second at most. An incomplete line at the end is dropped, with a message. So is a damaged one,
or one with an object that no server wrote; all others are used (``left_out`` reports, and keeps what is put aside).
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Annotated

import msgspec
from msgspec import Struct

from pumice.apiserver.left_out import ASIDE, LeftOut, version_in
from pumice.apiserver.store import Change, Store
from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.files.private import NotPrivate, open_private, require_own_folder

LOG_BYTES_MAX = 64 << 20
SYNC_S = 1.0
_FORMAT = 1
_log = logging.getLogger("pumice.apiserver")
_encode = msgspec.json.Encoder().encode


class DataError(Exception):
    """A data folder cannot be used: which, and why."""


class _Head(msgspec.Struct):
    version: int
    format: int


class _Line(msgspec.Struct):
    """An object at one version. ``o`` is None if it was deleted."""

    v: Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
    t: str
    k: str
    o: Obj | None


_DAMAGED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_head_decoder = msgspec.json.Decoder(_Head)
_line_decoder = msgspec.json.Decoder(_Line)


class Journal:
    """The files of a data folder. Use ``open_journal``."""

    def __init__(self, folder: Path, store: Store, lock: IO[bytes], log_bytes_max: int) -> None:
        self.failure: OSError | None = None
        self.failed = asyncio.Event()
        self._folder, self._store, self._lock = folder, store, lock
        self._log_bytes_max = log_bytes_max
        self._log = open(folder / "log.jsonl", "ab", buffering=0, opener=open_private)  # noqa: SIM115 - `close` closes it
        self._dirty = False

    async def run(self) -> None:
        """Force written changes to the disk until cancelled."""
        while True:
            await asyncio.sleep(SYNC_S)
            if self._dirty:
                self._dirty = False
                await asyncio.to_thread(os.fsync, self._log.fileno())

    def close(self) -> None:
        """Close the files. Everything is on the disk after this."""
        self._store.sinks.remove(self.write)
        os.fsync(self._log.fileno())
        self._log.close()
        self._lock.close()

    def write(self, change: Change) -> None:
        """Write a change. Raises: OSError; then ``failed`` is set, and no more changes are accepted."""
        try:
            if self.failure is not None:
                raise self.failure
            _write_all(
                self._log,
                _line(change.table, change.now.key, change.version, None if change.deleted else change.now.raw),
            )
            self._dirty = True
            if self._log.tell() > self._log_bytes_max:
                self.rewrite()
        except OSError as error:
            self.failure = error
            self.failed.set()
            raise

    def rewrite(self) -> None:
        """Write all objects to a new file and begin a new log. Lines that the new file contains are skipped when
        read."""
        made = self._folder / "objects.part"
        with open(made, "wb", opener=open_private) as file:
            file.write(_encode(_Head(self._store.version, _FORMAT)) + b"\n")
            for table in self._store.tables():
                file.writelines(_line(table, row.key, row.version, row.raw) for row in self._store.rows(table))
            file.flush()
            os.fsync(file.fileno())
        made.rename(self._folder / "objects.jsonl")
        _sync_folder(self._folder)
        self._log.truncate(0)


def open_journal(
    folder: Path,
    store: Store,
    unsound: Callable[[str, str, Obj], str] = lambda table, key, obj: "",
    log_bytes_max: int = LOG_BYTES_MAX,
    salvage: bool = False,
) -> Journal:
    """Load a data folder into a store, and write the store's changes to it from now on.

    ``unsound`` (table, key, object): returns why an object cannot have been stored by this server; it is left out then.
    ``salvage``: lines that are left out are moved to a file of their own, and the others are written again. Raises:
    DataError for a folder that another server uses, or to which others can write; OSError.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        require_own_folder(folder)
    except NotPrivate as error:
        raise DataError(str(error)) from None
    lock = open(folder / "lock", "ab", opener=open_private)  # noqa: SIM115 - it is held as long as the folder
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise DataError(f"{folder}: another server uses this folder") from None
    try:
        left_out = LeftOut(folder / ASIDE if salvage else None)
        store.loaded(_Reader(left_out, unsound).load(folder, store))
    except BaseException:
        lock.close()
        raise
    journal = Journal(folder, store, lock, log_bytes_max)
    if salvage and left_out.count:
        journal.rewrite()
    store.sinks.insert(0, journal.write)
    return journal


class _Reader(Struct, frozen=True):
    """Reads the lines of a folder's files. Unusable lines go to ``left_out``."""

    left_out: LeftOut
    unsound: Callable[[str, str, Obj], str]

    def load(self, folder: Path, store: Store) -> int:
        """Load the files. Return the version of the newest change."""
        version = 0
        objects = folder / "objects.jsonl"
        if objects.exists():
            with open(objects, "rb", opener=open_private) as file:
                version = self._head(objects, file.readline())
                for number, raw in enumerate(file, 2):
                    if (line := self._line(objects, number, raw)) is not None and line.o is not None:
                        store.load(line.t, line.k, line.v, line.o)
                        version = max(version, line.v)
        for line in self._changes(folder / "log.jsonl"):
            if line.v <= version:
                continue
            version = line.v
            if line.o is None:
                store.unload(line.t, line.k)
            else:
                store.load(line.t, line.k, line.v, line.o)
        self.left_out.report(folder, version_in(store))
        return version

    def _head(self, path: Path, raw: bytes) -> int:
        """Return the version of the objects in a file; 0, which is below all, if its first line cannot be read.

        Raises: DataError for another format, written by another version of this program.
        """
        try:
            head = _head_decoder.decode(raw)
        except _DAMAGED as error:
            self.left_out.add(path, 1, raw, str(error))
            return 0
        if head.format != _FORMAT:
            raise DataError(f"{path}: found format {head.format}, wanted {_FORMAT}")
        return head.version

    def _changes(self, path: Path) -> Iterator[_Line]:
        """Yield the changes in the log. An incomplete line at its end is removed from the file."""
        if not path.exists():
            return
        good = 0
        with open(path, "r+b", opener=open_private) as file:
            for number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    _log.warning("%s: the last line was cut off after %d bytes and is dropped", path, len(raw))
                    break
                if (line := self._line(path, number, raw)) is not None:
                    yield line
                good += len(raw)
            file.truncate(good)

    def _line(self, path: Path, number: int, raw: bytes) -> _Line | None:
        try:
            line = _line_decoder.decode(raw)
        except _DAMAGED as error:
            self.left_out.add(path, number, raw, str(error))
            return None
        why = "" if line.o is None else self.unsound(line.t, line.k, line.o)
        if why:
            self.left_out.add(path, number, raw, why, (line.t, line.k))
        return None if why else line


def _line(table: str, key: str, version: int, raw: bytes | None) -> bytes:
    place = b'{"v":%d,"t":%s,"k":%s,"o":' % (version, _encode(table), _encode(key))
    return place + (raw or b"null") + b"}\n"


def _write_all(file: IO[bytes], data: bytes) -> None:
    done = file.write(data)
    while done < len(data):  # an unbuffered file may write less than it is given
        done += file.write(data[done:])


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
