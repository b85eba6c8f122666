"""numa-aware: a pod with CPUs of its own goes where its node's kubelet would find them near to each other.

Source: Volcano numa-aware (spec 04 §14).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from pumice.api import (
    F64,
    HELD,
    ROWS,
    AnyArray,
    Bool,
    Code,
    FilterResult,
    NodeRows,
    Question,
    Session,
    Task,
    TaskClass,
    TaskRun,
    Unfit,
    plugin,
    points,
)
from pumice.framework.memo import ground
from pumice.model.devices.numa import NONE, NumaAsk, Numatopology
from pumice.volcano.topology.numa import Assigned, CpuSet, Machine, assigned

_STATIC = "static"
_SCORE_MAX = 100


class Place(NamedTuple):
    """A node with what its agent says: ``ids`` of its CPUs, in order; in columns they go by their place in it."""

    topology: Numatopology
    machine: Machine
    ids: tuple[int, ...]
    sign: float  # of all that the agent says: another one says something else


@plugin("numa-aware")
class NumaAware:
    """``weight`` of the score. Which policy a pod wants its annotation ``volcano.sh/numa-topology-policy`` says; only
    pods of quality Guaranteed have CPUs of their own.

    ``free`` (N, C): CPUs that no pod has for itself; ``taken`` (K, C): those of each of the K tasks that may have some.
    """

    def __init__(self, ssn: Session, *, weight: int = 1) -> None:
        self.ssn, self._weight = ssn, weight
        tables = ssn.tables
        rests_on = (tables.nodes.facts.version, *ground(tables.numas["objs"]))
        self._places: list[Place | None] = ssn.memo.get("numa.places", rests_on, lambda: _places(ssn))
        self._asks = [None if spec is None else spec.numa for spec in tables.classes.specs]
        self._width = max((len(place.ids) for place in self._places if place is not None), default=0)
        self._found: dict[tuple[int, bytes, NumaAsk, str], Assigned] = {}
        asks = np.array([ask is not None for ask in self._asks], dtype=bool)
        rows = np.flatnonzero(tables.tasks.alive)
        rows = rows[asks[tables.tasks.cls[rows]]] if len(asks) else rows[:0]
        self._index = {row: i for i, row in enumerate(rows.tolist())}
        free, taken, on = self._begin(rows)
        self.free = ssn.column("numa-aware.free", "node", self._width, values=free)
        signs = [0.0 if place is None else place.sign for place in self._places]
        ssn.column("numa-aware.agents", "node", values=np.array(signs, dtype=np.float64))
        self.taken = ssn.column("numa-aware.taken", values=taken)
        self.on = ssn.column("numa-aware.on", values=on)
        unused: tuple[Question, ...] = (points.predicate, points.batch_node_order)
        told: tuple[Question, ...] = (points.on_allocate, points.on_deallocate)
        self.unused_points = (*(() if len(rows) else unused), *(() if len(rows) and self._width else told))

    def _begin(self, rows: AnyArray) -> tuple[Bool, Bool, AnyArray]:
        """What is free as the session begins, and what tasks have that the agents do not know of yet, each as its
        kubelet would have given it, in order of creation."""
        tasks = self.ssn.tables.tasks
        free = np.zeros((len(self._places), self._width), dtype=bool)
        for node, place in enumerate(self._places):
            if place is not None:
                free[node, : len(place.ids)] = np.isin(place.ids, place.topology.free or ())
        taken, on = np.zeros((len(rows), self._width), dtype=bool), np.zeros(len(rows), dtype=np.int64)
        there = [row for row in rows.tolist() if tasks.node[row] >= 0 and HELD[tasks.status[row]]]
        for row in sorted(there, key=lambda row: (tasks.pods[row].creation, tasks.pods[row].uid)):
            node, pod = int(tasks.node[row]), tasks.pods[row]
            place, on[self._index[row]] = self._places[node], node + 1
            if place is not None and not is_listed(place.topology, pod.uid, pod.key):
                bits = self._bits(row, node, free[node])
                taken[self._index[row]] = bits
                free[node] &= ~bits
        return free, taken, on

    # -- what a kubelet would do --------------------------------------------------------------------------------------

    def _objection(self, ask: NumaAsk, node: int) -> tuple[str, str]:
        """(why a pod cannot be on the node whatever is free, the policy that counts there: empty for none)."""
        place = self._places[node]
        if not ask.policy:
            policy = place.topology.topology_policy if place is not None else ""
            if place is None or place.topology.cpu_policy != _STATIC or policy in ("", NONE):
                return "", ""
        elif place is None:
            return "numa info is empty", ""
        elif place.topology.cpu_policy != _STATIC:
            return "cpu manager policy isn't static", ""
        else:
            policy = place.topology.topology_policy
            if policy != ask.policy:
                return f"task topology policy[{ask.policy}] is different with node[{policy[:40]}]", ""
        if place.topology.free is None:
            return "no topo information", ""
        return ("", policy) if place.topology.free else ("cpu allocatable map is empty", "")

    def _assigned(self, ask: NumaAsk, node: int, policy: str, free: Bool) -> Assigned:
        """What the pod would get of what is free there; equal machines with equal CPUs free are looked at once."""
        place = self._places[node]
        assert place is not None
        key = id(place.machine), free.tobytes(), ask, policy
        found = self._found.get(key)
        if found is None:
            left = frozenset(cpu for cpu, is_free in zip(place.ids, free.tolist(), strict=False) if is_free)
            found = self._found[key] = assigned(place.machine, left, ask, policy)
        return found

    def _mask(self, node: int, cpus: CpuSet) -> Bool:
        """CPUs as a row of a column."""
        place = self._places[node]
        assert place is not None
        found = np.zeros(self._width, dtype=bool)
        found[: len(place.ids)] = np.isin(place.ids, list(cpus))
        return found

    def _bits(self, row: int, node: int, free: Bool) -> Bool:
        """The CPUs that a task gets on a node; none where it gets none of its own."""
        ask = self._asks[self.ssn.tables.tasks.cls[row]]
        objection, policy = self._objection(ask, node) if ask is not None else ("", "")
        if ask is None or objection or not policy:
            return np.zeros(self._width, dtype=bool)
        return self._mask(node, self._assigned(ask, node, policy, free).cpus)

    # -- hooks --------------------------------------------------------------------------------------------------------

    @points.predicate(reads=(ROWS,))
    def predicate(self, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        """Nodes whose kubelet would find CPUs for every container. Shape (rows,)."""
        ask = self._asks[cls.row]
        if ask is None:
            return None
        why: dict[Unfit, int] = {}
        codes = np.zeros(len(nodes), dtype=np.int32)
        free = nodes.read(self.free)
        more = np.zeros(len(nodes)) if nodes.further is None else nodes.further
        for i, node in enumerate(nodes.rows.tolist()):
            unfit = self._unfit(ask, node, free[i].astype(bool), int(more[i]))
            if unfit is not None:
                codes[i] = why.setdefault(unfit, len(why) + 1)
        return FilterResult(codes, ((), *((unfit,) for unfit in why))) if why else None

    def _unfit(self, ask: NumaAsk, node: int, free: Bool, further: int) -> Unfit | None:
        """What stands against one more such pod, after that many ``further`` ones."""
        objection, policy = self._objection(ask, node)
        if objection:
            return Unfit(objection, Code.ERROR)
        if not policy:
            return None
        for _ in range(further):
            free = free & ~self._mask(node, self._assigned(ask, node, policy, free).cpus)
        refused = self._assigned(ask, node, policy, free).refused
        return Unfit(f"container {refused} cannot be assigned by numa", Code.UNRESOLVABLE) if refused else None

    @points.batch_node_order(reads=(ROWS, "numa-aware.free"))
    def batch_node_order(self, task: Task, nodes: NodeRows) -> F64 | None:
        """The fewer NUMA nodes a pod that names a policy would be spread over, the better, among these. Shape
        (rows,)."""
        ask = self._asks[task.cls.row]
        if ask is None or not ask.policy:
            return None
        count = np.array([self._spread(ask, node) for node in nodes.rows.tolist()], dtype=np.int64)
        most = int(count.max(initial=0))
        scores: F64 = (_SCORE_MAX - (_SCORE_MAX * count // most if most else count)).astype(np.float64)
        return scores * self._weight

    def _spread(self, ask: NumaAsk, node: int) -> int:
        """Over how many NUMA nodes."""
        objection, policy = self._objection(ask, node)
        place = self._places[node]
        if objection or not policy or place is None:
            return 0
        cpus = self._assigned(ask, node, policy, self.free.array[node]).cpus
        return len({place.machine.at[cpu].numa for cpu in cpus})

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        """A task that comes back to its node gets the CPUs that it had."""
        for row, node in zip(run.rows, run.nodes, strict=True):
            index = self._index.get(row)
            if index is None or self._places[node] is None:
                continue
            free, bits = self.free.array[node], self.taken.array[index]
            if self.on.array[index] != node + 1 or (bits & ~free).any():
                bits = self._bits(row, node, free)
                self.ssn.journal.put(self.taken, index, bits)
                self.ssn.journal.put(self.on, index, node + 1)
            self.ssn.journal.put(self.free, node, free & ~bits)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        for row, node in zip(run.rows, run.nodes, strict=True):
            index = self._index.get(row)
            if index is not None and self.on.array[index] == node + 1:
                self.ssn.journal.put(self.free, node, self.free.array[node] | self.taken.array[index])


def is_listed(topology: Numatopology, uid: str, key: str) -> bool:
    """Whether the agent knows of a pod's CPUs: by its UID, or by its namespace and name."""
    return any(uid == each or key == name for each, name in topology.assigned)


def _places(ssn: Session) -> list[Place | None]:
    """Of each node, None where its agent says nothing; equal machines are one."""
    facts, machines = ssn.tables.nodes.facts, dict[object, Machine]()
    found: list[Place | None] = [None] * len(facts)
    for topology in ssn.tables.numas.objs:
        row = facts.row_of.get(topology.name)
        if row is not None:
            like = topology.cpus, topology.reserved
            machine = machines.setdefault(like, Machine(*like))
            found[row] = Place(topology, machine, tuple(cpu.id for cpu in topology.cpus), _sign(topology))
    return found


def _sign(topology: Numatopology) -> float:
    """48 bits, which a column of numbers holds exactly: what a memo compares in place of the object."""
    return float(int.from_bytes(blake2b(repr(topology).encode(), digest_size=6).digest()))
