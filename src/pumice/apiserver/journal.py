"""What survives a restart: every change as a line of JSON, and now and then all objects anew.

A change is written before it is answered, so a killed process loses nothing; it is forced to the disk once a second,
so a power cut loses a second at most. A line that was cut off at the end is dropped, with a message.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from pumice.apiserver.store import Change, Store
from pumice.model.manifest.fields import Obj

LOG_BYTES_MAX = 64 << 20
SYNC_S = 1.0
_FORMAT = 1
_log = logging.getLogger("pumice.apiserver")
_encode = msgspec.json.Encoder().encode


class DataError(Exception):
    """A data folder that cannot be used: which file, what is wrong with it."""


class _Head(msgspec.Struct):
    version: int
    format: int


class _Line(msgspec.Struct):
    """One object at one version; ``o`` is None where it was deleted."""

    v: int
    t: str
    k: str
    o: Obj | None


_head_decoder = msgspec.json.Decoder(_Head)
_line_decoder = msgspec.json.Decoder(_Line)


class Journal:
    """The files of one data folder. Use ``open_journal``."""

    def __init__(self, folder: Path, store: Store, lock: IO[bytes], log_bytes_max: int) -> None:
        self.failure: OSError | None = None
        self.failed = asyncio.Event()
        self._folder, self._store, self._lock = folder, store, lock
        self._log_bytes_max = log_bytes_max
        self._log = open(folder / "log.jsonl", "ab", buffering=0, opener=_private)  # noqa: SIM115 - `close` closes it
        self._dirty = False

    async def run(self) -> None:
        """Force what was written to the disk, for ever, until cancelled."""
        while True:
            await asyncio.sleep(SYNC_S)
            if self._dirty:
                self._dirty = False
                await asyncio.to_thread(os.fsync, self._log.fileno())

    def close(self) -> None:
        """Everything is on the disk after this."""
        self._store.sinks.remove(self.write)
        os.fsync(self._log.fileno())
        self._log.close()
        self._lock.close()

    def write(self, change: Change) -> None:
        """Raises: OSError; ``failed`` is set then, and nothing more is taken."""
        try:
            if self.failure is not None:
                raise self.failure
            _write_all(
                self._log,
                _line(change.table, change.now.key, change.version, None if change.deleted else change.now.raw),
            )
            self._dirty = True
            if self._log.tell() > self._log_bytes_max:
                self._rewrite()
        except OSError as error:
            self.failure = error
            self.failed.set()
            raise

    def _rewrite(self) -> None:
        """All objects in one new file; the log begins anew. Lines that the new file holds are skipped when read."""
        made = self._folder / "objects.part"
        with open(made, "wb", opener=_private) as file:
            file.write(_encode(_Head(self._store.version, _FORMAT)) + b"\n")
            for table in self._store.tables():
                file.writelines(_line(table, row.key, row.version, row.raw) for row in self._store.rows(table))
            file.flush()
            os.fsync(file.fileno())
        made.rename(self._folder / "objects.jsonl")
        _sync_folder(self._folder)
        self._log.truncate(0)


def open_journal(folder: Path, store: Store, log_bytes_max: int = LOG_BYTES_MAX) -> Journal:
    """Load a data folder into a store, and have the store's changes written to it from now on.

    Raises: DataError for files that are damaged or in use by another server, OSError.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = (folder / "lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise DataError(f"{folder}: another server uses this folder") from None
    try:
        store.loaded(_load(folder, store))
    except BaseException:
        lock.close()
        raise
    journal = Journal(folder, store, lock, log_bytes_max)
    store.sinks.insert(0, journal.write)
    return journal


def _load(folder: Path, store: Store) -> int:
    """The version of the newest change."""
    version = 0
    objects = folder / "objects.jsonl"
    if objects.exists():
        with objects.open("rb") as file:
            version = _head_of(objects, file.readline())
            for number, raw in enumerate(file, 2):
                line = _decoded(objects, number, raw)
                store.load(line.t, line.k, line.v, line.o or {})
    for line in _log_lines(folder / "log.jsonl"):
        if line.v <= version:
            continue
        version = line.v
        if line.o is None:
            store.unload(line.t, line.k)
        else:
            store.load(line.t, line.k, line.v, line.o)
    return version


def _log_lines(path: Path) -> Iterator[_Line]:
    """The changes in the log. What was cut off at its end is taken off the file."""
    if not path.exists():
        return
    good = 0
    with path.open("r+b") as file:
        for number, raw in enumerate(file, 1):
            if not raw.endswith(b"\n"):
                _log.warning("%s: the last line was cut off after %d bytes and is dropped", path, len(raw))
                break
            yield _decoded(path, number, raw)
            good += len(raw)
        file.truncate(good)


def _head_of(path: Path, raw: bytes) -> int:
    try:
        head = _head_decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"{path} line 1: {error}") from None
    if head.format != _FORMAT:
        raise DataError(f"{path}: found format {head.format}, wanted {_FORMAT}")
    return head.version


def _decoded(path: Path, number: int, raw: bytes) -> _Line:
    try:
        return _line_decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path} line {number} is damaged: {error}") from None


def _line(table: str, key: str, version: int, raw: bytes | None) -> bytes:
    place = b'{"v":%d,"t":%s,"k":%s,"o":' % (version, _encode(table), _encode(key))
    return place + (raw or b"null") + b"}\n"


def _write_all(file: IO[bytes], data: bytes) -> None:
    done = file.write(data)
    while done < len(data):  # an unbuffered file may take less than it is given
        done += file.write(data[done:])


def _private(path: str, flags: int) -> int:
    """Objects hold secrets: only their owner reads the files."""
    return os.open(path, flags, 0o600)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
