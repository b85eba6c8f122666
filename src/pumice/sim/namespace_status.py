"""Keep the status of ResourceQuotas and PodDisruptionBudgets up to date, as their controllers would.

A quota counts the pods of its namespace that have not ended. What its status counted at the start beyond the pods that
are there stays. A budget allows as many disruptions as at the start, less the pods that it covers and that run no
longer; never more than at the start, because how many pods it wants is not read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from pumice.model.disruption import PodDisruptionBudget
from pumice.model.pod import ENDED
from pumice.model.queue import ResourceQuota
from pumice.model.resources import CPU, MEMORY, Resource
from pumice.model.selectors import matches
from pumice.sim.cluster import SimCluster
from pumice.sim.equal_pods import EqualPods, in_parts, one_of

_Object = TypeVar("_Object", ResourceQuota, PodDisruptionBudget)


class NamespaceStatus:
    """Writes the statuses of a cluster's quotas and budgets from now on.

    ``used``: by namespace and resource, what pods use. ``running``: by key of a budget, how many pods that it covers
    run.
    """

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        quotas: list[ResourceQuota] = cluster.objects(ResourceQuota)
        budgets: list[PodDisruptionBudget] = cluster.objects(PodDisruptionBudget)
        if not quotas and not budgets:
            return
        self._quotas = _by_namespace(quotas)
        self._budgets = _by_namespace(budgets)
        self._used: dict[tuple[str, str], float] = defaultdict(float)
        self._running: dict[str, int] = defaultdict(int)
        for pods in in_parts(cluster.pods):
            first = one_of(pods)
            if first.phase not in ENDED:
                self._count(pods, 1)
            if first.phase == "Running":
                self._count_running(pods, 1)
        self._beside = {
            (quota.key, name): max(0.0, quota.used.get(name) - self._used[quota.namespace, name])
            for quota in quotas
            for name in quota.limited
        }
        self._first = {budget.key: (budget.allowed, self._running[budget.key]) for budget in budgets}
        hooks = cluster.hooks
        hooks.created.append(self._created)
        hooks.started.append(self._started)
        hooks.finished.append(self._finished)
        hooks.removed.append(self._removed)
        for namespace in self._quotas:
            self._write_quotas(namespace)

    def _created(self, pods: EqualPods) -> None:
        if one_of(pods).phase not in ENDED:
            self._count(pods, 1)
            self._write_quotas(one_of(pods).namespace)

    def _started(self, pods: EqualPods) -> None:
        self._count_running(pods, 1)
        self._write_budgets(one_of(pods).namespace)

    def _finished(self, pods: EqualPods) -> None:
        self._leave(pods, ran=True)

    def _removed(self, pods: EqualPods) -> None:
        phase = one_of(pods).phase
        if phase not in ENDED:
            self._leave(pods, ran=phase == "Running")

    def _leave(self, pods: EqualPods, *, ran: bool) -> None:
        namespace = one_of(pods).namespace
        self._count(pods, -1)
        if ran:
            self._count_running(pods, -1)
        self._write_quotas(namespace)
        self._write_budgets(namespace)

    def _count(self, pods: EqualPods, sign: int) -> None:
        first = one_of(pods)
        names = {name for quota in self._quotas.get(first.namespace, ()) for name in quota.limited}
        for name in names:
            self._used[first.namespace, name] += sign * len(pods) * first.spec.request.get(name)

    def _count_running(self, pods: EqualPods, sign: int) -> None:
        for budget in self._budgets.get(one_of(pods).namespace, ()):
            if budget.selector is not None:
                self._running[budget.key] += sign * sum(matches(budget.selector, pod.labels) for pod in pods.values())

    def _write_quotas(self, namespace: str) -> None:
        quotas = self._quotas.get(namespace, [])
        for i, quota in enumerate(quotas):
            amounts = {name: self._used[namespace, name] + self._beside[quota.key, name] for name in quota.limited}
            scalars = {name: amount for name, amount in amounts.items() if name not in (CPU, MEMORY)}
            used = Resource(amounts.get(CPU, 0.0), amounts.get(MEMORY, 0.0), scalars)
            if used != quota.used:
                quotas[i] = replace(quota, used=used)
                self._cluster.put(quotas[i])

    def _write_budgets(self, namespace: str) -> None:
        budgets = self._budgets.get(namespace, [])
        for i, budget in enumerate(budgets):
            allowed, running = self._first[budget.key]
            now = min(max(0, allowed - running + self._running[budget.key]), allowed)
            if now != budget.allowed:
                budgets[i] = replace(budget, allowed=now)
                self._cluster.put(budgets[i])


def _by_namespace(objects: Iterable[_Object]) -> dict[str, list[_Object]]:
    found: dict[str, list[_Object]] = defaultdict(list)
    for each in objects:
        found[each.namespace].append(each)
    return dict(found)
