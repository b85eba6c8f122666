"""Who asks a server, and what of a cluster they may see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable

from aiohttp import web
from msgspec import Struct

from pumice.runtime.serving.listening import Place
from pumice.runtime.serving.this_machine import is_from_here, is_loopback


class Scope(Struct, frozen=True):
    """What one viewer may see. ``namespaces``: those whose jobs are shown, None for all; queues are sums, which
    everyone sees. ``nodes``: whether nodes are shown one by one."""

    namespaces: frozenset[str] | None = None
    nodes: bool = True

    @property
    def is_all(self) -> bool:
        return self.namespaces is None

    def has(self, job: str) -> bool:
        """Return True if the viewer may see a job, by its key."""
        return self.namespaces is None or namespace_of(job) in self.namespaces


EVERYTHING = Scope()


class Viewer:
    """One who asks. This class is for programs of this machine, which see everything. ``name``: what limits for each
    viewer count by, "" for these."""

    name = ""

    async def scope(self, namespaces: Iterable[str]) -> Scope:
        """Return what the viewer may see, in a cluster that has jobs in these namespaces. Raises: HTTPException."""
        return EVERYTHING


#: Returns who sent a request. Raises: HTTPException with a sentence if it is not to be answered.
Guard = Callable[[web.Request], Awaitable[Viewer]]


_THIS_MACHINE = Viewer()


async def this_machine(request: web.Request) -> Viewer:
    """Return the viewer of a request from this machine, who sees everything. Raises: HTTPForbidden for all others."""
    if not is_from_here(request):
        raise web.HTTPForbidden(text="for this machine alone: see kubectl port-forward\n")
    return _THIS_MACHINE


def guard_of(place: Place, beyond: Guard) -> Guard:
    """Return the guard of an address: ``beyond`` where it has TLS and not only this machine reaches it.

    There a request that seems to come from this machine needs a token too: a proxy beside the server sends those of
    all others, with a Host header that they choose. Without TLS a token could be read on its way.
    """
    return beyond if place.tls is not None and not is_loopback(place.address) else this_machine


def namespace_of(job: str) -> str:
    return job.partition("/")[0]


def namespaces_of(jobs: Collection[str]) -> list[str]:
    """Return the namespaces of jobs, given by their keys, in order."""
    return sorted({namespace_of(job) for job in jobs})
