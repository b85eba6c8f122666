"""gpuplacement: choose the node and the GPU devices by one of the policies that the fragmentation study compares.

KAI has no such plugin; this one replaces nodeplacement, gpusharingorder and gpupack. Scores are whole numbers from 0
to 100, and the node whose name comes first wins a tie, as in the study. Source: Weng et al., USENIX ATC'23.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pumice.algorithms.dice import rolled
from pumice.api import F64, PODS, ROWS, Node, NodeRows, Question, Session, Task, TaskClass, TaskRun, plugin
from pumice.kai import points
from pumice.ours.fragments import WHOLE, Ask, Room, Shape, Typical
from pumice.ours.free_gpus import FreeGpus, ask_of
from pumice.ours.gpu_packing import best_fit, clustering, descent, dot_product, packing
from pumice.ours.node_worth import NO_ROOM, NodeWorth, bids
from pumice.ours.typical_pods import read_typical
from pumice.placing.derived import derived
from pumice.placing.filters.nodes import stable_codes

NAME = "gpuplacement"
RANDOM, DOT_PRODUCT, CLUSTERING, PACKING, BEST_FIT, FGD, PRICED = POLICIES = (
    *("random", "dotprod", "clustering", "packing", "bestfit", "fgd", "priced"),
)


class _Expected(NamedTuple):
    """Values derived from the typical pods. ``worth`` is used by the policy ``priced``."""

    typical: Typical
    worth: NodeWorth
    version: int


@plugin(NAME)
class GpuPlacement:
    """Choose nodes and GPU devices by a policy.

    ``policy``: one of POLICIES. ``seed``: seed of the policy ``random``. ``typical``: pods to expect, for ``fgd`` and
    ``priced``, one kind per line, PODS CORES GPUS [MODEL|MODEL]. Empty: the running and pending pods.
    """

    def __init__(self, ssn: Session, *, policy: str = FGD, seed: int = 0, typical: str = "") -> None:
        self.ssn, self.policy, self.seed = ssn, policy, seed
        self._free = FreeGpus(ssn)
        # random and priced score per task. All others score per task class, whose answers are shared by all of its
        # tasks. The point that a policy does not use is switched off.
        by_task = policy in (RANDOM, PRICED)
        self.unused_points: tuple[Question, ...] = (points.node_order if by_task else points.batch_node_order,)
        # Only clustering counts pods per node, so no other policy needs the events.
        if policy != CLUSTERING:
            self.unused_points += (points.on_allocate, points.on_deallocate)
        classes = ssn.tables.classes.alive.nonzero()[0].tolist()
        if policy in (FGD, PRICED):
            self._typical_text = typical.strip()
            self._classes = classes
            self._counted = () if self._typical_text else self._count_pods(classes)
        if policy == CLUSTERING:
            self._count_kinds(classes)

    @staticmethod
    def problems(*, policy: str, seed: int, typical: str) -> Iterator[str]:
        if policy not in POLICIES:
            yield f'argument policy: found "{policy[:40]}", wanted one of {", ".join(POLICIES)}'
        try:
            read_typical(typical)
        except ValueError as error:
            yield f"argument typical: {error}"

    @points.node_order(reads=(ROWS, f"{NAME}.pods"))
    def score(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """Return scores from 0 to 100. Shape (rows,)."""
        ask = ask_of(cls)
        if self.policy == FGD:
            return self._node_gain(nodes, ask)
        room = self._free.room(nodes)
        if self.policy == DOT_PRODUCT:
            return dot_product(room, ask)
        if self.policy == BEST_FIT:
            return best_fit(room, ask)
        if self.policy == CLUSTERING:
            return clustering(room, ask, nodes.read(self._kinds), self._kind_of[cls.row])
        return packing(room, ask, nodes.pick(self._free.devices))

    @points.batch_node_order(reads=(ROWS, PODS))
    def bid(self, task: Task, nodes: NodeRows) -> F64:
        """Return a seeded random score for ``random``, and for ``priced`` the gain less the current price. Shape
        (rows,)."""
        if self.policy == RANDOM:
            return rolled(self.seed, task.key, nodes.rows)
        # The price depends on how much of a model is in use, which changes with every placement; the gain is cached by
        # row.
        ask = ask_of(task.cls)
        return bids(
            self._node_gain(nodes, ask), ask.devices * ask.milli, self._free.in_use()[nodes.pick(self._free.models)]
        )

    @points.device_order
    def device(self, task: Task, node: Node, used: F64) -> F64:
        """Return a score per device: the use of the device, or for ``fgd`` and ``priced`` the gain of placing there,
        or for ``random`` a seeded random score. Shape (devices,)."""
        if self.policy == RANDOM:
            return rolled(self.seed, f"{task.key} device", np.arange(len(used)))
        ask = ask_of(task.cls)
        # Whole free devices are interchangeable, so their use is score enough.
        if self.policy not in (FGD, PRICED) or ask.milli == WHOLE or not used.any():
            return used
        room = self._free.room(NodeRows(self.ssn.tables, np.array([node.row])))
        scores = self._gain(room, ask)[0]
        free = np.rint(1000.0 * (1.0 - used))
        # Room lists devices by free capacity and not by slot, so each device takes the score of the column with the
        # closest free capacity.
        return np.asarray(scores[np.abs(room.gpus[0][:, None] - free).argmin(axis=0)])

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self._count(run, 1)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self._count(run, -1)

    # -- what it keeps ------------------------------------------------------------------------------------------------

    def _node_gain(self, nodes: NodeRows, ask: Ask) -> F64:
        """Return how good nodes are for a request. Shape (rows,)."""
        # The cache describes nodes as they are; hypothetical rows are computed directly.
        return self._best_gain(nodes, ask) if nodes.are_hypothetical else self._cached_gain(ask)[nodes.rows]

    def _cached_gain(self, ask: Ask) -> F64:
        """Return how good all nodes are in their current state; only rows that changed are recomputed. Shape (N,)."""
        tables = self.ssn.tables
        assert tables.nodes.stamps is not None
        # The key is the request and not the class: classes that differ in labels or memory share the answer.
        question, rests_on = (
            (NAME, self.policy, self._typical_text, ask),
            (tables.nodes.facts.version, self._expected.version),
        )
        return self.ssn.memo.by_row(
            question, rests_on, tables.nodes.stamps, lambda rows: self._best_gain(NodeRows(tables, rows), ask)
        )

    def _best_gain(self, nodes: NodeRows, ask: Ask) -> F64:
        """Return how good nodes are by their best device, or the lowest value where the request does not fit. Shape
        (rows,)."""
        room, found = self._free.room(nodes), np.full(len(nodes), 0.0 if self.policy == FGD else NO_ROOM)
        fits = (room.milli_cpu >= ask.milli_cpu) & ((room.gpus >= ask.milli).sum(axis=1) >= ask.devices)
        # Without GPUs on these nodes there is no device to take the best of.
        if fits.any():
            found[fits] = self._gain(room.part(fits), ask).max(axis=1)
        return found

    def _gain(self, room: Room, ask: Ask) -> F64:
        """Return how good nodes are per device, by what remains usable after the placement. Shape (rows, devices)."""
        gradient = self._expected.typical.gradient(room, ask)
        return descent(gradient) if self.policy == FGD else self._expected.worth.gain(room, ask, gradient)

    @cached_property
    def _expected(self) -> _Expected:
        """Return the values derived from the typical pods."""
        # Computed with the first score and not when the plugin opens: many cycles place no pods.
        rests_on = (self.ssn.tables.nodes.facts.version, *self._counted)
        return self.ssn.memo.get((NAME, "expected", self.policy, self._typical_text), rests_on, self._expect)

    def _expect(self) -> _Expected:
        """Derive the values of a policy from the typical pods."""
        shapes, models = self._named() if self._typical_text else self._shapes(), len(self._free.first_of_models)
        if self.policy == PRICED:
            # With prices per model, restrictions would count twice: the price already keeps a model for the pods that
            # need it.
            shapes = [shape._replace(models=(True,) * models) for shape in shapes]
        worth = NodeWorth(shapes if self.policy == PRICED else (), self._free.most)
        return _Expected(Typical(shapes, models), worth, self.ssn.tables.versions.next())

    def _named(self) -> list[Shape]:
        """Return the typical pods that the policy file names."""
        names = self._free.model_names
        return [
            Shape(each.ask, tuple(not each.models or name in each.models for name in names), each.pods)
            for each in read_typical(self._typical_text)
        ]

    def _count_pods(self, classes: list[int]) -> tuple[int, tuple[int, ...]]:
        """Count the pods of each class, and return the versions on which the counts rest."""
        tables = self.ssn.tables
        there = tables.tasks.alive & (tables.tasks.cls >= 0)
        pods = np.bincount(tables.tasks.cls[there], minlength=tables.classes.capacity)
        self._pods = self.ssn.column(f"{NAME}.pods", values=pods)
        # The identity of each class belongs to them, since a class row may be reused for another class.
        return self._pods.version, tuple(map(tables.classes.identity, classes))

    def _shapes(self) -> list[Shape]:
        """Return all pods of the snapshot as typical pods."""
        ssn, tables, pods = self.ssn, self.ssn.tables, self._pods.array.tolist()
        first = self._free.first_of_models
        shapes = []
        for row in self._classes:
            codes = stable_codes(derived(ssn), tables.classes.specs[row], affinity=True, taints=True).codes
            # One node represents all nodes of its model: taints and affinity are evaluated per model and not per node.
            models = tuple((codes[first] == 0).tolist())
            shapes.append(Shape(ask_of(TaskClass(tables, row)), models, float(pods[row])))
        return shapes

    def _count_kinds(self, classes: list[int]) -> None:
        """Count the pods of each kind on each node. Kinds are a part of a GPU, one GPU, two GPUs and so on."""
        tables = self.ssn.tables
        asks = {row: ask_of(TaskClass(tables, row)) for row in classes}
        # All parts of a GPU are one kind, whatever their size: Gandiva clusters sharing pods together.
        kinds = sorted({ask[1:] if ask.milli >= 1000 else (1, 0.0) for ask in asks.values() if ask.devices})
        self._kind_of = {
            row: kinds.index(ask[1:] if ask.milli >= 1000 else (1, 0.0)) if ask.devices else -1
            for row, ask in asks.items()
        }
        self._steps = np.zeros((tables.classes.capacity, len(kinds)))
        for row, kind in self._kind_of.items():
            if kind >= 0:
                self._steps[row, kind] = 1.0
        counts = np.zeros((tables.nodes.capacity, len(kinds)))
        there = (tables.tasks.alive & (tables.tasks.node >= 0) & (tables.tasks.cls >= 0)).nonzero()[0]
        np.add.at(counts, tables.tasks.node[there], self._steps[tables.tasks.cls[there]])
        self._kinds = self.ssn.column(f"{NAME}.kinds", "node", len(kinds), values=counts, per_task=self._steps)

    def _count(self, run: TaskRun, sign: float) -> None:
        """Add a run of tasks to the counts, or remove it. The journal undoes the change if the statement is
        discarded."""
        classes = self.ssn.tables.tasks.cls
        for row, node in zip(run.rows, run.nodes, strict=True):
            self.ssn.journal.add(self._kinds, node, sign * self._steps[classes[row]])
