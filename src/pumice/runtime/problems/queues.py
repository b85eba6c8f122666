"""Problems in queues and disruption budgets. Nothing is removed because of them.

Source: what Volcano's webhook refuses (/queues/validate). A scheduler may still meet such queues, and then does what
each message says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from pumice.model.devices.shared_devices import is_counted_by_card
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.queue import Queue
from pumice.model.resources import EMPTY, MIN_RESOURCE, Resource
from pumice.runtime.problems.problem import Problem, Severity
from pumice.volcano.queues.tree import DEPTH_MAX, ROOT


def queue_problems(queues: Collection[Queue], total: Resource, used: Iterable[str]) -> Iterator[Problem]:
    """Yield problems of queues. ``total``: sum of all nodes. ``used``: the queues of jobs."""
    by_name = {queue.name: queue for queue in queues}
    children: dict[str, list[Queue]] = {}
    for queue in queues:
        if queue.name != ROOT:
            children.setdefault(queue.parent or ROOT, []).append(queue)
    for queue in queues:
        for what in (*_of_itself(queue), *_below_ancestors(queue, by_name)):
            yield Problem(f"Queue {queue.name}", what, Severity.WARNING)
    for parent, of_it in children.items():
        if parent != ROOT and parent in by_name:
            for what in _of_children(by_name[parent], of_it):
                yield Problem(f"Queue {parent}", what, Severity.WARNING)
    top = children.get(ROOT, [])
    for name in _exceeding(_sum(queue.guarantee for queue in top), total):
        what = f"the guarantees together exceed the {name} of the nodes: nothing is left for other queues"
        yield Problem(f"Queue {', '.join(queue.name for queue in top[:3])}", what, Severity.WARNING)
    for name in sorted({each for each in used if children.get(each) and each != ROOT}):
        what = "has child queues and jobs of its own: with hierarchical queues (capacity) no job is placed"
        yield Problem(f"Queue {name}", what, Severity.WARNING)


def _of_itself(queue: Queue) -> Iterator[str]:
    if queue.name == ROOT and queue.capability is not None and not queue.capability.is_empty():
        for name, amount in (("cpu", queue.capability.milli_cpu), ("memory", queue.capability.memory)):
            if amount <= 0:
                yield f"capability does not include {name}: with hierarchical queues (capacity) no queue can have any"
    if queue.capability is not None:
        for name in filter(is_counted_by_card, sorted(queue.capability.scalars or ())):
            yield f"capability in {name} has no effect: it is counted by card, and queues have no quota in it yet"
        for kind in ("deserved", "guarantee"):
            stated = getattr(queue, kind) or EMPTY
            for name in _exceeding(stated, queue.capability, only_stated=True):
                yield f"{kind} is above its capability in {name}: the capability applies"


def _below_ancestors(queue: Queue, by_name: Mapping[str, Queue]) -> Iterator[str]:
    """Yield limits above that of the nearest ancestor with one, and queues that are nested too deep."""
    above, depth, reported = by_name.get(queue.parent), 1, set[str]()
    while above is not None and above.name != ROOT:
        if depth > DEPTH_MAX:
            yield f"is more than {DEPTH_MAX} levels below {ROOT}: with hierarchical queues no job is placed"
            return
        for name in _exceeding(queue.capability or EMPTY, above.capability or EMPTY, only_stated=True):
            if name not in reported:
                reported.add(name)
                yield f"capability is above that of {above.name} in {name}: the smaller one applies"
        above, depth = by_name.get(above.parent), depth + 1


def _of_children(parent: Queue, children: Collection[Queue]) -> Iterator[str]:
    for kind in ("deserved", "guarantee"):
        stated = getattr(parent, kind)
        if stated is not None:
            for name in _exceeding(_sum(getattr(child, kind) for child in children), stated):
                yield f"{kind} of the queues below it together is above its own in {name}"


def _sum(amounts: Iterable[Resource | None]) -> Resource:
    found = EMPTY
    for amount in amounts:
        found = found if amount is None else found.add(amount)
    return found


def _exceeding(amount: Resource, limit: Resource, *, only_stated: bool = False) -> Iterator[str]:
    """Yield names of resources above the limit. ``only_stated``: only those that the limit names."""
    for name in ("cpu", "memory", *sorted(amount.scalars or ())):
        most = limit.get(name)
        if only_stated and most <= 0 and name not in (limit.scalars or ()):
            continue
        if amount.get(name) - most >= MIN_RESOURCE:
            yield name


def budget_problems(budgets: Iterable[PodDisruptionBudget]) -> Iterator[Problem]:
    """Yield budgets whose selector does not select what users would expect."""
    for budget in budgets:
        if budget.selector is not None and not budget.selector.requirements:
            what = "selects every pod of its namespace for evictions through the API; Volcano's plugin pdb ignores it"
            yield Problem(f"PodDisruptionBudget {budget.key}", what, Severity.WARNING)
