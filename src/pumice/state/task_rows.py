"""Tasks in the columns: a row a pod that counts, booked in the state that events or decisions in flight give it.

Source: Volcano cache event handlers (which pods count, what an update in flight may not undo).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pumice.columns.column import Writer
from pumice.columns.counting import PENDING, RELEASING
from pumice.columns.dtypes import AnyArray
from pumice.columns.ledger import Ledger
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
        moved: dict[Hashable, list[Pod]] = {}
        others: list[tuple[int, Pod, TaskStatus | None]] = []
        tasks = self._tables.tasks
        for key, pod in pods.items():
            row = self.row_of.get(key)
            if row is None:
                fresh.setdefault(self._kind(pod), {})[key] = pod
                continue
            known, status = tasks.pods[row], TaskStatus(int(tasks.status[row]))
            assumed = known.uid == pod.uid and _stands(status, known, pod)
            if not _same_terms(known, pod):
                others.append((row, pod, status if assumed else None))
                continue
            tasks.write(row, pods=pod)
            if not assumed:
                stays = self._where(pod) == tasks.node[row]
                moved.setdefault((self._present(row), own_status(pod), stays), []).append(pod)
        for alike in moved.values():
            self._restate(alike)
        for kind in fresh.values():
            self._file(kind)
        for other in others:  # last: a job that loses its only pod gives back its row, which kinds name
            self._refile(*other)

    def _kind(self, pod: Pod) -> Hashable:
        """New pods of one kind differ in their names, nodes and times alone, as far as columns go."""
        return id(pod.spec), self._jobs.place_of(pod), pod.role, own_status(pod), *task_fields(pod)

    def _present(self, row: int) -> Hashable:
        """Tasks whose rows agree in this are booked together."""
        tasks = self._tables.tasks
        return tasks.status[row], tasks.cls[row], tasks.sub[row], tasks.gate[row]

    def _restate(self, pods: Sequence[Pod]) -> None:
        """Book tasks, of one kind and state, as their pods are now."""
        tasks, rows, status = self._tables.tasks, [self.row_of[pod.key] for pod in pods], own_status(pods[0])
        if self._where(pods[0]) != tasks.node[rows[0]]:
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
        priority, gate, preemptable = task_fields(first)
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
        alike: dict[Hashable, list[int]] = {}
        for key in keys:
            row = self.row_of.pop(key, None)
            if row is not None:
                alike.setdefault((self._present(row), tasks.role[row]), []).append(row)
        for rows in alike.values():
            self._leave(rows)
            self._jobs.remove_tasks(rows)
            self._classes.give_back(int(tasks.cls[rows[0]]), len(rows))
            self._roles.give_back(int(tasks.role[rows[0]]), len(rows))
            tasks.free_rows(rows)

    def _state(self, pods: Sequence[Pod]) -> dict[str, Any]:
        """The moving columns as pods, equal but for their nodes, say."""
        nodes = _one_or_all([self._where(pod) for pod in pods]) if pods[0].node_name else -1
        return {
            "status": int(own_status(pods[0])),
            "node": nodes,
            "view_node": nodes,
            "nominated": self._nominations(pods),
        }

    def _where(self, pod: Pod) -> int:
        """The row of the node that the pod takes room on, -1: none."""
        if not pod.node_name or own_status(pod) in COMPLETED_STATUSES:
            return -1
        return self._tables.nodes.facts.row_of.get(pod.node_name, -1)

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
        run = TaskRun.on_nodes(tables, rows, tables.tasks.view_node[list(rows)])
        if run:
            nodes, amounts = run.by_node(tables.classes.steps)
            self._writer.add(tables.nodes["view"], nodes, sign * amounts)

    # -- decisions in flight ------------------------------------------------------------------------------------------

    def assume(self, decisions: Sequence[Bind | Evict]) -> None:
        """Count decisions that were sent as if they had happened; nothing to do where events were faster."""
        tasks = self._tables.tasks
        alike: dict[tuple[bool, Hashable], list[tuple[int, str]]] = {}
        for decision in decisions:
            row = self.row_of.get(decision.pod)
            if row is None or tasks.pods[row].uid != decision.uid:
                continue
            bind = isinstance(decision, Bind)
            if tasks.status[row] == PENDING if bind else tasks.status[row] != RELEASING:
                alike.setdefault((bind, self._present(row)), []).append((row, decision.node))
        for (bind, _), moved in alike.items():
            status = TaskStatus.BINDING if bind else TaskStatus.RELEASING
            self._assume([row for row, _ in moved], status, [node for _, node in moved])

    def _assume(self, rows: Sequence[int], status: TaskStatus, node_names: Sequence[str]) -> None:
        """Book equal tasks as they will be."""
        row_of = self._tables.nodes.facts.row_of
        nodes = [row_of.get(name, -1) for name in node_names]
        self._leave(rows)
        self._tables.tasks.write(rows, status=int(status), node=nodes, view_node=nodes)
        self._enter(rows)

    def undone(self, key: str, uid: str) -> None:
        """A decision was not carried out: the pod is again what was last seen of it."""
        row = self.row_of.get(key)
        if row is None:
            return
        tasks = self._tables.tasks
        if tasks.pods[row].uid == uid:
            self._restate([tasks.pods[row]])

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
                nodes[i] = self._where(pod)
            if pod.nominated_node:
                nominated[i] = row_of.get(pod.nominated_node, -1)
        tasks.write(rows, node=nodes, view_node=nodes, nominated=nominated)
        there = rows[nodes >= 0]
        if len(there):
            self._ledger.rebook(there)
            view = np.zeros_like(tables.nodes.view)
            np.add.at(view, tasks.node[there], tables.classes.steps[tasks.cls[there]])
            self._writer.add(tables.nodes["view"], slice(None), view)


def _one_or_all(values: list[int]) -> int | AnyArray:
    """What is written into a row, or into rows."""
    return np.array(values) if len(values) > 1 else values[0]


def own_status(pod: Pod) -> TaskStatus:
    """The state that the API server gives the pod."""
    return status_of_pod(pod.phase, node_name=pod.node_name, deleting=pod.deletion is not None)


def _stands(status: TaskStatus, known: Pod, pod: Pod) -> bool:
    """Whether a decision in flight, that put the task in this state, is neither confirmed nor overtaken by ``pod``."""
    own = own_status(pod)
    if status is TaskStatus.RELEASING:
        return own not in COMPLETED_STATUSES and TaskStatus.RELEASING not in (own, own_status(known))
    return status in ALLOCATED_STATUSES and own is TaskStatus.PENDING


def _same_terms(known: Pod, pod: Pod) -> bool:
    """Whether it is the same pod, and nothing has changed that its row or its job's were filled from."""
    return (
        known.uid == pod.uid
        and known.spec is pod.spec
        and known.labels == pod.labels
        and known.annotations == pod.annotations
        and known.gates == pod.gates
    )
