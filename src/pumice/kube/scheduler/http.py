"""Pages of a running scheduler: metrics, health, and the current policy."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web
from prometheus_client import PROCESS_COLLECTOR
from prometheus_client.core import Metric
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

from pumice.kube.scheduler.answer_pages import AnswerPages
from pumice.kube.scheduler.live import Live
from pumice.kube.scheduler.plugin_pages import PluginPages
from pumice.runtime.serving.listening import ConnectionLimits, Connections, Place, connections_here, listening
from pumice.runtime.serving.viewers import Guard, guard_of, this_machine
from pumice.runtime.telemetry.metrics import CONTENT_TYPE

_AT_WORK_MAX = 64  # concurrent requests per address
#: ``/livez`` is the name of KAI and of newer components of Kubernetes.
_HEALTH = ("/healthz", "/livez", "/readyz")


class Pages:
    """No page changes anything, and except for pages of plugins none costs more than reading the metrics. ``answers``:
    pages that are answered by other processes, if there are any, to viewers that ``guard`` lets in."""

    def __init__(self, live: Live, answers: AnswerPages | None = None, guard: Guard = this_machine) -> None:
        self._live, self._answers, self._guard = live, answers, guard
        self._of_plugins = PluginPages(lambda: live)

    def application(self) -> web.Application:
        app = web.Application(client_max_size=1 << 10)
        health = zip(_HEALTH, (self.health, self.health, self.ready), strict=True)
        pages = (("/metrics", self.metrics), *health, ("/conf", self.conf))
        app.add_routes([web.get(path, page) for path, page in (*pages, *self._of_plugins.pages.items())])
        if self._answers is not None:
            app.add_routes([web.get(path, page) for path, page in self._answers.pages_for(self._guard).items()])
        return app

    async def metrics(self, request: web.Request) -> web.Response:
        body = self._live.metrics.text(self._own())
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    async def health(self, request: web.Request) -> web.Response:
        why = self._live.unwell()
        return web.Response(text=f"{why or 'ok'}\n", status=500 if why else 200)

    async def ready(self, request: web.Request) -> web.Response:
        """A scheduler that does not lead is ready, too: it could lead. Below "ok" it lists what is off because a kind
        or a right is missing."""
        why = self._live.unready()
        lines = why or ("ok", *self._live.informers.trouble())
        return web.Response(text="".join(f"{line}\n" for line in lines), status=503 if why else 200)

    async def conf(self, request: web.Request) -> web.Response:
        conf = self._live.conf
        headers = {"X-Conf-Hash": conf.current.hash}
        return web.Response(text=conf.current.text + "\n", content_type="application/json", headers=headers)

    def _own(self) -> Iterator[Metric]:
        """Yield metrics that Volcano does not have."""
        live = self._live
        info = GaugeMetricFamily("pumice_conf_info", "The policy in force, by the hash of /conf", labels=["hash"])
        info.add_metric([live.conf.current.hash], 1)
        yield info
        gauges = {
            "pumice_conf_refused": (
                "1 while the conf file is wrong and an older one in force",
                bool(live.conf.refused),
            ),
            "pumice_leader": ("1 while this process decides", live.leads),
            "pumice_binds_in_flight": ("Decisions that are on their way", len(live.cluster.in_flight)),
            "pumice_gangs_below_minimum": (
                "Gangs that hold nodes and are below their minimum",
                len(live.reminders.below_minimum.gangs),
            ),
            "pumice_gang_below_minimum_seconds": (
                "For how long one of them has been so at most",
                live.reminders.below_minimum.longest_s(time.monotonic()),
            ),
            "pumice_kinds_not_followed": ("Reasons why kinds are not followed", len(live.informers.trouble())),
        }
        for name, (about, value) in gauges.items():
            yield GaugeMetricFamily(name, about, value=float(value))
        yield CounterMetricFamily("pumice_failed_cycles", "Cycles that failed", value=live.failed_cycles)
        faults = CounterMetricFamily(
            "pumice_plugin_faults",
            "Errors of plugins; each skipped a job or a phase of a cycle",
            labels=["plugin", "point", "hook", "where"],
        )
        for culprit, count in dict(live.loop.faults.counts).items():
            faults.add_metric(culprit, count)
        if faults.samples:
            yield faults
        unparsable = CounterMetricFamily("pumice_objects_not_read", "Objects that could not be read", labels=["kind"])
        current = GaugeMetricFamily("pumice_objects_unread", "Objects that are unreadable now", labels=["kind"])
        for kind, reflector in live.informers.reflectors.items():
            if reflector.unparsable.count:
                unparsable.add_metric([kind.full_name], reflector.unparsable.count)
                current.add_metric([kind.full_name], len(reflector.unparsable))
        if unparsable.samples:
            yield unparsable
            yield current
        about = "Requests to the API server, by what came of them"
        requests = CounterMetricFamily("pumice_api_requests", about, labels=["method", "code"])
        for (method, code), count in sorted(live.counts.answers.items()):
            requests.add_metric([method, code], count)
        yield requests
        lost = live.counts.events_lost
        yield CounterMetricFamily("pumice_events_lost", "Events for users that were not written", value=lost)
        yield CounterMetricFamily("pumice_conf_reloads", "Confs taken over while running", value=live.conf.reloads)
        yield from PROCESS_COLLECTOR.collect()


@asynccontextmanager
async def serving(
    live: Live, places: Iterable[Place], answers: AnswerPages | None = None, beyond: Guard = this_machine
) -> AsyncIterator[list[str]]:
    """Serve pages. Yields the URLs of the addresses. ``beyond``: lets in who asks over TLS at an address that others
    than programs of this machine reach. Raises: OSError.

    Each has its own connections: a client that takes all of the metrics' connections leaves those of the health pages.
    """
    async with AsyncExitStack() as stack:
        urls = []
        for place in places:
            connections = Connections(ConnectionLimits(connections_here(_AT_WORK_MAX)), _HEALTH)
            pages = Pages(live, answers, guard_of(place, beyond))
            urls.append(await stack.enter_async_context(listening(pages.application(), place, connections)))
        yield urls
