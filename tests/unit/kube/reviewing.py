"""An API server that knows tokens and rights, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from pumice.kube.api.access import Access
from pumice.kube.api.client import Client
from pumice.kube.api.kinds import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from pumice.kube.scheduler.reviews import CAPS
from pumice.runtime.serving.listening import ConnectionLimits, Connections, Place, listening

#: Which namespaces the user of a token may get pods of, "" for all. The token of a user is their name and "-token".
RIGHTS: Mapping[str, tuple[str, ...]] = {"admin": ("",), "anna": ("ns",), "guest": ()}


class ReviewServer:
    """``asked``: the specs of reviews so far. ``status``: what it answers instead, if it is not 0."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.status = 0

    async def token(self, request: web.Request) -> web.Response:
        spec = await self._spec(request)
        name = spec["token"].removesuffix("-token")
        user = {"username": name, "uid": f"{name}-uid", "groups": ["system:authenticated"], "extra": {"b": ["1"]}}
        status = {"authenticated": True, "user": user} if name in RIGHTS else {"error": "invalid"}
        return web.json_response({"status": status}, status=201)

    async def access(self, request: web.Request) -> web.Response:
        spec = await self._spec(request)
        about, allowed = spec["resourceAttributes"], RIGHTS[spec["user"]]
        is_allowed = "" in allowed or (about["resource"] == "pods" and about["namespace"] in allowed)
        return web.json_response({"status": {"allowed": is_allowed}}, status=201)

    async def _spec(self, request: web.Request) -> dict[str, Any]:
        if self.status:
            raise _error(self.status)
        spec: dict[str, Any] = (await request.json())["spec"]
        self.asked.append(spec)
        return spec


def _error(status: int) -> web.HTTPException:
    class Refused(web.HTTPException):
        status_code = status

    return Refused(text="{}")


@asynccontextmanager
async def reviewing() -> AsyncIterator[tuple[ReviewServer, Client]]:
    """Yield such a server, and a client of it."""
    server, app = ReviewServer(), web.Application()
    app.router.add_post(TOKEN_REVIEWS.list_path, server.token)
    app.router.add_post(SUBJECT_ACCESS_REVIEWS.list_path, server.access)
    async with (
        listening(app, Place(), Connections(ConnectionLimits())) as url,
        Client(Access(url), caps=CAPS) as client,
    ):
        yield server, client
