"""Refute parts of jobs by counting, before anything is placed or evicted for them.

What a walk or a search costs a tenant chooses: hundreds of pod sets of which only the last has no domain, or hundreds
of gangs with one pod that no node could ever hold. These tests cost one question for each kind of task or pod set, and
reject only what a walk or a search would reject.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from pumice.columns.dtypes import EPS, AnyArray, Bool
from pumice.columns.nodes import FUTURE
from pumice.columns.views import Queue
from pumice.framework.cycle.session import Session
from pumice.kai.engine.groups import Group, Subset, groups_of, pod_sets_in
from pumice.kai.engine.parts import Part
from pumice.kai.engine.points import may_take, node_subsets
from pumice.kai.label_trees import label_tree
from pumice.placing.feasibility import Feasibility

#: The plugin that offers domains of Topologies as node subsets.
_TOPOLOGY = "topology"
#: The plugin whose limits of queues are about sums of what queues hold.
_LIMITS = "proportion"


def is_too_large(ssn: Session, part: Part) -> bool:
    """Return True if some task of a part asks for more than each node has, so that no evictions can help. Source: KAI
    actions, which skip jobs that are unschedulable and unresolvable; its predicate of the largest node."""
    known: dict[int, bool] = ssn.shared(is_too_large, dict)
    tables = ssn.tables
    for cls in set(tables.tasks.cls[part.rows].tolist()):
        if cls not in known:
            fits = tables.nodes.facts.allocatable >= tables.classes.req[cls] - EPS
            known[cls] = not fits.all(axis=1).any()
        if known[cls]:
            return True
    return False


def stays_over_limit(ssn: Session, part: Part) -> bool:
    """Return True if the queue of a part may not take it, and may not either if jobs only move: their queues hold the
    same afterwards, and whichever of them and the part is placed last is refused."""
    hooks = ssn.hooks.at(may_take)
    if not hooks or hooks[0].plugin != _LIMITS:  # the first is the only one that is asked
        return False
    jobs = ssn.tables.jobs
    queue = Queue(ssn.tables, int(jobs.queue[part.job]))
    return bool(ssn.ask(may_take, queue, part.amount(ssn.tables), bool(jobs.preemptible[part.job])))


def lacks_empty_domain(ssn: Session, part: Part) -> bool:
    """Return True if some group of a part is larger than each domain that it must be within, even with nothing there,
    so that no evictions can help."""
    if not ssn.tables.jobs.has_topology[part.job] or not _domains_are_of_labels(ssn):
        return False
    group = groups_of(ssn.tables, part, lambda member: member.inside)
    return any(_is_larger(ssn, each) for each in _groups_in(group))


def _domains_are_of_labels(ssn: Session) -> bool:
    """Return True if all node subsets are domains of a Topology, and not what another plugin offers."""
    hooks = ssn.hooks.at(node_subsets)
    return bool(hooks) and all(hook.plugin == _TOPOLOGY for hook in hooks)


def _groups_in(group: Group) -> Iterator[Group]:
    """Yield a group and all groups inside it."""
    yield group
    for each in group.inside:
        yield from _groups_in(each)


def _is_larger(ssn: Session, group: Group) -> bool:
    """Return True if no domain of a group's required level holds all of its tasks, each class counted by itself."""
    wanted, tables = group.topology, ssn.tables
    tree = label_tree(ssn, wanted) if wanted is not None and wanted.required else None
    level = tree.level(wanted.required) if tree is not None and wanted is not None else -1
    if tree is None or level < 0:
        return False
    domain = tree.domains[level]
    there, rest = domain >= 0, np.ones(len(tree.ids[level]), dtype=bool)
    for cls, count in Counter(tables.tasks.cls[list(group.rows)].tolist()).items():
        req = tables.classes.req[cls]
        asked = req > 0
        if asked.any():
            # What a node has in all is a bound of what evictions can free there, whichever order is tried.
            room = np.floor((tables.nodes.facts.allocatable[there][:, asked] + EPS) / req[asked]).min(axis=1)
            rest &= np.bincount(domain[there], room, len(rest)) >= count
    return not rest.any()


def lacks_domain(ssn: Session, group: Group, within: Subset) -> Group | None:
    """Return one of several pod sets of a group that has no domain before anything is placed, or None."""
    kinds: dict[object, Group] = {}
    cls = ssn.tables.tasks.cls
    for each in pod_sets_in(group):
        if each.topology is not None:
            # Pod sets with equal tasks and constraints have equal domains, unless one of them runs already.
            kinds.setdefault((each.topology, each.active, *cls[list(each.rows)].tolist()), each)
    # The walk refutes a single kind with its first question. With several, it would place all pod sets before the one
    # that has no domain, and what is placed takes room and gives none.
    if len(kinds) < 2:
        return None
    return next((each for each in kinds.values() if not ssn.ask(node_subsets, each, within)), None)


def lacks_room(ssn: Session, feasible: Feasibility, classes: AnyArray, within: Bool) -> bool:
    """Return True if the tasks with these classes, in order, cannot all be placed on the nodes ``within`` (N,): the
    first one fits on none of them, or together they hold fewer tasks of one class than there are."""
    # Only the first task is placed on the nodes as they are. A filter that rejects a later one may accept it once an
    # earlier one is placed, so for the others only resources count.
    first = int(classes[0])
    if not np.any(feasible.capacity(first)[within] > 0):
        return True
    counts = Counter(classes.tolist())
    return any(_room(ssn, feasible, cls, within) < count for cls, count in counts.items())


def _room(ssn: Session, feasible: Feasibility, cls: int, within: Bool) -> float:
    """Return how many tasks of a class the nodes ``within`` (N,) hold by resources alone."""
    held, tables = np.where(within, feasible.capacity(cls), 0.0), ssn.tables
    # The capacity is negative where a filter rejects, and does not say what the resources would hold.
    rejected = (held < 0).nonzero()[0]
    if len(rejected):
        req = tables.classes.req[cls]
        held[rejected] = np.inf
        for dimension in (req > 0).nonzero()[0].tolist():
            room = tables.nodes.books[rejected, FUTURE, dimension]
            held[rejected] = np.minimum(held[rejected], np.maximum(np.floor((room + EPS) / req[dimension]), 0.0))
    return float(held.sum())
