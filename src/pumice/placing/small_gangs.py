"""Second tries: search for a placement of a gang of different pods where the usual way, pod by pod, found none.

Neither Volcano nor KAI does this. It is for policies that switch it on (``secondTries`` of ``allocate``), and for
Kubernetes' own PodGroups: which of them can start must not depend on the order of their pods. KEP-4671 promises a
placement for gangs of equal pods only.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from pumice.algorithms.assignment import NOWHERE, Items, assign
from pumice.algorithms.packing import best_fit, places
from pumice.columns.dtypes import EPS, F64, I64, Bool
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.policy_file import ActionOption, Policy
from pumice.model.blockers import SearchCut
from pumice.placing.feasibility import Feasibility

#: Pods of a gang for which all placements are searched. Larger ones are only packed.
PODS_MAX = 16
#: Steps for one gang, and for all gangs in one run of an action. A step is a node that is looked at for a pod.
STEPS_MAX, STEPS_IN_ALL_MAX = 20_000, 200_000
_SWITCH = "secondTries"


def has_second_tries(policy: Policy) -> bool:
    """Return True if an action of a policy searches for gangs of every kind and size."""
    return any(_is_on(each) for each in policy.actions)


def with_second_tries(policy: Policy) -> Policy | None:
    """Return a policy with the switch on, or None if it is on already, or no action has it."""
    actions = tuple(
        replace(each, arguments={**each.arguments, _SWITCH: True}) if _is_on(each) is False else each
        for each in policy.actions
    )
    return replace(policy, actions=actions) if actions != policy.actions else None


def _is_on(action: ActionOption) -> bool | None:
    """Return whether the switch of an action is on, None if it has none."""
    # The default differs: it is on in ``dialect: pumice``.
    switch = signature(action.run).parameters.get(_SWITCH)
    return None if switch is None else bool(action.arguments.get(_SWITCH, switch.default))


class Searched(NamedTuple):
    """``places``: rows of tasks with the rows of their nodes, empty if none were found. ``cut``: the search ended at
    its limit, so that there may be a placement. ``is_refuted``: counting shows that there is none."""

    places: list[tuple[int, int]]
    cut: SearchCut | None = None
    is_refuted: bool = False


class PodsOnNodes(NamedTuple):
    """Tasks, and the nodes on which they may be (N,); None: all."""

    rows: list[int]
    nodes: Bool | None = None


class _Kinds(NamedTuple):
    """What is to be placed: kinds of equal tasks, the largest first. ``rows``: tasks of each kind. ``nodes``: their
    rows. Shapes: K kinds, N nodes, R resources."""

    rows: list[list[int]]
    needs: F64  # (K, R)
    counts: I64  # (K,)
    may: Bool  # (K, N)
    rooms: F64  # (N, R)
    nodes: I64  # (N,)


class SmallGangs:
    """The searches of one run of an action. ``for_all``: for gangs of every kind and size, and not for small native
    ones alone."""

    def __init__(self, ssn: Session, feasible: Feasibility, *, for_all: bool = False) -> None:
        self._ssn, self._feasible, self._for_all, self._left = ssn, feasible, for_all, STEPS_IN_ALL_MAX

    def concerns(self, job: int, rows: list[int]) -> bool:
        """Return True if these waiting tasks of a job are searched for: different ones of a gang."""
        native = self._ssn.tables.jobs.groups[job].native
        is_small_native = native is not None and native.is_gang and len(rows) <= PODS_MAX
        # Equal pods are placed one by one wherever there is a placement at all.
        return (self._for_all or is_small_native) and len(set(self._ssn.tables.tasks.cls[rows].tolist())) > 1

    def search(self, rows: list[int], wanted: int) -> Searched:
        """Return nodes with idle resources for ``wanted`` of the tasks."""
        if wanted > len(rows):
            return Searched([], is_refuted=True)
        found = self._search(self._kinds([PodsOnNodes(rows)]), wanted)
        # In the order of the tasks, so that those beyond the minimum, which may be refused, come last.
        place = {row: i for i, row in enumerate(rows)}
        return found._replace(places=sorted(found.places, key=lambda each: place[each[0]]))

    def search_on(self, parts: Sequence[PodsOnNodes]) -> Searched:
        """Return nodes with idle resources for all tasks of the parts, each on its own nodes."""
        return self._search(self._kinds(parts), sum(len(each.rows) for each in parts))

    def _search(self, kinds: _Kinds, wanted: int) -> Searched:
        # Counting costs as much as a first try, and refutes most gangs that wait.
        if _is_refuted(kinds, wanted):
            return Searched([], is_refuted=True)
        found = _packed(kinds, wanted)
        return Searched(found) if found else self._searched(kinds, wanted)

    def _kinds(self, parts: Sequence[PodsOnNodes]) -> _Kinds:
        """Return what is to be placed. Equal tasks that may be on other nodes are of another kind."""
        tables, feasible = self._ssn.tables, self._feasible
        masks, by_kind = list[Bool | None](), dict[tuple[int, int], list[int]]()
        for rows, nodes in parts:
            if not any(nodes is mask for mask in masks):
                masks.append(nodes)
            which = next(i for i, mask in enumerate(masks) if nodes is mask)
            for row, cls in zip(rows, tables.tasks.cls[rows].tolist(), strict=True):
                by_kind.setdefault((cls, which), []).append(row)
        kinds = sorted(by_kind)
        needs = tables.classes.req[[cls for cls, _ in kinds]]
        allowed = np.array([self._allowed(cls, masks[which]) for cls, which in kinds])
        usable = np.nonzero(allowed.any(axis=0))[0]
        rooms = tables.nodes.idle[feasible.all_nodes.rows[usable]]
        # The largest first, by the share of all room; then by class, so that the order is the same in each run.
        share = (needs / np.maximum(rooms.sum(axis=0), EPS)).max(axis=1)
        order = sorted(range(len(kinds)), key=lambda kind: (-share[kind], kinds[kind]))
        found = [by_kind[kinds[kind]] for kind in order]
        counts, may = np.array([len(rows) for rows in found]), allowed[order][:, usable]
        return _Kinds(found, needs[order], counts, may, rooms, feasible.all_nodes.rows[usable])

    def _allowed(self, cls: int, nodes: Bool | None) -> Bool:
        """Return the nodes on which a task may be, of all nodes that are looked at."""
        of_class = self._feasible.of(cls)
        allowed: Bool = of_class.allowed & of_class.idle_fits
        return allowed if nodes is None else allowed & nodes[self._feasible.all_nodes.rows]

    def _searched(self, kinds: _Kinds, wanted: int) -> Searched:
        """Search all placements of a few tasks."""
        action, limit = self._ssn.trace.action, min(STEPS_MAX, self._left)
        if kinds.counts.sum() > PODS_MAX:
            return Searched([])
        if limit <= 0:
            return Searched([], SearchCut(action, STEPS_IN_ALL_MAX))
        items = np.repeat(np.arange(len(kinds.counts)), kinds.counts).tolist()
        each = Items(items, kinds.needs.tolist(), kinds.may.tolist())
        found = assign(each, kinds.rooms.tolist(), wanted, limit, EPS)
        self._left -= found.steps
        if found.bins is None:
            return Searched([], SearchCut(action, found.steps) if found.steps >= limit else None)
        ordered = [row for rows in kinds.rows for row in rows]
        return Searched(
            [(row, int(kinds.nodes[at])) for row, at in zip(ordered, found.bins, strict=True) if at != NOWHERE]
        )


def _packed(kinds: _Kinds, wanted: int) -> list[tuple[int, int]]:
    """Return tasks with their nodes by one pass, the largest tasks first, empty if too few find room."""
    found = best_fit(kinds.needs, kinds.counts, kinds.may, kinds.rooms, EPS)
    if found.sum() < wanted:
        return []
    pairs: list[tuple[int, int]] = []
    for rows, counts in zip(kinds.rows, found, strict=True):
        at = counts.nonzero()[0]
        pairs += zip(rows, np.repeat(kinds.nodes[at], counts[at]).tolist(), strict=False)
    return pairs


def _is_refuted(kinds: _Kinds, wanted: int) -> bool:
    """Return True if counting shows that no placement of so many tasks exists: by places of each kind alone, or by the
    sum of what the smallest tasks need."""
    if not len(kinds.nodes):
        return True
    alone = [
        min(int(np.where(kinds.may[kind], places(need, kinds.rooms, EPS), 0).sum()), int(kinds.counts[kind]))
        for kind, need in enumerate(kinds.needs)
    ]
    if sum(alone) < wanted:
        return True
    # In each resource, the tasks that need least of it.
    each = np.sort(np.repeat(kinds.needs, kinds.counts, axis=0), axis=0)[:wanted]
    return bool((each.sum(axis=0) > kinds.rooms.sum(axis=0) + EPS * len(kinds.rooms)).any())
