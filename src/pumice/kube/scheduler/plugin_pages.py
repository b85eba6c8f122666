"""Pages that are served while a plugin of the current policy names them: the next cycle as a file, the order of jobs.

They reveal much about a cluster and cost the thread of cycles time, so they are for this machine only (which includes
``kubectl port-forward``), and one at a time. Source: KAI's plugin server, with its paths.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

import msgspec
from aiohttp import web

from pumice.kube.scheduler.live import Live
from pumice.kube.scheduler.reload import Conf
from pumice.runtime.files import snapshot_file
from pumice.runtime.files.snapshot_file import Cycle
from pumice.runtime.job_order import job_order
from pumice.runtime.serving.this_machine import is_loopback
from pumice.state.store import Store

Page = Callable[[Store, Conf], web.Response]


def _snapshot(store: Store, conf: Conf) -> web.Response:
    """Return the next cycle as a file for ``pumice schedule``."""
    cycle = Cycle(store.snapshot(), time.time(), conf.file, lenient=bool(conf.policy.warnings))
    headers = {"Content-Disposition": 'attachment; filename="cycle.pumice"'}
    return web.Response(body=snapshot_file.to_bytes(cycle), content_type=snapshot_file.KIND, headers=headers)


def _job_order(store: Store, conf: Conf) -> web.Response:
    order = job_order(store.snapshot(), conf.policy, time.time())
    return web.Response(body=msgspec.json.encode(order), content_type="application/json")


#: By path: the plugin that must be in the policy, and what makes the page.
_PAGES: Mapping[str, tuple[str, Page]] = {
    "/get-snapshot": ("snapshot", _snapshot),
    "/get-job-order": ("reflectjoborder", _job_order),
}


class PluginPages:
    """``pages``: handlers by path. ``live``: returns the scheduler that is asked, None while there is none."""

    def __init__(self, live: Callable[[], Live | None]) -> None:
        self._live, self._one = live, asyncio.Lock()
        self.pages = dict.fromkeys(_PAGES, self.answer)

    async def answer(self, request: web.Request) -> web.Response:
        live = self._live()
        if live is None:
            return web.Response(text="no scheduler runs now; it is started again\n", status=503)
        options = live.conf.current.policy.options
        plugin, page = _PAGES[request.path]
        if all(option.spec.page != request.path for option in options):
            # Not 404: the page exists, and what it lacks can be added to the policy.
            text = f"the policy in force lacks the plugin {plugin}, which serves this page; name it in a tier\n"
            return web.Response(text=text, status=501)
        if not is_loopback(request.remote or ""):
            return web.Response(text="for this machine alone: see kubectl port-forward\n", status=403)
        if self._one.locked():
            return web.Response(text="another one is being written\n", status=503)
        async with self._one:
            return await live.look(page)
