"""Who has which devices, for as long as a session lasts.

A claim has devices from the moment that the first pod that uses it is placed until the last one is gone. While all that
use it are leaving, its devices may be promised to others; the state of the pods says so, so that only two columns have
to be kept in step, and a rollback keeps those. Several pods that name one claim share what it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.column import Column
from pumice.columns.dtypes import I32, AnyArray, Bool
from pumice.columns.runs import TaskRun
from pumice.framework.cycle.session import Session
from pumice.model.decisions import ClaimGrant, Refusal
from pumice.model.devices.claims import AllocatedDevice, Allocation, ResourceClaim
from pumice.model.pod import NodeSelectorTerm, Requirement
from pumice.model.status import TaskStatus
from pumice.placing.claims.allocator import Given, allocate, can_never
from pumice.placing.claims.offers import Offers, offers_of
from pumice.placing.claims.resolve import Resolved, resolved_claims
from pumice.placing.derived import derived
from pumice.placing.filters.nodes import NAME_FIELD, node_term

_NOBODY = -1
#: Columns that answers about claims rest on, beside pods.
COLUMNS = ("claims.held", "claims.promised", "claims.made_of")
_STAYS = frozenset({TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING})
_NOT_THERE = Refusal("the devices that it claims are not there any more")


class Free(NamedTuple):
    """Devices that nobody has ``now``, and those that nobody will have when all that leave have left. (D,) each."""

    now: Bool
    soon: Bool


class ClaimLedger:
    """``claims``: those that some pod uses or that have devices; a number below is a row of these.

    ``held`` (D, 3): by device the claim that has it, with request and option (-1, where that was before this session);
    ``promised`` (D, 3): the one that will, when others have left it. -1: nobody.
    """

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.tables = ssn, ssn.tables
        self.offers: Offers = offers_of(ssn)
        found: Resolved = resolved_claims(ssn.tables)
        self.claims, self.of_task, self.missing = found.claims, found.of_task, found.missing
        self._users: list[list[int]] = [[] for _ in self.claims]
        for row, numbers in self.of_task.items():
            for number in numbers:
                self._users[number].append(row)
        held = np.full((len(self.offers), 3), _NOBODY, dtype=np.int32)
        for number, claim in enumerate(self.claims):
            for each in claim.allocation.devices if claim.allocation is not None else ():
                device = self.offers.row_of.get((each.driver, each.pool, each.device))
                if device is not None:
                    held[device] = number, _NOBODY, _NOBODY
        tables = ssn.tables
        made_of = np.array([tables.claims.version, tables.slices.version, tables.device_classes.version])
        self.held: Column[AnyArray] = ssn.column("claims.held", values=held)
        self.promised: Column[AnyArray] = ssn.column("claims.promised", values=np.full_like(held, _NOBODY))
        ssn.column("claims.made_of", values=made_of)
        self._free: tuple[tuple[int, ...], Free] | None = None
        self._never: dict[int, str] = {}

    # -- claims -------------------------------------------------------------------------------------------------------

    def problem(self, row: int) -> str:
        """Why a task can be placed nowhere, whatever becomes free; empty where it may."""
        if row in self.missing:
            return self.missing[row]
        for number in self.of_task.get(row, ()):
            claim = self.claims[number]
            if claim.allocation is None:
                if number not in self._never:
                    self._never[number] = can_never(self.offers, claim)
                if self._never[number]:
                    return f"resourceclaim {claim.key}: {self._never[number]}"
        return ""

    def stays(self, row: int) -> bool:
        """Whether a task has a place that it is not about to leave."""
        tasks = self.tables.tasks
        status = int(tasks.status[row])
        return status in _STAYS or (status == TaskStatus.PIPELINED and int(tasks.leaving[row]) < 0)

    def users(self, number: int) -> list[int]:
        """The tasks that stay, or are promised a place, and use a claim."""
        status = self.tables.tasks.status
        return [row for row in self._users[number] if self.stays(row) or status[row] == TaskStatus.PIPELINED]

    def reserved(self, number: int) -> int:
        """How many pods a claim is reserved for, with those of this session."""
        pods = self.tables.tasks.pods
        claim = self.claims[number]
        there = {pods[row].uid for row in self._users[number]}
        return len(self.users(number)) + sum(uid not in there for uid in claim.reserved_for)

    def is_leaving(self, number: int) -> bool:
        """Whether all that use a claim are about to leave, and so will it lose its devices."""
        rows, status = self._users[number], self.tables.tasks.status
        leaves = any(status[row] in (TaskStatus.RELEASING, TaskStatus.PIPELINED) for row in rows)
        return leaves and not any(self.stays(row) for row in rows)

    def held_by(self, number: int) -> I32:
        """Rows of the devices that a claim has."""
        return np.flatnonzero(self.held.array[:, 0] == number).astype(np.int32)

    def promised_to(self, number: int) -> I32:
        """Rows of the devices that it will have."""
        return np.flatnonzero(self.promised.array[:, 0] == number).astype(np.int32)

    def was_promised_away(self, row: int) -> bool:
        """Whether devices that a task is about to leave were promised to others."""
        devices = [device for number in self.of_task.get(row, ()) for device in self.held_by(number).tolist()]
        return bool((self.promised.array[devices, 0] >= 0).any())

    def is_given(self, row: int, number: int) -> bool:
        """Whether a claim has its devices, or was promised them, and keeps them where the task goes elsewhere too."""
        if len(self.promised_to(number)):
            return True
        has = self.claims[number].allocation is not None or bool(len(self.held_by(number)))
        moves = self.tables.tasks.status[row] == TaskStatus.RELEASING or int(self.tables.tasks.leaving[row]) >= 0
        return has and not (moves and self.is_leaving_but_for(row, number))

    def is_leaving_but_for(self, row: int, number: int) -> bool:
        """Whether nobody but the task keeps a claim where it is."""
        return not any(self.stays(other) for other in self._users[number] if other != row)

    def nodes_of(self, number: int) -> Bool:
        """Where a claim that has devices, or was promised some, can be used (N,)."""
        facts, claim = derived(self.ssn), self.claims[number]
        devices = self.promised_to(number)
        if not len(devices) and claim.allocation is not None:
            found = np.full(len(facts), claim.allocation.nodes is None)
            for term in claim.allocation.nodes or ():
                found |= node_term(facts, term)
            devices = self.held_by(number)
            return np.zeros_like(found) if (self.promised.array[devices, 0] >= 0).any() else found
        found = np.ones(len(facts), dtype=bool)
        for device in (devices if len(devices) else self.held_by(number)).tolist():
            node = int(self.offers.node[device])
            found &= self.offers.near[device] if node < 0 else np.arange(len(found)) == node
        return found

    # -- devices ------------------------------------------------------------------------------------------------------

    def free(self) -> Free:
        """Devices as they are now: the same object for as long as nothing changes."""
        version = (self.held.version, self.promised.version, self.tables.tasks["status"].version)
        if self._free is None or self._free[0] != version:
            holders, open_to = self.held.array[:, 0], self.promised.array[:, 0] < 0
            now = (holders < 0) & open_to
            soon = now.copy()
            for number in distinct(holders[holders >= 0]).tolist():
                if self.is_leaving(number):
                    soon |= (holders == number) & open_to
            self._free = version, Free(now, soon)
        return self._free[1]

    def of_node(self, node: int) -> list[int]:
        """The devices that can be used on a node, in order."""
        return [*self.offers.of_node.get(node, ()), *(row for row, near in self.offers.near.items() if near[node])]

    def choose(self, claims: Sequence[ResourceClaim], node: int, free: Bool) -> list[Given] | None:
        """Devices of a node for several claims out of the free ones; None where they are not there."""
        every = self.of_node(node)
        left, found = [row for row in every if free[row]], []
        for claim in claims:
            given = allocate(self.offers, claim, left, every)
            if given is None:
                return None
            taken = {row for row, _, _ in given}
            left = [row for row in left if row not in taken]
            found.append(given)
        return found

    # -- moves --------------------------------------------------------------------------------------------------------

    def placed(self, run: TaskRun) -> Refusal | None:
        """Tasks were placed: their claims have devices, or are promised some, from now on."""
        for row, node in zip(run.rows, run.nodes, strict=True):
            numbers = [number for number in self.of_task.get(row, ()) if not self.is_given(row, number)]
            if numbers and not self._give(row, node, numbers):
                return _NOT_THERE
        return None

    def _give(self, row: int, node: int, numbers: list[int]) -> bool:
        free = self.free()
        waits = self.tables.tasks.status[row] == TaskStatus.PIPELINED
        given = self.choose([self.claims[number] for number in numbers], node, free.soon if waits else free.now)
        if given is None:
            return False
        column = self.promised if waits else self.held
        for number, each in zip(numbers, given, strict=True):
            if each:
                rows = [device for device, _, _ in each]
                self.ssn.journal.put(column, rows, [(number, request, option) for _, request, option in each])
        return True

    def left(self, run: TaskRun) -> None:
        """Tasks left their nodes, or will."""
        for row in run.rows:
            for number in self.of_task.get(row, ()):
                if not self.is_leaving_but_for(row, number):
                    continue
                self._clear(self.promised, self.promised_to(number))
                if not self.tables.tasks.pods[row].node_name and self.claims[number].allocation is None:
                    self._clear(self.held, self.held_by(number))

    def _clear(self, column: Column[AnyArray], rows: I32) -> None:
        if len(rows):
            self.ssn.journal.put(column, rows, _NOBODY)

    # -- what is written ----------------------------------------------------------------------------------------------

    def grants(self, row: int, node: int) -> tuple[ClaimGrant, ...]:
        """What the claims of a task that is bound to a node must say before it is."""
        return tuple(
            ClaimGrant(claim.key, None if claim.allocation is not None else self._allocation(number, node))
            for number in self.of_task.get(row, ())
            for claim in (self.claims[number],)
        )

    def _allocation(self, number: int, node: int) -> Allocation:
        requests, found, bound_to_node = self.claims[number].requests, [], False
        for device in self.held_by(number).tolist():
            _, request, option = self.held.array[device].tolist()
            asked = requests[request]
            of_option = asked.options[option].name
            name = f"{asked.name}/{of_option}" if of_option else asked.name
            found.append(AllocatedDevice(name, *self.offers.ids[device]))
            bound_to_node |= bool(self.offers.node[device] >= 0)
        here = Requirement(NAME_FIELD, "In", (self.tables.nodes.facts.names[node],))
        shared = any(not self.offers.near[device].all() for device in self._near(number))
        return Allocation(tuple(found), (NodeSelectorTerm(fields=(here,)),) if bound_to_node or shared else None)

    def _near(self, number: int) -> Iterable[int]:
        return (device for device in self.held_by(number).tolist() if device in self.offers.near)


def claim_ledger(ssn: Session) -> ClaimLedger:
    """That of this session; asked for first while a plugin opens."""
    return ssn.shared(ClaimLedger, lambda: ClaimLedger(ssn))
