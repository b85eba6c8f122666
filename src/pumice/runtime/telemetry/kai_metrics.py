"""KAI's metrics, by its names: times of cycles, what queues hold and deserve, evictions.

Source: KAI metrics, queue controller metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from pumice.columns.dtypes import F64
from pumice.framework.cycle.budget import STEP_S
from pumice.framework.cycle.outcome import Outcome
from pumice.kai.engine.counters import (
    ActionBudget,
    ExhaustedBudgets,
    SearchedJobs,
    SearchResult,
    Tally,
    TriedSets,
    tallies,
)
from pumice.kai.engine.points import GENERATORS
from pumice.kai.usage import past_shares
from pumice.model.decisions import Bind, Decision, Evict
from pumice.model.pod import Pod
from pumice.model.queue import Queue
from pumice.model.status import TaskStatus
from pumice.runtime.telemetry.cycle_metrics import CycleTimer
from pumice.runtime.telemetry.metrics import Family, Labels, Metrics

PREFIX = "kai_"
# Queries for the history of queues sum by the first.
_QUEUE, _LATENCY = ("queue_name", "queue_metadata_name", "queue_display_name"), "latency_milliseconds"
_EVICTED = ("podgroup", "namespace", "uid", "nodepool", "action")
_ACTION, _DOUBLING = ("action",), (5.0, 2560.0, 10)
_SEARCH, _SEARCH_SECONDS = "scenario_search", (0.001, 32.768, 16)
#: Under which the limit of generators that have none of their own is reported.
_DEFAULT = "default"
#: By name: unit, and divisor of milli-cores, bytes and milli-devices.
_FAIR = {"cpu_cores": 1e3, "memory_gb": 1e9, "gpu": 1e3}
_HELD = {"cpu_cores": 1e3, "memory_bytes": 1.0, "gpus": 1e3}

#: By name: what actions count, with its description.
_TALLIES = {
    "podgroups_acted_on_by_action": (Tally.TRIED, "Attempts to place jobs"),
    "podgroups_scheduled_by_action": (Tally.PLACED, "Attempts that placed a job"),
    "scenarios_simulation_by_action": (Tally.SIMULATED, "Sets of victims that were simulated"),
    "scenarios_filtered_by_action": (Tally.RULED_OUT, "Sets of victims ruled out without simulation"),
}
#: By how a set of victims ended: what was done with it, in KAI's words. The end of a generator is no set.
_STATES = {
    SearchResult.SOLVED: ("emitted", "simulated"),
    SearchResult.UNSOLVED: ("emitted", "simulated"),
    SearchResult.VALIDATOR_REJECTED: ("emitted", "simulated", "validator_rejected"),
    SearchResult.DUPLICATE: ("emitted", "duplicate"),
}
_PREEMPTIONS = "total_preemption_attempts"


def _families() -> Iterable[Family]:
    for what in ("e2e_scheduling", "open_session", "close_session"):
        yield Family(f"{what}_{_LATENCY}", "gauge", f"Time of the last cycle: {what.replace('_', ' ')}", prefix=PREFIX)
    yield Family(f"action_scheduling_{_LATENCY}", "gauge", "Time of an action", _ACTION, prefix=PREFIX)
    yield Family(f"plugin_scheduling_{_LATENCY}", "gauge", "Time in a plugin", ("plugin", "OnSession"), prefix=PREFIX)
    yield Family(
        f"task_scheduling_{_LATENCY}",
        "histogram",
        "Time from a pod's creation to its bind",
        (),
        _DOUBLING,
        prefix=PREFIX,
    )
    yield Family(f"task_bind_{_LATENCY}", "histogram", "Time to write a bind", (), _DOUBLING, prefix=PREFIX)
    about = "Time of a query for the usage history of queues"
    yield Family(f"usage_query_{_LATENCY}", "histogram", about, (), _DOUBLING, prefix=PREFIX)
    for name, (_, about) in _TALLIES.items():
        yield Family(name, "counter", about, _ACTION, prefix=PREFIX)
    yield from _search_families()
    yield Family(_PREEMPTIONS, "counter", "Jobs for which preempt looked for victims", prefix=PREFIX)
    yield Family("queue_info", "gauge", "1 for each queue", _QUEUE, prefix=PREFIX)
    for what in ("cpu", "memory", "gpu"):
        about = f"Share of the cluster's {what} that a queue used lately"
        yield Family(f"queue_{what}_usage", "gauge", about, _QUEUE, prefix=PREFIX)
    for unit in _FAIR:
        yield Family(f"queue_fair_share_{unit}", "gauge", "Fair share of a queue", _QUEUE, prefix=PREFIX)
    for unit in _HELD:
        yield Family(
            f"queue_allocated_{unit}",
            "gauge",
            "Resources allocated to a queue and all queues below it",
            _QUEUE,
            prefix=PREFIX,
        )
        name = f"queue_quota_{unit}" if unit != "gpus" else "queue_deserved_gpus"
        yield Family(name, "gauge", "Quota of a queue, -1 if unlimited", _QUEUE, prefix=PREFIX)
    yield Family("pod_group_evicted_pods_total", "counter", "Pods evicted of a PodGroup", _EVICTED, prefix=PREFIX)


def _search_families() -> Iterable[Family]:
    """Yield the families of searches for victims. Seconds are counted steps of ``STEP_S`` each."""
    of_action = ("action", "generator")
    for name, kind, about, labels in (
        ("jobs_total", "counter", "Jobs for which victims were sought", ("action", "result", "reduced_budget")),
        ("action_budget_configured_seconds", "gauge", "Limit of an action, 0 for none", _ACTION),
        ("job_budget_configured_seconds", "gauge", "Limit of the search for one job, 0 for none", ()),
        ("generator_budget_configured_seconds", "gauge", "Limit of a generator, 0 for none", ("generator",)),
        ("action_budget_exhausted_total", "counter", "Runs of an action that reached its limit", _ACTION),
        ("scenarios_total", "counter", "Sets of victims, by what was done with them", (*of_action, "state")),
    ):
        yield Family(f"{_SEARCH}_{name}", kind, about, labels, prefix=PREFIX)
    about, labels = "Steps of a set of victims, in seconds", (*of_action, "result")
    yield Family(f"{_SEARCH}_duration_seconds", "histogram", about, labels, _SEARCH_SECONDS, prefix=PREFIX)


#: By key in ``Metrics``, where names of Volcano's have no prefix.
KAI_FAMILIES: Mapping[str, Family] = {f"{PREFIX}{family.name}": family for family in _families()}


def report_kai_cycle(
    metrics: Metrics, outcome: Outcome, timer: CycleTimer, decisions: Iterable[Decision], node_pool: str
) -> None:
    """Set gauges after a cycle, and count evictions that were accepted."""
    for what, milliseconds in timer.spans().items():
        name, _, action = what.partition(" ")
        if action:
            metrics.put(f"{PREFIX}action_scheduling_{_LATENCY}", milliseconds, action)
        else:
            metrics.put(f"{PREFIX}{name}_{_LATENCY}", milliseconds)
    for labels, milliseconds in timer.plugin_spans().items():
        metrics.put(f"{PREFIX}plugin_scheduling_{_LATENCY}", milliseconds, *labels)
    _report_work(metrics, outcome)
    _report_searches(metrics, outcome)
    _report_binds(metrics, outcome, decisions)
    _report_queues(metrics, outcome)
    _report_evictions(metrics, outcome, decisions, node_pool)


def report_bind_written(metrics: Metrics, seconds: float) -> None:
    """Observe the seconds until the API server accepted a bind, or a request for it."""
    metrics.observe(f"{PREFIX}task_bind_{_LATENCY}", 1000.0 * seconds)


def report_usage_asked(metrics: Metrics, seconds: float) -> None:
    """Observe the seconds of a round of questions about the history of queues, successful or not."""
    metrics.observe(f"{PREFIX}usage_query_{_LATENCY}", 1000.0 * seconds)


def _report_work(metrics: Metrics, outcome: Outcome) -> None:
    """Count what actions did, with or without result."""
    counts = outcome.trace.counts
    for name, (what, _) in _TALLIES.items():
        for action, count in tallies(counts, what).items():
            metrics.add(f"{PREFIX}{name}", float(count), action)
    metrics.add(f"{PREFIX}{_PREEMPTIONS}", float(tallies(counts, Tally.TRIED).get("preempt", 0)))


def _report_searches(metrics: Metrics, outcome: Outcome) -> None:
    """Report the searches for victims: their limits, and how they ended."""
    name = f"{PREFIX}{_SEARCH}"
    for key, count in outcome.trace.counts.items():
        match key:
            case ActionBudget(action):
                metrics.put(f"{name}_action_budget_configured_seconds", count * STEP_S, action)
                # Steps are counted for each action, queue and namespace, and not for a job or a generator.
                metrics.put(f"{name}_job_budget_configured_seconds", 0.0)
                for generator in (_DEFAULT, *GENERATORS):
                    metrics.put(f"{name}_generator_budget_configured_seconds", 0.0, generator)
            case SearchedJobs(action, result):
                # KAI says true if the action has less left than its limit for one job, which is 0 here.
                metrics.add(f"{name}_jobs_total", float(count), action, result, "false")
            case ExhaustedBudgets(action):
                metrics.add(f"{name}_action_budget_exhausted_total", float(count), action)
            case TriedSets(action, generator, result, steps):
                metrics.observe(f"{name}_duration_seconds", steps * STEP_S, action, generator, result, times=count)
                for state in _STATES.get(result, ()):
                    metrics.add(f"{name}_scenarios_total", float(count), action, generator, state)


def _report_binds(metrics: Metrics, outcome: Outcome, decisions: Iterable[Decision]) -> None:
    """Observe how long pods that are bound now have waited since their creation."""
    creation = {pod.uid: pod.creation for pod in _bound_pods(outcome)}
    for decision in decisions:
        if isinstance(decision, Bind) and decision.uid in creation:
            waited = 1000.0 * max(outcome.now - creation[decision.uid], 0.0)
            metrics.observe(f"{PREFIX}task_scheduling_{_LATENCY}", waited)


def _bound_pods(outcome: Outcome) -> Iterable[Pod]:
    tasks = outcome.tables.tasks
    return (tasks.pods[row] for row in (tasks.alive & (tasks.status == TaskStatus.BINDING)).nonzero()[0].tolist())


def _report_queues(metrics: Metrics, outcome: Outcome) -> None:
    queues, figures = outcome.tables.queues, outcome.figures
    # KAI's scheduler names a queue as people do, its queue controller by the object.
    of_scheduler = [_queue_labels(queue, for_people=True) for queue in queues.objs]
    names = [_queue_labels(queue, for_people=False) for queue in queues.objs]
    metrics.replace(f"{PREFIX}queue_info", dict.fromkeys(names, 1.0))
    for column, what in enumerate(("cpu", "memory", "gpu")):
        lately = past_shares(outcome.tables)[:, column] if len(outcome.tables.histories.names) else np.zeros(0)
        metrics.replace(f"{PREFIX}queue_{what}_usage", _by_queue(of_scheduler if len(lately) else (), lately))
    quota = np.where(np.isinf(queues.quota), -np.inf, queues.quota)
    for key, amounts, units, labels in (
        ("queue_fair_share_", figures.get("queue.fair_share"), _FAIR, of_scheduler),
        ("queue_allocated_", figures.get("queue.allocated"), _HELD, names),
        ("queue_quota_", quota, _HELD, names),
    ):
        if amounts is None:
            continue
        for column, (unit, by) in enumerate(units.items()):
            name = "queue_deserved_gpus" if key == "queue_quota_" and unit == "gpus" else f"{key}{unit}"
            metrics.replace(f"{PREFIX}{name}", _by_queue(labels, amounts[:, column] / by))


def _queue_labels(queue: Queue, *, for_people: bool) -> Labels:
    """Return the names of a queue. ``for_people``: the first is ``spec.displayName``, if there is one."""
    shown = queue.sharing.display_name if queue.sharing is not None else ""
    return (shown or queue.name) if for_people else queue.name, queue.name, shown


def _by_queue(names: Iterable[Labels], amounts: F64) -> dict[Labels, float]:
    return dict(zip(names, np.where(np.isneginf(amounts), -1.0, amounts).tolist(), strict=True))


def _report_evictions(metrics: Metrics, outcome: Outcome, decisions: Iterable[Decision], node_pool: str) -> None:
    """Report evictions. Series of deleted PodGroups are removed."""
    groups = {group.key: group for group in outcome.tables.jobs.groups if group is not None}
    name = f"{PREFIX}pod_group_evicted_pods_total"
    labels = [
        (group.name, group.namespace, group.uid, node_pool, decision.reason)
        for decision in decisions
        if isinstance(decision, Evict) and (group := groups.get(decision.job)) is not None
    ]
    for each in labels:
        metrics.add(name, 1.0, *each)
    uids = {group.uid for group in groups.values()}
    metrics.keep(name, [each for each in metrics.series(name) if each[2] in uids])
