"""Claims for the extended resources of pods: what such a claim asks for depends on the node.

A node that has a resource by itself, from a device plugin, gives it without a claim. So nodes are divided into kinds by
what they offer by devices, and a claim has one form for each kind. Source: KEP-5004.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from pumice.columns.dtypes import I64
from pumice.columns.tables import Tables
from pumice.model.devices.claims import ResourceClaim
from pumice.model.devices.extended import UNMADE, ExtendedRequests, backing_classes, extended_requests
from pumice.model.pod import Pod


class ExtendedClaims:
    """The forms of claims for extended resources. ``kind_of`` (N,): the kind of each node; ``kinds``: their number."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        facts = tables.nodes.facts
        columns = facts.device_columns
        kinds, self.kind_of = _kinds(facts.by_devices[:, columns] > 0)
        classes = backing_classes(tables.device_classes.objs)
        names = [facts.axis.names[column] for column in columns.tolist()]
        # By kind: pairs of a resource that its nodes offer by devices, and the device class.
        self._backed = [
            tuple((name, classes[name].name) for name, there in zip(names, kind, strict=True) if there)
            for kind in kinds
        ]
        self._requests: dict[tuple[int, int], ExtendedRequests] = {}
        self._forms: dict[tuple[str, int, int], ResourceClaim] = {}

    @property
    def kinds(self) -> int:
        return len(self._backed)

    def requests(self, row: int, kind: int) -> ExtendedRequests:
        """Return what the claim of a task asks for on nodes of a kind."""
        key = int(self._tables.tasks.cls[row]), kind
        found = self._requests.get(key)
        if found is None:
            spec = self._tables.classes.specs[key[0]]
            found = self._requests[key] = extended_requests(spec, self._backed[kind])
        return found

    def form(self, claim: ResourceClaim, row: int, kind: int) -> ResourceClaim:
        """Return the claim of a task as it is on nodes of a kind. Without requests: it needs no devices there."""
        # Equal for all tasks of a class in a namespace, so that equal questions are one.
        key = claim.namespace, int(self._tables.tasks.cls[row]), kind
        found = self._forms.get(key)
        if found is None:
            asked = self.requests(row, kind).requests
            found = self._forms[key] = replace(claim, requests=asked, allocation=None)
        return found


def unmade_claim(pod: Pod) -> ResourceClaim:
    """Return the claim that will be made for the extended resources of a pod."""
    return ResourceClaim(pod.namespace, f"{pod.name}/{UNMADE}", for_pod=pod.uid)


def _kinds(offered: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> tuple[list[list[bool]], I64]:
    """Return the distinct rows, and the index of each row's. Shape (N,)."""
    known: dict[tuple[bool, ...], int] = {}
    which = [known.setdefault(tuple(row), len(known)) for row in offered.tolist()]
    return [list(kind) for kind in known], np.array(which, dtype=np.int64)
