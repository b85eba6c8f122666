"""Pages that answer questions about the newest snapshot: why a job waits, what a change would do, what there is.

Each question is answered by a process of its own with a low priority, so that cycles wait for no answer. The thread of
cycles only takes the snapshot, which costs what changed since the last one. Questions are for this machine only (which
includes ``kubectl port-forward``), one is answered at a time, few may wait, and each ends in bounded time.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from aiohttp import web

from pumice.columns.snapshot import Snapshot
from pumice.kube.scheduler.live import Live
from pumice.kube.scheduler.reload import Conf
from pumice.runtime.files import snapshot_file
from pumice.runtime.files.snapshot_file import Cycle, SnapshotError
from pumice.runtime.serving.this_machine import is_from_here
from pumice.state.store import Store

#: Returns the words of the command that answers a question, given its path, its parameters in order, and the snapshot.
#: Raises: ValueError with a sentence for a question that cannot be asked.
WordsOf = Callable[[str, Sequence[tuple[str, str]], str], list[str]]

PATHS = ("/explain", "/whatif", "/jobs", "/queues", "/nodes")
ANSWER_S = 30.0
WAITING_MAX = 8
#: A snapshot that took t seconds to write is used for so many times t: at most 1/20 of a processor writes snapshots.
_SHARE = 20
_FRESH_S = 1.0
_NICE = 10
_MAIN = "from pumice.cli.main import main; main()"
#: Exit codes of commands: done, done and something differs or was left out, wrong input.
EXIT_HEADER = "X-Pumice-Exit-Code"
_DONE, _WRONG_INPUT = (0, 1), 2


class AnswerPages:
    """``pages``: handlers by path. One for all addresses of a scheduler."""

    def __init__(self, live: Live, words_of: WordsOf) -> None:
        self._live, self._words_of = live, words_of
        self._one, self._waiting = asyncio.Lock(), 0
        self._folder: TemporaryDirectory[str] | None = None
        self._good_until = 0.0
        self.pages = dict.fromkeys(PATHS, self.answer)

    async def cleaned_up(self, app: web.Application) -> AsyncIterator[None]:
        """Delete the snapshot when the server ends."""
        yield
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    async def answer(self, request: web.Request) -> web.Response:
        if not is_from_here(request):
            return _text(403, "for this machine alone: see kubectl port-forward")
        if self._waiting >= WAITING_MAX:
            return _text(429, f"{WAITING_MAX} questions wait already; ask again later", {"Retry-After": "1"})
        self._waiting += 1
        try:
            async with self._one:
                return await self._answered(request)
        except (ValueError, SnapshotError) as error:
            return _text(400, str(error))
        finally:
            self._waiting -= 1

    async def _answered(self, request: web.Request) -> web.Response:
        given = list(request.query.items())
        self._words_of(request.path, given, "")  # before a snapshot is taken for a question that cannot be asked
        words = self._words_of(request.path, given, str(await self._snapshot()))
        code, out, said = await _run(words)
        if code in _DONE:
            is_json = "--json" in words or "--print" in words
            content = "application/json" if is_json else "text/plain"
            return web.Response(body=out, content_type=content, headers={EXIT_HEADER: str(code)})
        if code == _WRONG_INPUT:
            return web.Response(status=400, body=said, content_type="text/plain")
        if code is None:
            return _text(504, f"found no answer within {ANSWER_S:.0f} s")
        return _text(500, f"the answer failed with exit code {code}")

    async def _snapshot(self) -> Path:
        """Return a file with a snapshot that is new enough. Raises: SnapshotError."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="pumice-")
        path = Path(self._folder.name, "cycle.pumice")
        if time.monotonic() >= self._good_until:
            snapshot, conf = await self._live.look(_taken)
            began = time.monotonic()
            cycle = Cycle(snapshot, time.time(), conf.file, lenient=bool(conf.policy.warnings))
            await asyncio.to_thread(snapshot_file.write_cycle, path, cycle)
            ended = time.monotonic()
            self._good_until = ended + max(_FRESH_S, _SHARE * (ended - began))
        return path


def _taken(store: Store, conf: Conf) -> tuple[Snapshot, Conf]:
    return store.snapshot(), conf


async def _run(words: Sequence[str]) -> tuple[int | None, bytes, bytes]:
    """Return (exit code, or None if it took too long, standard output, standard error) of a command of ours."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _MAIN, *words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, _NICE)
    try:
        out, said = await asyncio.wait_for(process.communicate(), ANSWER_S)
    except TimeoutError:
        return None, b"", b""
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return process.returncode, out, said


def _text(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers=headers)
