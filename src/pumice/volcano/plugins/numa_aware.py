"""numa-aware: place pods with exclusive CPUs where the kubelet would find CPUs on few NUMA nodes.

Source: Volcano numa-aware plugin.
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
    """A node with its Numatopology. ``kind``: equal for nodes with equal machines. ``ids``: its CPUs, in order; columns
    use the index in it."""

    topology: Numatopology
    machine: Machine
    kind: int
    ids: tuple[int, ...]
    sign: float  # hash of the Numatopology


@plugin("numa-aware")
class NumaAware:
    """Filter and score nodes by free CPUs.

    ``weight``: weight of the score. The annotation ``volcano.sh/numa-topology-policy`` of a pod names its policy. Only
    pods of QoS class Guaranteed have exclusive CPUs.

    ``free`` (N, C): CPUs that no pod uses exclusively. ``taken`` (K, C): CPUs of each of the K tasks that may have
    exclusive ones.
    """

    def __init__(self, ssn: Session, *, weight: int = 1) -> None:
        self.ssn, self._weight = ssn, weight
        tables = ssn.tables
        self._rests_on = (tables.nodes.facts.version, *ground(tables.numas["objs"]))
        self._places: list[Place | None] = ssn.memo.get("numa.places", self._rests_on, lambda: _places(ssn))
        # Per class: the policy annotation is read into the spec, so that equal tasks share it.
        self._asks = [None if spec is None else spec.numa for spec in tables.classes.specs]
        self._width = max((len(place.ids) for place in self._places if place is not None), default=0)
        asks = np.array([ask is not None for ask in self._asks], dtype=bool)
        # Only tasks that may have CPUs of their own get a row, because a column over all tasks would be as wide as the
        # largest machine.
        rows = np.flatnonzero(tables.tasks.alive)
        rows = rows[asks[tables.tasks.cls[rows]]] if len(asks) else rows[:0]
        self._index = {row: i for i, row in enumerate(rows.tolist())}
        # A column has one width. Nodes with fewer CPUs leave the end of their rows unused.
        free, taken, on = self._begin(rows)
        self.free = ssn.column("numa-aware.free", "node", self._width, values=free)
        # No code reads this column. It makes memoized answers rest on the agents' reports.
        signs = [0.0 if place is None else place.sign for place in self._places]
        ssn.column("numa-aware.agents", "node", values=np.array(signs, dtype=np.float64))
        self.taken = ssn.column("numa-aware.taken", values=taken)
        self.on = ssn.column("numa-aware.on", values=on)
        unused: tuple[Question, ...] = (points.predicate, points.batch_node_order)
        events: tuple[Question, ...] = (points.on_allocate, points.on_deallocate)
        self.unused_points = (*(() if len(rows) else unused), *(() if len(rows) and self._width else events))

    def _begin(self, rows: AnyArray) -> tuple[Bool, Bool, AnyArray]:
        """Return which CPUs are free when the session begins, and which CPUs tasks have that the agents have not
        reported yet."""
        tasks = self.ssn.tables.tasks
        free = np.zeros((len(self._places), self._width), dtype=bool)
        for node, place in enumerate(self._places):
            if place is not None:
                free[node, : len(place.ids)] = np.isin(place.ids, place.topology.free or ())
        taken, on = np.zeros((len(rows), self._width), dtype=bool), np.zeros(len(rows), dtype=np.int64)
        there = [row for row in rows.tolist() if tasks.node[row] >= 0 and HELD[tasks.status[row]]]
        # In order of creation, as the kubelet will most likely have started them; each gets what is free after the
        # ones before.
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
        """Return why a pod cannot run on the node whatever is free, and the policy that applies there ("" for none)."""
        place = self._places[node]
        # Without a policy of its own the pod follows the node's, as kubelet does for every pod.
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
            # Equal and not merely as strict: the annotation says which behaviour the user expects of the kubelet.
            if policy != ask.policy:
                return f"task topology policy[{ask.policy}] is different with node[{policy[:40]}]", ""
        if place.topology.free is None:
            return "no topo information", ""
        return ("", policy) if place.topology.free else ("cpu allocatable map is empty", "")

    def _assigned(self, ask: NumaAsk, node: int, policy: str, free: Bool) -> Assigned:
        """Return what the pod would get of the free CPUs."""
        place = self._places[node]
        assert place is not None
        # Nodes of one kind share the answer for equal free CPUs.
        question = "numa.assigned", place.kind, free.tobytes(), ask, policy

        def build() -> Assigned:
            left = frozenset(cpu for cpu, is_free in zip(place.ids, free.tolist(), strict=False) if is_free)
            return assigned(place.machine, left, ask, policy)

        return self.ssn.memo.get(question, self._rests_on, build)

    def _mask(self, node: int, cpus: CpuSet) -> Bool:
        """Return CPUs as a row of a column."""
        place = self._places[node]
        assert place is not None
        found = np.zeros(self._width, dtype=bool)
        found[: len(place.ids)] = np.isin(place.ids, list(cpus))
        return found

    def _bits(self, row: int, node: int, free: Bool) -> Bool:
        """Return the CPUs that a task gets on a node, none if it gets no exclusive ones."""
        ask = self._asks[self.ssn.tables.tasks.cls[row]]
        objection, policy = self._objection(ask, node) if ask is not None else ("", "")
        if ask is None or objection or not policy:
            return np.zeros(self._width, dtype=bool)
        return self._mask(node, self._assigned(ask, node, policy, free).cpus)

    # -- hooks --------------------------------------------------------------------------------------------------------

    @points.predicate(reads=(ROWS,))
    def predicate(self, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        """Reject nodes whose kubelet would not find CPUs for every container. Shape (rows,)."""
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
        """Return why another such pod does not fit, after ``further`` ones."""
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
        """Return a higher score for nodes where a pod with a policy would use fewer NUMA nodes. Shape (rows,)."""
        ask = self._asks[task.cls.row]
        if ask is None or not ask.policy:
            return None
        count = np.array([self._spread(ask, node) for node in nodes.rows.tolist()], dtype=np.int64)
        most = int(count.max(initial=0))
        # Whole numbers, because Volcano divides integers here.
        scores: F64 = (_SCORE_MAX - (_SCORE_MAX * count // most if most else count)).astype(np.float64)
        return scores * self._weight

    def _spread(self, ask: NumaAsk, node: int) -> int:
        """Return how many NUMA nodes the pod would use."""
        objection, policy = self._objection(ask, node)
        place = self._places[node]
        if objection or not policy or place is None:
            return 0
        cpus = self._assigned(ask, node, policy, self.free.array[node]).cpus
        return len({place.machine.at[cpu].numa for cpu in cpus})

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        """Assign CPUs to tasks."""
        for row, node in zip(run.rows, run.nodes, strict=True):
            index = self._index.get(row)
            if index is None or self._places[node] is None:
                continue
            free, bits = self.free.array[node], self.taken.array[index]
            # A task that returns to its node keeps the CPUs that it had, if they are still free.
            if self.on.array[index] != node + 1 or (bits & ~free).any():
                bits = self._bits(row, node, free)
                self.ssn.journal.put(self.taken, index, bits)
                self.ssn.journal.put(self.on, index, node + 1)
            self.ssn.journal.put(self.free, node, free & ~bits)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        """Release the CPUs of tasks."""
        for row, node in zip(run.rows, run.nodes, strict=True):
            index = self._index.get(row)
            if index is not None and self.on.array[index] == node + 1:
                self.ssn.journal.put(self.free, node, self.free.array[node] | self.taken.array[index])


def is_listed(topology: Numatopology, uid: str, key: str) -> bool:
    """Return True if the agent has reported a pod's CPUs, by its UID or by namespace and name."""
    return any(uid == each or key == name for each, name in topology.assigned)


def _places(ssn: Session) -> list[Place | None]:
    """Return the place of each node, None if its agent reports nothing."""
    facts, machines = ssn.tables.nodes.facts, dict[object, tuple[Machine, int]]()
    found: list[Place | None] = [None] * len(facts)
    for topology in ssn.tables.numas.objs:
        row = facts.row_of.get(topology.name)
        if row is not None:
            like = topology.cpus, topology.reserved
            machine, kind = machines.setdefault(like, (Machine(*like), len(machines)))
            found[row] = Place(topology, machine, kind, tuple(cpu.id for cpu in topology.cpus), _sign(topology))
    return found


def _sign(topology: Numatopology) -> float:
    """Return a hash of 48 bits, which a float64 column holds exactly and a memo compares instead of the object."""
    return float(int.from_bytes(blake2b(repr(topology).encode(), digest_size=6).digest()))
