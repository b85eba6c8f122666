"""Write what a loop is given, cycle after cycle, into a folder of bounded size and age.

A file begins with all objects of the cluster and continues with events, so that each can be read without the others
and old ones can be deleted. A new one begins only where no decision is in flight: a store that is filled with
objects does not know what another one has sent and not yet seen.

Several cycles are one frame of a file, and are encoded together when it ends: cycle by cycle that takes twice the time,
most of it for a processor cache that the cycle has filled. A process that is killed loses the frame that is open.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Struct

from pumice import __version__
from pumice.columns.snapshot import Snapshot
from pumice.framework.cycle.ports import Outside, OutsideError
from pumice.model.decisions import Decision, Refusal
from pumice.model.events import Gone, News, Object, PodsGone, PodsSeen, Seen, Undone
from pumice.model.pod import ENDED, Pod
from pumice.runtime.record.events import EventWriter, layout
from pumice.runtime.record.form import CycleRecord, Frame, Head, StepRecord, StoreMemory, encode
from pumice.runtime.record.frames import MAGIC, FrameWriter
from pumice.state.store import Store

SUFFIX = ".record"
SIZE_MAX = 256 << 20
AGE_MAX_S = 7 * 86_400.0
#: A new file begins when the events of one are so many bytes, or so many times its first frame if that is more.
_FILE_BYTES, _FILE_TIMES = 1 << 20, 4
#: A frame ends with the cycle in which it comes to so many News.
_FRAME_NEWS = 4096
#: How many files a record has at least before the oldest is deleted because of their size, or because of its age.
_FILES_MIN, _FILES_MIN_BY_AGE = 8, 2


class Bounds(Struct, frozen=True):
    """How much is kept: ``size_max`` bytes, and ``age_max_s`` seconds by the time of cycles. The newest file is always
    kept. ``frame_cycles``: how many cycles a frame has at most, which are lost when the process is killed."""

    size_max: int = SIZE_MAX
    age_max_s: float = AGE_MAX_S
    frame_cycles: int = 64


BOUNDS = Bounds()


class Recorder:
    """Records one loop in a folder. ``failed``: called once, with why, if the folder cannot be written; the loop goes
    on without a record. ``events``, ``bytes``: how many were written."""

    def __init__(self, folder: Path, bounds: Bounds = BOUNDS, failed: Callable[[str], object] = print) -> None:
        """Raises: OSError if the folder cannot be made or written."""
        self.folder, self.bounds, self._failed = folder, bounds, failed
        self.events = self.bytes = 0
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._number = max((int(path.stem) for path in files_of(folder)), default=0)
        self._writer, self._frames = EventWriter(), FrameWriter()
        self._file: IO[bytes] | None = None
        self._first_bytes = self._file_bytes = 0
        self._began = 0.0
        self._began_at: dict[int, float] = {}  # by number of the file
        self._waiting: list[News] = []  # no cycle has followed yet
        self._steps: list[tuple[list[News], CycleRecord | None]] = []  # of the frame that is open
        self._steps_news = 0
        self._in_flight: dict[str, None] = {}
        self._conf, self._conf_written = ("", False), False
        self._answers: list[tuple[bool, Any]] = []
        self._is_over = False

    def use_conf(self, text: str, *, lenient: bool = False) -> None:
        """Note the policy of the next cycles: its text without passwords."""
        if (text, lenient) != self._conf:
            self.flush()  # cycles of a frame have one policy
            self._conf, self._conf_written = (text, lenient), False

    def begin_anew(self, objects: Iterable[Object] = ()) -> None:
        """Begin a new file, as the loop begins with another store, which has these objects."""
        self._close()
        self._writer, self._waiting, self._in_flight = EventWriter(), [], {}
        for obj in objects:
            self._writer.write(Seen(obj))

    def take(self, news: Sequence[News]) -> None:
        """Note events that the store is given."""
        if self._is_over:
            return
        self._waiting += news
        if self._in_flight:
            for each in news:
                self._confirm(each)

    def begin_cycle(self, now: float, snapshot: Snapshot, store: Store, number: int) -> None:
        """Note that a cycle begins. ``number``: of the cycle, from 1."""
        if self._is_over:
            return
        self._answers = []
        if self._file is not None and self._is_full(now) and not self._in_flight:
            self._close()
        if self._file is None:
            self._open(now, snapshot, store, number)

    def noting(self, outside: Outside) -> Outside:
        """Return a port that notes the answers of another."""
        return outside if self._is_over else _NotingAnswers(outside, self._answers)

    def end_cycle(
        self, now: float, number: int, taken: Sequence[Decision], refusals: Mapping[int, Refusal], decided: bytes
    ) -> None:
        """Note what became of a cycle. ``refusals``: by the number of the decision among all that it made. ``decided``:
        the text of its decisions in a digest."""
        if self._is_over:
            return
        self._in_flight |= dict.fromkeys(decision.pod for decision in taken)
        refused = {str(place): refusal.reason for place, refusal in refusals.items()}
        digest = sha256(decided).hexdigest()[:16] if decided else ""
        self._add_step(CycleRecord(number, now, digest, refused, self._answers))
        if len(self._steps) >= self.bounds.frame_cycles or self._steps_news >= _FRAME_NEWS:
            self.flush()

    def flush(self) -> None:
        """End the frame that is open, so that its cycles are in the file."""
        if self._steps and not self._is_over:
            steps, self._steps, self._steps_news = self._steps, [], 0
            self._put(self._step_of(news, cycle) for news, cycle in steps)

    def close(self) -> None:
        """Write events that no cycle has followed, and end."""
        if not self._is_over and self._file is not None and self._waiting:
            self._add_step(None)
        self._close()
        self._is_over = True

    def _confirm(self, news: News) -> None:
        """Note which decisions are no longer in flight."""
        match news:
            case PodsSeen(pods):
                found: Iterable[str] = [key for key, pod in pods.items() if _shows_decision(pod)]
            case Seen(Pod() as pod):
                found = (pod.key,) if _shows_decision(pod) else ()
            case PodsGone(keys):
                found = keys
            case Gone(kind, key) if kind is Pod:
                found = (key,)
            case Undone(key):
                found = (key,)
            case _:
                return
        for key in found:
            self._in_flight.pop(key, None)

    # -- files ---------------------------------------------------------------------------------------------------------

    def _is_full(self, now: float) -> bool:
        wanted = max(_FILE_BYTES, _FILE_TIMES * self._first_bytes)
        wanted = min(wanted, self.bounds.size_max // _FILES_MIN)
        return self._file_bytes >= wanted or now - self._began >= self.bounds.age_max_s / _FILES_MIN_BY_AGE

    def _open(self, now: float, snapshot: Snapshot, store: Store, number: int) -> None:
        """Begin a file with all that is known. Events that wait are in it, because their objects are."""
        self._conf_written, self._began = False, now
        self._frames, self._number = FrameWriter(), self._number + 1
        head = Head(
            pumice=__version__,
            layout=layout(),
            now=now,
            cycle=number,
            scheduler_names=sorted(store.scheduler_names),
            default_queue=store.default_queue,
            use_priority_classes=store.use_priority_classes,
            node_pool=store.node_pool,
            remembered=_remembered(snapshot),
        )
        try:
            path = self.folder / f"{self._number:06}{SUFFIX}"
            self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
            self._file.write(MAGIC)
            self._delete_old(now)
            self._events_of(self._waiting)
            self._waiting = []
            first = StepRecord(self._writer.begin_file())
        except (OSError, TypeError, ValueError) as error:
            self._stop(error)
            return
        self._file_bytes = 0
        self._put([first], head)
        self._first_bytes, self._file_bytes = self._file_bytes, 0

    def _add_step(self, cycle: CycleRecord | None) -> None:
        """Add what waits to the frame that is open."""
        self._steps.append((self._waiting, cycle))
        self._steps_news += len(self._waiting)
        self._waiting = []

    def _step_of(self, news: Iterable[News], cycle: CycleRecord | None) -> StepRecord:
        events = self._events_of(news)
        self.events += len(events)
        return StepRecord(events, cycle)

    def _events_of(self, news: Iterable[News]) -> list[list[Any]]:
        return [event for each in news for event in self._writer.write(each)]

    def _put(self, steps: Iterable[StepRecord], head: Head | None = None) -> None:
        """Write a frame."""
        conf = None if self._conf_written else self._conf
        self._conf_written = True
        try:
            # Each as a text at once, because the lists of all steps would take time in garbage collections.
            texts = [msgspec.Raw(encode(step)) for step in steps]
            packed = self._frames.frame(encode(Frame(texts, self._writer.take_values(), head, conf)))
            if self._file is not None:
                self._file.write(packed)
                self._file.flush()
        except (OSError, TypeError, ValueError) as error:  # also a value without a text: no defect here ends a cycle
            self._stop(error)
            return
        self.bytes += len(packed)
        self._file_bytes += len(packed)

    def _delete_old(self, now: float) -> None:
        """Delete files beyond the bounds. Raises: OSError."""
        self._began_at[self._number] = now
        known = [(path, path.stat()) for path in files_of(self.folder)]
        size = sum(stat.st_size for _, stat in known)
        # A file ends when the next one begins. Of files that an earlier process left only the file system knows when.
        ends = [self._began_at.get(int(path.stem)) for path, _ in known[1:]]
        for (path, stat), end in zip(known, ends, strict=False):
            if size <= self.bounds.size_max and now - (end or stat.st_mtime) <= self.bounds.age_max_s:
                return
            path.unlink()
            self._began_at.pop(int(path.stem), None)
            size -= stat.st_size

    def _stop(self, error: Exception) -> None:
        self._is_over, self._waiting, self._steps = True, [], []
        self._close()
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        self._failed(f"{self.folder}: the record ends: {why}")

    def _close(self) -> None:
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


def files_of(folder: Path) -> list[Path]:
    """Return the files of a record, the oldest first."""
    found = (path for path in folder.glob(f"*{SUFFIX}") if path.stem.isdecimal())
    return sorted(found, key=lambda path: int(path.stem))


class _NotingAnswers:
    def __init__(self, outside: Outside, answers: list[tuple[bool, Any]]) -> None:
        self._outside, self._answers = outside, answers

    def ask(self, url: str, question: Mapping[str, object], within_s: float) -> Mapping[str, object]:
        try:
            answer = self._outside.ask(url, question, within_s)
        except OutsideError as error:
            self._answers.append((False, str(error)))
            raise
        self._answers.append((True, msgspec.json.decode(msgspec.json.encode(answer))))
        return answer


def _shows_decision(pod: Pod) -> bool:
    return bool(pod.node_name) or pod.deletion is not None or pod.phase in ENDED


def _remembered(snapshot: Snapshot) -> StoreMemory:
    """Return what the store keeps of earlier cycles beside objects."""
    tables = snapshot.tables
    names = tables.tree.names
    chosen = []
    for table in (tables.jobs, tables.subs):
        rows = (table.hypernode >= 0).nonzero()[0].tolist()
        chosen.append({table.uids[row]: names[int(table.hypernode[row])] for row in rows})
    return StoreMemory(dict(snapshot.notes), *chosen)
