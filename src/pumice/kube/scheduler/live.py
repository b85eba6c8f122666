"""A running scheduler: it follows a cluster, competes for leadership, and while it leads runs cycle after cycle.

The event loop has the reflectors, the writers, the lease and HTTP. Cycles have their own thread, so that a long one
does not delay renewals of the lease. A scheduler that does not lead applies events and does nothing else. One that has
lost the lease forgets everything and begins again, like a new process.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pumice.kube.api.client import Client, Counts
from pumice.kube.api.errors import KubeError
from pumice.kube.api.kinds import NAMESPACES, NODE_SHARDS, Kind
from pumice.kube.api.retry_policy import RetryPolicy
from pumice.kube.binding.claims import ClaimBinding
from pumice.kube.binding.node_locks import NodeLocking
from pumice.kube.binding.volumes import VolumeBinding
from pumice.kube.informers.all_kinds import InformerSet
from pumice.kube.informers.scheduler_objects import taken
from pumice.kube.informers.unparsable import Unparsable
from pumice.kube.informers.usage import usage_feeds
from pumice.kube.informers.watch_failures import WatchFailures
from pumice.kube.scheduler.cluster import KubeCluster
from pumice.kube.scheduler.cycle_log import log_cycle, log_decisions
from pumice.kube.scheduler.dump import write_dump
from pumice.kube.scheduler.languages import KAI
from pumice.kube.scheduler.lease import Election
from pumice.kube.scheduler.node_shards import NodeShards
from pumice.kube.scheduler.reload import Conf, ConfFile
from pumice.kube.scheduler.schedule import CycleSchedule
from pumice.kube.scheduler.settings import Settings
from pumice.kube.writers.reminders import Reminders, record_unparsable
from pumice.kube.writers.writing import Timers
from pumice.model.decisions import Bind
from pumice.model.manifest import Decoder
from pumice.model.workloads.gang import DEFAULT_NODE_POOL
from pumice.runtime.cycle_end import CycleEnd, seconds_of
from pumice.runtime.loop import Loop
from pumice.runtime.memory import give_back_freed
from pumice.runtime.telemetry.cycle_metrics import CycleTimer, report_bound, report_cycle
from pumice.runtime.telemetry.kai_metrics import report_bind_written, report_kai_cycle, report_usage_asked
from pumice.runtime.telemetry.metrics import Metrics
from pumice.runtime.telemetry.waiting_metrics import WaitingMetrics
from pumice.state.config_maps import with_config_maps
from pumice.state.group_trees import with_trees
from pumice.state.store import Store

_log = logging.getLogger("pumice.run")
T = TypeVar("T")
_TIDY_S = 60.0  # how often freed memory is returned to the system
_STUCK_S = 300.0  # a cycle that takes this long will not end


#: Takes each cycle that ended, in the thread of cycles.
AfterCycle = Callable[[CycleEnd], None]


class Live:
    """A running scheduler. ``run`` is its whole life. ``stop`` ends it properly, from the loop. ``leads``: whether it
    decides.

    ``election`` None: it leads from the start. ``beside``: what else runs on the leader, such as controllers.
    ``after_cycle``: called after each cycle, such as for pages.
    ``cluster`` and ``informers`` belong to one term and are replaced in the next.
    """

    def __init__(
        self,
        client: Client,
        conf: ConfFile,
        settings: Settings,
        metrics: Metrics,
        *,
        election: Election | None = None,
        beside: Callable[[], Coroutine[Any, Any, None]] | None = None,
        retry_policy: RetryPolicy | None = None,
        troubles: WatchFailures | None = None,
        after_cycle: AfterCycle | None = None,
    ) -> None:
        self.conf, self.metrics, self.settings = conf, metrics, settings
        # Fenced, because work that ends late must not write when another candidate may lead.
        self._client = client if election is None else client.fenced(lambda: election.holds)
        self._retry_policy, self._troubles = retry_policy, troubles or WatchFailures()
        self._waiting = WaitingMetrics(metrics, time.monotonic)
        self.leads = False
        self._reset_term()
        self.loop = Loop(self._empty_store(), conf.current.policy, self.cluster, publishes=True)
        self.failed_cycles = 0
        self.cycle_began: float | None = None  # start of the running cycle, by time.monotonic
        self.failing_since: float | None = None  # since when every cycle failed
        self._election, self._beside, self._after_cycle = election, beside, after_cycle
        self._schedule = self._new_schedule()
        self._on_loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._news = asyncio.Event()
        self._round_over = asyncio.Event()
        self._round_over.set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cycle")
        self._tidied = time.monotonic()

    def stop(self) -> None:
        """Finish the cycle, write what was decided, release the lease, end."""
        if not self._stopping.is_set():
            _log.info("stopping")
        self._stopping.set()
        self._news.set()

    def dump(self, folder: Path) -> None:
        """Write what is known below ``folder``, between two cycles."""
        self._thread.submit(self._dump, folder)

    async def look(self, find: Callable[[Store, Conf], T]) -> T:
        """Return what ``find`` finds between two cycles, given the store and the current policy."""
        return await asyncio.wrap_future(self._thread.submit(find, self.loop.store, self.conf.current))

    async def run(self) -> None:
        """Run until ``stop``. Raises: KubeError, and any error of this program."""
        self._on_loop = asyncio.get_running_loop()
        self.conf.changed = self._change
        self.conf.log()
        watching = asyncio.create_task(self.conf.watch(self.settings.conf_s))
        rounds, terms = asyncio.create_task(self._rounds()), asyncio.create_task(self._terms())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({terms, stopping, rounds}, return_when=asyncio.FIRST_COMPLETED)
            if self.leads and self._stopping.is_set():
                await asyncio.wait({terms})
            for task in (terms, rounds):
                if task.done():
                    task.result()
        finally:
            await _ended(terms, stopping, watching, rounds)
            self._thread.shutdown(wait=True, cancel_futures=True)

    # -- leading -------------------------------------------------------------------------------------------------------

    async def _terms(self) -> None:
        """Run term after term, each from nothing, because what is left of a lost one may be outdated."""
        while True:
            parts = [asyncio.create_task(part) for part in (self._term(), self.informers.run(), self._sync())]
            try:
                await asyncio.wait(parts[:2], return_when=asyncio.FIRST_COMPLETED)
                for task in parts:
                    if task.done():
                        task.result()
            finally:
                await _ended(*parts)
            if self._stopping.is_set() or self._election is None:
                return
            await self._round_over.wait()
            self._reset_term()
            self.loop.begin_anew(self._empty_store(), self.cluster)

    async def _term(self) -> None:
        """Compete for leadership once the API server allows everything to be read, and read it meanwhile. Return when
        leadership is lost, or the work is done. Raises: KubeError."""
        if self._election is None:
            await self._lead()
            return
        await self.informers.answered()
        if self.settings.lease_namespace:
            await self.informers.reflectors[NAMESPACES].synced.wait()
            self._check_namespace(self.settings.lease_namespace)
        await self._election.run(self._lead)

    def _check_namespace(self, name: str) -> None:
        """Raise KubeError if the Lease cannot be created, instead of waiting forever."""
        if not self.informers.reflectors[NAMESPACES].trouble and name not in self.informers.objects(NAMESPACES):
            raise KubeError(
                f"namespace {name}, where the Lease would be, does not exist: create it, use another with"
                " --leader-elect-resource-namespace, or use --leader-elect=false"
            )

    async def _sync(self) -> None:
        await self.informers.synced()
        self.synced.set()
        needed = [kind for kind in self.settings.language.followed if kind.needed]
        counts = ", ".join(f"{len(self.informers.objects(kind))} {kind.plural}" for kind in needed)
        _log.info("synced: %s", counts)
        self._at_once()

    def _reset_term(self) -> None:
        """Reset the port, and its sources, to the state before any event."""
        self._waiting.forget()
        settings = self.settings
        self.cluster = KubeCluster(
            self._client,
            settings.writing,
            scheduler=settings.scheduler_names[0],
            hooks=(VolumeBinding(self._client), ClaimBinding(self._client), NodeLocking(self._client)),
            timers=Timers(self._timed, self._aged),
        )
        self.cluster.changed = self._change
        decoder = Decoder(default_queue=settings.default_queue)
        self.informers = InformerSet(
            self._client,
            self.cluster.sink,
            decoder=decoder,
            kinds=settings.language.followed,
            retry_policy=self._retry_policy,
            troubles=self._troubles,
            takes=taken(self.settings.pool, self.settings.node_labels),
            on_unparsable=self._record_unparsable,
        )
        self.reminders = Reminders(self.cluster.cache, self.cluster.recorder, self.informers.unparsable)
        asked = partial(report_usage_asked, self.metrics)
        self._feeds = usage_feeds(lambda: self.conf.current.policy, self.cluster, self._client, asked)
        informers, in_flight, sharding = self.informers, self.cluster.in_flight, settings.sharding
        shards = (lambda: informers.objects(NODE_SHARDS)), in_flight.jobs_bound_to
        self._shards = NodeShards(sharding, *shards) if sharding is not None else None
        self.synced, self._decided = asyncio.Event(), asyncio.Event()
        self.cluster.is_synced = self.synced.is_set

    async def _lead(self) -> None:
        """Lead until stopped. Cancelled if leadership is lost: then nothing more is written."""
        works = [self.cluster.run(), self.reminders.run(), self._run_beside(), *(feed.run() for feed in self._feeds)]
        if self._shards is not None:
            works.append(self._shards.run(self._client))
        stopping, *tasks = map(asyncio.create_task, (self._stopping.wait(), *works))
        self.leads = True
        self._at_once()
        try:
            await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            await self._round_over.wait()
            left = await self.cluster.flush(self.settings.flush_s)
            if left:
                _log.warning(
                    "%d decisions were still in flight after %.0f s and were abandoned", left, self.settings.flush_s
                )
        finally:
            self.leads = False
            await _ended(stopping, *tasks)

    def _record_unparsable(self, kind: Kind, unparsable: Unparsable) -> None:
        if self.leads:  # otherwise the leader reports it, or the reminders once this leads
            record_unparsable(self.cluster.recorder, kind, unparsable)

    async def _run_beside(self) -> None:
        """Run the companions after the first cycle, which must not wait for what they read."""
        await self._decided.wait()
        if self._beside is not None:
            await self._beside()
        await self._stopping.wait()

    # -- cycles --------------------------------------------------------------------------------------------------------

    async def _rounds(self) -> None:
        """Run cycle after cycle while this leads. Otherwise only apply events."""
        while not self._stopping.is_set():
            await self._due()
            if self._stopping.is_set():
                return
            self._round_over.clear()
            schedule = self._schedule
            try:
                failed = await asyncio.get_running_loop().run_in_executor(self._thread, self._round)
            finally:
                self._round_over.set()
            if self.leads and self.synced.is_set():
                self._decided.set()
            schedule.end(time.monotonic(), failed)
            if time.monotonic() - self._tidied > _TIDY_S:
                self._tidied = time.monotonic()
                await asyncio.get_running_loop().run_in_executor(self._thread, give_back_freed)
            if failed:
                await self._start_over()

    async def _due(self) -> None:
        """Wait for the next round."""
        while not self._stopping.is_set():
            left_s = self._schedule.due() - time.monotonic()
            if left_s <= 0:
                self._schedule.begin(time.monotonic())
                return
            self._news.clear()
            # Also after a change: what the schedule puts off may be wanted at once, when all kinds are synced.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), left_s)

    def _change(self) -> None:
        """Note a change that may affect a decision. From any thread."""
        is_first = not self._schedule.changed
        self._schedule.change(time.monotonic())
        if is_first and self._on_loop is not None:
            with suppress(RuntimeError):  # the loop is closed, and nothing waits
                self._on_loop.call_soon_threadsafe(self._news.set)

    def _at_once(self) -> None:
        """Start the next round without waiting."""
        self._schedule = self._new_schedule()
        self._change()

    def _new_schedule(self) -> CycleSchedule:
        return CycleSchedule(self.settings.period_s, on_change=self.settings.on_change)

    def _round(self) -> bool:
        """Run one round in the thread of cycles. Return True if it failed: that is logged, and the process goes on."""
        try:
            if self.leads and not self.unready():  # the state may be old, since another leader may have bound pods
                self._cycle()
            else:
                self.loop.take_in()
        except Exception as error:
            self.failed_cycles += 1
            self.failing_since = self.failing_since or time.monotonic()
            if self._schedule.failures == 0:
                _log.exception("a cycle failed: a fault of this program or of a plugin")
            else:
                count = self._schedule.failures + 1
                _log.error("%d cycles in a row failed: %s: %s", count, type(error).__name__, error)
            return True
        finally:
            self.cluster.evictions.release()
            self.cycle_began = None
        self.failing_since = None
        return False

    def _cycle(self) -> None:
        self.cycle_began = time.monotonic()
        conf = self.conf.current
        self.loop.use_policy(conf.policy, conf.file)
        if self._shards is not None:
            self.loop.store.shard = self._shards.shard()
        now, timer = time.time(), CycleTimer(time.perf_counter)
        outcome = self.loop.step(now, timer)
        decisions = self.loop.decisions
        timer.report(self.metrics)
        report_cycle(self.metrics, outcome)
        self._waiting.take(outcome)
        if self.settings.language is KAI:
            report_kai_cycle(self.metrics, outcome, timer, decisions, self.loop.store.node_pool)
        log_cycle(outcome, decisions)
        self.cluster.report(outcome)
        self.reminders.note(outcome)
        if self._after_cycle is not None:
            end = CycleEnd(self.loop.cycles, outcome, decisions, self.loop.digest.hex, seconds_of(timer))
            self._after_cycle(end)
        log_decisions(self.loop.cycles, outcome.now, self.loop.digest.hex, decisions, conf.hash)

    async def _start_over(self) -> None:
        """After a failure: wait until decisions are confirmed or given up, then build the store again.

        Events may be applied in part, and decisions accepted but not assumed; neither can be seen from outside.
        """
        while len(self.cluster.in_flight) and not self._stopping.is_set():
            await asyncio.sleep(0.1)
        self.cluster.drain()  # the reflectors have all of it
        self.loop.fill_anew(self._empty_store(), with_trees(with_config_maps(self.informers.counted())))

    def _dump(self, folder: Path) -> None:
        """Write a dump in the thread of cycles, which alone may touch the store."""
        try:
            self.loop.take_in()  # the next cycle decides on what was heard since the last one
            conf, flags = self.conf.current, self.settings.replay
            store, is_lenient = self.loop.store, bool(conf.policy.warnings)
            place = write_dump(store, conf.file, folder, time.time(), flags, lenient=is_lenient)
        except Exception as error:
            _log.error("no dump in %s: %s", folder, error)
        else:
            _log.info("dumped: pumice schedule %s", place)

    def _empty_store(self) -> Store:
        return Store(
            scheduler_names=self.settings.scheduler_names,
            default_queue=self.settings.default_queue,
            use_priority_classes=self.settings.use_priority_classes,
            node_pool=self.settings.pool.name if self.settings.pool is not None else DEFAULT_NODE_POOL,
        )

    def _timed(self, stage: str, seconds: float) -> None:
        self.metrics.observe("scheduling_stage_duration_milliseconds", 1000.0 * seconds, stage)
        if stage == "Bind" and self.settings.language is KAI:
            report_bind_written(self.metrics, seconds)

    def _aged(self, stage: str, bind: Bind, seconds: float) -> None:
        if stage == "Failed":
            self.metrics.add("schedule_attempts_total", 1.0, "error")
            return
        self.metrics.observe("task_scheduling_latency_milliseconds", 1000.0 * seconds, stage)
        if stage == "Bound":
            self.metrics.add("schedule_attempts_total", 1.0, "scheduled")
            group = self.cluster.cache.groups.get(bind.job)
            if group is not None:
                report_bound(self.metrics, group, time.time())

    # -- what is asked from outside ------------------------------------------------------------------------------------

    @property
    def counts(self) -> Counts:
        """Return results of requests to the API server."""
        return self._client.counts

    def unwell(self) -> str:
        """Return why this process should be restarted, "" if it is well."""
        now = time.monotonic()
        for since, what in (
            (self.cycle_began, "a cycle has been running for"),
            (self.failing_since, "every cycle has failed for"),
        ):
            if since is not None and now - since > _STUCK_S:
                return f"{what} {now - since:.0f} s"
        return ""

    def unready(self) -> list[str]:
        """Return why it could not schedule at present, a line each."""
        needed = [each.trouble for kind, each in self.informers.reflectors.items() if kind.needed and each.trouble]
        waiting = [
            f"{kind.full_name} is not listed yet"
            for kind, each in self.informers.reflectors.items()
            if not each.synced.is_set()
        ]
        return sorted({*needed, *waiting})


async def _ended(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks, and wait until they are over."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError, Exception):
            await task
