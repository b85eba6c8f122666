"""Pods as kube-scheduler's filters see them: which match a selector, and how many of those are in each domain.

Pods do not change within a session, but their nodes do. So the pods that a selector matches are found once, and only
counts by domain are repeated after a pod has moved. The view is ``tasks.view_node``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
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

#: Label columns that are kept, and how many of them are made by reading every pod. For more keys, pods are indexed by
#: label once. Bounded, because a tenant may name any number of labels.
_COLUMNS_MAX, _FEW = 256, 8
#: Entries of counts that are kept, over all sets and domains.
_COUNTED_MAX = 1 << 21
NAMESPACE_NAME = "kubernetes.io/metadata.name"


def namespace_labels(namespace: str) -> Mapping[str, str]:
    """Return the labels of a namespace. Namespace objects are not read yet, so only the one that the API server
    adds."""
    return {NAMESPACE_NAME: namespace}


def covers(term: PodAffinityTerm, namespace: str) -> bool:
    """Return True if a term is about pods of a namespace."""
    if namespace in term.namespaces:
        return True
    return term.namespace_selector is not None and matches(term.namespace_selector, namespace_labels(namespace))


def means(term: PodAffinityTerm, pod: Pod) -> bool:
    """Return True if a term is about a pod. Without a label selector it is about none."""
    return term.selector is not None and covers(term, pod.namespace) and matches(term.selector, pod.labels)


class _Counts:
    """Counts of sets of pods, kept while no pod moves, up to a bound."""

    __slots__ = ("_entries", "_found", "_version", "_view_node")

    def __init__(self, tables: Tables) -> None:
        self._view_node = tables.tasks["view_node"]
        self._found: dict[Hashable, I64] = {}
        self._version, self._entries = -1, 0

    def get(self, name: Hashable, count: Callable[[], I64]) -> I64:
        """Return the counts with this name, or compute them."""
        version = self._view_node.version
        # Any move of a pod makes all counts out of date; which of them it changes is not worth finding out.
        if version != self._version or self._entries > _COUNTED_MAX:
            self._found.clear()
            self._version, self._entries = version, 0
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = count()
            self._entries += len(found)
        return found


class PodSet:
    """Some tasks (rows, ascending), counted by their present nodes. ``number``: identity of the set within the
    session."""

    __slots__ = ("_counts", "_derived", "_number", "_view", "_view_node", "rows")

    def __init__(self, tables: Tables, facts: Derived, counts: _Counts, number: int, rows: AnyArray) -> None:
        self._derived, self._view_node, self._view = facts, tables.tasks["view_node"], tables.nodes["view"]
        self.rows = rows
        self._counts, self._number = counts, number

    def __len__(self) -> int:
        return len(self.rows)

    def joined_by(self, tasks: TaskRows) -> list[int]:
        """Return how often each task will count once it is placed, 0 for a task that counts already."""
        # Without a plugin that keeps the view up to date, placements change no count.
        if self._view.per_task is None or not len(self.rows):
            return [0] * len(tasks)
        # A task may be in a set several times, once for each of its terms.
        often = self.rows.searchsorted(tasks.rows, side="right") - self.rows.searchsorted(tasks.rows)
        found: list[int] = (often * (self._view_node.array[tasks.rows] < 0)).tolist()
        return found

    def nodes(self) -> AnyArray:
        """Return the node rows of those that are on a node, one entry per task."""
        where: AnyArray = self._view_node.array[self.rows]
        return where[where >= 0]

    def per_node(self) -> I64:
        """Return how many are on each node. Shape (N,)."""
        return self._kept(None, lambda: np.bincount(self.nodes(), minlength=len(self._derived)))

    def per_domain(self, key: str, eligible: Bool | None = None, kind: Hashable = None) -> I64:
        """Return how many are in each domain of a node label (D + 1,). The last entry, for nodes without the label, is
        0.

        ``eligible`` (N,): only pods on these nodes count. ``kind`` names that mask.
        """

        def count() -> I64:
            where = self._view_node.array[self.rows]
            if eligible is not None:
                where = where[where >= 0]  # first: without nodes, row -1 is none
                where = where[eligible[where]]
            domain_of = self._derived.label(key).domain_of
            found = np.bincount(domain_of[where], minlength=int(domain_of[-1]) + 1)
            # Nodes without the label are counted in the last entry by ``domain_of``, but are in no domain.
            found[-1] = 0
            return found

        return self._kept((key, kind), count)

    def _kept(self, name: Hashable, count: Callable[[], I64]) -> I64:
        return self._counts.get((self._number, name), count)


class PodIndex:
    """Finds tasks by selector. One per session, made when the first term needs it."""

    __slots__ = (
        *("_columns", "_counts", "_every", "_labels", "_namespaces", "_of_class", "_sets", "_staying"),
        *("derived", "ssn", "tables"),
    )

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.derived = ssn, derived(ssn)
        tables = self.tables = ssn.tables
        self._columns: dict[str, EncodedColumn] = {}
        self._labels: dict[str, dict[int, str]] | None = None  # by key the value of each row that has one
        # Sets are kept for the session: labels of pods do not change in it, only their nodes do.
        self._sets: dict[Hashable, PodSet] = {}
        self._counts = _Counts(tables)
        pods = tables.tasks.pods
        alive = tables.tasks.alive.tolist()
        self._namespaces = EncodedColumn(p.namespace if a else None for p, a in zip(pods, alive, strict=True))
        self._every = tables.tasks.alive.nonzero()[0]
        self._of_class = RowsOf(np.where(tables.tasks.alive, tables.tasks.cls, -1))
        self._staying: Bool | None = None

    def matching(self, terms: tuple[PodAffinityTerm, ...]) -> PodSet:
        """Return the tasks that all terms are about; none without terms."""
        return self._set(("terms", terms), lambda: self._all_of(terms))

    def in_namespace(self, selector: LabelSelector | None, namespace: str) -> PodSet:
        """Return the tasks of a namespace that a selector matches and that are not being deleted.

        An empty selector matches none. Source: PodTopologySpread ``countPodsMatchSelector``.
        """
        return self._set(("spread", selector, namespace), lambda: self._stay(selector, namespace))

    def of_classes(self, classes: tuple[int, ...]) -> PodSet:
        """Return the tasks of some classes."""
        return self._set(("classes", classes), lambda: self._of_class(*classes))

    def rows_of_classes(self, classes: Sequence[int]) -> AnyArray:
        """Return the rows of tasks of some classes, ascending. Tasks of a class that is named twice appear twice."""
        return self._of_class(*classes)

    def of_rows(self, name: Hashable, rows: AnyArray) -> PodSet:
        """Return a set of tasks, ascending. A task that is named twice counts twice. ``name`` identifies the set within
        the session."""
        return self._set(name, lambda: rows)

    def _set(self, key: Hashable, find: Callable[[], AnyArray]) -> PodSet:
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = PodSet(self.tables, self.derived, self._counts, len(self._sets), find())
        return found

    def _column(self, key: str) -> EncodedColumn:
        """Return the column of a label key, cached."""
        column = self._columns.get(key)
        if column is None:
            # All at once: the columns that a session still needs are made again, and no order of use has to be kept.
            if len(self._columns) >= _COLUMNS_MAX:
                self._columns.clear()
            column = self._columns[key] = self._column_of(key)
        return column

    def _column_of(self, key: str) -> EncodedColumn:
        """Build the column of a label key."""
        tasks = self.tables.tasks
        if len(self._columns) < _FEW:
            found = (p.labels.get(key) if a else None for p, a in zip(tasks.pods, tasks.alive.tolist(), strict=True))
            return EncodedColumn(found)
        # One pass over all labels of all pods, instead of a pass per key.
        if self._labels is None:
            self._labels = {}
            for row in self._every.tolist():
                for each, value in tasks.pods[row].labels.items():
                    self._labels.setdefault(each, {})[row] = value
        return EncodedColumn.of(self._labels.get(key, {}), len(tasks.pods))

    def _all_of(self, terms: tuple[PodAffinityTerm, ...]) -> AnyArray:
        each = [self._about(term) for term in terms]
        # ``assume_unique``: rows of one selector are distinct, which saves a sort.
        return reduce(lambda a, b: np.intersect1d(a, b, assume_unique=True), each) if each else self._every[:0]

    def _about(self, term: PodAffinityTerm) -> AnyArray:
        """Return the rows of tasks that a term is about, ascending."""
        if term.selector is None:
            return self._every[:0]
        rows = rows_matching(term.selector, self._column, self._every)
        # Few namespaces, so each is matched once and rows are selected by code; the last entry is for pods without a
        # code.
        covered = [covers(term, namespace) for namespace in self._namespaces.values]
        found: AnyArray = rows[np.array([*covered, False])[self._namespaces.codes[rows]]]
        return found

    def _stay(self, selector: LabelSelector | None, namespace: str) -> AnyArray:
        """Return the rows of tasks of a namespace that a selector matches and that stay."""
        if selector is None or not selector.requirements:
            return self._every[:0]
        if self._staying is None:
            # Once per session, and only if a constraint counts pods that stay.
            self._staying = np.array([p is not None and p.deletion is None for p in self.tables.tasks.pods], dtype=bool)
        rows = rows_matching(selector, self._column, self._every)
        own = np.array([*(n == namespace for n in self._namespaces.values), False])
        return rows[own[self._namespaces.codes[rows]] & self._staying[rows]]


def pod_index(ssn: Session) -> PodIndex:
    """Return the index of the session, which plugins share."""
    return ssn.shared("pods by label", lambda: PodIndex(ssn))


def classes_where(ssn: Session, what: str, wanted: Callable[[PodSpec], bool]) -> tuple[int, ...]:
    """Return the classes whose spec is ``wanted``, ascending. ``what`` names the question, which is answered once a
    session."""

    # Not kept in the memo: a look at each spec costs less than half a per cent of a session.
    def of_all() -> tuple[int, ...]:
        return tuple(row for row, spec in enumerate(ssn.tables.classes.specs) if spec is not None and wanted(spec))

    return ssn.shared(("classes", what), of_all)


def has_pod_terms(spec: PodSpec) -> bool:
    """Return True if a spec has inter-pod affinity or anti-affinity."""
    a = spec.affinity
    return bool(a.pod_required or a.anti_required or a.pod_preferred or a.anti_preferred)
