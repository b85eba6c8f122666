"""The history of a simulation in bounded memory: jobs, allocation, queue shares, waiting jobs, use of nodes.

Everything is recorded when it changes, and nothing is polled. ``figures`` are exact; series and the heat map are
pictures that become coarser as they become longer. Reports read it; no decision does.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from msgspec import Struct

from pumice.model.decisions import Decision, Evict, Refusal
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.status import PodGroupPhase
from pumice.model.workloads.podgroup import PodGroup
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller, JobRun
from pumice.sim.equal_pods import EqualPods, one_of
from pumice.sim.measures.figures import Figures, amount_of
from pumice.sim.measures.node_usage import Amounts, Usage, amounts_of
from pumice.sim.measures.series import ROWS_MAX, HeatMap, StepSeries
from pumice.sim.measures.window import ALWAYS, Window

GANTT_JOBS_MAX = 100
GANTT_NODES_MAX = 64
#: Changes of the reason of one job's waiting that are kept.
CODES_KEPT_MAX = 32
_WAITING_PHASES = ("", PodGroupPhase.PENDING)


@dataclass(slots=True, eq=False)
class JobRecord:
    """The times of a job. ``started``: when its gang first ran, None for never.

    ``run_s``: how long it runs undisturbed, inf if unknown. ``evicted``: number of evicted pods; ``evicted_times``:
    number of times at which pods were evicted; ``evicted_at``: the last of these. ``lost_s``: how long its gang ran
    without result; ``lost``: what its pods held during that time, amount times seconds by resource. ``codes``: (since
    when, the code of why it waited), the first changes of it.
    """

    key: str
    queue: str
    size: int
    submitted: float
    run_s: float
    admitted: float | None = None
    started: float | None = None
    ended: float | None = None
    restarts: int = 0
    evicted: int = 0
    evicted_times: int = 0
    evicted_at: float = -inf
    lost_s: float = 0.0
    lost: Mapping[str, float] = field(default_factory=dict)
    codes: list[tuple[float, str]] = field(default_factory=list)

    @property
    def wait_s(self) -> float | None:
        """Seconds from submission to the first start."""
        return None if self.started is None else self.started - self.submitted

    @property
    def completion_s(self) -> float | None:
        """Seconds from submission to the end."""
        return None if self.ended is None else self.ended - self.submitted


class LongJob(Struct, frozen=True):
    """A bar of the Gantt chart. At most GANTT_NODES_MAX nodes are named; ``node_count``: how many there were."""

    record: JobRecord
    nodes: tuple[str, ...]
    node_count: int


class History:
    """Watches a cluster and its controller.

    ``window``: the time that figures are about. ``prompt_s``: a job that waits longer counts as crowded.
    """

    def __init__(
        self,
        cluster: SimCluster,
        controller: Controller,
        *,
        longest: int = GANTT_JOBS_MAX,
        window: Window = ALWAYS,
        prompt_s: float = 0.0,
    ) -> None:
        self._cluster = cluster
        self._live = controller.live
        self.start = cluster.engine.now
        self.figures = Figures(self.start, cluster.queues, window, prompt_s)
        self.jobs: list[JobRecord] = []
        self.capacity: dict[str, StepSeries] = {}  # by resource
        self.allocated: dict[str, StepSeries] = {}  # by resource
        self.queue_allocated: dict[str, dict[str, StepSeries]] = {}  # by queue, by resource
        self.waiting = StepSeries(self.start)  # jobs that have arrived and whose gang has not run yet
        self.queue_waiting: dict[str, StepSeries] = {}
        self.running = StepSeries(self.start)  # jobs whose gang runs
        self._queue_share: dict[str, StepSeries] = {}
        self._queue_deserved: dict[str, StepSeries] = {}
        self.usage = Usage(cluster)
        self.heat_rows: list[list[str]] = []  # node names by row of the heat map
        self._records: dict[str, JobRecord] = {}
        self._held: dict[str, dict[str, float]] = {}  # by queue, by resource
        self._moved_in: dict[str, None] = {}  # queues whose pods moved in this moment; empty: those of none did
        self._codes: Mapping[str, str] = {}  # of jobs that waited after the last cycle
        self._longest = longest
        self._bars: list[tuple[float, int, LongJob]] = []  # a heap: (seconds, -how many had ended, bar)
        self._ended_count = 0
        self._row_of_node: dict[str, int] = {}
        self._heat = self._lay_out()
        self.usage.moved.append(self._moved)
        controller.hooks.arrived.append(self._arrived)
        controller.hooks.started.append(self._started)
        controller.hooks.broken.append(self._broken)
        controller.hooks.ended.append(self._ended)
        cluster.hooks.finished.append(self._pods_finished)
        cluster.hooks.removed.append(self._pods_removed)
        cluster.hooks.group_written.append(self._group_written)
        cluster.hooks.answered.append(self._answered)
        cluster.hooks.node_changed.append(self._node_changed)
        for node in cluster.nodes.values():
            self._node_changed(None, node)
        self.tick()

    # -- read ----------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        return self._cluster.engine.now

    @property
    def queue_share(self) -> Mapping[str, StepSeries]:
        """The share of the cluster that each queue holds."""
        self.figures.fairness.work_out()
        self._draw_shares()
        return self._queue_share

    @property
    def queue_deserved(self) -> Mapping[str, StepSeries]:
        """The share of the cluster that each queue deserves."""
        self.figures.fairness.work_out()
        self._draw_shares()
        return self._queue_deserved

    def heat(self) -> tuple[list[list[str]], float, list[list[float]]]:
        """Return (nodes of each row, seconds of one column, busy share by row and column). Several nodes may share a
        row."""
        return self.heat_rows, self._heat.width_s, self._heat.grid(self.now).tolist()

    def longest_jobs(self) -> list[LongJob]:
        """Return the jobs that ran longest, longest first. Running jobs count up to now."""
        bars = list(self._bars)
        for key, run in self._live.items():
            if run.started is not None and run.ended is None:
                bars.append((self.now - run.started, 0, self._bar(run, self._records[key])))
        return [bar for *_, bar in sorted(bars, key=lambda b: (-b[0], b[2].record.key))[: self._longest]]

    # -- booked by the simulation --------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Record what changed at this moment. Called before time moves on."""
        self._pass_time()
        self._settle()
        if self._moved_in:
            self._draw(self.allocated, {resource: used.value for resource, used in self.figures.used.items()})
            for queue in filter(None, self._moved_in):
                self._draw(self.queue_allocated.setdefault(queue, {}), self._held[queue])
            self._moved_in.clear()

    def note_codes(self, codes: Mapping[str, str]) -> None:
        """Record the code of why each job waits, by key, at this moment."""
        now, before, self._codes = self.now, self._codes, codes
        for key, code in codes.items():
            record = self._records.get(key) if before.get(key) != code else None
            if record is None or record.started is not None:
                continue
            known = record.codes
            if not known or (known[-1][1] != code and len(known) < CODES_KEPT_MAX):
                known.append((now, code))

    def _pass_time(self) -> None:
        """Add up the time until now, before anything changes."""
        now = self.now
        if now > self.figures.at:
            self._settle()
            self.figures.pass_time(now)

    def _draw(self, table: dict[str, StepSeries], amounts: Mapping[str, float]) -> None:
        """Set these series to amounts from this moment on."""
        now = self.now
        for name, amount in amounts.items():
            series = table.get(name)
            if series is None:
                series = table[name] = StepSeries(self.start)
            series.set(now, amount)

    def _settle(self) -> None:
        self.figures.fairness.settle(self.figures.at)
        self._draw_shares()

    def _draw_shares(self) -> None:
        """Take over the shares of queues that have been computed."""
        for at, queue, share, deserved in self.figures.fairness.changes():
            for table, value in ((self._queue_share, share), (self._queue_deserved, deserved)):
                series = table.get(queue)
                if series is None:
                    series = table[queue] = StepSeries(self.start)
                series.set(at, value)

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def _moved(self, pods: EqualPods, amounts: Amounts, sign: int, share_deltas: Sequence[float]) -> None:
        self._pass_time()
        pod, times = one_of(pods), sign * len(pods)
        run = self._live.get(pod.group_key)
        queue = run.queue if run is not None else self._queue_of(pod)
        self._moved_in[queue] = None
        for resource, amount in amounts:
            amount_of(self.figures.used, resource).value += times * amount
        if queue:
            held = self._held.setdefault(queue, {})
            for resource, amount in amounts:
                held[resource] = held.get(resource, 0.0) + times * amount
            self.figures.fairness.hold(queue, amounts, times)
        row_of, rows = self._row_of_node, self.heat_rows
        steps = [
            (row, by / len(rows[row]))
            for pod, by in zip(pods.values(), share_deltas, strict=True)
            if by and (row := row_of.get(pod.node_name)) is not None
        ]
        self._heat.add(self.now, steps)

    def _queue_of(self, pod: Pod) -> str:
        group = self._cluster.groups.get(pod.group_key)
        if group is not None:
            return group.queue
        record = self._records.get(pod.group_key)
        return record.queue if record is not None else ""

    def _arrived(self, run: JobRun) -> None:
        self._pass_time()
        record = self._records[run.key] = JobRecord(run.key, run.queue, run.size, run.submitted, run.duration_s)
        self.jobs.append(record)
        self.figures.crowd.waits(run.key, self.now)
        self.figures.fairness.ask(run.queue, run.asks, 1)
        self._wait(run.queue, 1)

    def _group_written(self, group: PodGroup) -> None:
        record = self._records.get(group.key)
        if record is not None and record.admitted is None and group.status.phase not in _WAITING_PHASES:
            record.admitted = self.now

    def _answered(self, decisions: Sequence[Decision], answers: Sequence[Refusal | None]) -> None:
        for decision, refusal in zip(decisions, answers, strict=True):
            if refusal is None and isinstance(decision, Evict) and decision.job in self._records:
                record = self._records[decision.job]
                record.evicted += 1
                record.evicted_times += record.evicted_at != self.now
                record.evicted_at = self.now

    def _started(self, run: JobRun) -> None:
        record = self._records[run.key]
        if record.started is None:
            self._pass_time()
            record.started = run.started
            self.figures.crowd.over(run.key)
            self._wait(run.queue, -1)
        self.running.set(self.now, self.running.value + 1)

    def _broken(self, run: JobRun) -> None:
        record = self._records[run.key]
        record.restarts, record.lost_s, record.lost = run.restarts, run.lost_s, run.lost
        self.running.set(self.now, self.running.value - 1)

    def _pods_finished(self, pods: EqualPods) -> None:
        """Subtract the requests of pods that succeeded before the end of their job."""
        run = self._live.get(one_of(pods).group_key)
        if run is not None and run.ended is None:
            self._ask_less(run, pods)

    def _pods_removed(self, pods: EqualPods) -> None:
        """Subtract the requests of pods that will not be created again."""
        pod = one_of(pods)
        run = self._live.get(pod.group_key)
        if run is not None and run.ended is None and not run.recreates and pod.phase != "Succeeded":
            self._ask_less(run, pods)

    def _ask_less(self, run: JobRun, pods: EqualPods) -> None:
        count = sum(key in run.wanted for key in pods)
        if not count:
            return
        self._pass_time()
        gone = self.usage.asked(one_of(pods).spec)
        self.figures.fairness.ask(run.queue, gone, -count)
        left = dict(run.asks)
        for resource, amount in gone:
            left[resource] -= count * amount
        run.asks = tuple(left.items())

    def _ended(self, run: JobRun) -> None:
        self._pass_time()
        record = self._records.pop(run.key)
        record.ended = run.ended
        self.figures.fairness.ask(run.queue, run.asks, -1)
        if run.whole:
            self.running.set(self.now, self.running.value - 1)
        if record.started is None:
            self.figures.crowd.over(run.key)
            self._wait(run.queue, -1)
            return
        self._ended_count += 1
        seconds = self.now - record.started
        if len(self._bars) < self._longest:
            heapq.heappush(self._bars, (seconds, -self._ended_count, self._bar(run, record)))
        elif self._bars and seconds > self._bars[0][0]:
            heapq.heapreplace(self._bars, (seconds, -self._ended_count, self._bar(run, record)))

    def _bar(self, run: JobRun, record: JobRecord) -> LongJob:
        pods = (self._cluster.pods.get(key) for key in run.wanted)
        nodes = dict.fromkeys(pod.node_name for pod in pods if pod is not None and pod.node_name)
        return LongJob(record, tuple(sorted(nodes)[:GANTT_NODES_MAX]), len(nodes))

    def _wait(self, queue: str, by: int) -> None:
        series = self.queue_waiting.get(queue)
        if series is None:
            series = self.queue_waiting[queue] = StepSeries(self.start)
        series.set(self.now, series.value + by)
        self.waiting.set(self.now, self.waiting.value + by)

    def _node_changed(self, before: Node | None, after: Node | None) -> None:
        self._pass_time()
        for node, sign in ((before, -1.0), (after, 1.0)):
            if node is None:
                continue
            self.figures.fairness.node(node, sign)
            for resource, amount in amounts_of(node.allocatable):
                amount_of(self.figures.capacity, resource).value += sign * amount
                series = self.capacity.get(resource)
                if series is None:
                    series = self.capacity[resource] = StepSeries(self.start)
                series.set(self.now, series.value + sign * amount)
        if before is None and after is not None and after.name not in self._row_of_node:
            row = len(self.heat_rows) - 1  # a node that comes later joins the last row
            self._row_of_node[after.name] = row
            self.heat_rows[row].append(after.name)

    def _lay_out(self) -> HeatMap:
        """Assign rows to nodes. Neighbours by name share a row if there are more than ROWS_MAX."""
        names = sorted(self._cluster.nodes)
        count = min(len(names), ROWS_MAX)
        self.heat_rows = [[] for _ in range(max(count, 1))]
        for i, name in enumerate(names):
            row = i * count // len(names)
            self._row_of_node[name] = row
            self.heat_rows[row].append(name)
        return HeatMap(len(self.heat_rows), self.start)
