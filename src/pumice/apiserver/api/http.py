"""The HTTP API over a cluster: each request is checked, carried out, and answered in a form that the client accepts."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Struct

from pumice.apiserver.api import discovery, protobuf
from pumice.apiserver.api.lists import Shape
from pumice.apiserver.api.managed import applied_to, check_config
from pumice.apiserver.api.openapi import V2_EMPTY, V2_MEDIA, Documents
from pumice.apiserver.api.patches import json_patched, merge_patched, strategic_patched
from pumice.apiserver.api.reading import View, page, selected, selection_of, watched, watching_of
from pumice.apiserver.api.requests import (
    PLAIN,
    Form,
    body_of,
    deletion_of,
    flag,
    form_of,
    json_of,
    options_of,
    target_of,
)
from pumice.apiserver.api.scaling import scale_of, scaled
from pumice.apiserver.cluster import Cluster
from pumice.apiserver.kinds.metadata import maybe_metadata
from pumice.apiserver.kinds.pods import bind, evict
from pumice.apiserver.objects import Options, Target
from pumice.apiserver.refusals import (
    Refusal,
    method_not_allowed,
    no_such_path,
    too_large,
    too_many,
    unsupported_media,
)
from pumice.apiserver.store import Stored
from pumice.kube.api.errors import clean
from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.serving.listening import Handler, connections_here
from pumice.runtime.serving.this_machine import names_this_machine
from pumice.runtime.telemetry.metrics import CONTENT_TYPE, Metrics

_log = logging.getLogger("pumice.apiserver")
_encode = msgspec.json.Encoder().encode
_JSON = "application/json"
_MERGE, _STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
_JSON_PATCH, _APPLY = "application/json-patch+json", "application/apply-patch+yaml"
_OPEN_PATHS = ("livez", "readyz", "healthz")
#: Answered to all clients, and however busy the server is.
HEALTH: Final = tuple(f"/{path}" for path in _OPEN_PATHS)
_CHUNK_BYTES = 256 << 10  # of a long answer, because it is kept in memory until the client has read it


class Limits(Struct, frozen=True):
    """What clients may cost. ``connections``: concurrent requests.

    ``watch_s``: duration of a watch that does not state one.
    """

    body_bytes: int = 3 << 20
    header_bytes: int = 32 << 10
    connections: int = 1_000
    watches: int = 750
    watch_s: float = 1_800.0
    bookmark_s: float = 60.0

    @classmethod
    def here(cls) -> Limits:
        """Return limits with as many connections as this process has file descriptors for, and room beside all
        watches."""
        connections = connections_here(cls().connections)
        return cls(connections=connections, watches=connections * 3 // 4)


class Api:
    """Answers requests. Without a ``token``, only those that address the loopback interface by its name are accepted.

    ``metrics``: those of a scheduler in this process, at ``/metrics``. ``checks``: by name, the health of other parts,
    for ``/readyz``; others may be added. ``pages``: further ones by path, for GET, of a scheduler in this process.
    """

    def __init__(
        self, cluster: Cluster, token: str = "", limits: Limits | None = None, metrics: Metrics | None = None
    ) -> None:
        self.cluster = cluster
        self._metrics = metrics
        self.pages: Mapping[str, Handler] = {}
        self.checks = cluster.checks()
        self.limits = limits or Limits.here()
        self._token = token
        self._documents = Documents(cluster.registry)
        self._watches = 0
        self._open = True

    def application(self) -> web.Application:
        app = web.Application(client_max_size=self.limits.body_bytes)
        app.router.add_route("*", "/{path:.*}", self.handle)
        app.on_shutdown.append(self._close)
        return app

    async def _close(self, app: web.Application) -> None:
        self._open = False
        self.cluster.store.wake()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        try:
            parts = [part for part in request.path.split("/") if part] or [""]
            self._check_allowed(request, parts[0])
            return await self._answer(request, parts)
        except Refusal as refusal:
            return refused(refusal)
        except web.HTTPRequestEntityTooLarge:
            return refused(too_large("the body", self.limits.body_bytes))
        except (web.HTTPException, ConnectionError):
            raise
        except Exception as error:
            _log.exception("%s %s: a fault of this program", request.method, request.path)
            return refused(Refusal(500, "InternalError", f"an error of this server: {type(error).__name__}"))

    # -- who may ask ---------------------------------------------------------------------------------------------------

    def _check_allowed(self, request: web.Request, first: str) -> None:
        """Raise Refusal 401 without the token, 403 for requests that a web page made a browser send."""
        if self._token:
            if first not in _OPEN_PATHS and not self._is_known(request):
                raise Refusal(401, "Unauthorized", "Unauthorized")
            return
        if not names_this_machine(request.headers.get("Host", "")) or "Origin" in request.headers:
            raise Refusal(403, "Forbidden", "without a token this server answers programs on this machine only")

    def _is_known(self, request: web.Request) -> bool:
        """Return True if the request has the token, or none is required."""
        given = request.headers.get("Authorization", "").encode(errors="replace")
        return not self._token or hmac.compare_digest(given, f"Bearer {self._token}".encode())

    # -- where it goes -------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request, parts: list[str]) -> web.StreamResponse:
        first = parts[0]
        if first in ("api", "apis"):
            if len(parts) <= (2 if first == "api" else 3):
                return self._discover(request, parts)
            if parts[1] == discovery.REVIEW_GROUP:
                return await self._review(request, parts)
            if parts[1:] == discovery.WHO_AM_I:
                return await self._who_am_i(request)
            return await self._serve(request, target_of(self.cluster.registry, parts))
        if request.method != "GET":
            raise no_such_path() if first not in _OPEN_PATHS else method_not_allowed()
        if first in _OPEN_PATHS and len(parts) == 1:
            return self._ready(request) if first == "readyz" else web.Response(text="ok")
        if parts == ["version"]:
            return _json(discovery.version())
        if parts == ["metrics"] and self._metrics is not None:
            return web.Response(body=self._metrics.text(), headers={"Content-Type": CONTENT_TYPE})
        if request.path in self.pages:
            return await self.pages[request.path](request)
        if parts == ["openapi", "v2"]:
            return web.Response(body=V2_EMPTY, headers={"Content-Type": V2_MEDIA})
        if parts[0] == "openapi":
            found = self._documents.find(parts[1:])
            if found is not None:
                return web.Response(body=found, content_type=_JSON)
        if parts == [""]:
            return _json({"paths": ["/api", "/apis", "/openapi/v3", "/readyz", "/version"]})
        raise no_such_path()

    def _ready(self, request: web.Request) -> web.Response:
        """Return a line for each part with a note, in Kubernetes' format, and 503 if a part does not work; requests are
        answered nevertheless. Clients without the token do not learn why."""
        found = {name: check() for name, check in self.checks.items()}
        why = {name: f": {clean(health.note)}" for name, health in found.items()} if self._is_known(request) else {}
        lines = [
            f"[{'+' if health.well else '-'}]{name} {'ok' if health.well else 'failed'}{why.get(name, '')}"
            for name, health in found.items()
            if health.note or not health.well
        ]
        well = all(health.well for health in found.values())
        return web.Response(status=200 if well else 503, text="\n".join(["ok" if well else "not ready", *lines]))

    def _discover(self, request: web.Request, parts: list[str]) -> web.Response:
        if request.method != "GET":
            raise method_not_allowed()
        registry, named = self.cluster.registry, parts[0] == "apis"
        if len(parts) == 1:
            form = form_of(request.headers.get("Accept", ""), "APIGroupDiscoveryList")
            if form.as_:
                content = f"{_JSON};g=apidiscovery.k8s.io;v={form.version};as={form.as_}"
                body = _encode(discovery.aggregated(registry, named, form.version))
                return web.Response(body=body, headers={"Content-Type": content, "Vary": "Accept"})
            return _json(discovery.group_list(registry) if named else discovery.core_versions(request.host))
        if named and len(parts) == 2:
            found = discovery.group(registry, parts[1])
        else:
            found = discovery.resource_list(registry, *(parts[1:] if named else ("", parts[1])))
        if found is None:
            raise no_such_path()
        return _json(found)

    async def _review(self, request: web.Request, parts: list[str]) -> web.Response:
        """Answer a review: a client that has access may do everything."""
        kind = discovery.REVIEWS.get(parts[-1])
        if kind is None or request.method != "POST":
            raise no_such_path()
        body = await _body(request)
        rules = {"resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}], "incomplete": False}
        status: Obj = {"allowed": True} if kind == "SelfSubjectAccessReview" else rules | {"nonResourceRules": []}
        return _json(
            {"kind": kind, "apiVersion": f"{discovery.REVIEW_GROUP}/v1", "metadata": {}} | body | {"status": status},
            201,
        )

    async def _who_am_i(self, request: web.Request) -> web.Response:
        """Answer with the only user: the client that has access."""
        if request.method != "POST":
            raise method_not_allowed()
        body = await _body(request)
        user = {"username": "pumice", "uid": "pumice", "groups": ["system:masters", "system:authenticated"]}
        about = {"creationTimestamp": self.cluster.objects.stamps.time()}
        head = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "metadata": about}
        return _json({**body, **head, "status": {"userInfo": user}}, 201)

    async def _serve(self, request: web.Request, target: Target) -> web.StreamResponse:
        method = request.method
        if target.subresource in ("binding", "eviction"):
            if method != "POST":
                raise method_not_allowed()
            return await self._pod_part(request, target)
        if target.subresource == "scale":
            return await self._scale(request, target)
        if target.name:
            act = {"GET": self._get, "PUT": self._put, "PATCH": self._patch, "DELETE": self._delete}.get(method)
        else:
            act = {"GET": self._list, "POST": self._post, "DELETE": self._delete_all}.get(method)
        if act is None:
            raise method_not_allowed()
        return await act(request, target)

    # -- reading -------------------------------------------------------------------------------------------------------

    async def _get(self, request: web.Request, target: Target) -> web.StreamResponse:
        view = self._view(request, target, "Table", "PartialObjectMetadata")
        if flag(request.query, "watch"):
            raise method_not_allowed()
        return _raw(view.one(self.cluster.objects.get(target)))

    async def _list(self, request: web.Request, target: Target) -> web.StreamResponse:
        if flag(request.query, "watch"):
            return await self._watch(request, target)
        view = self._view(request, target, "Table", "PartialObjectMetadataList")
        return await _streamed(request, page(self.cluster.store, view, request.query))

    async def _watch(self, request: web.Request, target: Target) -> web.StreamResponse:
        if self._watches >= self.limits.watches:
            raise too_many(f"there are {self.limits.watches} watches, and no more are taken")
        store, registry, resource = self.cluster.store, self.cluster.registry, target.resource
        view = self._view(request, target, "Table", "PartialObjectMetadata")
        watching = watching_of(store, target, request.query, self.limits.watch_s)

        def alive() -> bool:
            return self._open and registry.find(resource.group, resource.version, resource.plural) is not None

        answer = web.StreamResponse(headers={"Content-Type": _JSON, "Cache-Control": "no-cache, private"})
        self._watches += 1
        try:
            await answer.prepare(request)
            async for lines in watched(store, view, watching, self.limits.bookmark_s, alive):
                await answer.write(b"".join(lines))
            await answer.write_eof()
        finally:
            self._watches -= 1
        return answer

    def _view(self, request: web.Request, target: Target, *offered: str) -> View:
        form = form_of(request.headers.get("Accept", ""), *offered)
        include = request.query.get("includeObject") or "Metadata"
        return View(target, form, include, self.cluster.objects.stamps.now)

    # -- writing -------------------------------------------------------------------------------------------------------

    async def _post(self, request: web.Request, target: Target) -> web.StreamResponse:
        body = await _body(request)
        if target.resource.namespaced and not target.namespace:
            raise no_such_path()
        options = _options(request)
        return self._written(request, target, self.cluster.objects.create(target, body, options), options, 201)

    async def _put(self, request: web.Request, target: Target) -> web.StreamResponse:
        body, options = await _body(request), _options(request)
        return self._written(request, target, self.cluster.objects.replace(target, body, options), options)

    async def _patch(self, request: web.Request, target: Target) -> web.StreamResponse:
        kind = request.content_type
        if kind not in (_MERGE, _STRATEGIC, _JSON_PATCH, _APPLY):
            raise unsupported_media(kind, f"{_JSON_PATCH}, {_MERGE}, {_STRATEGIC} or {_APPLY}")
        raw, options, objects = await request.read(), _options(request), self.cluster.objects
        resource = target.resource
        if kind == _APPLY:
            return self._apply(request, target, body_of(raw), options)
        patch: Any = json_of(raw)
        edits: dict[str, Callable[[Obj], Obj]] = {
            _MERGE: lambda obj: merge_patched(obj, patch),
            _JSON_PATCH: lambda obj: json_patched(obj, patch),
            _STRATEGIC: lambda obj: strategic_patched(obj, patch, Shape.of(resource)),
        }
        if kind == _STRATEGIC and resource.custom:
            raise unsupported_media(kind, f"{_JSON_PATCH}, {_MERGE} or {_APPLY}")
        return self._written(request, target, objects.change(target, edits[kind], options), options)

    def _apply(self, request: web.Request, target: Target, config: Obj, asked: Options) -> web.Response:
        options = Options(
            asked.dry_run,
            request.query.get("fieldManager", ""),
            asked.force,
            asked.unknown_fields,
            asked.warnings,
            config,
        )
        check_config(config, options.manager)
        objects, resource = self.cluster.objects, target.resource
        if self.cluster.store.find(resource.table, target.key) is None and not target.subresource:
            metadata = {**maybe_metadata(config), "name": target.name}
            found = objects.create(target, {**config, "metadata": metadata}, options)
            return self._written(request, target, found, options, 201)
        found = objects.change(target, lambda old: applied_to(resource, old, config, options), options)
        return self._written(request, target, found, options)

    async def _delete(self, request: web.Request, target: Target) -> web.StreamResponse:
        if target.subresource:
            raise method_not_allowed()
        how, orphan = deletion_of(request.query, await _optional_body(request))
        found = self.cluster.objects.get(target)
        if orphan and not how.dry_run:
            self.cluster.collector.release(found.obj["metadata"]["uid"])
        return _json(self.cluster.objects.delete(target, how))

    async def _delete_all(self, request: web.Request, target: Target) -> web.StreamResponse:
        how, _ = deletion_of(request.query, await _optional_body(request))
        rows = list(selected(self.cluster.store, target, selection_of(target, request.query)))
        self.cluster.objects.delete_all(target.resource, rows, how)
        view = View(target, PLAIN, "None", self.cluster.objects.stamps.now)
        return await _streamed(request, view.many(rows, {"resourceVersion": str(self.cluster.store.version)}))

    async def _pod_part(self, request: web.Request, target: Target) -> web.StreamResponse:
        body, options = await _body(request), _options(request)
        if target.subresource == "binding":
            return _json(bind(self.cluster.objects, target, body, options.dry_run), 201)
        how, _ = deletion_of(request.query, body.get("deleteOptions") or {})
        return _json(evict(self.cluster.objects, target, body, how), 201)

    async def _scale(self, request: web.Request, target: Target) -> web.StreamResponse:
        objects, whole = self.cluster.objects, Target(target.resource, target.namespace, target.name)
        if request.method == "GET":
            return _json(scale_of(objects.get(whole).obj))
        if request.method == "PUT":
            given = await _body(request)
            return _json(scale_of(objects.change(whole, lambda obj: scaled(obj, lambda _: given), _options(request))))
        if request.method != "PATCH":
            raise method_not_allowed()
        patch: Any = json_of(await request.read())
        patched = json_patched if request.content_type == _JSON_PATCH else merge_patched

        def edit(obj: Obj) -> Obj:
            return scaled(obj, lambda scale: patched(scale, patch))

        return _json(scale_of(objects.change(whole, edit, _options(request))))

    def _written(
        self, request: web.Request, target: Target, obj: Obj, options: Options, code: int = 200
    ) -> web.Response:
        """Return the object after a write, in the requested form, with warnings."""
        form = form_of(request.headers.get("Accept", ""), "Table", "PartialObjectMetadata")
        version = int(obj["metadata"].get("resourceVersion", 0))
        row = Stored("", version, obj, _encode(obj) if form == Form() else b"")
        view = View(target, form, request.query.get("includeObject") or "Metadata", self.cluster.objects.stamps.now)
        answer = _raw(view.one(row), code)
        for text in options.warnings:
            answer.headers.add("Warning", f'299 - "{_quoted(text)}"')
        return answer


def _options(request: web.Request) -> Options:
    return options_of(request.query, request.headers.get("User-Agent", ""))


async def _body(request: web.Request) -> Obj:
    """Return the body. Raises: Refusal 415 if it is neither JSON nor protobuf, 400 if it is not an object."""
    kind, raw = request.content_type, await request.read()
    if kind == protobuf.MEDIA:
        return protobuf.decoded(raw)
    if kind not in (_JSON, "application/octet-stream"):
        raise unsupported_media(kind, f"{_JSON} or {protobuf.MEDIA}")
    return body_of(raw)


async def _optional_body(request: web.Request) -> Obj:
    return await _body(request) if request.can_read_body else {}


def _json(value: Obj, code: int = 200) -> web.Response:
    return _raw(_encode(value), code)


def _raw(body: bytes, code: int = 200) -> web.Response:
    return web.Response(body=body, status=code, content_type=_JSON)


async def _streamed(request: web.Request, parts: Iterable[bytes]) -> web.StreamResponse:
    """Send an answer that may be long. A part is made only when the client has read those before it."""
    chunk, size, answer = [], 0, None
    for part in parts:
        chunk.append(part)
        size += len(part)
        if size >= _CHUNK_BYTES:
            if answer is None:
                answer = web.StreamResponse(headers={"Content-Type": _JSON})
                await answer.prepare(request)
            await answer.write(b"".join(chunk))
            chunk, size = [], 0
    if answer is None:
        return _raw(b"".join(chunk))
    await answer.write(b"".join(chunk))
    await answer.write_eof()
    return answer


def refused(refusal: Refusal) -> web.Response:
    answer = _json(refusal.status(), refusal.code)
    if refusal.retry_after_s is not None:
        answer.headers["Retry-After"] = str(refusal.retry_after_s)
    return answer


def _quoted(text: str) -> str:
    """Return text that can be between quotes in a header. Text from a user must not end a line."""
    plain = "".join(char if " " <= char <= "~" else "?" for char in text[:500])
    return plain.replace("\\", "\\\\").replace('"', '\\"')
