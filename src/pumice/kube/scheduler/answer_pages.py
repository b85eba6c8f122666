"""Pages that answer questions about the newest snapshot: why a job waits, what a change would do, what there is.

Each question is answered by a process of its own with a low priority, so that cycles wait for no answer. The thread of
cycles only takes the snapshot, which costs what changed since the last one. One question is answered at a time, few may
wait, fewer of one user, and each ends in bounded time. Pages in a browser ask the same way (``explain``).

A guard says who asks. A user who may not see the jobs of all namespaces gets answers that name none of the others.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import msgspec
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from pumice.columns.snapshot import Snapshot
from pumice.kube.scheduler.live import Live
from pumice.kube.scheduler.reload import Conf
from pumice.runtime.files import snapshot_file
from pumice.runtime.files.snapshot_file import Cycle, SnapshotError
from pumice.runtime.job_looks import waited_notes
from pumice.runtime.job_times import JobTimes
from pumice.runtime.serving.listening import Handler
from pumice.runtime.serving.time_share import TimeShare
from pumice.runtime.serving.viewers import Guard, Scope, Viewer, namespace_of, namespaces_of, this_machine
from pumice.state.store import Store


class WordsOf(Protocol):
    """Returns the words of the command that answers a question, given its path, its parameters in order, the snapshot,
    and the namespaces whose jobs the answer may name, None for all.

    Raises: ValueError with a sentence for a question that cannot be asked.
    """

    def __call__(
        self, path: str, given: Sequence[tuple[str, str]], snapshot: str, seen: frozenset[str] | None = None
    ) -> list[str]: ...


PATHS = ("/explain", "/whatif", "/next", "/jobs", "/queues", "/nodes", "/starts")
ANSWER_S = 30.0
WAITING_MAX, WAITING_EACH = 8, 2  # in all, and of one user
_FRESH_S = 1.0  # for how long a snapshot is used at least
_NICE = 10
_MAIN = "from pumice.cli.main import main; main()"
#: Exit codes of commands: done, done and something differs or was left out, wrong input.
EXIT_HEADER = "X-Pumice-Exit-Code"
_DONE, _WRONG_INPUT = (0, 1), 2


class _Answer(Struct, frozen=True):
    """An answer over HTTP. ``exit_code``: of the command that gave it, None if there was none."""

    status: int
    body: bytes
    is_json: bool = False
    exit_code: int | None = None

    @property
    def text(self) -> str:
        """Return an answer in words, such as why there is none."""
        return self.body.decode("utf-8", "replace").strip().removeprefix("error: ")

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.body)
        return found


class AnswerPages:
    """``pages``: handlers by path, for a server that answers this machine alone; ``pages_for`` those of another guard.
    One for all addresses of a scheduler, and for its pages in a browser.

    ``live``: the scheduler that is asked, None while there is none. ``notes``: returns further notes of the snapshot,
    for the processes that answer. ``close`` when it has ended for good.
    """

    def __init__(self, words_of: WordsOf, live: Live | None = None) -> None:
        self.live, self._words_of = live, words_of
        self.notes: Callable[[], Mapping[str, float]] = dict
        #: How long jobs have waited for what, filled by looks after cycles.
        self.job_times = JobTimes()
        self._one, self._waiting = asyncio.Lock(), Counter[str]()
        self._folder: TemporaryDirectory[str] | None = None
        self._snapshot_of: Live | None = None
        self._namespaces: list[str] = []
        # At most 1/20 of a processor writes snapshots.
        self._share = TimeShare(time.monotonic, least_s=_FRESH_S)
        self.pages = self.pages_for(this_machine)

    def close(self) -> None:
        """Delete the snapshot."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def pages_for(self, guard: Guard) -> dict[str, Handler]:
        """Return handlers by path that answer the viewers that a guard lets in."""

        async def answer(request: web.Request) -> web.Response:
            return await self._answer(request, await guard(request))

        return dict.fromkeys(PATHS, answer)

    async def _answer(self, request: web.Request, viewer: Viewer) -> web.Response:
        found = await self._asked(request.path, list(request.query.items()), viewer)
        headers = {} if found.exit_code is None else {EXIT_HEADER: str(found.exit_code)}
        if found.status == 429:
            headers["Retry-After"] = "1"
        content = "application/json" if found.is_json else "text/plain"
        return web.Response(status=found.status, body=found.body, content_type=content, headers=headers)

    async def explain(self, job: str, viewer: Viewer) -> dict[str, Any]:
        """Return why a job waits, as ``pumice explain --json`` prints it. Raises: KeyError with a sentence for a job
        that cannot be explained, HTTPException where there is no answer now."""
        found = await self._asked("/explain", [("job", job)], viewer)
        if found.exit_code in _DONE:
            return found.document
        if found.status == 400:
            raise KeyError(found.text)
        raise web.HTTPServiceUnavailable(text=f"{found.text}\n")

    async def starts(self) -> dict[str, Any]:
        """Return when waiting jobs are expected to start, as ``pumice pages --print starts`` does. Raises: ValueError
        with a sentence where there is no answer now. They are about all jobs: callers show what a viewer may see."""
        found = await self._asked("/starts", (), Viewer())
        if found.exit_code in _DONE:
            return found.document
        raise ValueError(found.text)

    async def all_waiting(self) -> dict[str, Any]:
        """Return why jobs wait and the one change that lets most start, as ``pumice explain --all --json`` prints it.
        Raises: ValueError with a sentence where there is no answer now."""
        found = await self._asked("/explain", [("all", "1")], Viewer())
        if found.exit_code in _DONE:
            return found.document
        raise ValueError(found.text)

    async def try_policy(self, text: str) -> dict[str, Any]:
        """Return what another policy would do with the newest snapshot, as ``pumice pages --try-policy`` prints it.
        Raises: HTTPException where there is no answer now."""
        with TemporaryDirectory(prefix="pumice-") as folder:
            path = Path(folder, "policy.conf")
            path.write_bytes(text.encode("utf-8", "replace"))
            found = await self._asked("/policy", [("conf", str(path))], Viewer())
        if found.exit_code in _DONE:
            return found.document
        raise web.HTTPServiceUnavailable(text=f"{found.text}\n")

    def policy_text(self) -> str:
        """Return the text of the policy in force, without passwords, "" while there is no scheduler."""
        return "" if self.live is None else self.live.conf.current.file

    async def _asked(self, path: str, given: Sequence[tuple[str, str]], viewer: Viewer) -> _Answer:
        own, count = viewer.name, self._waiting.total()
        if count >= WAITING_MAX:
            return _text(429, f"{count} questions wait already; ask again later")
        if own and self._waiting[own] >= WAITING_EACH:
            return _text(429, f"{WAITING_EACH} of your questions wait already; ask again later")
        self._waiting[own] += 1
        try:
            async with self._one:
                return await self._answered(path, given, viewer)
        except (ValueError, SnapshotError) as error:
            return _text(400, str(error))
        finally:
            self._waiting[own] -= 1
            if not self._waiting[own]:
                del self._waiting[own]

    async def _answered(self, path: str, given: Sequence[tuple[str, str]], viewer: Viewer) -> _Answer:
        self._words_of(path, given, "")  # before a snapshot is taken for a question that cannot be asked
        if self.live is None:
            return _text(503, "no scheduler runs yet; ask again later")
        snapshot = str(await self._snapshot(self.live))
        scope = await viewer.scope(self._namespaces)
        if why := _refusal(path, dict(given), scope):
            return _text(403, why)
        words = self._words_of(path, given, snapshot, scope.namespaces)
        code, out, said = await _run(words)
        if code in _DONE:
            return _Answer(200, out, "--json" in words or words[0] == "pages", code)
        if code == _WRONG_INPUT:
            return _Answer(400, said, exit_code=code)
        if code is None:
            return _text(504, f"found no answer within {ANSWER_S:.0f} s")
        return _text(500, f"the answer failed with exit code {code}")

    async def _snapshot(self, live: Live) -> Path:
        """Return a file with a snapshot that is new enough. Raises: SnapshotError."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="pumice-")
        path = Path(self._folder.name, "cycle.pumice")
        if self._share.is_due or self._snapshot_of is not live:
            snapshot, conf = await live.look(_taken)
            now, began = time.time(), time.monotonic()
            further = {**self.notes(), **waited_notes(self.job_times, now)}
            snapshot = replace(snapshot, notes={**snapshot.notes, **further})
            cycle = Cycle(snapshot, now, conf.file, lenient=bool(conf.policy.warnings))
            await asyncio.to_thread(snapshot_file.write_cycle, path, cycle)
            self._share.took(began)
            self._snapshot_of = live
            # Rows without a job have no key.
            self._namespaces = namespaces_of([uid for uid in snapshot.tables.jobs.uids if uid])
        return path


def _refusal(path: str, given: Mapping[str, str], scope: Scope) -> str:
    """Return why a viewer gets no answer, "" if they get one."""
    if path == "/nodes" and not scope.nodes:
        return "you may not get nodes"
    if scope.is_all or path in ("/queues", "/nodes", "/jobs"):
        return ""
    if path != "/explain" or given.get("all") == "1":
        return "you may not get pods in all namespaces, and the answer is about all jobs"
    job = given.get("job", "")
    if "/" in job and not scope.has(job):
        return f"you may not get pods in the namespace {namespace_of(job)[:80]}"
    return ""


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


def _text(status: int, text: str) -> _Answer:
    return _Answer(status, f"{text}\n".encode())
