"""numa: place pods where the kubelet's Topology Manager will align what they ask for to NUMA zones.

Source: KAI numa plugin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from pumice.algorithms.zones import BEST_EFFORT as GREEDY
from pumice.algorithms.zones import NONE as NOT_ALIGNED
from pumice.algorithms.zones import RESTRICTED as NARROWEST
from pumice.algorithms.zones import SINGLE as ONE_ZONE
from pumice.algorithms.zones import UNKNOWN, Alignment, Amounts, Machines, ZoneRequest, aligned, minus, taken_on_one
from pumice.api import (
    F64,
    HELD,
    PENDING,
    ROWS,
    AnyArray,
    FilterResult,
    Node,
    NodeRows,
    Pod,
    PodSpec,
    Resource,
    Session,
    Task,
    TaskClass,
    TaskRun,
    TaskStatus,
    Unfit,
    plugin,
)
from pumice.kai import points
from pumice.model.decisions import DEVICES
from pumice.model.devices.numa import (
    BEST_EFFORT,
    NONE,
    OBSERVED_ANNOTATION,
    PREDICTED_ANNOTATION,
    RESTRICTED,
    SINGLE,
    text_of_zones,
    zone_amounts,
)
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.resources import CPU as CPU_NAME
from pumice.model.resources import MEMORY as MEMORY_NAME

SCORE = 100.0
_POLICIES = {NONE: NOT_ALIGNED, BEST_EFFORT: GREEDY, RESTRICTED: NARROWEST, SINGLE: ONE_ZONE}
_NOT_ALIGNED = Unfit("node cannot NUMA-align the pod's resources under its Topology Manager policy")
#: Of the two placements that are kept for a task: where it is, and where it is moved while it still leaves that place.
_HOME, _MOVED = 0, 1
#: States of a task that has just been given a place.
_PLACED = (int(TaskStatus.ALLOCATED), int(TaskStatus.PIPELINED))


@plugin("numa")
class Numa:
    """Filter and score nodes by what is free in their NUMA zones.

    ``ignoreList``: resources that are not aligned, with commas between. ``reconstructAvailable``: what is free follows
    from the zones of the pods that are there, and not from what the node's agent reports, which is older.

    ``free`` (N, Z * K): what is free of K resources in Z zones. ``taken`` (I, 2, Z * K) and ``on`` (I, 2): what each of
    I tasks holds, and the row of its node plus 1.
    """

    def __init__(self, ssn: Session, *, ignoreList: str = "", reconstructAvailable: bool = True) -> None:
        self.ssn = ssn
        self._reported = {each.name: each for each in ssn.tables.zones.objs if each.zones}
        ignored = {name.strip() for name in ignoreList.split(",")}
        self._names = self._resources(ignored)
        self._devices = [not _by_class(name) for name in self._names]
        self._depth = max((len(each.zones) for each in self._reported.values()), default=0)
        self._shape = self._depth, len(self._names)
        self._nothing = np.zeros(self._shape).tolist()
        self._asks = [None if spec is None else self._asked(spec) for spec in ssn.tables.classes.specs]
        rows = self._rows()
        self._index = {row: i for i, row in enumerate(rows)}
        self.unused_points = (
            ()
            if rows and self._depth
            else (points.predicate, points.node_order, points.on_allocate, points.on_deallocate, points.bind_context)
            + (points.keeps_placement,)
        )
        if self.unused_points:
            return
        self._machines, free, facts = self._read_nodes(reconstructAvailable)
        # Under policy ``none`` the kernel decides which zone a pod uses, so there is nothing to record of its
        # placement.
        self._modelled = self._machines.policy >= GREEDY
        # What an agent reports as available is already without these pods: what they hold is then taken from an array
        # that is thrown away, and not a second time from what is free.
        taken, on = self._held(rows, free if reconstructAvailable else np.zeros_like(free))
        ssn.column("numa.nodes", "node", facts.shape[1], values=facts)
        self.free = ssn.column("numa.free", "node", free.shape[1], values=free)
        self.taken = ssn.column("numa.taken", values=taken)
        self.on = ssn.column("numa.on", values=on)
        self._last: tuple[tuple[object, ...], Alignment] | None = None

    # -- what there is ------------------------------------------------------------------------------------------------

    def _resources(self, ignored: set[str]) -> list[str]:
        """Return the resources that zones report, in order: those that some node has, less the ignored ones."""
        found = {
            name
            for each in self._reported.values()
            for zone in each.zones
            for amount in (zone.allocatable, zone.available)
            for name in (CPU_NAME, MEMORY_NAME, *(amount.scalars or ()))
            if amount.get(name)
        }
        axis = self.ssn.tables.axis
        # Pod slots are a resource of nodes, and of no zone.
        left_out = ignored | {axis.names[axis.pods]}
        return [name for name in axis.names if name in found and name not in left_out]

    def _rows(self) -> list[int]:
        """Return the tasks that ask for something that is aligned."""
        tasks = self.ssn.tables.tasks
        asks = np.array([ask is not None for ask in self._asks], dtype=bool)
        alive = np.flatnonzero(tasks.alive)
        found: list[int] = alive[asks[tasks.cls[alive]]].tolist() if asks.any() else []
        return found

    def _read_nodes(self, reconstruct: bool) -> tuple[Machines, F64, F64]:
        """Return the machines, what is free on them, and numbers for each node on which answers rest."""
        nodes = self.ssn.tables.nodes.facts
        policy, by_pod = np.full(len(nodes), UNKNOWN), np.zeros(len(nodes), dtype=bool)
        zones, amounts = np.zeros(len(nodes), dtype=np.int64), np.zeros((2, len(nodes), *self._shape))
        for name, found in self._reported.items():
            row = nodes.row_of.get(name)
            if row is not None:
                policy[row], by_pod[row], zones[row] = (
                    _POLICIES.get(found.policy, NOT_ALIGNED),
                    found.by_pod,
                    len(found.zones),
                )
                for i, zone in enumerate(found.zones):
                    amounts[0, row, i] = self._vector(zone.allocatable)
                    amounts[1, row, i] = self._vector(zone.available)
        # What the largest zones have together, by their number: policy ``restricted`` asks how few zones can cover a
        # request when they are empty, and then insists on that number.
        prefix = (-np.sort(-amounts[0], axis=1)).cumsum(axis=1)
        machines = Machines(policy, by_pod, zones, np.logical_or.reduce(amounts > 0, axis=(0, 2)), prefix)
        # A column has only numbers. The hash makes answers rest on which resources these numbers are about.
        names = float(int.from_bytes(blake2b(repr(self._names).encode(), digest_size=6).digest()))
        flat = amounts.transpose(1, 0, 2, 3).reshape(len(nodes), -1)
        facts = np.column_stack((np.full(len(nodes), names), policy, by_pod, zones, flat))
        return machines, amounts[0 if reconstruct else 1].reshape(len(nodes), -1).copy(), facts

    def _held(self, rows: list[int], free: F64) -> tuple[F64, AnyArray]:
        """Return what tasks hold when the session begins, and take it from ``free``."""
        tables, width = self.ssn.tables, self._depth * len(self._names)
        taken, on = np.zeros((len(rows), 2, width)), np.zeros((len(rows), 2), dtype=np.int64)
        expected = {grant.key: dict(grant.annotations) for grant in tables.device_grants.objs}
        tasks = tables.tasks
        for i, row in enumerate(rows):
            node = int(tasks.node[row])
            if node < 0 or not HELD[tasks.status[row]] or not self._modelled[node]:
                continue
            pod = tasks.pods[row]
            taken[i, _HOME], on[i, _HOME] = self._recorded(pod, expected.get(pod.key, {}), node), node + 1
            free[node] -= taken[i, _HOME]
        return taken, on

    def _recorded(self, pod: Pod, expected: Mapping[str, str], node: int) -> F64:
        """Return what a pod holds of its node's zones by its annotations, zero if that is unknown."""
        annotations = {**pod.annotations, **expected}
        record = zone_amounts(annotations.get(OBSERVED_ANNOTATION, ""))
        # The prediction of the bind serves until the agent of the node has reported where the kubelet put the pod.
        record = record or zone_amounts(annotations.get(PREDICTED_ANNOTATION, ""))
        found = np.zeros(self._shape)
        of_node = self._reported[self.ssn.tables.nodes.facts.names[node]].zones
        numbers = {zone.name: i for i, zone in enumerate(of_node)}
        # A record that names an unknown zone counts for nothing: a part of it would make too little free at its end.
        if all(zone in numbers for zone, _ in record):
            for zone, amount in record:
                found[numbers[zone]] += self._vector(amount)
        return found.reshape(-1)

    def _vector(self, amount: Resource) -> F64:
        return np.array([amount.get(name) for name in self._names])

    # -- what is asked for --------------------------------------------------------------------------------------------

    def _asked(self, spec: PodSpec) -> tuple[ZoneRequest, ZoneRequest] | None:
        """Return what a pod asks for as a whole and by container, or None if the kubelet aligns nothing of it."""
        guaranteed = spec.qos == "Guaranteed"
        uses_devices = any(spec.request.get(name) for name in np.compress(self._devices, self._names))
        if not guaranteed and not uses_devices:
            return None
        if spec.containers is None:
            whole = ZoneRequest((self._exclusive(spec.request, guaranteed),))
            return whole, whole
        apps = [self._exclusive(each, guaranteed) for each in spec.containers.apps]
        inits = [(self._exclusive(each, guaranteed), is_sidecar) for each, is_sidecar in spec.containers.inits]
        sidecars = [amount for amount, is_sidecar in inits if is_sidecar]
        total = self._exclusive(spec.request, guaranteed)
        if guaranteed and CPU_NAME in self._names:
            total[self._names.index(CPU_NAME)] = _peak(apps, inits)[self._names.index(CPU_NAME)]
        alone = tuple(amount for amount, is_sidecar in inits if not is_sidecar)
        return ZoneRequest((total,)), ZoneRequest((*sidecars, *apps), alone)

    def _exclusive(self, amount: Resource, guaranteed: bool) -> F64:
        """Return the amounts that are aligned: devices, and other resources only of pods of class Guaranteed."""
        found = self._vector(amount)
        if not guaranteed:
            return np.where(self._devices, found, 0.0)
        # The kubelet gives a container CPUs of its own only if it asks for whole ones.
        if amount.milli_cpu % 1000 and CPU_NAME in self._names:
            found[self._names.index(CPU_NAME)] = 0.0
        return found

    def _aligned(self, cls: int, nodes: AnyArray, free: F64) -> Alignment:
        """Return what another task of a class would take on nodes (r,) with these amounts free (r, Z * K)."""
        asks, free = self._asks[cls], free.reshape(-1, *self._shape)
        assert asks is not None
        machines = self._machines.at(nodes)
        by_pod = machines.by_pod
        if asks[0] is asks[1] or by_pod.all():
            return aligned(asks[0], machines, free)
        found = aligned(asks[1], machines, free)
        if by_pod.any():
            found.fits[by_pod], found.taken[by_pod] = aligned(asks[0], machines.at(by_pod), free[by_pod])
        return found

    def _taken(self, cls: int, node: int, free: Amounts) -> Amounts:
        """Return what another task of a class would take on one node with these amounts free, nothing if it cannot be
        aligned."""
        asks = self._asks[cls]
        assert asks is not None
        found = taken_on_one(asks[0 if self._machines.by_pod[node] else 1], self._machines, node, free)
        return self._nothing if found is None else found

    def _after(self, cls: int, nodes: NodeRows) -> Alignment:
        """Return what another task would take, after those that hypothetical rows have."""
        further = nodes.further
        key = cls, nodes.rows.tobytes(), self.free.version, None if further is None else further.tobytes()
        # Filter and score ask the same one after the other.
        if self._last is None or self._last[0] != key:
            found = (
                self._aligned(cls, nodes.rows, self.free.array[nodes.rows])
                if further is None
                else self._one_by_one(cls, nodes.rows, further.astype(np.int64))
            )
            self._last = key, found
        return self._last[1]

    def _one_by_one(self, cls: int, rows: AnyArray, further: AnyArray) -> Alignment:
        """Return what another task would take on rows that already have so many ``further`` tasks (rows,)."""
        # Equal tasks on a node take their zones one by one, because each finds other zones full. Each node is stepped
        # through once, and not once for each of its rows.
        nodes, place = np.unique(rows, return_inverse=True)
        free, steps = self.free.array[nodes], []
        for _ in range(int(further.max(initial=0)) + 1):
            steps.append(self._aligned(cls, nodes, free))
            free = free - steps[-1].taken.reshape(free.shape)
        return Alignment(*(np.array(each)[further, place] for each in zip(*steps, strict=True)))

    # -- hooks --------------------------------------------------------------------------------------------------------

    @points.predicate(reads=(ROWS,))
    def predicate(self, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        """Reject nodes whose kubelet would refuse the pod. Shape (rows,)."""
        # Policy ``best-effort`` aligns what it can and never refuses a pod, so it only counts in the score.
        strict = nodes.pick(self._machines.policy) >= NARROWEST
        if self._asks[cls.row] is None or not strict.any():
            return None
        return FilterResult.of(self._after(cls.row, nodes).fits | ~strict, _NOT_ALIGNED)

    @points.node_order(reads=(ROWS,))
    def score(self, cls: TaskClass, nodes: NodeRows) -> F64 | None:
        """Return 100 divided by the number of zones that the task would span. Shape (rows,)."""
        if self._asks[cls.row] is None:
            return None
        found = self._after(cls.row, nodes)
        spans = (found.taken > 0).any(axis=2).sum(axis=1)
        # Without alignment a pod may end in all zones: those of its node, or the most there are if they are unknown.
        worst = np.where(nodes.pick(self._machines.policy) == UNKNOWN, self._depth, nodes.pick(self._machines.zones))
        modelled = nodes.pick(self._modelled)
        scores: F64 = SCORE / np.maximum(np.where(modelled, spans, worst), 1)
        return np.where(modelled & ~found.fits, 0.0, scores)

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        """Charge the zones of tasks."""
        by_node: dict[int, list[int]] = {}
        for row, node in zip(run.rows, run.nodes, strict=True):
            if row in self._index and self._modelled[node]:
                by_node.setdefault(node, []).append(row)
        if not by_node:
            return
        index = [self._index[row] for rows in by_node.values() for row in rows]
        free, places = self.free.array[list(by_node)], list[int]()
        taken, on = self.taken.array[index], self.on.array[index]
        for i, (node, rows) in enumerate(by_node.items()):
            left = free[i].reshape(self._shape).tolist()
            # One after the other: each finds what those before it have left.
            for row in rows:
                t = len(places)
                place, amount = self._charge(row, node, left, taken[t, _HOME], int(on[t, _HOME]))
                left = minus(left, amount)
                taken[t, place], on[t, place] = np.ravel(amount), node + 1
                places.append(place)
            free[i] = np.ravel(left)
        put = self.ssn.journal.put
        put(self.free, list(by_node), free)
        put(self.taken, index, taken)
        put(self.on, index, on)

    def _charge(self, row: int, node: int, free: Amounts, held: F64, home: int) -> tuple[int, Amounts]:
        """Return what a task gets of a node with ``free`` amounts, and as which of its placements."""
        tasks = self.ssn.tables.tasks
        # A task whose eviction is undone has what it had.
        if home == node + 1 and tasks.status[row] not in _PLACED:
            return _HOME, held.reshape(self._shape).tolist()
        # A task that is moved holds zones at both nodes until its old pod has gone.
        return _MOVED if tasks.leaving[row] >= 0 else _HOME, self._taken(int(tasks.cls[row]), node, free)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        """Free the zones of tasks."""
        for row, node in zip(run.rows, run.nodes, strict=True):
            index = self._index.get(row)
            if index is None or not self._modelled[node]:
                continue
            on = self.on.array[index]
            place = _MOVED if on[_MOVED] == node + 1 else _HOME
            if on[place] == node + 1:
                free = self.free.array[node] + self.taken.array[index, place]
                self.ssn.journal.put(self.free, node, free)
                if place == _MOVED:
                    self.ssn.journal.put(self.on, index, np.array((on[_HOME], 0)))
                elif self.ssn.tables.tasks.status[row] == PENDING:
                    # Its bind was refused. A task that was evicted keeps the record, because it may come back.
                    self.ssn.journal.put(self.on, index, np.zeros(2, dtype=np.int64))
                    self.ssn.journal.put(self.taken, index, np.zeros_like(self.taken.array[index]))

    @points.keeps_placement
    def keeps_placement(self, task: Task, node: Node) -> bool:
        """Return False if an evicted task would get other zones of its node than it has."""
        index = self._index.get(task.row)
        if index is None or not self._modelled[node.row]:
            return True
        # A running pod cannot change its zones. In others it would have to start again, which is an eviction like any
        # other.
        free = self.free.array[node.row].reshape(self._shape).tolist()
        taken = np.ravel(self._taken(task.cls.row, node.row, free))
        return not taken.any() or bool((taken == self.taken.array[index, _HOME]).all())

    @points.bind_context
    def bind_context(self, task: Task, node: Node) -> Mapping[str, object] | None:
        """Return the annotation with the zones that the task is expected to get."""
        index = self._index.get(task.row)
        if index is None or self.on.array[index, _HOME] != node.row + 1:
            return None
        # The binder writes this on the pod, and the next session reads it there (``_recorded``).
        zones = tuple([zone.name for zone in self._reported[node.name].zones])
        text = _prediction(tuple(self._names), zones, self.taken.array[index, _HOME].tobytes())
        if not text:
            return None
        pod = task.pod
        return {DEVICES: DeviceGrant(pod.namespace, pod.name, ((PREDICTED_ANNOTATION, text),))}


# Kept because most pods ask for equal amounts of zones with equal names, and each text costs an encoding.
@lru_cache(maxsize=1024)
def _prediction(names: tuple[str, ...], zones: tuple[str, ...], taken: bytes) -> str:
    """Return the annotation for the amounts that a pod takes of zones, "" if it takes nothing."""
    held = np.frombuffer(taken).reshape(-1, len(names))
    amounts = tuple((zone, _resource(names, amount)) for zone, amount in zip(zones, held, strict=False) if amount.any())
    return text_of_zones(amounts) if amounts else ""


def _by_class(name: str) -> bool:
    """Return True for resources that are aligned for pods of QoS class Guaranteed only."""
    return name in (CPU_NAME, MEMORY_NAME) or name.startswith("hugepages-")


def _peak(apps: list[F64], inits: list[tuple[F64, bool]]) -> F64:
    """Return the most that containers hold at one time."""
    sidecars = peak = np.zeros_like(apps[0]) if apps else np.zeros(0)
    for amount, is_sidecar in inits:
        if is_sidecar:
            sidecars = sidecars + amount
        else:
            peak = np.maximum(peak, sidecars + amount)
    return np.maximum(peak, sum(apps, sidecars))


def _resource(names: Sequence[str], amounts: F64) -> Resource:
    """Return amounts by name."""
    named = dict(zip(names, amounts.tolist(), strict=True))
    cpu, memory = named.pop(CPU_NAME, 0.0), named.pop(MEMORY_NAME, 0.0)
    return Resource(cpu, memory, {name: amount for name, amount in named.items() if amount})
