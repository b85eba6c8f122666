"""The pages over HTTP: a shell, its script and style, JSON documents, and a stream that says when there are newer ones.

Nothing is written. At a loopback address only this machine is answered: a name that resolves to loopback does not get a
page of another site to read it, because the Host header must be a loopback address too. Elsewhere a guard says who
asks, and each viewer gets the jobs that they may see.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from aiohttp import web

from pumice import __version__
from pumice.runtime.serving.listening import ConnectionLimits, Connections, Handler, Place, connections_here, listening
from pumice.runtime.serving.viewers import Guard, Scope, Viewer, guard_of, this_machine
from pumice.web import details
from pumice.web.assets import PAGES, asset, shell
from pumice.web.expected_starts import SeenStarts
from pumice.web.feed import DOCUMENTS, Feed
from pumice.web.gantt import gantt
from pumice.web.jobs_query import JobsIndex, JobsQuery, QueryError, query_of
from pumice.web.policy_trials import PolicyTrials
from pumice.web.seen import SeenJobs, hidden_names
from pumice.web.shared_work import SharedWork

_AT_WORK_MAX = 256  # each page that is open holds one connection for its stream
_BEAT_S = 15.0  # a stream says that it is alive, so that a page notices a server that is gone
_GZIP_FROM = 1 << 10
_NAME_MAX = 512
_BODY_MAX = 1 << 18  # a policy that is tried
_CYCLES_MAX = 1000
#: A header that pages send with what they post. A page of another site cannot, without being asked whether it may.
POST_HEADER = "X-Pumice-Page"
_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)
_TYPES = {"css": "text/css", "js": "text/javascript"}
#: Answers a question of a viewer about a job as JSON. Raises: KeyError with a sentence if there is no such job.
Explain = Callable[[str, Viewer], Awaitable[dict[str, Any]]]

_VIEWER = web.RequestKey("viewer", Viewer)


class _PolicyQuestion(msgspec.Struct, forbid_unknown_fields=True):
    """A policy, and on how many of the last cycles it is tried."""

    conf: str
    cycles: Annotated[int, msgspec.Meta(ge=1, le=_CYCLES_MAX)] = 1


class Pages:
    """``explain``: answers why a job waits; ``policies``: tries policies. None where nothing can be tried. ``guard``:
    says who asks."""

    def __init__(
        self,
        feed: Feed,
        explain: Explain | None = None,
        policies: PolicyTrials | None = None,
        guard: Guard = this_machine,
    ) -> None:
        self._feed, self._explain, self._policies, self._guard = feed, explain, policies, guard
        self._seen = SeenJobs()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_BODY_MAX, middlewares=[self._admit, self._note])
        app.add_routes([web.get(path, self._page) for path in PAGES])
        app.add_routes(
            [
                web.get("/assets/{name}", self._asset),
                *(web.get(f"/data/{name}", self._document) for name in DOCUMENTS),
                web.get("/data/history", self._curves),
                web.get("/data/cycles", self._times),
                web.get("/data/jobs", self._jobs),
                web.get("/data/gantt", self._gantt),
                web.get("/data/job", self._job),
                web.get("/data/node", self._node),
                web.get("/data/relief", self._relief),
                web.get("/data/start-checks", self._start_checks),
                web.get("/data/policy", self._policy),
                web.post("/data/policy/try", self._try_policy),
                web.get("/events", self._events),
            ]
        )
        return app

    @web.middleware
    async def _admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a viewer that the guard lets in."""
        request[_VIEWER] = await self._guard(request)
        return await handler(request)

    async def _scope(self, request: web.Request) -> Scope:
        """Return what the viewer of a request may see."""
        index, viewer = self._feed.index, request[_VIEWER]
        return await viewer.scope([] if index is None else index.namespaces)

    async def _index(self, request: web.Request) -> JobsIndex | None:
        """Return the jobs that the viewer of a request may see, None before the first cycle."""
        index = self._feed.index
        return self._seen.index(index, await self._scope(request))

    @web.middleware
    async def _note(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note that a page is open, for which summaries are made."""
        self._feed.asked(time.monotonic())
        return await handler(request)

    async def _page(self, request: web.Request) -> web.Response:
        text = shell(PAGES[request.path], is_simulation=self._feed.simulation is not None)
        return _answer(request, text, "text/html")

    async def _asset(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        try:
            text = asset(name)
        except KeyError:
            raise web.HTTPNotFound(text="no such file\n") from None
        found = _answer(request, text, _TYPES[name.rpartition(".")[2]])
        # The address has the version of the program, so that a newer one is never shown by an older script.
        found.headers["Cache-Control"] = "max-age=3600" if request.query.get("v") == __version__ else "no-store"
        return found

    async def _document(self, request: web.Request) -> web.Response:
        name, scope = request.path.rpartition("/")[2], await self._scope(request)
        if name == "nodes" and not scope.nodes:
            raise web.HTTPForbidden(text="you may not get nodes\n")
        resource = request.query.get("resource", "")
        # A page may name a resource that the newest cycle no longer has, and asks for curves of another one then.
        if name == "overview" and resource in self._resources:
            overview = self._feed.overview(resource, await self._index(request))
            return _answer(request, overview, "application/json")
        return _answer(request, self._feed.document(name, await self._index(request)), "application/json")

    async def _curves(self, request: web.Request) -> web.Response:
        return _answer(request, self._feed.curves(self._resource(request)), "application/json")

    def _resource(self, request: web.Request) -> str:
        """Return the resource that a request is about. Raises: HTTPBadRequest."""
        resource = request.query.get("resource", "")
        if self._feed.summary is not None and resource not in self._resources:
            raise web.HTTPBadRequest(text="wanted resource=NAME of a resource that the newest cycle has\n")
        return resource

    @property
    def _resources(self) -> list[str]:
        """The resources of the newest cycle, none before the first."""
        summary = self._feed.summary
        return [] if summary is None else [each.name for each in summary.resources]

    async def _times(self, request: web.Request) -> web.Response:
        await self._of_all_jobs(request)
        return _answer(request, self._feed.times(), "application/json")

    async def _jobs(self, request: web.Request) -> web.Response:
        return self._asked(request, await self._index(request), lambda index, query: index.answer(query))

    async def _gantt(self, request: web.Request) -> web.Response:
        scope, times = await self._scope(request), self._feed.job_times
        starts = await self._starts(request)
        return self._asked(
            request,
            await self._index(request),
            lambda index, query: gantt(index, times, query, scope.has, starts),
        )

    async def _starts(self, request: web.Request) -> SeenStarts | None:
        """Return expected starts if they are asked for, which may take half a minute, and if they can be worked out."""
        starts = self._feed.starts if request.query.get("starts") == "1" else None
        if starts is None:
            return None
        await starts.renew()
        index = self._feed.index
        there = [] if index is None else index.namespaces
        return SeenStarts(starts, hidden_names(there, await self._scope(request)))

    def _asked(
        self,
        request: web.Request,
        index: JobsIndex | None,
        answer: Callable[[JobsIndex, JobsQuery], dict[str, Any]],
    ) -> web.Response:
        """Answer a question about the jobs that the parameters of the address name."""
        try:
            query = query_of({name: value for name, value in request.query.items() if name != "starts"})
            found = self._feed.encoded(lambda _: {} if index is None else answer(index, query), index)
        except QueryError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from None
        return _answer(request, found, "application/json")

    async def _job(self, request: web.Request) -> web.Response:
        name, index = request.query.get("name", ""), await self._index(request)
        if not 0 < len(name) <= _NAME_MAX:
            raise web.HTTPBadRequest(text=f"wanted name=NAMESPACE/NAME of at most {_NAME_MAX} characters\n")
        rows = [] if index is None else [row for row, each in enumerate(index.jobs.names) if each == name]
        time_of = details.time_of_job(self._feed.job_times, name, self._feed.history.until)
        is_gone = not rows and time_of is not None and (await self._scope(request)).has(name)
        if index is None or not (rows or is_gone):
            raise web.HTTPNotFound(text="no such job in the newest cycle\n")
        if is_gone:
            gone = {"job": None, "time": time_of}
            return _answer(request, self._feed.encoded(lambda _: gone, index), "application/json")
        found: dict[str, Any] = {
            "job": index.row(rows[0]),
            "time": time_of,
            "explanation": None,
            "start": None,
            "basis": None,
            **details.pods_of_job(index.summary, rows[0]),
        }
        starts = await self._starts(request)
        if starts is not None:
            found |= {"start": starts.of(name), "basis": starts.basis}
        if self._explain is not None and request.query.get("explain") == "1":
            try:
                found["explanation"] = await self._explain(name, request[_VIEWER])
            except KeyError as error:
                raise web.HTTPNotFound(text=f"{error.args[0]}\n") from None
        return _answer(request, self._feed.encoded(lambda _: found, index), "application/json")

    async def _node(self, request: web.Request) -> web.Response:
        name, index = request.query.get("name", ""), await self._index(request)
        if not (await self._scope(request)).nodes:
            raise web.HTTPForbidden(text="you may not get nodes\n")
        try:
            found = {} if index is None else details.node(index.summary, name)
        except details.NoSuchNode:
            raise web.HTTPNotFound(text="no such node in the newest cycle\n") from None
        return _answer(request, self._feed.encoded(lambda _: found, index), "application/json")

    async def _relief(self, request: web.Request) -> web.Response:
        """Answer which change lets most jobs start. ``wait=0``: what is known of it now."""
        await self._of_all_jobs(request)
        return await self._of_work(request, self._feed.relief)

    async def _start_checks(self, request: web.Request) -> web.Response:
        """Answer how expected starts compare with those that happened."""
        await self._of_all_jobs(request)
        return await self._of_work(request, self._feed.start_checks)

    async def _of_work(self, request: web.Request, work: SharedWork | None) -> web.Response:
        if work is None:
            found: dict[str, Any] = {"found": None, "why_not": ""}
        else:
            if request.query.get("wait") == "0":
                work.begin()
            else:
                await work.renew()
            found = {"found": work.found or None, "why_not": work.why_not}
        return _answer(request, self._feed.encoded(lambda _: found), "application/json")

    async def _policy(self, request: web.Request) -> web.Response:
        trials = self._policies
        more = (
            {"text": None, "cycles_max": 0}
            if trials is None
            else {"text": trials.text(), "cycles_max": trials.cycles_max}
        )
        return _answer(request, self._feed.encoded(lambda summary: {**summary.policy, **more}), "application/json")

    async def _try_policy(self, request: web.Request) -> web.Response:
        """Answer what a policy would do. It is tried on cycles that are over, and changes nothing."""
        if request.headers.get(POST_HEADER) != "1":
            raise web.HTTPForbidden(text=f"wanted the header {POST_HEADER}: 1, which pages send\n")
        if self._policies is None:
            raise web.HTTPNotFound(text="these pages have no cycle to try a policy on: see pumice whatif --conf\n")
        await self._of_all_jobs(request)
        try:
            asked = msgspec.json.decode(await request.read(), type=_PolicyQuestion)
        except msgspec.MsgspecError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from None
        return _answer(
            request, msgspec.json.encode(await self._policies.run(asked.conf, asked.cycles)), "application/json"
        )

    async def _of_all_jobs(self, request: web.Request) -> None:
        """Raises: HTTPForbidden for a viewer who may not see all jobs, of which the answer is."""
        if not (await self._scope(request)).is_all:
            text = "you may not get pods in all namespaces, and the answer is about all jobs\n"
            raise web.HTTPForbidden(text=text)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send the number of each new summary. A viewer that does not read is cut off by the limits of connections."""
        stream = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await stream.prepare(request)
        number = self._feed.number
        await stream.write(f"data: {number}\n\n".encode())
        while True:
            try:
                number = await asyncio.wait_for(self._feed.newer_than(number), _BEAT_S)
                await stream.write(f"data: {number}\n\n".encode())
            except TimeoutError:
                await stream.write(b": alive\n\n")
            self._feed.asked(time.monotonic())


def _answer(request: web.Request, body: bytes | str, content_type: str) -> web.Response:
    content = body.encode() if isinstance(body, str) else body
    headers = {**_HEADERS, "Content-Type": f"{content_type}; charset=utf-8"}
    if len(content) >= _GZIP_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        content = _gzipped(content)
        headers["Content-Encoding"] = "gzip"
    return web.Response(body=content, headers=headers)


# All viewers read the same few documents of a cycle, and to compress them costs more than all else of an answer.
@lru_cache(maxsize=16)
def _gzipped(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=1)


@asynccontextmanager
async def serving(
    feed: Feed,
    place: Place,
    explain: Explain | None = None,
    policies: PolicyTrials | None = None,
    beyond: Guard = this_machine,
) -> AsyncIterator[str]:
    """Serve pages. Yields their URL. ``beyond``: says who asks over TLS at an address that others than programs of this
    machine reach. Raises: OSError if the address or the port is not available."""
    limits = ConnectionLimits(connections_here(_AT_WORK_MAX))
    pages = Pages(feed, explain, policies, guard_of(place, beyond))
    async with listening(pages.application(), place, Connections(limits)) as url:
        yield url
