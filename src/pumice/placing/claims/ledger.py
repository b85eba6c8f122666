"""Which claim holds which devices during a session.

A claim holds devices from the time that the first pod that uses it is placed until the last one is gone. While all its
users are leaving, its devices may be promised to other claims. Whether that is so follows from the status of the pods.
So only two columns must be kept up to date, and a rollback restores those. Pods that name the same claim share its
devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pumice.columns.column import Column
from pumice.columns.dtypes import F64, I32, AnyArray, Bool
from pumice.columns.runs import TaskRun
from pumice.framework.cycle.session import Session
from pumice.model.decisions import ClaimGrant, Refusal
from pumice.model.devices.claims import AllocatedDevice, Allocation, ResourceClaim
from pumice.model.pod import NodeSelectorTerm, Requirement
from pumice.placing.claims.allocator import Given, can_never
from pumice.placing.claims.extended import ExtendedClaims
from pumice.placing.claims.free_devices import FreeDevices
from pumice.placing.claims.offers import Offers, offers_of
from pumice.placing.claims.resolve import Resolved, resolved_claims
from pumice.placing.claims.searches import Searches
from pumice.placing.claims.users import PIPELINED, RELEASING, ClaimUsers
from pumice.placing.derived import derived
from pumice.placing.filters.nodes import NAME_FIELD, node_term

_NO_CLAIM = -1
#: Columns that answers about claims rest on, in addition to pods.
COLUMNS = ("claims.held", "claims.promised", "claims.made_of")
_NO_DEVICES: I32 = np.zeros(0, dtype=np.int32)
_NOT_THERE = Refusal("the devices that it claims are not there any more")


class _FreeAs(NamedTuple):
    """What was ``found`` to be free, as of versions of ``devices`` and of the ``status`` of tasks. ``leaving``: claims
    that will lose their devices."""

    devices: tuple[int, int]
    status: int
    leaving: list[int]
    found: FreeDevices


class _Holders:
    """``claims`` by number that get ``devices``, of which each has as ``values`` its claim, request and option."""

    __slots__ = ("claims", "devices", "values")

    def __init__(self) -> None:
        self.claims: dict[int, ResourceClaim] = {}
        self.devices: list[int] = []
        self.values: list[tuple[int, int, int]] = []

    def add(self, numbers: Sequence[int], claims: Sequence[ResourceClaim], given: Sequence[Given]) -> None:
        """Add the devices that each of some claims gets."""
        for number, claim, each in zip(numbers, claims, given, strict=True):
            self.claims[number] = claim
            for device, request, option in each:
                self.devices.append(device)
                self.values.append((number, request, option))


class ClaimLedger:
    """The devices of claims. ``claims``: those that a pod uses or that have devices; numbers below are indices into it.

    ``searches``: find devices for claims on nodes.

    ``held`` (D, 3): the claim that holds each device, with request and option (-1 if allocated before this session), or
    -1. ``promised`` (D, 3): the claim that will hold it when others have left it, or -1. ``taken`` and ``due``
    (D, width): what these two consume of the capacities of a device that is shared.
    """

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.tables = ssn, ssn.tables
        self.offers: Offers = offers_of(ssn)
        found: Resolved = resolved_claims(ssn.tables)
        self.claims, self.of_task, self.missing = found.claims, found.of_task, found.missing
        self._claiming = np.zeros(ssn.tables.tasks.capacity, dtype=bool)
        self._claiming[list(self.of_task)] = True
        self.extended = ExtendedClaims(ssn.tables)
        self._extended_row, self._of_group = found.extended, found.of_group
        self.users = ClaimUsers(ssn.tables, self.claims, self.of_task, self._of_group)
        self.searches = Searches(self.offers, [form for n in range(len(self.claims)) for form in self._forms(n)])
        # Devices that a claim has or had in this session, also those that a rollback took from it: where to look.
        self._ever_held: dict[int, set[int]] = {}
        held = np.full((len(self.offers), 3), _NO_CLAIM, dtype=np.int32)
        consumption = self.offers.consumption
        taken = np.zeros((len(self.offers), consumption.width))
        for number, claim in enumerate(self.claims):
            for each in claim.allocation.devices if claim.allocation is not None else ():
                # A device that no slice lists any more needs no row: no other claim can get it.
                device = self._unheld(each, held)
                if device is not None:
                    self._ever_held.setdefault(number, set()).add(device)
                    held[device] = number, _NO_CLAIM, _NO_CLAIM
                    if consumption.width:
                        taken[device] += consumption.vector(device, each.consumed)
        tables = ssn.tables
        made_of = np.array([tables.claims.version, tables.slices.version, tables.device_classes.version])
        self.held: Column[AnyArray] = ssn.column("claims.held", values=held)
        self.promised: Column[AnyArray] = ssn.column("claims.promised", values=np.full_like(held, _NO_CLAIM))
        self.taken: Column[AnyArray] = ssn.column("claims.taken", values=taken)
        self.due: Column[AnyArray] = ssn.column("claims.due", values=np.zeros_like(taken))
        self._none_promised = self.promised.version
        # No code reads this column. It makes memoized answers rest on the objects from which the ledger is made.
        ssn.column("claims.made_of", values=made_of)
        self._free: _FreeAs | None = None
        self._never: dict[int, str] = {}

    def _unheld(self, device: AllocatedDevice, held: AnyArray) -> int | None:
        """Return the row of a device that a claim has: of one that is shared, a share that no claim has yet."""
        row = self.offers.row_of.get((device.driver, device.pool, device.device))
        first = self.offers.consumption.first
        while row is not None and held[row, 0] != _NO_CLAIM and row + 1 < len(first) and first[row + 1] == first[row]:
            row += 1
        return row

    # -- claims -------------------------------------------------------------------------------------------------------

    def problem(self, row: int) -> str:
        """Return why the task can never be placed, or ""."""
        if row in self.missing:
            return self.missing[row]
        for number in self.of_task.get(row, ()):
            claim = self.claims[number]
            # A claim with an allocation was possible once, whatever slices say now.
            if claim.allocation is None:
                # The answer rests on slices and classes alone, which do not change within a session.
                if number not in self._never:
                    answers = [can_never(self.offers, form) for form in self._forms(number)]
                    self._never[number] = next(iter(answers), "") if all(answers) else ""
                if self._never[number]:
                    return f"resourceclaim {claim.key}: {self._never[number]}"
        return ""

    def is_extended(self, number: int) -> bool:
        """Return True for the claim of a task's extended resources, which differs by kind of node."""
        return number in self._extended_row

    def form(self, number: int, kind: int) -> ResourceClaim:
        """Return a claim as it is on nodes of a kind (``extended.kind_of``)."""
        row = self._extended_row.get(number)
        return self.claims[number] if row is None else self.extended.form(self.claims[number], row, kind)

    def _forms(self, number: int) -> list[ResourceClaim]:
        """Return the forms that a claim has on kinds of nodes."""
        if not self.is_extended(number):
            return [self.claims[number]]
        return [self.form(number, kind) for kind in range(self.extended.kinds)]

    def is_too_costly(self, row: int) -> bool:
        """Return True if selectors of the task's claims are not evaluated in this cycle."""
        numbers = self.of_task.get(row, ())
        return any(self.searches.is_too_costly(form) for number in numbers for form in self._forms(number))

    def is_leaving(self, number: int) -> bool:
        """Return True if all users of a claim are about to leave, so that it will lose its devices."""
        # Devices of a group stay with it until it is deleted, also if all its pods are evicted.
        if number in self._of_group and self.claims[number].allocation is not None:
            return False
        # A claim without users keeps its devices until the API server says otherwise.
        return self.users.are_leaving(number)

    def held_by(self, number: int) -> I32:
        """Return the rows of devices that a claim holds."""
        # A claim is asked about several times for each pod, and there are thousands of devices.
        ever = self._ever_held.get(number)
        if ever is None:
            return _NO_DEVICES
        holders = self.held.array[:, 0]
        # A few devices of one claim: plain numbers take less time than arrays of them.
        return np.array([device for device in sorted(ever) if holders[device] == number], dtype=np.int32)

    def promised_to(self, number: int) -> I32:
        """Return the rows of devices that a claim is promised."""
        # Few sessions promise devices, and this is asked several times for each pod.
        if self.promised.version == self._none_promised:
            return _NO_DEVICES
        return np.flatnonzero(self.promised.array[:, 0] == number).astype(np.int32)

    def was_promised_away(self, row: int) -> bool:
        """Return True if devices that a task is about to leave are promised to other claims."""
        devices = [device for number in self.of_task.get(row, ()) for device in self.held_by(number).tolist()]
        return bool((self.promised.array[devices, 0] >= 0).any())

    def is_given(self, row: int, number: int) -> bool:
        """Return True if a claim has devices, or is promised some, and keeps them if the task is placed elsewhere."""
        if len(self.promised_to(number)):
            return True
        has = self.claims[number].allocation is not None or bool(len(self.held_by(number)))
        if number in self._of_group and self.claims[number].allocation is not None:
            return True
        # If the task moves and no other task holds the claim in place, the claim is allocated again for the new node.
        moves = self.tables.tasks.status[row] == RELEASING or int(self.tables.tasks.leaving[row]) >= 0
        return has and not (moves and not self.users.stay_without(row, number))

    def nodes_of(self, number: int) -> Bool:
        """Return where a claim that has devices, or is promised some, can be used. Shape (N,)."""
        facts, claim = derived(self.ssn), self.claims[number]
        devices = self.promised_to(number)
        if not len(devices) and claim.allocation is not None:
            found = np.full(len(facts), claim.allocation.nodes is None)
            for term in claim.allocation.nodes or ():
                found |= node_term(facts, term)
            devices = self.held_by(number)
            # Devices that were promised to others are lost to this claim, so it can be used nowhere.
            return np.zeros_like(found) if (self.promised.array[devices, 0] >= 0).any() else found
        found = np.ones(len(facts), dtype=bool)
        for device in (devices if len(devices) else self.held_by(number)).tolist():
            node = int(self.offers.node[device])
            found &= self.offers.near[device] if node < 0 else np.arange(len(found)) == node
        return found

    # -- devices ------------------------------------------------------------------------------------------------------

    def free(self) -> FreeDevices:
        """Return the free devices. The same object while nothing changes."""
        status = self.tables.tasks["status"].version
        if self._free is not None and self._free.devices == self._versions() and self._free.status == status:
            return self._free.found
        leaving = [number for number in self._losing_users() if self.is_leaving(number)]
        # Most moves of tasks, such as from placed to binding, take no claim its last user.
        if self._free is not None and self._free.devices == self._versions() and self._free.leaving == leaving:
            self._free = self._free._replace(status=status)
            return self._free.found
        holders, open_to = self.held.array[:, 0], self.promised.array[:, 0] < 0
        now = soon = (holders < 0) & open_to
        if leaving:
            # One more than there are claims: the last one is the holder of free devices, -1.
            leaves = np.zeros(len(self.claims) + 1, dtype=bool)
            leaves[leaving] = True
            soon = now | (leaves[holders] & open_to)
        self._free = _FreeAs(
            self._versions(), status, leaving, FreeDevices(self.offers, now, soon, *self._left(now, soon))
        )
        return self._free.found

    def _versions(self) -> tuple[int, int]:
        """Return the versions of who holds devices and who will."""
        return self.held.version, self.promised.version

    def _left(self, now: Bool, soon: Bool) -> tuple[F64, F64]:
        """Return what is left of what devices consume, now and soon. Shapes (K,)."""
        consumption = self.offers.consumption
        if not consumption.width:
            left = consumption.left(now)
            return left, left if soon is now else consumption.left(soon)
        promised = self.promised.array[:, :1] >= 0
        due = np.where(promised, self.due.array, 0.0)
        held = np.where(self.held.array[:, :1] >= 0, self.taken.array, 0.0)
        # A share that is promised will have left its present claim.
        return consumption.left(now, held + due), consumption.left(soon, np.where(promised, due, held))

    def _losing_users(self) -> list[int]:
        """Return the claims of which a user is about to leave. No other claim can lose its devices."""
        # One look at the statuses: devices move with each pod that is placed, and to ask each claim would be quadratic.
        status = self.tables.tasks.status
        leaving = (self._claiming & ((status == RELEASING) | (status == PIPELINED))).nonzero()[0].tolist()
        return sorted({number for row in leaving for number in self.of_task[row]})

    # -- moves --------------------------------------------------------------------------------------------------------

    def placed(self, run: TaskRun) -> Refusal | None:
        """Give devices to the claims of tasks that were placed, or promise them. Return a refusal if they are not
        available."""
        waits = self.tables.tasks.status[run.rows[0]] == PIPELINED
        free = self.free()
        # While claims are about to lose devices, what is free soon changes with each task that is placed.
        if not waits and free.is_settled:
            return self._place_together(run, free)
        for row, node in zip(run.rows, run.nodes, strict=True):
            numbers = [number for number in self.of_task.get(row, ()) if not self.is_given(row, number)]
            claims = self._forms_on(numbers, node)
            # What is free, and what is left of it, changes with every device that is given.
            free, holders = self.free(), _Holders()
            devices, left = (free.soon, free.left_soon) if waits else (free.now, free.left)
            given = self.searches.on_node(claims, node, devices, left) if numbers else []
            if given is None:
                return _NOT_THERE
            holders.add(numbers, claims, given)
            self._give(holders, waits=waits)
        return None

    def _place_together(self, run: TaskRun, free: FreeDevices) -> Refusal | None:
        """Give devices to the claims of tasks, in one write. Equal to giving them one after the other."""
        now, holders, plain = free.now.copy(), _Holders(), None
        for row, node in zip(run.rows, run.nodes, strict=True):
            given: Sequence[Given] | None
            # A claim that several of the tasks share was given its devices with the first of them.
            numbers = [
                number
                for number in self.of_task.get(row, ())
                if number not in holders.claims and not self.is_given(row, number)
            ]
            if not numbers:
                continue
            claims = self._forms_on(numbers, node)
            # Equal tasks on one node, as in a gang, go on where the task before them ended.
            if plain is None or len(claims) > 1 or not plain.is_for(claims[0], node):
                plain = self.searches.plain_on_node(claims, node, now)
            if plain is not None:
                given = plain.next()
            else:
                given = self.searches.on_node(claims, node, now, free.left)
            if given is None:
                return _NOT_THERE
            # Marked at once, because the next task is searched for among what is left.
            first = len(holders.devices)
            holders.add(numbers, claims, given)
            now[holders.devices[first:]] = False
        # One write for all tasks: a write for each costs more than the choice of its devices.
        if holders.devices:
            self._give(holders, waits=False)
            status = self.tables.tasks["status"].version
            self._free = _FreeAs(self._versions(), status, [], free.without(now, holders.devices))
        return None

    def _forms_on(self, numbers: Sequence[int], node: int) -> list[ResourceClaim]:
        """Return claims as they are on a node."""
        kind = int(self.extended.kind_of[node])
        return [self.form(number, kind) for number in numbers]

    def _give(self, holders: _Holders, *, waits: bool) -> None:
        """Write which claims hold devices, or will hold them if they must wait."""
        if not holders.devices:
            return
        if not waits:
            for device, (number, _, _) in zip(holders.devices, holders.values, strict=True):
                self._ever_held.setdefault(number, set()).add(device)
        put = self.ssn.journal.put
        put(self.promised if waits else self.held, holders.devices, holders.values)
        if self.offers.consumption.width:
            each = zip(holders.devices, holders.values, strict=True)
            amounts = [
                self._amounts(holders.claims[n], device, request, option) for device, (n, request, option) in each
            ]
            put(self.due if waits else self.taken, holders.devices, amounts)

    def _amounts(self, claim: ResourceClaim, device: int, request: int, option: int) -> list[float]:
        """Return what a request of a claim consumes of a device. Shape (width,)."""
        consumption = self.offers.consumption
        if not consumption.shared[device]:
            return [0.0] * consumption.width
        return consumption.vector(device, consumption.amounts(device, claim.requests[request].options[option].capacity))

    def left(self, run: TaskRun) -> None:
        """Release devices of tasks that left their nodes, or will leave them."""
        for row in run.rows:
            for number in self.of_task.get(row, ()):
                if self.users.stay_without(row, number):
                    continue
                self._clear(self.promised, self.promised_to(number))
                # Only devices given in this session are released. Those of a running pod stay held until the API server
                # says that the claim has none, and count as free soon.
                if not self.tables.tasks.pods[row].node_name and self.claims[number].allocation is None:
                    self._clear(self.held, self.held_by(number))

    def _clear(self, column: Column[AnyArray], rows: I32) -> None:
        if len(rows):
            self.ssn.journal.put(column, rows, _NO_CLAIM)

    # -- what is written ----------------------------------------------------------------------------------------------

    def grants(self, row: int, node: int) -> tuple[ClaimGrant, ...]:
        """Return what must be written to the claims of a task before it is bound to a node."""
        found = []
        for number in self.of_task.get(row, ()):
            claim, extended = self.claims[number], None
            if self.is_extended(number):
                extended = self.extended.requests(row, int(self.extended.kind_of[node]))
                # The node has all of the pod's extended resources by itself, and no claim is made.
                if not extended.requests:
                    continue
            given = None if claim.allocation is not None else self._allocation(number, node)
            found.append(ClaimGrant(claim.key, given, extended, self._of_group.get(number)))
        return tuple(found)

    def _allocation(self, number: int, node: int) -> Allocation:
        """Return the allocation of a claim, as it is written to its status."""
        near = self.offers.near
        requests, found, bound_to_node = self.form(number, int(self.extended.kind_of[node])).requests, [], False
        devices = self.held_by(number).tolist()
        for device in devices:
            _, request, option = self.held.array[device].tolist()
            asked = requests[request]
            chosen = asked.options[option]
            of_option, consumption = chosen.name, self.offers.consumption
            name = f"{asked.name}/{of_option}" if of_option else asked.name
            consumed = consumption.amounts(device, chosen.capacity) if consumption.shared[device] else None
            driver, pool, own_name = self.offers.ids[device]
            found.append(AllocatedDevice(name, driver, pool, own_name, consumed))
            bound_to_node |= bool(self.offers.node[device] >= 0)
        # A claim with devices of one node, or of some nodes, names the node. Devices usable everywhere bind it to none.
        here = Requirement(NAME_FIELD, "In", (self.tables.nodes.facts.names[node],))
        shared = any(not near[device].all() for device in devices if device in near)
        return Allocation(tuple(found), (NodeSelectorTerm(fields=(here,)),) if bound_to_node or shared else None)


def claim_ledger(ssn: Session) -> ClaimLedger:
    """Return the ledger of the session. It must first be asked for while a plugin opens."""
    return ssn.shared(ClaimLedger, lambda: ClaimLedger(ssn))
