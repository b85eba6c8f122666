"""Group tasks of a job by roles that should run together or apart, so that each group goes to one node.

Source: Volcano task-topology plugin, which calls such a group a bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import F64, I64, AnyArray

AFFINITY_ANNOTATION = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY_ANNOTATION = "volcano.sh/task-topology-anti-affinity"
ORDER_ANNOTATION = "volcano.sh/task-topology-task-order"
# Volcano's ranks. A role that excludes itself goes first, because each of its tasks needs a bucket of its own.
_SELF_ANTI, _INTER, _SELF, _INTER_ANTI = 4, 3, 2, 1
PRIORITY_MAX = _SELF_ANTI


class TaskTopologyError(ValueError):
    """The annotations are invalid."""


class TaskTopology(Struct, frozen=True):
    """Groups of roles to place together, groups to keep apart, and an order of roles. A group of one role is about its
    own tasks."""

    affinity: tuple[tuple[str, ...], ...] = ()
    anti_affinity: tuple[tuple[str, ...], ...] = ()
    order: tuple[str, ...] = ()


def topology_of(annotations: Mapping[str, str], roles: Collection[str], job: str) -> TaskTopology | None:
    """Read the annotations of a job with these roles, or return None if there are none.

    Raises: TaskTopologyError.
    """
    texts = [annotations.get(key) for key in (AFFINITY_ANNOTATION, ANTI_AFFINITY_ANNOTATION, ORDER_ANNOTATION)]
    if all(text is None for text in texts):
        return None
    near, apart, order = (
        tuple(group for part in (text or "").split(";") if (group := _group(part, roles, job))) for text in texts
    )
    return TaskTopology(near, apart, order[0] if order else ())


def _group(text: str, roles: Collection[str], job: str) -> tuple[str, ...]:
    """Read one group of roles.

    Raises: TaskTopologyError if a role does not exist in the job or occurs twice.
    """
    found: dict[str, None] = {}
    for role in filter(None, text.split(",")):
        if role not in roles:
            raise TaskTopologyError(f"task {role} do not exist in job <{job}>")
        if role in found:
            raise TaskTopologyError(f"task {role} is duplicate in job <{job}>")
        found[role] = None
    return tuple(found)


class Roles:
    """Roles with a topology, by number.

    ``near`` (K, K): 1 for two roles to place together, -1 to keep apart, and the sum of both. ``apart`` (K, K): the
    second only. ``rank`` (K, 2): higher for roles to place earlier, by their order and then by their strictest
    constraint.
    """

    __slots__ = ("apart", "names", "near", "rank")

    def __init__(self, topology: TaskTopology) -> None:
        said = (*topology.affinity, *topology.anti_affinity)
        self.names = {role: i for i, role in enumerate(dict.fromkeys(role for group in said for role in group))}
        count = len(self.names)
        near, self.apart = np.zeros((count, count), dtype=np.int64), np.zeros((count, count), dtype=np.int64)
        self.rank = np.zeros((count, 2), dtype=np.int64)
        for groups, pairs, alone, among in (
            (topology.affinity, near, _SELF, _INTER),
            (topology.anti_affinity, self.apart, _SELF_ANTI, _INTER_ANTI),
        ):
            for group in groups:
                self._note([self.names[role] for role in group], pairs, alone, among)
        # Written as ones above, so that one method records both kinds of groups.
        np.negative(self.apart, out=self.apart)
        # The sum, so that a pair that is named in both kinds cancels out, as in Volcano.
        self.near: I64 = near + self.apart
        for place, role in enumerate(topology.order):
            if role in self.names:
                # From the end of the list, so that a role outside of it has 0 and goes last.
                self.rank[self.names[role], 0] = len(topology.order) - place

    def _note(self, group: list[int], pairs: I64, alone: int, among: int) -> None:
        """Record a group of roles."""
        if len(group) == 1:
            pairs[group[0], group[0]] = 1
        for a, b in combinations(group, 2):
            pairs[a, b] = pairs[b, a] = 1
        priority = alone if len(group) == 1 else among
        self.rank[group, 1] = np.maximum(self.rank[group, 1], priority)


class Member(NamedTuple):
    """A task: its row, role number, node (-1: none), name, and request as a score."""

    row: int
    role: int
    node: int
    name: str
    amount: float


class Buckets(NamedTuple):
    """``members``: rows of tasks per bucket. ``largest``: size of the largest bucket. ``roles``: role by row of a
    task."""

    members: list[AnyArray]
    largest: int
    roles: Mapping[int, int]


def buckets_of(members: Iterable[Member], roles: Roles) -> Buckets:
    """Return the buckets of tasks.

    Tasks on one node share a bucket. Every other task joins the bucket with the highest affinity, of equal ones the
    one that asks for least, or a new one if all affinities are negative.
    """
    ordered = sorted(members, key=lambda member: _place(member, roles))
    counts = np.zeros((len(ordered), len(roles.names)), dtype=np.int64)
    amounts = np.zeros(len(ordered))
    of_node: dict[int, int] = {}
    found: list[list[int]] = []
    for member in ordered:
        if member.node >= 0:
            # Tasks that run cannot be moved, so their node fixes the bucket whatever its affinity.
            bucket = of_node.get(member.node, -1)
        else:
            bucket = _nearest(counts, amounts, len(found), member, roles)
        if bucket < 0:
            bucket = len(found)
            found.append([])
        if member.node >= 0:
            of_node[member.node] = bucket
        else:
            # Only pending tasks add to the amount: those on a node have their room already.
            amounts[bucket] += member.amount
        counts[bucket, member.role] += 1
        found[bucket].append(member.row)
    role_of = {member.row: member.role for member in ordered}
    return Buckets([np.array(rows) for rows in found], max(map(len, found), default=0), role_of)


def _place(member: Member, roles: Roles) -> tuple[bool, int, int, int, str]:
    """Return the sort key of a task: placed tasks by node, then by role order, priority and name."""
    order, priority = roles.rank[member.role].tolist()
    # Placed tasks go first, because their buckets are fixed and attract the others.
    return member.node < 0, member.node, -order, -priority, member.name


def _nearest(counts: I64, amounts: F64, count: int, member: Member, roles: Roles) -> int:
    """Return the bucket for a task, or -1."""
    if not count:
        return -1
    near = counts[:count] @ roles.near[member.role]
    best = near.max()
    # All buckets have tasks from which this one should stay apart.
    if best < 0:
        return -1
    equal = np.flatnonzero(near == best)
    # The smallest bucket, because it is the likeliest to find a node with room for all of it.
    return int(equal[amounts[equal].argmin()])


def removals(asked: F64, others: F64, room: F64) -> I64:
    """Return how many other tasks of a bucket must be removed until the rest fits on each node. Shapes (R,),
    (others, R), (nodes, R) -> (nodes,)."""
    # Volcano removes tasks one by one in random order. A running sum in the given order finds the number by a binary
    # search per dimension.
    gone = others.cumsum(axis=0)
    found = np.zeros(len(room), dtype=np.int64)
    for dimension in range(len(asked)):
        short = asked[dimension] - room[:, dimension]
        steps = np.searchsorted(gone[:, dimension], short, side="left") + 1
        found = np.maximum(found, np.where(short > 0, steps, 0))
    # No more than all of them: the node is then too small for the task alone, and filters say so.
    return np.minimum(found, len(others))
