"""Schedulers of a few lines on a machine of equal processors, to hold the real one against: jobs in, starts out.

They know nothing of Pumice: processors are a number, a job is when it comes, how many it takes, and for how long.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple


class Job(NamedTuple):
    """``estimate``: what its user asked for; only EASY looks at it."""

    arrival: float
    size: int
    seconds: float
    estimate: float = math.inf


def fcfs(jobs: Sequence[Job], processors: int) -> list[float]:
    """First come, first served: a job starts when all before it have and it fits. Jobs in order of arrival."""
    free, now, starts = processors, 0.0, []
    running: list[tuple[float, int]] = []
    for job in jobs:
        now = max(now, job.arrival)
        while running and running[0][0] <= now:
            free += heapq.heappop(running)[1]
        while free < job.size:
            now, size = heapq.heappop(running)
            free += size
        free -= job.size
        heapq.heappush(running, (now + job.seconds, job.size))
        starts.append(now)
    return starts


def greedy(jobs: Sequence[Job], processors: int, period: float) -> list[float]:
    """Start every job that fits, oldest first, in cycles a period apart or more: one admits a job, the next starts it.

    All that is admitted fits; and in the cycle after its start, a job counts among what runs and among what is promised
    still, of which both together may be 1.2 times the machine. A cycle runs when a job has come or ended, or when the
    last one did something or wrote that jobs run. Source: Volcano's ``proportion`` and ``overcommit``.
    """
    starts = [math.inf] * len(jobs)
    arrivals = sorted(range(len(jobs)), key=lambda i: (jobs[i].arrival, i), reverse=True)
    ends: list[tuple[float, int]] = []
    waiting: list[int] = []
    admitted: list[int] = []  # by the last cycle, or before
    begun: list[int] = []  # by the last cycle
    free, now, earliest, news = processors, 0.0, 0.0, True  # the machine itself is news
    while arrivals or ends or news:
        arrival = jobs[arrivals[-1]].arrival if arrivals else math.inf
        end = ends[0][0] if ends else math.inf
        cycle = max(now, earliest) if news else math.inf
        if min(arrival, end) <= cycle:
            now, news = min(arrival, end), True
            if end <= arrival:
                _, i = heapq.heappop(ends)
                free += jobs[i].size  # free: neither used nor promised
                begun = [other for other in begun if other != i]
            else:
                waiting.append(arrivals.pop())
            continue
        now, earliest = cycle, cycle + period
        twice = sum(jobs[i].size for i in begun)
        begin, admitted = admitted, []
        for i in waiting:
            taken = processors - free + jobs[i].size
            if taken <= processors and taken + twice <= 1.2 * processors:
                free -= jobs[i].size
                admitted.append(i)
        waiting = [i for i in waiting if i not in set(admitted)] if admitted else waiting
        for i in begin:
            starts[i] = now
            heapq.heappush(ends, (now + jobs[i].seconds, i))
        news = bool(begin or admitted or begun)  # begun: their phase is written now, and that is an event
        begun = begin
    return starts


def easy(jobs: Sequence[Job], processors: int) -> list[float]:
    """EASY: first come, first served, but a job may jump the line where it does not make the first one late, as far as
    estimates tell.

    Source: Mu'alem, Feitelson, Utilization, Predictability, Workloads, and User Runtime Estimates, 2001.
    """
    starts = [math.inf] * len(jobs)
    arrivals = sorted(range(len(jobs)), key=lambda i: (jobs[i].arrival, i), reverse=True)
    ends: list[tuple[float, int]] = []
    line: list[int] = []
    running: dict[int, float] = {}  # when each is to have ended, by its estimate
    free = processors
    while arrivals or ends:
        now = min(jobs[arrivals[-1]].arrival if arrivals else math.inf, ends[0][0] if ends else math.inf)
        while ends and ends[0][0] <= now:
            _, i = heapq.heappop(ends)
            free += jobs[i].size
            del running[i]
        while arrivals and jobs[arrivals[-1]].arrival <= now:
            line.append(arrivals.pop())
        begin = []
        while line and jobs[line[0]].size <= free:
            begin.append(line.pop(0))
            free -= jobs[begin[-1]].size
        for i in begin:
            running[i] = now + jobs[i].estimate
        if line:
            shadow, spare = _shadow(jobs, line[0], free, running, now)
            for i in line[1:]:
                if jobs[i].size <= free and (now + jobs[i].estimate <= shadow or jobs[i].size <= spare):
                    spare -= jobs[i].size if now + jobs[i].estimate > shadow else 0
                    free -= jobs[i].size
                    begin.append(i)
                    running[i] = now + jobs[i].estimate
            line = [i for i in line if i not in set(begin)]
        for i in begin:
            starts[i] = now
            heapq.heappush(ends, (now + jobs[i].seconds, i))
    return starts


def _shadow(jobs: Sequence[Job], first: int, free: int, running: dict[int, float], now: float) -> tuple[float, int]:
    """(when the first of the line can start, processors that it leaves then), as far as estimates tell."""
    for end, i in sorted((max(end, now), i) for i, end in running.items()):
        free += jobs[i].size
        if free >= jobs[first].size:
            return end, free - jobs[first].size
    raise AssertionError(f"job {first} is larger than the machine")


def mean_wait_h(jobs: Sequence[Job], starts: Sequence[float]) -> float:
    return sum(start - job.arrival for job, start in zip(jobs, starts, strict=True)) / len(jobs) / 3600
