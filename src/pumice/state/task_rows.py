"""Tasks in the columns: a row a pod that counts, booked in the state that events or decisions in flight give it.

Source: Volcano cache event handlers (which pods count, what an update in flight may not undo).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from operator import eq
from typing import Any

import numpy as np

from pumice.algorithms.groups import all_equal
from pumice.columns.column import Writer
from pumice.columns.counting import PENDING, RELEASING
from pumice.columns.dtypes import AnyArray
from pumice.columns.ledger import Ledger
from pumice.columns.placement import Placement
from pumice.columns.runs import TaskRun
from pumice.columns.tables import Tables
from pumice.model.decisions import Bind, Evict
from pumice.model.pod import Pod, PodSpec
from pumice.model.status import ALLOCATED_STATUSES, COMPLETED_STATUSES, TaskStatus, status_of_pod
from pumice.state.counted import Counted, RoleNumbers
from pumice.state.job_rows import JobKeeper
from pumice.state.task_fields import task_fields


class TaskKeeper:
    """Keeps task rows in step with pods. ``row_of`` maps ``namespace/name`` to the row."""

    def __init__(self, tables: Tables, writer: Writer, ledger: Ledger, jobs: JobKeeper, roles: RoleNumbers) -> None:
        self.row_of: dict[str, int] = {}
        self._tables, self._writer, self._ledger, self._jobs = tables, writer, ledger, jobs
        self._classes: Counted[PodSpec] = Counted(tables.classes.add, tables.classes.free_row)
        self._roles = roles

    # -- what is seen -------------------------------------------------------------------------------------------------

    def seen(self, pods: Mapping[str, Pod]) -> None:
        """Pods came or changed. What is equal is written together."""
        fresh: dict[Hashable, dict[str, Pod]] = {}
        moved: dict[Hashable, tuple[list[int], list[Pod]]] = {}
        others: list[tuple[int, Pod, TaskStatus | None]] = []
        for run in _runs(pods):
            known = {key: row for key, row in zip(run, map(self.row_of.get, run), strict=True) if row is not None}
            if len(known) < len(run):
                new = {key: pod for key, pod in run.items() if key not in known} if known else run
                fresh.setdefault(self._kind(next(iter(new.values()))), {}).update(new)
            if known:
                others += self._known_seen([*known.values()], [run[key] for key in known], moved)
        for rows, alike in moved.values():
            self._restate(rows, alike)
        for kind in fresh.values():
            self._file(kind)
        for other in others:  # last: a job that loses its only pod gives back its row, which kinds name
            self._refile(*other)

    def _known_seen(
        self, rows: list[int], pods: list[Pod], moved: dict[Hashable, tuple[list[int], list[Pod]]]
    ) -> list[tuple[int, Pod, TaskStatus | None]]:
        """Pods of one run were seen again: they are put where they are to be booked together. Returns those that must
        be filed anew, with the state that a decision in flight gives them."""
        tasks, own, others = self._tables.tasks, own_status(pods[0]), []
        same: list[int] = []  # places in the run
        due: dict[tuple[int, bool], list[int]] = {}  # likewise, by state, and whether they stay on their node
        states, stay = tasks.status[rows].tolist(), map(eq, tasks.node[rows].tolist(), self._places(pods))
        for i, (row, pod, state, stays) in enumerate(zip(rows, pods, states, stay, strict=True)):
            known = tasks.pods[row]
            assumed = known.uid == pod.uid and _stands(state, known, own)
            if not _same_terms(known, pod):
                others.append((row, pod, TaskStatus(state) if assumed else None))
                continue
            same.append(i)
            if not assumed:
                due.setdefault((state, stays), []).append(i)
        if same:
            tasks.write([rows[i] for i in same], pods=[pods[i] for i in same])
        for (_, stays), places in due.items():  # all else that is booked follows from terms that the run shares
            group = moved.setdefault((self._booked_of(rows[places[0]]), own, stays), ([], []))
            group[0].extend(rows[i] for i in places)
            group[1].extend(pods[i] for i in places)
        return others

    def _kind(self, pod: Pod) -> Hashable:
        """New pods of one kind differ in their names, nodes and times alone, as far as columns go."""
        return id(pod.spec), self._jobs.place_of(pod), pod.role, own_status(pod), *task_fields(pod)

    def _booked(self) -> tuple[AnyArray, ...]:
        """The state and what else is booked: tasks whose rows agree in these columns are booked together."""
        tasks = self._tables.tasks
        return tasks.status, tasks.cls, tasks.sub, tasks.gate, tasks.role

    def _booked_of(self, row: int) -> tuple[int, ...]:
        return tuple(int(column[row]) for column in self._booked())

    def _kinds_of(self, rows: list[int]) -> list[list[int]]:
        """Tasks in groups of which the same is booked, in the order of their first."""
        if len(rows) < 2:
            return [rows] if rows else []
        index = np.array(rows)
        booked = [column[index].tolist() for column in self._booked()]
        if all(map(all_equal, booked)):
            return [rows]  # a whole gang, mostly
        alike: dict[Hashable, list[int]] = {}
        for row, kind in zip(rows, zip(*booked, strict=True), strict=True):
            alike.setdefault(kind, []).append(row)
        return list(alike.values())

    def _restate(self, rows: list[int], pods: Sequence[Pod]) -> None:
        """Book tasks, of one kind and state, as their pods are now."""
        tasks, status = self._tables.tasks, own_status(pods[0])
        if self._places(pods[:1])[0] != tasks.node[rows[0]]:
            self._leave(rows)
            tasks.write(rows, **self._state(pods))
            self._enter(rows)
            return
        nominated = self._nominations(pods)
        if (tasks.nominated[rows] != nominated).any():
            tasks.write(rows, nominated=nominated)
        if tasks.status[rows[0]] != status:
            self._ledger.shift(rows, status)

    def _refile(self, row: int, pod: Pod, assumed: TaskStatus | None) -> None:
        """The pod is another one, or of another kind. ``assumed``: the decision in flight that stands."""
        at = self.node_name(row)
        self.gone([pod.key])
        self._file({pod.key: pod})
        if assumed is not None:
            self._assume([self.row_of[pod.key]], assumed, [at])

    def _file(self, by_key: Mapping[str, Pod]) -> None:
        """Give new pods of one kind their rows, under their class and job."""
        tables, pods, count = self._tables, list(by_key.values()), len(by_key)
        first = pods[0]
        cls = self._classes.take(first.spec, count)
        job, sub = self._jobs.place_of(first)
        priority, gate, asks_queue, preemptable = task_fields(first)
        rows = tables.tasks.new_rows(
            count,
            pods=pods if count > 1 else first,
            creation=[pod.creation for pod in pods] if count > 1 else first.creation,
            cls=cls,
            role=self._roles.take(first.role, count),
            best_effort=tables.classes.best_effort[cls],
            job=job,
            sub=sub,
            priority=priority,
            gate=gate,
            asks_queue=asks_queue,
            preemptable=preemptable,
            **self._state(pods),
        )
        self.row_of.update(zip(by_key, rows, strict=True))
        if job >= 0:
            self._jobs.add_tasks(rows)
        self._enter(rows)

    def gone(self, keys: Iterable[str]) -> None:
        """Pods are not there any more."""
        tasks = self._tables.tasks
        there = [row for key in keys if (row := self.row_of.pop(key, None)) is not None]
        for rows in self._kinds_of(there):
            self._leave(rows)
            self._jobs.remove_tasks(rows)
            self._classes.give_back(int(tasks.cls[rows[0]]), len(rows))
            self._roles.give_back(int(tasks.role[rows[0]]), len(rows))
            tasks.free_rows(rows)

    def _state(self, pods: Sequence[Pod]) -> dict[str, Any]:
        """The moving columns as pods, equal but for their nodes, say."""
        nodes = _one_or_all(self._places(pods)) if pods[0].node_name else -1
        return {
            "status": int(own_status(pods[0])),
            "node": nodes,
            "view_node": nodes,
            "nominated": self._nominations(pods),
        }

    def _places(self, pods: Sequence[Pod]) -> list[int]:
        """The row of the node that each of equal pods takes room on, -1: none."""
        if not pods[0].node_name or own_status(pods[0]) in COMPLETED_STATUSES:
            return [-1] * len(pods)
        row_of = self._tables.nodes.facts.row_of
        return [row_of.get(pod.node_name, -1) for pod in pods]

    def _nominations(self, pods: Sequence[Pod]) -> Any:
        if not any(pod.nominated_node for pod in pods):
            return -1
        row_of = self._tables.nodes.facts.row_of
        return _one_or_all([row_of.get(pod.nominated_node, -1) if pod.nominated_node else -1 for pod in pods])

    def _enter(self, rows: Sequence[int]) -> None:
        """Put equal tasks into the books, as their rows say."""
        self._ledger.enter(rows)
        self._view(rows, 1.0)

    def _leave(self, rows: Sequence[int]) -> None:
        """Take equal tasks out of the books."""
        self._ledger.leave(rows)
        self._view(rows, -1.0)

    def _view(self, rows: Sequence[int], sign: float) -> None:
        """The same in kube-scheduler's view of the nodes: every pod that is on one, in whatever state."""
        tables = self._tables
        if tables.tasks.status[rows[0]] == PENDING:  # on no node
            return
        run = TaskRun.on_nodes(tables, rows, tables.tasks.view_node[list(rows)])
        if run:
            nodes, amounts = run.by_node(tables.classes.steps)
            self._writer.add(tables.nodes["view"], nodes, sign * amounts)
            self._bar(run, int(sign))

    def _bar(self, run: TaskRun, change: int) -> None:
        """The same for how many pods bar their node: those that may hold more of it than could be read."""
        pods = self._tables.tasks.pods
        for row, node in zip(run.rows, run.nodes, strict=True):
            if pods[row].closes_node:
                self._writer.add(self._tables.nodes["barred_by"], node, change)

    # -- decisions in flight ------------------------------------------------------------------------------------------

    def assume(self, decisions: Sequence[Bind | Evict]) -> None:
        """Count decisions that were sent as if they had happened; nothing to do where events were faster."""
        tasks, row_of = self._tables.tasks, self.row_of
        pods = tasks.pods
        sent: dict[type[Bind | Evict], dict[int, str]] = {}  # by row, the node
        for decision in decisions:
            row = row_of.get(decision.pod)
            if row is not None and pods[row].uid == decision.uid:
                sent.setdefault(type(decision), {})[row] = decision.node
        for kind, nodes in sent.items():
            status = TaskStatus.BINDING if kind is Bind else TaskStatus.RELEASING
            rows = list(nodes)
            is_now = tasks.status[rows]
            due = is_now == PENDING if kind is Bind else is_now != RELEASING
            rows = [row for row, is_due in zip(rows, due.tolist(), strict=True) if is_due]
            for alike in self._kinds_of(rows):
                self._assume(alike, status, [nodes[row] for row in alike])

    def _assume(self, rows: Sequence[int], status: TaskStatus, node_names: Sequence[str]) -> None:
        """Book equal tasks as they will be."""
        tasks, row_of = self._tables.tasks, self._tables.nodes.facts.row_of
        nodes = _one_or_all([row_of.get(name, -1) for name in node_names])
        index = rows if len(rows) > 1 else rows[0]
        if tasks.status[rows[0]] == PENDING:  # on no node so far
            tasks.write(index, node=nodes, view_node=nodes)
            self._ledger.shift(rows, status)
            self._view(rows, 1.0)
            return
        self._leave(rows)
        tasks.write(index, status=int(status), node=nodes, view_node=nodes)
        self._enter(rows)

    def undone(self, key: str, uid: str) -> None:
        """A decision was not carried out: the pod is again what was last seen of it."""
        row = self.row_of.get(key)
        if row is None:
            return
        tasks = self._tables.tasks
        if tasks.pods[row].uid == uid:
            self._restate([row], [tasks.pods[row]])

    def node_name(self, row: int) -> str:
        node = int(self._tables.tasks.node[row])
        return self._tables.nodes.facts.names[node] if node >= 0 else ""

    # -- other nodes --------------------------------------------------------------------------------------------------

    def rebook(self, old_names: Sequence[str]) -> None:
        """The tables have new nodes, with empty books; ``old_names`` were those of the rows that tasks name."""
        tables, tasks = self._tables, self._tables.tasks
        rows = np.fromiter(self.row_of.values(), dtype=np.int64, count=len(self.row_of))
        row_of = tables.nodes.facts.row_of
        now = np.array([*(row_of.get(name, -1) for name in old_names), -1], dtype=np.int32)
        nodes, nominated = now[tasks.node[rows]], np.full(len(rows), -1, dtype=np.int32)
        for i, row in enumerate(rows.tolist()):
            pod = tasks.pods[row]
            if pod.node_name and tasks.node[row] < 0:
                nodes[i] = self._places([pod])[0]
            if pod.nominated_node:
                nominated[i] = row_of.get(pod.nominated_node, -1)
        tasks.write(rows, node=nodes, view_node=nodes, nominated=nominated)
        there = rows[nodes >= 0]
        if len(there):
            self._ledger.rebook(there)
            view = np.zeros_like(tables.nodes.view)
            np.add.at(view, tasks.node[there], tables.classes.steps[tasks.cls[there]])
            self._writer.add(tables.nodes["view"], slice(None), view)
            self._bar(TaskRun(tables, Placement(there.tolist(), tasks.node[there].tolist())), 1)


def _one_or_all(values: list[int]) -> int | AnyArray:
    """What is written into a row, or into rows."""
    return np.array(values) if len(values) > 1 else values[0]


def own_status(pod: Pod) -> TaskStatus:
    """The state that the API server gives the pod."""
    return status_of_pod(pod.phase, node_name=pod.node_name, deleting=pod.deletion is not None)


def _runs(pods: Mapping[str, Pod]) -> Iterator[Mapping[str, Pod]]:
    """Pods, each with its neighbours that differ from it in their names, nodes and times alone."""
    run: dict[str, Pod] = {}
    first = None
    for key, pod in pods.items():
        if first is None or not _alike(first, pod):
            if run:
                yield run
            run, first = {}, pod
        run[key] = pod
    if run:
        yield run


def _alike(a: Pod, b: Pod) -> bool:
    return (
        a.spec is b.spec
        and a.annotations is b.annotations
        and a.labels is b.labels
        and a.phase == b.phase
        and (a.node_name == "") == (b.node_name == "")
        and (a.deletion is None) == (b.deletion is None)
        and a.gates == b.gates
        and a.closes_node == b.closes_node
        and a.stays == b.stays
        and a.namespace == b.namespace
    )


def _stands(status: int, known: Pod, own: TaskStatus) -> bool:
    """Whether a decision in flight, that put the task in this state, is neither confirmed nor overtaken by the pod that
    is in its ``own`` now."""
    if status == RELEASING:
        return own not in COMPLETED_STATUSES and TaskStatus.RELEASING not in (own, own_status(known))
    return status in ALLOCATED_STATUSES and own is TaskStatus.PENDING


def _same_terms(known: Pod, pod: Pod) -> bool:
    """Whether it is the same pod, and nothing has changed that its row or its job's were filled from."""
    return (
        known.uid == pod.uid
        and known.spec is pod.spec
        and (known.labels is pod.labels or known.labels == pod.labels)
        and (known.annotations is pod.annotations or known.annotations == pod.annotations)
        and known.gates == pod.gates
        and known.closes_node == pod.closes_node
        and known.stays == pod.stays
    )
