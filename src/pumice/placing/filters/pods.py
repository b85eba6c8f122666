"""Pods as kube-scheduler's filters see them: which match a selector, and how many of those are in each topology domain.

What a pod is does not change within a session; where it is does. So the pods that a selector matches are found once,
and only counting them by domain is done again when a node has changed. The view is ``tasks.view_node``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import reduce

import numpy as np

from pumice.algorithms.groups import RowsOf
from pumice.algorithms.selectors import EncodedColumn, matches, rows_matching
from pumice.columns.dtypes import I64, AnyArray, Bool
from pumice.columns.rows import TaskRows
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.model.pod import LabelSelector, Pod, PodAffinityTerm, PodSpec
from pumice.placing.derived import Derived, derived

NAMESPACE_NAME = "kubernetes.io/metadata.name"


def namespace_labels(namespace: str) -> Mapping[str, str]:
    """Labels of a namespace: only the one that the API server gives to each. Namespace objects are not read (yet)."""
    return {NAMESPACE_NAME: namespace}


def covers(term: PodAffinityTerm, namespace: str) -> bool:
    """Whether a term looks at pods of a namespace."""
    if namespace in term.namespaces:
        return True
    return term.namespace_selector is not None and matches(term.namespace_selector, namespace_labels(namespace))


def means(term: PodAffinityTerm, pod: Pod) -> bool:
    """Whether a term is about a pod. Without a label selector it is about none."""
    return term.selector is not None and covers(term, pod.namespace) and matches(term.selector, pod.labels)


class PodSet:
    """Some tasks (rows ascending), counted by where they are now."""

    __slots__ = ("_counts", "_derived", "_version", "_view", "_view_node", "rows")

    def __init__(self, tables: Tables, facts: Derived, rows: AnyArray) -> None:
        self._derived, self._view_node, self._view = facts, tables.tasks["view_node"], tables.nodes["view"]
        self.rows = rows
        self._counts: dict[Hashable, I64] = {}
        self._version = -1

    def __len__(self) -> int:
        return len(self.rows)

    def joined_by(self, tasks: TaskRows) -> list[bool]:
        """Which of some tasks are counted once they are placed, and are not yet."""
        if self._view.per_task is None or not len(self.rows):  # nobody keeps the view in step
            return [False] * len(tasks)
        at = np.minimum(self.rows.searchsorted(tasks.rows), len(self.rows) - 1)
        found: list[bool] = ((self.rows[at] == tasks.rows) & (self._view_node.array[tasks.rows] < 0)).tolist()
        return found

    def nodes(self) -> AnyArray:
        """Node rows of those that are on a node, one entry a task."""
        where: AnyArray = self._view_node.array[self.rows]
        return where[where >= 0]

    def per_node(self) -> I64:
        """How many are on each node (N,)."""
        return self._kept(None, lambda: np.bincount(self.nodes(), minlength=len(self._derived)))

    def per_domain(self, key: str, eligible: Bool | None = None, kind: Hashable = None) -> I64:
        """How many are in each domain of a node label (D + 1,); the last entry, for nodes without the label, is 0.

        ``eligible`` (N,) leaves out pods on other nodes; ``kind`` names that mask.
        """

        def count() -> I64:
            where = self._view_node.array[self.rows]
            if eligible is not None:
                where = where[(where >= 0) & eligible[where]]
            domain_of = self._derived.label(key).domain_of
            found = np.bincount(domain_of[where], minlength=int(domain_of[-1]) + 1)
            found[-1] = 0
            return found

        return self._kept((key, kind), count)

    def _kept(self, name: Hashable, count: Callable[[], I64]) -> I64:
        version = self._view_node.version
        if version != self._version:
            self._counts.clear()
            self._version = version
        found = self._counts.get(name)
        if found is None:
            found = self._counts[name] = count()
        return found


class PodIndex:
    """Finds tasks by selector. One a session, made when the first term asks for it."""

    __slots__ = ("_columns", "_every", "_namespaces", "_of_class", "_sets", "_staying", "derived", "ssn", "tables")

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.derived = ssn, derived(ssn)
        tables = self.tables = ssn.tables
        self._columns: dict[str, EncodedColumn] = {}
        self._sets: dict[Hashable, PodSet] = {}
        pods = tables.tasks.pods
        alive = tables.tasks.alive.tolist()
        self._namespaces = EncodedColumn(p.namespace if a else None for p, a in zip(pods, alive, strict=True))
        self._every = tables.tasks.alive.nonzero()[0]
        self._of_class = RowsOf(np.where(tables.tasks.alive, tables.tasks.cls, -1))
        self._staying: Bool | None = None

    def matching(self, terms: tuple[PodAffinityTerm, ...]) -> PodSet:
        """Tasks that every one of the terms is about; none without terms."""
        return self._set(("terms", terms), lambda: self._all_of(terms))

    def in_namespace(self, selector: LabelSelector | None, namespace: str) -> PodSet:
        """Tasks of a namespace that a selector matches and that are not being deleted.

        An empty selector counts nobody. Source: PodTopologySpread ``countPodsMatchSelector``.
        """
        return self._set(("spread", selector, namespace), lambda: self._stay(selector, namespace))

    def of_classes(self, classes: tuple[int, ...]) -> PodSet:
        """Tasks of some classes."""
        return self._set(("classes", classes), lambda: self._of_class(*classes))

    def _set(self, key: Hashable, find: Callable[[], AnyArray]) -> PodSet:
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = PodSet(self.tables, self.derived, find())
        return found

    def _column(self, key: str) -> EncodedColumn:
        column = self._columns.get(key)
        if column is None:
            tasks = self.tables.tasks
            found = (p.labels.get(key) if a else None for p, a in zip(tasks.pods, tasks.alive.tolist(), strict=True))
            column = self._columns[key] = EncodedColumn(found)
        return column

    def _all_of(self, terms: tuple[PodAffinityTerm, ...]) -> AnyArray:
        each = [self._about(term) for term in terms]
        return reduce(lambda a, b: np.intersect1d(a, b, assume_unique=True), each) if each else self._every[:0]

    def _about(self, term: PodAffinityTerm) -> AnyArray:
        if term.selector is None:
            return self._every[:0]
        rows = rows_matching(term.selector, self._column, self._every)
        covered = [covers(term, namespace) for namespace in self._namespaces.values]
        found: AnyArray = rows[np.array([*covered, False])[self._namespaces.codes[rows]]]
        return found

    def _stay(self, selector: LabelSelector | None, namespace: str) -> AnyArray:
        if selector is None or not selector.requirements:
            return self._every[:0]
        if self._staying is None:
            self._staying = np.array([p is not None and p.deletion is None for p in self.tables.tasks.pods], dtype=bool)
        rows = rows_matching(selector, self._column, self._every)
        own = np.array([*(n == namespace for n in self._namespaces.values), False])
        return rows[own[self._namespaces.codes[rows]] & self._staying[rows]]


def pod_index(ssn: Session) -> PodIndex:
    """The index of this session, shared by the plugins that need it."""
    return ssn.shared("pods by label", lambda: PodIndex(ssn))


def classes_where(ssn: Session, what: str, wanted: Callable[[PodSpec], bool]) -> tuple[int, ...]:
    """Classes whose spec is ``wanted``, ascending; ``what`` names the question. Each class is looked at once, and not
    again in the next cycle."""
    classes = ssn.tables.classes

    def find(rows: AnyArray) -> Bool:
        specs = (classes.specs[row] for row in rows.tolist())
        return np.array([spec is not None and wanted(spec) for spec in specs], dtype=bool)

    def of_all() -> tuple[int, ...]:
        assert classes.stamps is not None
        return tuple(ssn.memo.by_row(("classes", what), (), classes.stamps, find).nonzero()[0].tolist())

    return ssn.shared(("classes", what), of_all)


def has_pod_terms(spec: PodSpec) -> bool:
    """Whether a spec has any inter-pod affinity or anti-affinity."""
    a = spec.affinity
    return bool(a.pod_required or a.anti_required or a.pod_preferred or a.anti_preferred)
