"""Filter nodes by the claims of a task: where claims can be used, or allocated.

For equal claims, all nodes are examined once, and again when devices move. Source: kube-scheduler DynamicResources
(1.36).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import lru_cache

import numpy as np

from pumice.columns.dtypes import AnyArray, Bool
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Task
from pumice.framework.plugin.filter_result import Code, FilterResult, Unfit
from pumice.framework.plugin.incremental import FilterInTurn, TaskFilter
from pumice.model.blockers.changes import OfferDevices
from pumice.model.devices.claims import CLAIM_USERS_MAX, DeviceRequest, ResourceClaim
from pumice.model.status import TaskStatus
from pumice.placing.claims.free_devices import FreeDevices
from pumice.placing.claims.ledger import ClaimLedger
from pumice.placing.claims.searches import NodesFound

_NO_DEVICES = "cannot allocate all claims"
ELSEWHERE = Unfit("resourceclaim not available on the node", Code.UNRESOLVABLE)
CUT_REASON = "resourceclaim needs too long a search"
USED_UP = Unfit("resourceclaim has as many consumers as it may have")


#: Tasks of a class that a node takes without devices.
_ANY_NUMBER = np.iinfo(np.int64).max


class ClaimFilter(TaskFilter):
    """Filters rows of nodes by claims."""

    def __init__(self, ledger: ClaimLedger) -> None:
        self._ledger = ledger
        self._room: dict[Hashable, NodesFound] = {}
        self._room_of: FreeDevices | None = None

    def filter_result(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        """Return why nodes cannot take the task because of its claims, or None if it has none. Shape (rows,)."""
        ledger, row = self._ledger, task.row
        numbers = ledger.of_task.get(row)
        if not numbers:
            return None
        # A claim that has reached its number of users can be used nowhere, so nodes are not examined.
        if not ledger.users.is_placed(row) and any(ledger.users.reserved(n) >= CLAIM_USERS_MAX for n in numbers):
            return FilterResult.of(np.zeros(len(nodes), dtype=bool), USED_UP)
        codes = np.zeros(len(nodes), dtype=np.int32)
        found = self._find(row, numbers, soon=True)
        codes[~found.room[nodes.rows]] = 1
        if found.cut is not None:
            codes[found.cut[nodes.rows]] = 3
        # What the task leaves has been promised to others, so it cannot return to its own node.
        tasks = ledger.tables.tasks
        if tasks.status[row] == TaskStatus.RELEASING and ledger.was_promised_away(row):
            codes[nodes.rows == tasks.node[row]] = 1
        for number in numbers:
            # Written last, so that it replaces a lack of devices: evictions mend the latter, but not this.
            if ledger.is_given(row, number):
                codes[~ledger.nodes_of(number)[nodes.rows]] = 2
        cut = Unfit(CUT_REASON, steps=found.steps)
        asked = (ledger.claims[number].requests for number in numbers if not ledger.is_given(row, number))
        return FilterResult(codes, ((), (_no_devices(tuple(asked)),), (ELSEWHERE,), (cut,)))

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> FilterInTurn | None:
        """Return a filter that counts how many more of the tasks each node has devices for, or None if a search must
        find them for each."""
        free = self._ledger.free()
        # What is being left may serve one task and not the next, which then starts at once or waits.
        if free.now is not free.soon:
            return None
        rows = tasks.rows.tolist()
        count = next((i for i, row in enumerate(rows) if not self._is_like(row, rows[0])), len(rows))
        room = self._tasks_by_node(rows[0]) if count else None
        return None if room is None else _Room(room[nodes.rows], count)

    def _is_like(self, row: int, first: int) -> bool:
        """Return True if a task has one claim to itself, without devices, that asks for what the first task's does."""
        ledger = self._ledger
        numbers, others = ledger.of_task.get(row, ()), ledger.of_task.get(first, ())
        if len(numbers) != 1 or len(others) != 1 or not ledger.users.is_alone(row, numbers[0]):
            return False
        claim, other = ledger.claims[numbers[0]], ledger.claims[others[0]]
        return (claim.requests, claim.same) == (other.requests, other.same) and not ledger.is_given(row, numbers[0])

    def _tasks_by_node(self, row: int) -> AnyArray | None:
        """Return how many tasks like this one each node has free devices for, or None if counting does not tell.
        Shape (N,)."""
        ledger = self._ledger
        (number,) = ledger.of_task[row]
        kind_of = ledger.extended.kind_of
        found = np.zeros(len(kind_of), dtype=np.int64)
        for kind in range(ledger.extended.kinds):
            form = ledger.form(number, kind)
            # Nodes that have the resource by themselves are bounded by their books, and not here.
            if not form.requests:
                found[kind_of == kind] = _ANY_NUMBER
                continue
            options = form.requests[0].options
            mask = ledger.offers.matching(options[0])
            if not _is_plain([form]) or len(options) > 1 or isinstance(mask, str) or _consume(ledger, [form]):
                return None
            # Devices that several nodes reach are fewer on the others once one node has them.
            if any(mask[device] for device in ledger.offers.near):
                return None
            if options[0].count:
                here = kind_of == kind
                found[here] = ledger.free().on_nodes(options[0], soon=False)[here] // options[0].count
        return found

    def waits(self, task: Task, nodes: NodeRows) -> Bool | None:
        """Return the nodes on which the task must wait for devices that others still hold, or None for none. Shape
        (rows,)."""
        ledger, row = self._ledger, task.row
        numbers = ledger.of_task.get(row)
        if not numbers:
            return None
        # Promised devices are still held by others, wherever the task goes.
        if any(len(ledger.promised_to(number)) for number in numbers):
            return np.ones(len(nodes), dtype=bool)
        free = ledger.free()
        # No devices are being released, so there is nothing to wait for.
        if free.now is free.soon:
            return None
        return ~self._find(row, numbers, soon=False).room[nodes.rows]

    def _find(self, row: int, numbers: tuple[int, ...], *, soon: bool) -> NodesFound:
        """Return the nodes with devices for those claims of a task that have none."""
        ledger = self._ledger
        waiting = [number for number in numbers if not ledger.is_given(row, number)]
        if not any(map(ledger.is_extended, waiting)):
            return self._find_for([ledger.claims[number] for number in waiting], soon=soon)
        kind_of = ledger.extended.kind_of
        room, cut, steps = np.zeros(len(kind_of), dtype=bool), np.zeros(len(kind_of), dtype=bool), 0
        # A node with a device plugin and one without need different claims of the same task.
        for kind in range(ledger.extended.kinds):
            forms = [ledger.form(number, kind) for number in waiting]
            found = self._find_for([form for form in forms if form.requests], soon=soon)
            here = kind_of == kind
            room |= here & found.room
            steps += found.steps
            if found.cut is not None:
                cut |= here & found.cut
        return NodesFound(room, cut if cut.any() else None, steps)

    def _find_for(self, claims: list[ResourceClaim], *, soon: bool) -> NodesFound:
        """Return the nodes with devices for claims."""
        ledger = self._ledger
        free = ledger.free()
        # The ledger returns the same object until a device moves, so identity tells whether answers still hold.
        if self._room_of is not free:
            self._room, self._room_of = {}, free
        # Two namespaces may have different bounds for one question.
        question = (soon, ledger.searches.bound(claims), *((claim.requests, claim.same) for claim in claims))
        found = self._room.get(question)
        if found is None:
            found = self._room[question] = self._find_room(claims, free, soon=soon)
        return found

    def _find_room(self, claims: list[ResourceClaim], free: FreeDevices, *, soon: bool) -> NodesFound:
        """Return the nodes with devices for claims."""
        ledger, offers = self._ledger, self._ledger.offers
        count = len(ledger.tables.nodes.facts)
        room = np.ones(count, dtype=bool)
        for claim in claims:
            for request in claim.requests:
                counts = [
                    free.on_nodes(option, soon=soon) >= (1 if option.every else option.count)
                    for option in request.options
                    if not isinstance(offers.matching(option), str)
                ]
                room &= np.any(counts, axis=0) if counts else False
        # Counting is exact here. Otherwise it only excludes nodes, and the search runs on those that are left.
        if _is_plain(claims) and not _consume(ledger, claims):
            return NodesFound(room, None, 0)
        devices, left = (free.soon, free.left_soon) if soon else (free.now, free.left)
        return ledger.searches.on_nodes(claims, room.nonzero()[0].astype(np.int32), devices, count, left)


class _Room(FilterInTurn):
    """How many more tasks each node has devices for. Shape (rows,)."""

    def __init__(self, room: AnyArray, count: int) -> None:
        self.count, self._room, self._open = count, room, room > 0

    def open_to(self, step: int) -> Bool:
        return self._open

    def placed(self, step: int, place: int) -> bool:
        self._room[place] -= 1
        if self._room[place]:
            return False
        # Replaced and not changed: the last answer may be in use.
        self._open = self._room > 0
        return True


@lru_cache(maxsize=1024)
def _no_devices(asked: tuple[tuple[DeviceRequest, ...], ...]) -> Unfit:
    """Return the reason against a node that lacks devices. ``asked``: the requests of each claim that has none."""
    counts = Counter[str]()
    for request in (each for requests in asked for each in requests):
        # The first of the alternatives, which the author of the claim prefers.
        first = request.options[0]
        counts[first.device_class] += 1 if first.every else first.count
    return Unfit(_NO_DEVICES, changes=tuple(OfferDevices(name, count) for name, count in counts.items()))


def _consume(ledger: ClaimLedger, claims: list[ResourceClaim]) -> bool:
    """Return True if a device that may be given to the claims consumes counters, or capacities that it shares."""
    # Two devices may each be free, and only one of them can be given, so that their number proves nothing.
    consumption = ledger.offers.consumption
    options = (option for claim in claims for request in claim.requests for option in request.options)
    masks = (ledger.offers.matching(option) for option in options if consumption)
    return any(not isinstance(mask, str) and bool((mask & consumption.users).any()) for mask in masks)


def _is_plain(claims: list[ResourceClaim]) -> bool:
    """Return True if counting devices decides: one request, and neither ``every`` nor equal attributes."""
    if not claims:
        return True
    requests = [request for claim in claims for request in claim.requests]
    return len(requests) == 1 and not claims[0].same and not any(each.every for each in requests[0].options)
