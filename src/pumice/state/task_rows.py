"""Task rows: one for each pod, in the state that events and decisions in flight give it.

Pods that are equal for the scheduler are written together: a job of 1,000 pods costs a few NumPy calls, and not 1,000
times the price of one pod.
Source: Volcano cache event handlers (which pods count, and which updates do not undo a decision in flight).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np

from pumice.algorithms.groups import all_equal, of_equal
from pumice.algorithms.sums import sums_by
from pumice.columns.column import Writer
from pumice.columns.counting import PENDING, RELEASING
from pumice.columns.dtypes import AnyArray
from pumice.columns.ledger import Ledger
from pumice.columns.runs import TaskRun
from pumice.columns.tables import Tables
from pumice.model.decisions import Bind, Evict
from pumice.model.pod import Pod, PodSpec
from pumice.model.status import ALLOCATED_STATUSES, COMPLETED_STATUSES, TaskStatus, status_of_pod
from pumice.state.job_rows import JobKeeper
from pumice.state.shared_rows import RoleNumbers, SharedRows
from pumice.state.task_fields import task_fields


class TaskKeeper:
    """Keeps task rows up to date with pods. ``row_of`` maps ``namespace/name`` to the row."""

    def __init__(self, tables: Tables, writer: Writer, ledger: Ledger, jobs: JobKeeper, roles: RoleNumbers) -> None:
        self.row_of: dict[str, int] = {}
        self._tables, self._writer, self._ledger, self._jobs = tables, writer, ledger, jobs
        self._classes: SharedRows[PodSpec] = SharedRows(tables.classes.add, tables.classes.free_row)
        self._roles = roles

    # -- events -------------------------------------------------------------------------------------------------------

    def seen(self, runs: Iterable[Mapping[str, Pod]]) -> None:
        """Take in new and changed pods, given in runs (``runs_of``)."""
        # Runs of one kind are put together before anything is written: pods of two jobs may arrive alternately.
        fresh: dict[Hashable, dict[str, Pod]] = {}
        moved: dict[Hashable, tuple[list[int], list[Pod]]] = {}
        others: list[tuple[int, Pod, TaskStatus | None]] = []
        for run in runs:
            known, new = self._split(run)
            if new:
                fresh.setdefault(self._kind(next(iter(new.values()))), {}).update(new)
            if known:
                others += self._known_seen([self.row_of[key] for key in known], list(known.values()), moved)
        for rows, equal in moved.values():
            self._update(rows, equal)
        for kind in fresh.values():
            self._add(kind)
        # Last: a job that loses its only pod frees its row, and the kinds above refer to rows of jobs.
        for other in others:
            self._replace(*other)

    def _split(self, run: Mapping[str, Pod]) -> tuple[Mapping[str, Pod], Mapping[str, Pod]]:
        """Split pods into those that have rows and those that do not."""
        # Nearly always all have rows or none has, which two set operations in C find out.
        row_of = self.row_of
        if row_of.keys().isdisjoint(run):
            return {}, run
        if run.keys() <= row_of.keys():
            return run, {}
        known = {key: pod for key, pod in run.items() if key in row_of}
        return known, {key: pod for key, pod in run.items() if key not in row_of}

    def _known_seen(
        self, rows: list[int], pods: list[Pod], moved: dict[Hashable, tuple[list[int], list[Pod]]]
    ) -> list[tuple[int, Pod, TaskStatus | None]]:
        """Take in changed pods of one run. Those that only moved are added to ``moved``.

        Return those that need new rows, with the state that a decision in flight gives them.
        """
        tasks = self._tables.tasks
        before = [tasks.pods[row] for row in rows]
        same = list(map(_same_terms, before, pods))
        others = []
        if not all(same):
            others = [
                (row, pod, self._assumed(row, known, pod))
                for row, known, pod, is_same in zip(rows, before, pods, same, strict=True)
                if not is_same
            ]
            rows, before, pods = list(compress(rows, same)), list(compress(before, same)), list(compress(pods, same))
        if rows:
            self._same_seen(rows, before, pods, moved)
        return others

    def _assumed(self, row: int, known: Pod, pod: Pod) -> TaskStatus | None:
        """Return the state that a decision in flight gives a task after its pod has changed, or None."""
        state = TaskStatus(int(self._tables.tasks.status[row]))
        # A decision about a pod that was deleted and created again does not apply to the new one.
        holds = known.uid == pod.uid and _in_flight(state, own_status(pod), [known])[0]
        return state if holds else None

    def _same_seen(
        self, rows: list[int], before: list[Pod], pods: list[Pod], moved: dict[Hashable, tuple[list[int], list[Pod]]]
    ) -> None:
        """Take in changed pods of one run whose terms are the same, and add to ``moved`` those that moved."""
        # Left out are pods with a decision in flight. An event that was sent before the decision shows the pod as it
        # was, and taking it for the present state would free what the decision has taken.
        tasks, own, index = self._tables.tasks, own_status(pods[0]), np.array(rows)
        tasks.write(index, pods=_objects(pods))
        states, stay = tasks.status[index], tasks.node[index] == np.array(self._places(pods))
        # All else that sums depend on follows from terms that the pods of a run have in common.
        for equal in of_equal((states, stay)):
            places = equal.tolist()
            in_flight = _in_flight(int(states[places[0]]), own, [before[i] for i in places])
            due = [i for i, is_in_flight in zip(places, in_flight, strict=True) if not is_in_flight]
            if due:
                booked = self._booked_of(rows[due[0]])
                group = moved.setdefault((booked, own, bool(stay[due[0]])), ([], []))
                group[0].extend(rows[i] for i in due)
                group[1].extend(pods[i] for i in due)

    def _kind(self, pod: Pod) -> Hashable:
        """Return a key of new pods that are written together: in columns they differ in names, nodes and times only."""
        # The spec by id, which is enough: equal specs that are two objects are written in two steps, to the same class.
        return id(pod.spec), self._jobs.place_of(pod), pod.role, own_status(pod), *task_fields(pod)

    def _booked(self) -> tuple[AnyArray, ...]:
        """Return the columns that sums depend on: tasks with equal rows in all of them are moved together."""
        tasks = self._tables.tasks
        return tasks.status, tasks.cls, tasks.sub, tasks.gate, tasks.role

    def _booked_of(self, row: int) -> tuple[int, ...]:
        return tuple(int(column[row]) for column in self._booked())

    def _kinds_of(self, rows: list[int]) -> list[list[int]]:
        """Split tasks into groups that can be moved together, in the order of their first task."""
        if len(rows) < 2:
            return [rows] if rows else []
        index = np.array(rows)
        booked = [column[index].tolist() for column in self._booked()]
        # Mostly a whole gang, for which no groups have to be made.
        if all(map(all_equal, booked)):
            return [rows]
        equal: dict[Hashable, list[int]] = {}
        for row, kind in zip(rows, zip(*booked, strict=True), strict=True):
            equal.setdefault(kind, []).append(row)
        return list(equal.values())

    def _update(self, rows: list[int], pods: Sequence[Pod]) -> None:
        """Move tasks of one kind and state to the state and nodes of their pods."""
        tasks, status = self._tables.tasks, own_status(pods[0])
        if self._places(pods[:1])[0] != tasks.node[rows[0]]:
            self._leave(rows)
            tasks.write(rows, **self._state(pods))
            self._enter(rows)
            return
        # On the same node only the state changes, which costs one step in the ledger instead of two.
        nominated = self._nominations(pods)
        if (tasks.nominated[rows] != nominated).any():
            tasks.write(rows, nominated=nominated)
        if tasks.status[rows[0]] != status:
            self._ledger.shift(rows, status)

    def _replace(self, row: int, pod: Pod, assumed: TaskStatus | None) -> None:
        """Give a pod that is another one, or has other terms, a new row. ``assumed``: its state by a decision in
        flight."""
        at = self.node_name(row)
        self.gone([pod.key])
        self._add({pod.key: pod})
        if assumed is not None:
            self._assume([self.row_of[pod.key]], assumed, [at])

    def _add(self, by_key: Mapping[str, Pod]) -> None:
        """Add rows for new pods of one kind."""
        tables, pods, count = self._tables, list(by_key.values()), len(by_key)
        first = pods[0]
        cls = self._classes.take(first.spec, count)
        job, sub = self._jobs.place_of(first)
        priority, gate, asks_queue, preemptable = task_fields(first)
        rows = tables.tasks.new_rows(
            count,
            pods=_objects(pods) if count > 1 else first,
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
        """Remove pods that were deleted. Keys without a row are ignored."""
        tasks = self._tables.tasks
        there = [row for key in keys if (row := self.row_of.pop(key, None)) is not None]
        for rows in self._kinds_of(there):
            # Sums first: they are computed from the class, job and node in the rows.
            self._leave(rows)
            self._jobs.remove_tasks(rows)
            self._classes.give_back(int(tasks.cls[rows[0]]), len(rows))
            self._roles.give_back(int(tasks.role[rows[0]]), len(rows))
            tasks.free_rows(rows)

    def _state(self, pods: Sequence[Pod]) -> dict[str, Any]:
        """Return the values of the moving columns, from pods that are equal except for their nodes."""
        nodes = _one_or_all(self._places(pods)) if pods[0].node_name else -1
        return {
            "status": int(own_status(pods[0])),
            "node": nodes,
            "view_node": nodes,
            "nominated": self._nominations(pods),
        }

    def _places(self, pods: Sequence[Pod]) -> list[int]:
        """Return the row of the node on which each of some equal pods takes room, -1 for none."""
        # Pods that have ended keep their node name and take no room.
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
        """Add equal tasks to all sums."""
        self._view(self._ledger.enter(rows), 1)

    def _leave(self, rows: Sequence[int]) -> None:
        """Remove equal tasks from all sums."""
        self._view(self._ledger.leave(rows), -1)

    def _view(self, run: TaskRun | None, sign: int) -> None:
        """Add tasks to the view of kube-scheduler's plugins, or remove them (``sign`` -1)."""
        # A pod is in that view as long as it is on a node, in any state, so moves between states do not change it.
        if run is not None:
            nodes, amounts = run.by_node(self._tables.classes.steps)
            self._writer.add(self._tables.nodes["view"], nodes, sign * amounts)
            self._bar(run, sign)

    def _bar(self, run: TaskRun, change: int) -> None:
        """Count the pods that close their node to new tasks."""
        # A pod whose request could not be parsed may hold more of the node than is counted.
        pods = self._tables.tasks.pods
        for row, node in zip(run.rows, run.nodes, strict=True):
            if pods[row].closes_node:
                self._writer.add(self._tables.nodes["quarantined_by"], node, change)

    # -- decisions in flight ------------------------------------------------------------------------------------------

    def assume(self, decisions: Sequence[Bind | Evict]) -> None:
        """Count decisions that were sent as if they had been carried out, unless events came before."""
        tasks, row_of = self._tables.tasks, self.row_of
        pods = tasks.pods
        for kind in dict.fromkeys(map(type, decisions)):
            keys, uids, names, *_ = zip(*(each for each in decisions if type(each) is kind), strict=True)
            sent = zip(map(row_of.get, keys), uids, names, strict=True)
            nodes = {row: name for row, uid, name in sent if row is not None and pods[row].uid == uid}
            is_now = tasks.status[list(nodes)]
            # Other states mean that an event was faster, and what it shows is the truth.
            due = is_now == PENDING if kind is Bind else is_now != RELEASING
            status = TaskStatus.BINDING if kind is Bind else TaskStatus.RELEASING
            for equal in self._kinds_of(list(compress(nodes, due.tolist()))):
                self._assume(equal, status, [nodes[row] for row in equal])

    def _assume(self, rows: Sequence[int], status: TaskStatus, node_names: Sequence[str]) -> None:
        """Move equal tasks to the state and nodes that a decision gives them."""
        tasks, row_of = self._tables.tasks, self._tables.nodes.facts.row_of
        nodes = _one_or_all([row_of.get(name, -1) for name in node_names])
        index = rows if len(rows) > 1 else rows[0]
        # Pending tasks are on no node, so they need not be removed from one.
        if tasks.status[rows[0]] == PENDING:
            tasks.write(index, node=nodes, view_node=nodes)
            self._view(self._ledger.shift(rows, status), 1)
            return
        self._leave(rows)
        tasks.write(index, status=int(status), node=nodes, view_node=nodes)
        self._enter(rows)

    def undone(self, key: str, uid: str) -> None:
        """Undo a decision that was not carried out: the task has the state of its latest pod again."""
        row = self.row_of.get(key)
        if row is None:
            return
        tasks = self._tables.tasks
        if tasks.pods[row].uid == uid:
            self._update([row], [tasks.pods[row]])

    def node_name(self, row: int) -> str:
        """Return the name of a task's node, empty for none."""
        node = int(self._tables.tasks.node[row])
        return self._tables.nodes.facts.names[node] if node >= 0 else ""

    # -- new nodes ----------------------------------------------------------------------------------------------------

    def rebook(self, old_names: Sequence[str]) -> None:
        """Add all tasks to a new node table. ``old_names`` has the names of the rows that tasks refer to now."""
        tables, tasks = self._tables, self._tables.tasks
        rows = np.fromiter(self.row_of.values(), dtype=np.int64, count=len(self.row_of))
        row_of = tables.nodes.facts.row_of
        # The new row of each old one. The last element is for tasks without a node, whose row is -1.
        now = np.array([*(row_of.get(name, -1) for name in old_names), -1], dtype=np.int32)
        before = tasks.node[rows]
        nodes, nominated = now[before], np.full(len(rows), -1, dtype=np.int32)
        # One pass over all pods, since each change of a node comes through here.
        closing = list[int]()
        for i, (pod, was) in enumerate(zip(tasks["pods"].array[rows].tolist(), before.tolist(), strict=True)):
            # The pod was seen before its node. Tasks that have a row keep it: a decision in flight may have given it.
            if was < 0 and pod.node_name:
                nodes[i] = self._places([pod])[0]
            if pod.nominated_node:
                nominated[i] = row_of.get(pod.nominated_node, -1)
            if pod.closes_node:
                closing.append(i)
        tasks.write(rows, node=nodes, view_node=nodes, nominated=nominated)
        there = rows[nodes >= 0]
        if len(there):
            self._ledger.rebook(there)
            view = sums_by(tasks.node[there], tables.classes.steps[tasks.cls[there]], len(tables.nodes.facts))
            self._writer.add(tables.nodes["view"], slice(None), view)
        for node in nodes[closing].tolist():
            if node >= 0:
                self._writer.add(tables.nodes["quarantined_by"], node, 1)


def _one_or_all(values: list[int]) -> int | AnyArray:
    """Return a value for one row, or an array for several rows."""
    return np.array(values) if len(values) > 1 else values[0]


def _objects(values: Sequence[object]) -> AnyArray:
    """Return an array of Python values."""
    # ``np.array`` would look into each value for a sequence.
    return np.fromiter(values, dtype=np.object_, count=len(values))


def own_status(pod: Pod) -> TaskStatus:
    """Return the state of a pod as the API server has it, without decisions in flight."""
    return status_of_pod(pod.phase, node_name=pod.node_name, deleting=pod.deletion is not None)


def runs_of(pods: Mapping[str, Pod]) -> Iterator[Mapping[str, Pod]]:
    """Split pods, in their order, into runs whose pods differ in names, nodes and times only."""
    # All comparisons are in the loop: every event about a pod comes through here, and a call for each pod would double
    # the time. By identity where the decoder interns values: equal values that are two objects only start a new run.
    run: dict[str, Pod] = {}
    first = None
    for key, pod in pods.items():
        if first is None or not (
            pod.spec is first.spec
            and pod.annotations is first.annotations
            and pod.labels is first.labels
            and pod.phase == first.phase
            and (pod.node_name == "") == (first.node_name == "")
            and (pod.deletion is None) == (first.deletion is None)
            and pod.gates == first.gates
            and pod.closes_node == first.closes_node
            and pod.stays == first.stays
            and pod.namespace == first.namespace
        ):
            if run:
                yield run
            run, first = {}, pod
        run[key] = pod
    if run:
        yield run


def _in_flight(status: int, own: TaskStatus, known: Sequence[Pod]) -> list[bool]:
    """Return for each pod whether its task is in ``status`` by a decision that is still in flight.

    ``own`` is the state of the pods in the latest event, ``known`` are the pods before it.
    """
    # A bind is in flight until the pod has left pending, an eviction until the pod is being deleted or has ended. A
    # task whose pod was being deleted before was releasing by the pod itself, and not by a decision.
    if status != RELEASING:
        return [status in ALLOCATED_STATUSES and own is TaskStatus.PENDING] * len(known)
    if own in COMPLETED_STATUSES or own is TaskStatus.RELEASING:
        return [False] * len(known)
    return [own_status(pod) is not TaskStatus.RELEASING for pod in known]


def _same_terms(known: Pod, pod: Pod) -> bool:
    """Return True if it is the same pod, and no field changed from which its row or that of its job was filled."""
    return (
        known.uid == pod.uid
        and known.spec is pod.spec
        and (known.labels is pod.labels or known.labels == pod.labels)
        and (known.annotations is pod.annotations or known.annotations == pod.annotations)
        and known.gates == pod.gates
        and known.closes_node == pod.closes_node
        and known.stays == pod.stays
    )
