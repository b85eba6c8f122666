"""Small clusters for tests of filters and scores: objects with defaults, and a session opened on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.framework.plugin import points
from pumice.framework.plugin.policy_file import read_policy
from pumice.model.decisions import Decision
from pumice.model.events import Seen
from pumice.model.node import Node, NodeImage, Taint
from pumice.model.pod import GROUP_NAME_ANNOTATION, NO_AFFINITY, Affinity, Pod, PodSpec
from pumice.model.queue import Queue
from pumice.model.resources import Resource
from pumice.model.workloads.podgroup import PodGroup
from pumice.state.store import Store
from pumice.volcano.table import volcano_registry

GIB = 1024.0**3
HOST, ZONE = "kubernetes.io/hostname", "zone"


def node(
    name: str,
    cpu: float = 8000.0,
    memory: float = 16 * GIB,
    pods: int = 110,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    unschedulable: bool = False,
    images: Iterable[NodeImage] = (),
    scalars: Mapping[str, float] | None = None,
) -> Node:
    """A node with its own name as hostname label."""
    allocatable = Resource(cpu, memory, {"pods": float(pods), **(scalars or {})}, pods)
    return Node(
        name,
        allocatable,
        labels={HOST: name, **(labels or {})},
        taints=tuple(taints),
        unschedulable=unschedulable,
        images=tuple(images),
    )


def spec(
    cpu: float = 1000.0, memory: float = GIB, *, scalars: Mapping[str, float] | None = None, **more: Any
) -> PodSpec:
    """A spec of one container; ``affinity`` may be given by the fields of Affinity."""
    request = Resource(cpu, memory, {"pods": 1.0, **(scalars or {})})
    fields = {f: more.pop(f) for f in tuple(more) if f in Affinity.__struct_fields__}
    more.setdefault("nonzero_milli_cpu", cpu or 100.0)
    more.setdefault("nonzero_memory", memory or 200.0 * 1024 * 1024)
    return PodSpec(request, affinity=Affinity(**fields) if fields else NO_AFFINITY, **more)


def pod(name: str, on: str = "", *, labels: Mapping[str, str] | None = None, ns: str = "ns", **more: Any) -> Pod:
    """A pod of group ``<ns>/g``: Running on a node, or Pending. What is no field of Pod goes into its spec."""
    own = {f: more.pop(f) for f in ("deletion", "annotations", "creation") if f in more}
    given = more.pop("spec", None) or spec(**more)
    annotations = {GROUP_NAME_ANNOTATION: "g", **own.pop("annotations", {})}
    phase = "Running" if on else "Pending"
    return Pod(
        ns, name, f"{ns}-{name}", given, labels=labels or {}, annotations=annotations, node_name=on, phase=phase, **own
    )


class Accepting:
    """A planner that takes everything."""

    def submit(self, decision: Decision) -> None:
        return None


class Cluster:
    """A session with some plugins over nodes and pods, and short ways to put questions to them."""

    def __init__(self, nodes: Iterable[Node], pods: Iterable[Pod], *plugins: str, **arguments: Any) -> None:
        store = Store()
        pods = list(pods)
        for queue in ("default", "root"):
            store.apply(Seen(Queue(queue)))
        for ns in sorted({p.namespace for p in pods}):
            store.apply(Seen(PodGroup(ns, "g", f"{ns}-g", min_member=1, queue="default")))
        for obj in (*nodes, *pods):
            store.apply(Seen(obj))
        listed = [{"name": name, "arguments": arguments if name == plugins[0] else {}} for name in plugins]
        conf = {"actions": "allocate", "tiers": [{"plugins": listed}]}
        snapshot = store.snapshot()
        self.ssn = Session(snapshot, read_policy(conf, volcano_registry()), 0.0, Accepting(), Memo())
        self.ssn.open()
        self.tables = self.ssn.tables
        tasks = self.tables.tasks
        self.row_of = {tasks.pods[row].name: row for row in np.flatnonzero(tasks.alive).tolist()}
        self.node_of = self.tables.nodes.facts.row_of
        self.names = self.tables.nodes.facts.names

    def plugin(self, name: str) -> Any:
        return self.ssn.hooks.plugin(name)

    def task(self, name: str) -> Task:
        return Task(self.tables, self.row_of[name])

    def rows(self, *names: str) -> NodeRows:
        """Some nodes, or all."""
        return NodeRows(self.tables, np.array([self.node_of[n] for n in names or self.names], dtype=np.int64))

    def place(self, name: str, on: str) -> None:
        """Allocate a pending pod, and leave it."""
        stmt = self.ssn.statement()
        assert stmt.allocate([self.row_of[name]], [self.node_of[on]]) is None
        stmt.keep_uncommitted()

    def reasons(self, name: str, *nodes: str) -> dict[str, list[str]]:
        """What all filters say against each node, for nodes with any reason."""
        task, rows = self.task(name), self.rows(*nodes)
        filter_results = self.ssn.ask(points.class_filters, task.cls, rows) + self.ssn.ask(
            points.task_filters, task, rows
        )
        found: dict[str, list[str]] = {}
        for filter_result in filter_results:
            for row, code in zip(rows.rows.tolist(), filter_result.codes.tolist(), strict=True):
                if code:
                    found.setdefault(self.names[row], []).extend(unfit.reason for unfit in filter_result.why[code])
        return found

    def scores(self, name: str, *nodes: str) -> dict[str, float]:
        """Sum of all scores for each candidate."""
        task, rows = self.task(name), self.rows(*nodes)
        total = self.ssn.ask(points.task_scores, task, rows, self.ssn.ask(points.class_scores, task.cls, rows))
        return dict(
            zip([self.names[r] for r in rows.rows.tolist()], np.broadcast_to(total, len(rows)).tolist(), strict=True)
        )
