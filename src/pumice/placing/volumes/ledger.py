"""Volumes of the pods in a session: which claims they name, which volumes these have, and which are promised.

A claim whose class waits for a pod gets a volume, or a node to provision one for, when the first pod that uses it is
placed, and keeps it until the last of them is gone. Which volumes are attached to which node follows from where pods
are. Source: kube-scheduler VolumeBinding, NodeVolumeLimits.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pumice.columns.column import Column
from pumice.columns.dtypes import I32, AnyArray, Bool
from pumice.columns.runs import TaskRun
from pumice.framework.cycle.session import Session
from pumice.model.decisions import Refusal, VolumeGrant
from pumice.model.pod import NodeSelectorTerm
from pumice.model.selectors import matches
from pumice.model.status import TaskStatus
from pumice.model.volumes import (
    NO_PROVISIONER,
    ONCE_POD,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from pumice.placing.derived import Derived, derived
from pumice.placing.filters.nodes import node_term

_NONE, _MADE = -1, -2
#: Columns that answers about volumes rest on, in addition to pods.
COLUMNS = ("volumes.given", "volumes.node", "volumes.made_of")
_IN_PLACE = frozenset(
    {
        TaskStatus.ALLOCATED,
        TaskStatus.BINDING,
        TaskStatus.BOUND,
        TaskStatus.RUNNING,
        TaskStatus.RELEASING,
        TaskStatus.STUCK,
    }
)
_NOT_THERE = Refusal("the volumes that it needs are not there any more")


def volume_tasks(ssn: Session) -> list[int]:
    """Return the rows of tasks that name claims of volumes and have not ended."""
    return ssn.tables.tasks.not_ended_of(ssn.tables.classes.volumes)


class VolumeLedger:
    """Claims and their volumes. K claims: those that a pod names and that exist.

    ``given`` (K,): the volume that each claim is promised, -1 for none, -2 for one to be provisioned. ``node`` (K,):
    the node that it is for, -1 for none.
    """

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.tables = ssn, ssn.tables
        tables = ssn.tables
        known = {claim.key: claim for claim in tables.volume_claims.objs}
        self.volumes: list[PersistentVolume] = list(tables.volumes.objs)
        self.volume_row = {volume.name: row for row, volume in enumerate(self.volumes)}
        self.classes = {each.name: each for each in tables.storage_classes.objs}
        self.claims: list[PersistentVolumeClaim] = []
        self.of_task: dict[int, tuple[int, ...]] = {}
        self.missing: dict[int, str] = {}
        self._find(volume_tasks(ssn), known)
        self.users: list[list[int]] = [[] for _ in self.claims]
        for row, numbers in self.of_task.items():
            for number in numbers:
                self.users[number].append(row)
        count = len(self.claims)
        self.given: Column[AnyArray] = ssn.column("volumes.given", values=np.full(count, _NONE, dtype=np.int32))
        self.node: Column[AnyArray] = ssn.column("volumes.node", values=np.full(count, _NONE, dtype=np.int32))
        # No code reads this column. It makes memoized answers rest on the objects from which the ledger is made.
        made_of = [getattr(tables, name).version for name in ("volumes", "volume_claims", *_ABOUT_VOLUMES)]
        ssn.column("volumes.made_of", values=np.array(made_of))
        self._capacities: dict[str, list[CSIStorageCapacity]] = {}
        for each in tables.storage_capacities.objs:
            self._capacities.setdefault(each.class_name, []).append(each)
        self._facts: Derived = derived(ssn)
        # Volumes of one zone have equal terms, which are evaluated once.
        self._terms: dict[tuple[NodeSelectorTerm, ...], Bool] = {}

    def _find(self, rows: Iterable[int], known: dict[str, PersistentVolumeClaim]) -> None:
        """Find the claims of tasks."""
        place: dict[str, int] = {}
        for row in rows:
            pod, numbers = self.tables.tasks.pods[row], []
            for name in pod.spec.claim_names:
                claim = known.get(f"{pod.namespace}/{name}")
                if claim is None:
                    self.missing[row] = f'persistentvolumeclaim "{name}" not found'
                    continue
                if claim.key not in place:
                    place[claim.key] = len(self.claims)
                    self.claims.append(claim)
                numbers.append(place[claim.key])
            self.of_task[row] = tuple(numbers)

    # -- claims -------------------------------------------------------------------------------------------------------

    def problem(self, row: int) -> str:
        """Return why the task can be placed nowhere because of its claims, or ""."""
        if row in self.missing:
            return self.missing[row]
        for number in self.of_task.get(row, ()):
            claim = self.claims[number]
            # Its volume is about to go, so a pod that starts now would lose it.
            if claim.deleting:
                return f'persistentvolumeclaim "{claim.name}" is being deleted'
            if claim.lost:
                return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume}"'
            # A class that binds at once does so without a scheduler, so the pod must wait until that is done.
            if not claim.bound and not self.class_of(claim).waits:
                return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass:
        """Return the class of a claim. A class that does not exist counts as one that does not wait."""
        # As in Kubernetes, such a claim waits for a class that may still be created.
        return self.classes.get(claim.class_name) or StorageClass(claim.class_name)

    def volume_of(self, number: int) -> PersistentVolume | None:
        """Return the volume that a claim is bound to or promised, or None."""
        row = int(self.given.array[number])
        if row >= 0:
            return self.volumes[row]
        claim = self.claims[number]
        place = self.volume_row.get(claim.volume) if claim.bound else None
        return self.volumes[place] if place is not None else None

    def driver_of(self, number: int) -> tuple[str, str]:
        """Return the CSI driver of a claim and its name for the volume, both "" if unknown."""
        claim, volume = self.claims[number], self.volume_of(number)
        if volume is not None:
            return volume.driver, volume.handle
        provisioner = self.class_of(claim).provisioner
        # A volume that is not made yet has no handle; the claim identifies it, so that two pods of it count once.
        return ("", "") if provisioner == NO_PROVISIONER else (provisioner, claim.key)

    def is_in_place(self, row: int) -> bool:
        """Return True if a task is on its node or about to be."""
        return int(self.tables.tasks.status[row]) in _IN_PLACE

    def others_use_alone(self, row: int) -> bool:
        """Return True if another pod uses a claim that only one pod may use."""
        return any(
            ONCE_POD in self.claims[number].modes
            and any(other != row and self.is_in_place(other) for other in self.users[number])
            for number in self.of_task.get(row, ())
        )

    # -- where --------------------------------------------------------------------------------------------------------

    def selected(self, terms: tuple[NodeSelectorTerm, ...] | None) -> Bool:
        """Return the nodes that one of the terms selects, all if there are no terms. Shape (N,)."""
        if terms is None:
            return np.ones(len(self._facts), dtype=bool)
        found = self._terms.get(terms)
        if found is None:
            found = np.zeros(len(self._facts), dtype=bool)
            for term in terms:
                found |= node_term(self._facts, term)
            self._terms[terms] = found
        return found

    def makable(self, number: int) -> tuple[Bool, Bool]:
        """Return the nodes for which a volume can be provisioned if there is room, and those with room for it. Shapes
        (N,)."""
        claim = self.claims[number]
        of_class = self.class_of(claim)
        # A claim with a selector wants an existing volume, so none is provisioned for it.
        if of_class.provisioner in (NO_PROVISIONER, "") or claim.selector is not None:
            nothing = np.zeros(len(self._facts), dtype=bool)
            return nothing, nothing
        there = self.selected(of_class.nodes)
        capacities = self._capacities.get(of_class.name)
        # Without CSIStorageCapacity objects, a driver does not report its room, and any amount counts as possible.
        if capacities is None:
            return there, there
        room = np.zeros(len(there), dtype=bool)
        for each in capacities:
            # The capacity is the sum of what is free, of which one volume may not be able to take all.
            most = each.capacity if each.largest is None else each.largest
            if each.nodes is not None and most >= claim.size:
                labels = (matches(each.nodes, node.labels) for node in self._facts.facts.objs)
                room |= np.fromiter(labels, dtype=bool, count=len(room))
        return there, there & room

    def free_volumes(self, claim: PersistentVolumeClaim) -> list[int]:
        """Return the volumes that can be bound to a claim, the smallest first."""
        promised = set(self.given.array[self.given.array >= 0].tolist())
        found = [row for row, volume in enumerate(self.volumes) if row not in promised and _suits(volume, claim)]
        # Volumes that are reserved for this claim go first, whatever their size.
        return sorted(found, key=lambda row: (not self.volumes[row].claim, self.volumes[row].size, row))

    def waiting(self, row: int) -> list[int]:
        """Return the claims of a task without a volume and without a promise."""
        return [
            number
            for number in self.of_task.get(row, ())
            if not self.claims[number].bound and self.given.array[number] == _NONE
        ]

    # -- moves --------------------------------------------------------------------------------------------------------

    def placed(self, run: TaskRun) -> Refusal | None:
        """Promise volumes, or a node to provision them for, to the claims of tasks that were placed. Return a refusal
        if they are not available."""
        for row, node in zip(run.rows, run.nodes, strict=True):
            # Asked again here: another task of the same gang may have been placed since the filter.
            if self.others_use_alone(row):
                return _NOT_THERE
            for number in self.waiting(row):
                volume = self._choose(number, node)
                if volume is None:
                    return _NOT_THERE
                self.ssn.journal.put(self.given, number, volume)
                self.ssn.journal.put(self.node, number, node)
        return None

    def _choose(self, number: int, node: int) -> int | None:
        """Return the volume for a claim on a node, or None."""
        for row in self.free_volumes(self.claims[number]):
            if self.selected(self.volumes[row].nodes)[node]:
                return row
        return _MADE if self.makable(number)[1][node] else None

    def left(self, run: TaskRun) -> None:
        """Release what was promised only for tasks that left their nodes."""
        for row in run.rows:
            for number in self.of_task.get(row, ()):
                # Only promises of this session: a claim that was bound before keeps its volume whatever its pods do.
                others = (other for other in self.users[number] if other != row)
                if self.given.array[number] != _NONE and not any(self._keeps(other) for other in others):
                    self.ssn.journal.put(self.given, number, _NONE)
                    self.ssn.journal.put(self.node, number, _NONE)

    def _keeps(self, row: int) -> bool:
        return self.is_in_place(row) or self.tables.tasks.status[row] == TaskStatus.PIPELINED

    def attached(self) -> tuple[I32, list[tuple[str, str]]]:
        """Return (node, driver and volume) of every attached volume, each once. Shapes (P,), P."""
        nodes, what, seen = [], [], set()
        tasks = self.tables.tasks
        for row, numbers in self.of_task.items():
            if self.is_in_place(row):
                for number in numbers:
                    # Two pods of one claim on a node attach its volume once.
                    pair = (int(tasks.node[row]), self.driver_of(number))
                    if pair[0] >= 0 and pair[1][0] and pair not in seen:
                        seen.add(pair)
                        nodes.append(pair[0])
                        what.append(pair[1])
        return np.array(nodes, dtype=np.int32), what

    def grants(self, row: int, node: int) -> tuple[VolumeGrant, ...]:
        """Return what must be written to the claims of a task before it is bound to a node."""
        name = self.tables.nodes.facts.names[node]
        found = []
        for number in self.of_task.get(row, ()):
            given, claim = int(self.given.array[number]), self.claims[number]
            if given != _NONE:
                found.append(VolumeGrant(claim.key, claim.uid, self.volumes[given].name if given >= 0 else "", name))
        return tuple(found)


_ABOUT_VOLUMES = ("storage_classes", "csi_nodes", "storage_capacities")


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return True if a volume can be bound to a claim, regardless of nodes. Source: kube-controller-manager
    FindMatchingVolume."""
    # A volume that names a claim is reserved for it: for the one with the same UID, if it names one.
    if volume.claim:
        return volume.available and volume.claim == claim.key and volume.claim_uid in ("", claim.uid)
    return (
        volume.available
        and volume.class_name == claim.class_name
        and volume.volume_mode == claim.volume_mode
        and volume.size >= claim.size
        and set(claim.modes) <= set(volume.modes)
        and (not claim.volume or claim.volume == volume.name)
        and (claim.selector is None or matches(claim.selector, volume.labels))
    )


def volume_ledger(ssn: Session) -> VolumeLedger:
    """Return the ledger of the session. It must first be asked for while a plugin opens."""
    return ssn.shared(VolumeLedger, lambda: VolumeLedger(ssn))
