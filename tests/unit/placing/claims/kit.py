"""Two nodes, a class of devices, and pods that claim some."""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.model.decisions import CLAIMS
from pumice.model.devices.claims import DeviceClass, DeviceOption, DeviceRequest, ResourceClaim, SameAttribute
from pumice.model.pod import NodeSelectorTerm, Pod, Requirement
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, run, session

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]"
GPU = DeviceClass("gpu.com")


def on(name: str) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", (name,)),)),)


def claiming(name: str, *claims: str, **more: Any) -> Pod:
    return pod(name, name, resource_claims=claims, **more)


def world(*objects: Any, names: str = "a") -> Store:
    groups = [podgroup(name, 1, phase="Inqueue", creation=float(i)) for i, name in enumerate(names)]
    return cluster(node("n1"), node("n2"), GPU, *objects, groups)


def binds(store: Store) -> dict[str, str]:
    return dict(run(store, CONF).binds)


def given(store: Store) -> dict[str, Any]:
    """What each claim was given, by name."""
    found = {}
    for bind in run(store, CONF).decisions:
        for grant in bind.context[CLAIMS]:
            found[grant.claim] = grant.allocation and [(e.pool, e.device) for e in grant.allocation.devices]
    return found


def asking(*requests: DeviceRequest, same: tuple[SameAttribute, ...] = ()) -> ResourceClaim:
    return ResourceClaim("ns", "c", requests, same)


def one(name: str = "r", *selectors: str, **more: Any) -> DeviceRequest:
    return DeviceRequest(name, (DeviceOption("gpu.com", selectors=selectors, **more),))


def opened(store: Store) -> Session:
    """A session under the policy."""
    return session(store, CONF)


def task(ssn: Session, name: str) -> Task:
    """The task of a pod."""
    rows = (row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.name == name)
    return Task(ssn.tables, next(rows))


def nodes(ssn: Session) -> NodeRows:
    """All nodes: n1, n2."""
    return NodeRows(ssn.tables, np.arange(len(ssn.tables.nodes.facts)))
